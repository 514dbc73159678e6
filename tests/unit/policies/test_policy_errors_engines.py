"""A policy that fails in the middle of a run stops both engines, which name the same file, line and reason."""

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import Message, packet_input_of, pair, sends, wired

from weftwork.base.errors import PolicyError
from weftwork.engine import packet
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

CONTROL = """\
from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal
class Params: ...
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
from weftwork.policies.interface import PathSelection, PathState, Signal
class Params: ...
class State(PathState):
    packets: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.packets += 1
    if state.packets == 3:
        {step}
PLUGIN = PathSelection(params=Params, state=State, step=step, source="none")
"""
PORT = """\
from weftwork.policies.interface import Candidate, PortSelection, PortSignal
class Params: ...
class State:
    packets: int
def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    state.packets += 1
    if state.packets == 3:
        {step}
PLUGIN = PortSelection(params=Params, state=State, step=step, source="none")
"""
STEP_LINE = {CONTROL: 10, PATH: 8, PORT: 8}
RECEIVE_LINE = 14
TWO_PATHS = wired([(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)], hosts=2)


def plan_with(tmp_path: Path, text: str, **lines: str) -> PacketInput:
    path = tmp_path / "mine.py"
    path.write_text(text.format(**{"step": "pass", "receive": "pass"} | lines), encoding="utf-8")
    key = {CONTROL: "congestion_control", PATH: "path_selection", PORT: "port_selection"}[text]
    chosen: dict[str, Any] = {key: str(path)}
    fabric = TWO_PATHS if text == PORT else pair()
    messages = [Message(source=0, destination=1, size_bytes=10 * 4096)]
    return packet_input_of(fabric, sends(2, messages), transport=Transport(reorder_tolerant=True), **chosen)


def check(engine_input: PacketInput, file: Path, line: int, told: str) -> None:
    errors = []
    for engine in (reference.run, packet.run):
        with pytest.raises(PolicyError) as caught:
            engine(engine_input)
        errors.append((caught.value.file, caught.value.line, caught.value.text))
    assert errors[0] == errors[1]
    assert errors[0][:2] == (str(file), line)
    assert told in errors[0][2]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        pytest.param(CONTROL, "state.rate_bps = 1.0 / signal.hops", "ZeroDivisionError", id="division"),
        pytest.param(CONTROL, "state.rate_bps = state.rate_bps * 1e300 * 1e300 * 0.0", "became nan", id="nan"),
        pytest.param(CONTROL, "state.rate_bps = 0.0", "rate_bps became 0.0", id="no-rate"),
        pytest.param(CONTROL, "state.window_bytes = -1.0", "window_bytes became -1.0", id="negative-window"),
        pytest.param(CONTROL, "state.window_bytes = 1e308 * state.acks * 10", "became inf", id="infinite-window"),
        pytest.param(PATH, "state.entropy = 1 // (state.packets - 3)", "ZeroDivisionError", id="path-division"),
        pytest.param(PATH, "state.entropy = 65_536", "entropy became 65536, wanted 0 to 65535", id="entropy"),
        pytest.param(PATH, "state.entropy = -1", "entropy became -1", id="negative-entropy"),
        pytest.param(
            PORT, "signal.choice = signal.hash // (state.packets - 3)", "ZeroDivisionError", id="port-division"
        ),
        pytest.param(PORT, "signal.choice = signal.candidates", "choice became 2, wanted 0 to 1", id="choice"),
        pytest.param(PORT, "signal.choice = -1", "choice became -1", id="negative-choice"),
    ],
)
def test_both_engines_name_the_line_of_a_failing_step(tmp_path: Path, text: str, line: str, told: str) -> None:
    check(plan_with(tmp_path, text, step=line), tmp_path / "mine.py", STEP_LINE[text], told)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("state.credit_bytes = signal.bytes // signal.timer", "ZeroDivisionError", id="division"),
        pytest.param("state.credit_bytes = -1", "credit_bytes became -1", id="negative-credit"),
    ],
)
def test_both_engines_name_the_line_of_a_failing_receiver(tmp_path: Path, line: str, told: str) -> None:
    check(plan_with(tmp_path, CONTROL, receive=line), tmp_path / "mine.py", RECEIVE_LINE, told)


@pytest.mark.parametrize("text", [CONTROL, PATH, PORT])
def test_the_same_policies_without_the_failing_line_run(tmp_path: Path, text: str) -> None:
    engine_input = plan_with(tmp_path, text)
    assert reference.run(engine_input).digest() == packet.run(engine_input).digest()


def test_a_file_that_has_changed_is_compiled_anew(tmp_path: Path) -> None:
    before = packet.run(plan_with(tmp_path, PORT))
    changed = plan_with(tmp_path, PORT, step="signal.choice = 1")
    after = packet.run(changed)
    assert after.digest() == reference.run(changed).digest() != before.digest()
