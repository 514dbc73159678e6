"""Fields of the states of policies over time: the reference engine, stopped at each sample, holds the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.findings import sound
from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.base.clock import US_PS
from weftwork.base.errors import ConfigError
from weftwork.engine import packet
from weftwork.engine.packet import Series, StateField
from weftwork.engine.reference.simulation import Simulation
from weftwork.engine.rows.outcome import SERIES_KINDS
from weftwork.study.prepare.recorded_state import recorded_state

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.engine.packet_input import PacketInput

pytestmark = pytest.mark.sanitize

CONTROL = """\
from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, array
class Params: ...
class State(SenderState):
    is_new: bool
    acks: int
    share: float = 1.0
    acked_at_ps: list[int] = array(3, -1)
    shares: list[float] = array(2)
def step(params: Params, state: State, signal: Signal) -> None:
    state.is_new = signal.kind == Kind.START
    if signal.kind == Kind.ACK:
        state.acks += 1
        state.share *= 0.9
        state.acked_at_ps[state.acks % 3] = signal.now_ps
        state.shares[1] = -state.share
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset({Kind.ACK}), source="none")
"""
PATH = """\
from weftwork.policies.interface import PathSelection, PathState, Signal, array
class Params: ...
class State(PathState):
    acks: int
    ring: list[int] = array(2)
def step(params: Params, state: State, signal: Signal) -> None:
    state.acks -= 1
    state.entropy = (state.entropy + 7) % 65536
    state.ring[1] = signal.seq
PLUGIN = PathSelection(params=Params, state=State, step=step, source="none")
"""
NAMES = (
    "is_new", "congestion_control.acks", "share", "acked_at_ps[0]", "acked_at_ps[2]", "shares[1]",
    "congestion_control.timer_at_ps[3]", "path_selection.acks", "entropy", "ring[1]",
)  # fmt: skip


@pytest.fixture
def engine_input(tmp_path: Path) -> PacketInput:
    for name, text in (("control", CONTROL), ("path", PATH)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    messages = [Message(source=0, destination=1, size_bytes=size * 4096, channel=size) for size in (20, 7)]
    return packet_input_of(
        pair(),
        sends(2, messages),
        congestion_control=str(tmp_path / "control.py"),
        path_selection=str(tmp_path / "path.py"),
    )


def fields_of(engine_input: PacketInput) -> tuple[StateField, ...]:
    policies: Any = {
        "congestion_control": engine_input.congestion_control,
        "path_selection": engine_input.path_selection,
    }
    return sound(recorded_state, NAMES, policies)


def expected(sender: Any, name: str) -> float:
    owner, _, field = name.rpartition(".")
    of_path = owner == "path_selection" or field in {"entropy", "ring[1]"}
    name, _, index = field.rstrip("]").partition("[")
    value = getattr(sender.steps.path_state if of_path else sender.state, name)
    return float(value[int(index)] if index else value)


def test_samples_are_what_the_reference_engine_holds_at_their_instants(engine_input: PacketInput) -> None:
    fields = fields_of(engine_input)
    assert [field.name for field in fields] == list(NAMES)
    outcome = packet.run(engine_input, series=Series(every_ps=US_PS, flows=None, state=fields))
    rows = outcome.series
    seen: set[tuple[str, float]] = set()
    for at_ps in np.unique(rows["at_ps"]).tolist():
        simulation = Simulation(replace(engine_input, until_ps=at_ps))
        simulation.run()
        for index, key in enumerate(sorted(simulation.queue_pairs)):
            sender = simulation.queue_pairs[key].sender
            here = rows[(rows["at_ps"] == at_ps) & (rows["index"] == index) & (rows["kind"] >= len(SERIES_KINDS))]
            assert here["kind"].tolist() == [len(SERIES_KINDS) + place for place in range(len(fields))]
            assert here["value"].tolist() == [expected(sender, field.name) for field in fields], at_ps
            seen.update(zip((field.name for field in fields), here["value"].tolist(), strict=True))
    moved = {name for name, _ in seen if len({value for other, value in seen if other == name}) > 1}
    assert moved == set(NAMES) - {"congestion_control.timer_at_ps[3]"}  # which the policy leaves OFF


def test_recording_changes_nothing(engine_input: PacketInput) -> None:
    with_series = packet.run(engine_input, series=Series(every_ps=US_PS, flows=None, state=fields_of(engine_input)))
    assert with_series.digest() == packet.run(engine_input).digest()


@pytest.mark.parametrize("of_path", [True, False])
def test_a_place_behind_a_record_is_refused(engine_input: PacketInput, *, of_path: bool) -> None:
    policy = engine_input.path_selection if of_path else engine_input.congestion_control
    assert policy is not None
    places = policy.state.dtype.itemsize // 8
    for place in (places - 1, places):
        field = StateField(name="last", of_path=of_path, place=place, is_float=False)
        series = Series(every_ps=US_PS, flows=None, state=(field,))
        if place < places:
            packet.run(engine_input, series=series)
            continue
        with pytest.raises(ConfigError, match="that its policy does not have"):
            packet.run(engine_input, series=series)


def test_a_queue_pair_without_a_path_selection_has_no_state_of_one(engine_input: PacketInput) -> None:
    field = StateField(name="entropy", of_path=True, place=0, is_float=False)
    with pytest.raises(ConfigError, match="that its policy does not have"):
        packet.run(
            replace(engine_input, path_selection=None), series=Series(every_ps=US_PS, flows=None, state=(field,))
        )
