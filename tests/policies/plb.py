"""PLB: a queue pair whose packets come back marked for some round trips takes another path, at best when it is idle.

Source: Qureshi et al., SIGCOMM 2022, doi:10.1145/3544216.3544226; Linux, net/ipv4/tcp_plb.c: a round is a window of
data, and congested where half of its bytes are marked; 12 such rounds move it, 3 if nothing is in flight; a timeout
moves it at once and stops all other moves for 60 to 120 s.
Leaves out: delay as the signal (Falcon's PLB).
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Kind, PathSelection, PathState, Signal, row

FIRST_ENTROPY = 49_152  # what the NIC draws from, as UDP source ports in RoCEv2: 0xC000 and 14 bits
ENTROPIES = 16_384
DRAWS = 2.0**62


class Params:
    share: float = row(default=0.5, minimum=0, maximum=1, source="tcp_plb.c, 128 of 256", text="Marks of a bad round.")
    rounds: int = row(default=12, minimum=1, source="tcp_plb.c", text="Bad rounds in a row that move it.")
    idle_rounds: int = row(default=3, minimum=1, source="tcp_plb.c", text="The same with nothing in flight.")
    suspend_ps: int = row(
        default="60s", minimum=0, source="tcp_plb.c", text="Least time without moves after a timeout."
    )


class State(PathState):
    arrived: int
    marked: int
    round_seq: int
    bad_rounds: int
    wants_to_move: bool
    has_timed_out: bool
    suspended_until_at_ps: int = OFF


def end_round(params: Params, state: State, signal: Signal) -> None:
    is_bad = float(state.marked) >= params.share * state.arrived
    state.bad_rounds = min(state.bad_rounds + 1, params.rounds) if is_bad else 0
    state.arrived = 0
    state.marked = 0
    state.round_seq = signal.next_seq


def judge(params: Params, state: State, signal: Signal) -> None:
    """Decide whether the next packet takes another path."""
    is_suspended = state.suspended_until_at_ps != OFF and signal.now_ps < state.suspended_until_at_ps
    is_enough = state.bad_rounds >= params.rounds
    is_enough_at_rest = state.bad_rounds >= params.idle_rounds and signal.inflight_bytes == 0
    if not is_suspended and (is_enough or is_enough_at_rest):
        state.wants_to_move = True
        state.bad_rounds = 0


def step(params: Params, state: State, signal: Signal) -> None:
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
    source="doi:10.1145/3544216.3544226",
)
