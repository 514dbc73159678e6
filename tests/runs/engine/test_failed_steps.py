"""A step that fails is explained by a second run, which stops before the call that failed.

Every error is compared with the reference engine's, which calls steps as plain Python and needs no second run. The
texts name numbers of the state, so that the records of another call would show.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.clock import US_PS
from weftwork.base.errors import EngineError, PolicyError
from weftwork.engine import _native, packet
from weftwork.engine.reference import simulation as reference
from weftwork.policies.load import load
from weftwork.spec.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.engine.packet_input import PacketInput

pytestmark = pytest.mark.sanitize

# A parameter says when a step fails, so that each file is compiled once: 0 never, 1 at call 400, 2 at the next timer.
WHEN = 'int = row(default=0, source="chosen: a test", text="When it fails.")'
CONTROL = """\
from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal, row
class Params: step: {when}; receive: {when}
class State(SenderState):
    calls: int
class Receiver(ReceiverState):
    calls: int
class Shared:
    calls: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.timer_at_ps[0] = signal.now_ps + 100_000
    state.calls += 1
    if params.step == 1 and state.calls == 400 or params.step == 2 and state.calls >= 400 and signal.kind == 8:
        state.rate_bps = -float(state.calls)
def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
    state.timer_at_ps[0] = signal.now_ps + 100_000 if signal.kind == Kind.DATA else -1
    shared.calls += 1
    state.calls += 1
    if params.receive == 1 and state.calls == 400 or params.receive == 2 and state.calls >= 400 and signal.kind == 8:
        state.credit_bytes = -1000 * shared.calls - state.calls
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({{Kind.ACK}}), source="none",
                           receiver_state=Receiver, receive=receive, shared_state=Shared)
"""
PATH = """\
from weftwork.policies.interface import PathSelection, PathState, Signal, row
class Params: fails: {when}
class State(PathState):
    calls: int
def step(params: Params, state: State, signal: Signal) -> None:
    state.calls += 1
    if params.fails == 1 and state.calls == 400:
        state.entropy = -state.calls
PLUGIN = PathSelection(params=Params, state=State, step=step, source="none")
"""
PORT = """\
from weftwork.policies.interface import Candidate, PortSelection, PortSignal, array, row
class Params: fails: {when}
class State:
    calls: list[int] = array(4096)
def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    state.calls[4095] += 1
    signal.choice = state.calls[4095] % signal.candidates
    if params.fails == 1 and state.calls[4095] == 400:
        signal.choice = -state.calls[4095]
