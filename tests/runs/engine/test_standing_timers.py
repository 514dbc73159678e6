"""A timer that a step sets to its own instant for ever ends both engines, which name the file and the line alike.

What the step writes depends on how often it was called, so that another number of firings would show in the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.base.errors import PolicyError
from weftwork.engine import packet
from weftwork.engine.reference import simulation as reference
from weftwork.policies.standing_timers import MOST_FIRINGS

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.engine.packet_input import PacketInput

pytestmark = pytest.mark.sanitize

CONTROL = """\
from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal
class Params: ...
class State(SenderState):
    calls: int
class Receiver(ReceiverState):
    calls: int
def postpone(state: State, at_ps: int) -> None:
    state.timer_at_ps[1] = at_ps
def step(params: Params, state: State, signal: Signal) -> None:
    state.calls += 1
    if signal.kind == Kind.START:
        state.timer_at_ps[0] = signal.now_ps
    if signal.kind == Kind.TIMER:
        {step}
def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    state.calls += 1
    if signal.kind == Kind.DATA:
        state.timer_at_ps[2] = signal.now_ps
    if signal.kind == Kind.TIMER:
        {receive}
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({{Kind.ACK}}), source="none",
                           receiver_state=Receiver, receive=receive)
"""
STEP_LINE, RECEIVE_LINE, HELPER_LINE = 14, 20, 8


def input_with(tmp_path: Path, step: str = "pass", receive: str = "pass") -> PacketInput:
    file = tmp_path / "mine.py"
    file.write_text(CONTROL.format(step=step, receive=receive), encoding="utf-8")
    messages = [Message(source=0, destination=1, size_bytes=5 * 4096, channel=channel) for channel in (0, 1)]
    return packet_input_of(pair(), sends(2, messages), congestion_control=str(file))


def refused(engine_input: PacketInput, tmp_path: Path) -> PolicyError:
    errors = []
    for engine in (reference.run, packet.run):
        with pytest.raises(PolicyError) as caught:
            engine(engine_input)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].file == str(tmp_path / "mine.py")
    return errors[1]


@pytest.mark.parametrize(
    ("step", "line", "timer"),
    [
        pytest.param("state.timer_at_ps[0] = signal.now_ps - state.calls", STEP_LINE, 0, id="past"),
        pytest.param("state.timer_at_ps[1 - signal.timer] = signal.now_ps - state.calls", STEP_LINE, 1, id="in-turn"),
        pytest.param("postpone(state, signal.now_ps - state.calls)", HELPER_LINE, 1, id="in-a-helper"),
    ],
)
def test_a_senders_standing_timer_names_its_line(tmp_path: Path, step: str, line: int, timer: int) -> None:
    error = refused(input_with(tmp_path, step=step), tmp_path)
    assert error.line == line
    # one call at START, one for each firing that was allowed, and the one that is too many
    value = 0 - (1 + MOST_FIRINGS + 1)
    assert f"timer_at_ps[{timer}] became {value}, which is not after signal.now_ps, 0;" in error.text
    assert "have fired 10,000 times at this instant" in error.text


def test_a_receivers_standing_timer_names_its_line(tmp_path: Path) -> None:
    error = refused(input_with(tmp_path, receive="state.timer_at_ps[2] = signal.now_ps - state.calls"), tmp_path)
    assert error.line == RECEIVE_LINE
    found = re.search(r"timer_at_ps\[2\] became (\d+), which is not after signal.now_ps, (\d+);", error.text)
    assert found is not None
    value, now_ps = map(int, found.groups())
    assert now_ps - value == 1 + MOST_FIRINGS + 1
    assert now_ps > 0


@pytest.mark.parametrize("firings", [MOST_FIRINGS, MOST_FIRINGS + 1])
def test_a_timer_may_be_set_so_often_and_no_more(tmp_path: Path, firings: int) -> None:
    step = f"state.timer_at_ps[0] = signal.now_ps if state.calls <= 1 + {firings} else -1"  # START is a call, too
    engine_input = input_with(tmp_path, step=step)
    if firings > MOST_FIRINGS:
        refused(engine_input, tmp_path)
    else:
        assert packet.run(engine_input).digest() == reference.run(engine_input).digest()


def test_timers_of_other_instants_are_not_counted(tmp_path: Path) -> None:
    step = "state.timer_at_ps[0] = signal.now_ps + (0 if state.calls % 5000 else 1) if state.calls < 30_000 else -1"
    engine_input = input_with(tmp_path, step=step)
    assert packet.run(engine_input).digest() == reference.run(engine_input).digest()


def test_a_timer_that_was_due_already_is_not_blamed(tmp_path: Path) -> None:
    """Timer 0 fires beyond the limit and sets nothing while timer 3 waits: the firing of timer 3 is to blame."""
    lines = (
        f"if signal.timer == 0 and state.calls <= {MOST_FIRINGS + 1}:",
        "    state.timer_at_ps[0] = signal.now_ps",
        "if state.calls == 5:",  # it waits until timer 0 is OFF
        "    state.timer_at_ps[3] = signal.now_ps",
        "if signal.timer == 3:",
        "    postpone(state, signal.now_ps - 7)",
    )
    step = "\n        ".join(lines)
    error = refused(input_with(tmp_path, step=step), tmp_path)
    assert error.line == HELPER_LINE
    assert "timer_at_ps[1] became -7" in error.text
