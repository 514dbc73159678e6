"""PLB: a queue pair changes path after several round trips with marks.

It preferably changes while it is idle.
Source: Qureshi et al., SIGCOMM 2022, doi:10.1145/3544216.3544226; Linux, net/ipv4/tcp_plb.c. A round is a window of
data, and bad where at least half of its bytes were marked. After 12 bad rounds in a row the next packet takes a random
entropy; 3 are enough with nothing in flight. A timeout changes the entropy at once and forbids other moves for 60 to
120 s, so that a repaired network does not lure it back onto a path that failed.
Leaves out: delay as the signal (Swift, and Falcon's PLB); the flow label of IPv6, for which the UDP source port stands.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Kind, PathSelection, PathState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

FIRST_ENTROPY = 49_152  # Linux, rdma_flow_label_to_udp_sport: 0xC000 and 14 bits
ENTROPIES = 16_384
DRAWS = 2.0**62  # values of signal.draw


class Params:
    """Definition of a bad round, and rules of moving."""

    share: float = row(
        default=0.5,
        minimum=0,
        maximum=1,
        source="Linux, sysctl tcp_plb_cong_thresh, 128 of 256; K of the paper",
        text="Share of marked bytes from which a round is bad; 0: every round.",
    )
    rounds: int = row(
        default=12,
        minimum=1,
        maximum=31,
        source="Linux, sysctl tcp_plb_rehash_rounds; N of the paper",
        text="Bad rounds in a row that move a queue pair.",
    )
    idle_rounds: int = row(
        default=3,
        minimum=0,
        maximum=31,
        source="Linux, sysctl tcp_plb_idle_rehash_rounds; M of the paper",
        text="The same with nothing in flight; 0: idle queue pairs stay.",
    )
    suspend_ps: int = row(
        default="60s",
        minimum=0,
        source="Linux, sysctl tcp_plb_suspend_rto_sec",
        text="Least time without moves after a timeout; at most twice as long.",
    )


class State(PathState):
    """The round, bad rounds in a row, and the next action."""

    arrived: int
    marked: int
    round_seq: int
    bad_rounds: int
    wants_to_move: bool
    has_timed_out: bool
    suspended_until_at_ps: int = OFF


def step(params: Params, state: State, signal: Signal) -> None:
    """Count marks, or change the entropy of the next departing packet."""
    if signal.kind == Kind.ACK:
        state.arrived += signal.arrived_bytes
        state.marked += signal.marked_bytes
        if signal.seq >= state.round_seq and state.arrived > 0:
            end_round(params, state, signal)
        judge(params, state, signal)
    elif signal.kind == Kind.RESUME:
        judge(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        state.wants_to_move = True
        state.has_timed_out = True
        state.bad_rounds = 0
    elif signal.kind == Kind.SEND and state.wants_to_move:
        move(params, state, signal)


def end_round(params: Params, state: State, signal: Signal) -> None:
    """Rate the round as good or bad, and begin the next round."""
    is_bad = float(state.marked) >= params.share * state.arrived
    state.bad_rounds = min(state.bad_rounds + 1, params.rounds) if is_bad else 0
    state.arrived = 0
    state.marked = 0
    state.round_seq = signal.next_seq


def judge(params: Params, state: State, signal: Signal) -> None:
    """Decide whether the next packet takes another path."""
    is_suspended = state.suspended_until_at_ps != OFF and signal.now_ps < state.suspended_until_at_ps
    is_idle = params.idle_rounds > 0 and signal.inflight_bytes == 0
    is_enough = state.bad_rounds >= params.rounds or (is_idle and state.bad_rounds >= params.idle_rounds)
    if is_enough and not is_suspended:
        state.wants_to_move = True
        state.bad_rounds = 0


def move(params: Params, state: State, signal: Signal) -> None:
    """Take a random entropy; keep it for long after a timeout."""
    state.wants_to_move = False
    state.entropy = FIRST_ENTROPY + signal.draw % ENTROPIES
    if state.has_timed_out:
        state.has_timed_out = False
        longer = 1.0 + float(signal.draw) / DRAWS
        state.suspended_until_at_ps = signal.now_ps + int(longer * params.suspend_ps)


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.ACK, Kind.TIMEOUT}),
    reorders="on-move",
    needs=frozenset({"ecn"}),
    source="doi:10.1145/3544216.3544226; Linux, net/ipv4/tcp_plb.c",
    variants={"linux": {}},
)
