"""No random plan breaks an invariant of the packet engine: pauses, losses, failovers, credits, cuts, servers.

Nor does what a step of a user's own writes, whatever it is: an odd number is refused or obeyed. The planted mistakes of
`tests/mutants/invariants.toml` are noticed here, each by the invariant that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.cases import case_count
from helpers.invariants import broken_by
from helpers.tiny import Message, packet_input_of, sends, star
from laws.rare import credit_plan, uneven_plan
from laws.scenarios import random_plan
from laws.test_deadlocks import random_plan as ring_plan

from weftwork.base.errors import PolicyError
from weftwork.engine.packet_input import PacketInput

PLANS = case_count(plain=12, deep=120)  # of each kind
# A control that now and then writes a drawn number into one of the fields that it may write.
WRITES = """\
from weftwork.policies.interface import CongestionControl, Kind, ReceiverState, SenderState, Signal, row
class Params:
    seed: int = row(default=0, source="none", text="Of the draws.")
class State(SenderState):
    draws: int
class Receiver(ReceiverState):
    draws: int
def drawn(draws: int) -> int:
    return (draws * 1103515245 + 12345) % 2147483648
def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.START:
        state.draws = params.seed + 1
    state.draws = drawn(state.draws)
    field = (state.draws // 64) % 40
    state.draws = drawn(state.draws)
    value = (state.draws // 64) % 8
    if field == 0:
        state.window_bytes = float((value - 1) * 3000)
    if field == 1:
        state.window_bytes = 1e300
    if field == 2:
        state.rate_bps = float(value) * 60000000000.0
    if field == 3:
        state.rate_bps = 1.0 + 1e7 * value
    if field == 4:
        state.timer_at_ps[value % 4] = signal.now_ps - 5 + value
    if field == 5:
        state.timer_at_ps[value % 4] = signal.now_ps + 1000 * value * value * value
    if field == 6:
        state.timer_at_ps[value % 4] = value - 4
    if field == 7:
        state.timer_at_ps[value % 4] = 4611686018427387904
    if field == 8:
        state.timeout_ps = 3000000 * value
    if field == 9:
        state.segment_bytes = (value - 1) * 4000
    if field == 10:
        state.request_bytes = (value - 1) * 100000
        state.send_request = 1
def receive(params: Params, state: Receiver, shared: None, signal: Signal) -> None:
    if state.draws == 0:
        state.draws = params.seed + 7
    state.draws = drawn(state.draws)
    field = (state.draws // 64) % 40
    state.draws = drawn(state.draws)
    value = (state.draws // 64) % 8
    if field == 0:
        state.send_cnp = 1
    if field == 1:
        state.send_ack = value
    if field == 2:
        state.credit_bytes = state.credit_bytes + 4096 * (value - 1)
    if field == 3:
        state.send_credit = 1
    if field == 4:
        state.timer_at_ps[value % 4] = signal.now_ps - 5 + value
    if field == 5:
        state.timer_at_ps[value % 4] = value - 4
PLUGIN = CongestionControl(
    params=Params, state=State, step=step, signals=frozenset({Kind.ACK, Kind.CNP, Kind.TIMEOUT}), source="none",
    receiver_state=Receiver, receive=receive,
)
"""
KINDS: dict[str, Callable[[int], PacketInput]] = {
    "plain": random_plan,
    "torn": lambda seed: random_plan(seed, is_torn=True),
    "wide": lambda seed: random_plan(seed, is_wide=True),
    "credit": credit_plan,
    "uneven": uneven_plan,
    "ring": ring_plan,
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_plan_breaks_an_invariant(kind: str) -> None:
    for seed in range(PLANS):
        name = broken_by(KINDS[kind](seed))
        assert name is None, f"plan {seed} breaks {name}"


def test_no_number_that_a_step_writes_breaks_an_invariant(tmp_path: Path) -> None:
    file = tmp_path / "writes.py"
    file.write_text(WRITES, encoding="utf-8")
    refused = 0
    for seed in range(2 * PLANS):
        messages = [
            Message(source=host, destination=(host + 3) % 4, size_bytes=9_000 * (1 + host + seed % 5), channel=channel)
            for host in range(4)
            for channel in (0, 1)
        ]
        plan = packet_input_of(
            star(4, loss=0.01 * (seed % 3)), sends(4, messages), congestion_control=str(file), parameters={"seed": seed}
        )
        try:
            name = broken_by(replace(plan, until_ps=1_000_000_000))
        except PolicyError:
            refused += 1
            continue
        assert name is None, f"seed {seed} breaks {name}"
    assert 0 < refused < 2 * PLANS
