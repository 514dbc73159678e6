"""A policy that fails in the middle of a run stops both engines, which name the same file, line and reason."""

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import Message, packet_input_of, pair, sends, wired

from weftwork.base.errors import PolicyError
from weftwork.engine import packet
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.policies.load import load
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

CONTROL = """\
from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal, row
{params}
class State(SenderState):
    acks: int
class Receiver(ReceiverState):
    packets: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.acks += 1
    if state.acks == 3:
        {step}
def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    state.packets += 1
    if state.packets == 3:
        {receive}
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({{Kind.ACK}}),
                           receiver_state=Receiver, receive=receive, source="none")
"""
PATH = """\
from weftwork.policies.interface import PathSelection, PathState, Signal, row
{params}
class State(PathState):
    packets: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.packets += 1
    if state.packets == 3:
        {step}
PLUGIN = PathSelection(params=Params, state=State, step=step, source="none")
"""
PORT = """\
from weftwork.policies.interface import Candidate, PortSelection, PortSignal, row
{params}
class State:
    packets: int
def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    state.packets += 1
    if state.packets == 3:
        {step}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="none")
"""
# All lines that fail stand in one file of each kind, which is compiled once; its parameter says which of them is run.
PARAMS = """class Params:
    fails: int = row(default=0, source="chosen: a test", text="The line that fails, counted from 1.")"""
STEPS = {
    CONTROL: {
        "division": ("state.rate_bps = 1.0 / signal.hops", "ZeroDivisionError"),
        "nan": ("state.rate_bps = state.rate_bps * 1e300 * 1e300 * 0.0", "became nan"),
        "no-rate": ("state.rate_bps = 0.0", "rate_bps became 0.0"),
        "negative-window": ("state.window_bytes = -1.0", "window_bytes became -1.0"),
        "infinite-window": ("state.window_bytes = 1e308 * state.acks * 10", "became inf"),
    },
    PATH: {
        "path-division": ("state.entropy = 1 // (state.packets - 3)", "ZeroDivisionError"),
        "entropy": ("state.entropy = 65_536", "entropy became 65536, wanted 0 to 65535"),
        "negative-entropy": ("state.entropy = -1", "entropy became -1"),
    },
    PORT: {
        "port-division": ("signal.choice = signal.hash // (state.packets - 3)", "ZeroDivisionError"),
        "choice": ("signal.choice = signal.candidates", "choice became 2, wanted 0 to 1"),
        "negative-choice": ("signal.choice = -1", "choice became -1"),
    },
}
RECEIVES = {
    "credit-division": ("state.credit_bytes = signal.bytes // signal.timer", "ZeroDivisionError"),
    "negative-credit": ("state.credit_bytes = -1", "credit_bytes became -1"),
}
KEYS = {CONTROL: "congestion_control", PATH: "path_selection", PORT: "port_selection"}
TWO_PATHS = wired([(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)], hosts=2)


def text_of(text: str) -> str:
    """The file of a kind with all lines that fail, each behind its number."""
    step, receive = (
        "\n        ".join(
            f"if params.fails == {number}: {line}" for number, (line, _) in enumerate(lines.values(), first)
        )
        for lines, first in ((STEPS[text], 1), (RECEIVES, 1 + len(STEPS[text])))
    )
    return text.format(params=PARAMS, step=step, receive=receive)


def plan_with(tmp_path: Path, text: str, fails: str = "", ends_with: str = "pass") -> PacketInput:
    """A plan with the file of a kind that fails in this way, or in none."""
    path = tmp_path / "mine.py"
    path.write_text(text_of(text).replace("PLUGIN", f"    {ends_with}\nPLUGIN"), encoding="utf-8")
    parameters = {"fails": [*STEPS[text], *RECEIVES].index(fails) + 1 if fails else 0}
    chosen: dict[str, Any] = {KEYS[text]: load(KEYS[text], path, parameters)}
    fabric = TWO_PATHS if text == PORT else pair()
    messages = [Message(source=0, destination=1, size_bytes=10 * 4096)]
    return packet_input_of(fabric, sends(2, messages), transport=Transport(reorder_tolerant=True), **chosen)


def check(tmp_path: Path, text: str, fails: str, line: str, told: str) -> None:
    engine_input = plan_with(tmp_path, text, fails)
    errors = []
    for engine in (reference.run, packet.run):
        with pytest.raises(PolicyError) as caught:
            engine(engine_input)
        errors.append((caught.value.file, caught.value.line, caught.value.text))
    assert errors[0] == errors[1]
    (number,) = (number for number, one in enumerate(text_of(text).splitlines(), 1) if one.endswith(f": {line}"))
    assert errors[0][:2] == (str(tmp_path / "mine.py"), number)
    assert told in errors[0][2]


@pytest.mark.parametrize(
    ("text", "fails", "line", "told"),
    [pytest.param(text, name, *case, id=name) for text, cases in STEPS.items() for name, case in cases.items()],
)
def test_both_engines_name_the_line_of_a_failing_step(
    tmp_path: Path, text: str, fails: str, line: str, told: str
) -> None:
    check(tmp_path, text, fails, line, told)


@pytest.mark.parametrize(
    ("fails", "line", "told"), [pytest.param(name, *case, id=name) for name, case in RECEIVES.items()]
)
def test_both_engines_name_the_line_of_a_failing_receiver(tmp_path: Path, fails: str, line: str, told: str) -> None:
    check(tmp_path, CONTROL, fails, line, told)


@pytest.mark.parametrize("text", [CONTROL, PATH, PORT])
def test_the_same_policies_without_the_failing_line_run(tmp_path: Path, text: str) -> None:
    engine_input = plan_with(tmp_path, text)
    assert reference.run(engine_input).digest() == packet.run(engine_input).digest()


def test_a_file_that_has_changed_is_compiled_anew(tmp_path: Path) -> None:
    before = packet.run(plan_with(tmp_path, PORT))
    changed = plan_with(tmp_path, PORT, ends_with="signal.choice = 1")
    after = packet.run(changed)
    assert after.digest() == reference.run(changed).digest() != before.digest()