PLUGIN = PortSelection(params=Params, state=State, step=step, source="none")
"""
FABRIC = wired([(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)], hosts=2)  # two paths
AT_CALL_400, AT_A_TIMER = 1, 2
# which step fails, when, in which line, and what the error says
FAILURES = [
    pytest.param("step", AT_CALL_400, "control.py", 13, "rate_bps became -400.0", id="sender"),
    pytest.param("step", AT_A_TIMER, "control.py", 13, "rate_bps", id="sender-timer"),
    pytest.param("receive", AT_CALL_400, "control.py", 19, "credit_bytes became -", id="receiver"),
    pytest.param("receive", AT_A_TIMER, "control.py", 19, "became -", id="timer"),
    pytest.param("path", AT_CALL_400, "path.py", 8, "entropy became -400", id="path-selection"),
    pytest.param("port", AT_CALL_400, "port.py", 9, "choice became -400", id="port-selection"),
]


def input_with(tmp_path: Path, step: str = "", when: int = AT_CALL_400) -> PacketInput:
    """All kinds of policies at once, of which one step fails."""
    for name, text in (("control", CONTROL), ("path", PATH), ("port", PORT)):
        (tmp_path / f"{name}.py").write_text(text.format(when=WHEN), encoding="utf-8")
    fails = {name: when if step == name else 0 for name in ("step", "receive", "path", "port")}
    return packet_input_of(
        FABRIC,
        sends(2, [Message(source=0, destination=1, size_bytes=600 * 4096, channel=channel) for channel in (0, 1)]),
        transport=Transport(reorder_tolerant=True),
        congestion_control=str(tmp_path / "control.py"),
        parameters={name: fails[name] for name in ("step", "receive")},
        path_selection=load("path_selection", tmp_path / "path.py", {"fails": fails["path"]}),
        port_selection=load("port_selection", tmp_path / "port.py", {"fails": fails["port"]}),
    )


def error_of(engine: Any, engine_input: PacketInput, **others: Any) -> tuple[str, int, str]:
    with pytest.raises(PolicyError) as caught:
        engine.run(engine_input, **others)
    return caught.value.file, caught.value.line, caught.value.text


@pytest.mark.parametrize(("step", "when", "file", "line", "told"), FAILURES)
def test_a_step_that_fails_late_is_explained_as_in_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, step: str, when: int, file: str, line: int, told: str
) -> None:
    monkeypatch.setattr(packet, "_SLICE_S", 1e-9)  # both runs take many slices
    engine_input = input_with(tmp_path, step, when)
    found = error_of(packet, engine_input)
    assert found == error_of(reference, engine_input)
    assert found[:2] == (str(tmp_path / file), line)
    assert told in found[2]


def test_a_step_that_fails_before_the_end_of_simulated_time_is_explained(tmp_path: Path) -> None:
    engine_input = replace(input_with(tmp_path, "step"), until_ps=60 * US_PS)
    assert error_of(packet, engine_input) == error_of(reference, engine_input)


def test_a_step_that_would_fail_after_the_end_of_simulated_time_does_not(tmp_path: Path) -> None:
    engine_input = replace(input_with(tmp_path, "step"), until_ps=10 * US_PS)
    outcome = packet.run(engine_input)
    assert not outcome.complete
    assert outcome.digest() == reference.run(engine_input).digest()


class Told:
    """What a caller of the engine hears; it may interrupt either run at its fifth progress."""

    def __init__(self, *, interrupts_first: bool = False, interrupts_repeated: bool = False) -> None:
        self.hops: tuple[list[int], list[int]] = ([], [])
        self.repeats = 0
        self.interrupts = (interrupts_first, interrupts_repeated)

    def progress(self, _: int, packet_hops: int, __: int) -> None:
        told = self.hops[self.repeats]
        told.append(packet_hops)
        if self.interrupts[self.repeats] and len(told) == 5:
            raise KeyboardInterrupt

    def repeat(self) -> None:
        self.repeats += 1


def test_progress_says_where_the_repeated_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet, "_SLICE_S", 1e-9)
    told = Told()
    engine_input = input_with(tmp_path, "path")
    error_of(packet, engine_input, on_progress=told.progress, on_repeat=told.repeat)
    assert told.repeats == 1
    first, repeated = told.hops
    assert first == sorted(first)
    assert first[0] == 0 < first[1]
    assert repeated == first  # a run is deterministic, and slices as short as these have equal lengths


def test_a_run_without_a_failure_is_not_repeated(tmp_path: Path) -> None:
    told = Told()
    outcome = packet.run(input_with(tmp_path), on_progress=told.progress, on_repeat=told.repeat)
    assert outcome.complete
    assert told.repeats == 0


def test_a_run_that_is_interrupted_before_the_failure_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet, "_SLICE_S", 1e-9)
    told = Told(interrupts_first=True)
    engine_input = input_with(tmp_path, "step")
    outcome = packet.run(engine_input, on_progress=told.progress, on_repeat=told.repeat)
    assert not outcome.complete
    assert told.repeats == 0
    assert error_of(packet, engine_input)[1] == 13  # and the same input fails where nobody interrupts


@pytest.mark.parametrize(("step", "line"), [("step", 9), ("receive", 14)])
def test_a_repeated_run_that_is_interrupted_names_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, line: int
) -> None:
    monkeypatch.setattr(packet, "_SLICE_S", 1e-9)
    told = Told(interrupts_repeated=True)
    engine_input = input_with(tmp_path, step)
    found = error_of(packet, engine_input, on_progress=told.progress, on_repeat=told.repeat)
    assert found[:2] == (str(tmp_path / "control.py"), line)
    assert found[2].startswith(f"'{step}' failed at call ")
    assert found[2].endswith("the run that repeats it to say why was interrupted")


class Interrupted(_native.PacketEngine):
    """An engine whose caller presses Ctrl-C in the slice in which a step fails."""

    def advance(self, budget_s: float) -> bool:
        is_over = super().advance(budget_s)
        if self.failure() is not None:
            raise KeyboardInterrupt
        return is_over


def test_an_interrupt_at_the_failure_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "PacketEngine", Interrupted)
    told = Told()
    engine_input = input_with(tmp_path, "path")
    found = error_of(packet, engine_input, on_repeat=told.repeat)
    assert told.repeats == 0
    assert found[:2] == (str(tmp_path / "path.py"), 5)
    assert "was interrupted" in found[2]


class InterruptedWhenItKnows(_native.PacketEngine):
    """An engine whose caller presses Ctrl-C in the slice in which the repeated run has found the call."""

    def advance(self, budget_s: float) -> bool:
        is_over = super().advance(budget_s)
        failure = self.failure()
        if failure is not None and failure["state"]:
            raise KeyboardInterrupt
        return is_over


def test_an_interrupt_after_the_call_is_found_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine_input = input_with(tmp_path, "path")
    wanted = error_of(packet, engine_input)
    monkeypatch.setattr(_native, "PacketEngine", InterruptedWhenItKnows)
    assert error_of(packet, engine_input) == wanted


class Forgetful(_native.PacketEngine):
    """An engine whose repeated run ends before anything happens."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        super().__init__(arrays | {"until_ps": 0} if arrays["stop_before_call"] else arrays)


def test_a_repeated_run_that_goes_another_way_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "PacketEngine", Forgetful)
    with pytest.raises(EngineError, match="a step failed, and not when the run was repeated"):
        packet.run(input_with(tmp_path, "path"))
