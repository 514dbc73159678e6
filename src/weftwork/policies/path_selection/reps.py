"""REPS: reuses entropies that came back without a mark.

An entropy is used once more. After a timeout only such entropies are used.
Source: Le et al., EuroSys 2026, arXiv:2407.21625; github.com/ultraethernet/uet-htsim, htsim/sim/uec_mp.cpp (UecMpReps)
and buffer_reps.cpp. A ring keeps the last 8 good entropies. A packet takes the oldest one that was not used since, and
a random one where there is none. A timeout freezes the ring: for 10 ms packets take its entropies in turn, used or
not. Then the ring is emptied, and 16 packets take random entropies.
Leaves out: several uses of one entropy under coalesced ACKs (repsMaxLifetimeEntropy); entropies of packets that were
cut at the last hop, which uet-htsim keeps. In buffer_reps.cpp the oldest entropy is counted back from the newest, which
is wrong after freezing has left holes; here holes are passed over.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, Kind, PathSelection, PathState, Signal, array, row

__all__ = ["PLUGIN", "Params", "State", "step"]

MOST = 64  # chosen: eight times the published ring, so that a study of its length has room


class Params:
    """Number of entropies, number kept, and reaction to a failure."""

    paths: int = row(
        default=64,
        minimum=1,
        maximum=65_536,
        source="uet-htsim, main_uec.cpp, path_entropy_size; the paper draws from 65,536",
        text="Entropies 0 to this number - 1 are drawn with equal chance.",
    )
    ring: int = row(
        default=8,
        minimum=1,
        maximum=64,
        source="buffer_reps.cpp, repsBufferSize",
        text="Good entropies that are kept.",
    )
    freezes: bool = row(
        default=True,
        source="buffer_reps.cpp, repsUseFreezing; arXiv:2407.21625",
        text="Whether a timeout freezes the ring.",
    )
    freeze_ps: int = row(
        default="10ms", minimum=0, source="buffer_reps.cpp, exit_freeze_after", text="Time that the ring stays frozen."
    )
    explore: int = row(
        default=16, minimum=0, source="uec_mp.cpp, UecMpReps::processEv", text="Random packets after freezing."
    )
    early_rtts: float = row(
        default=0,
        minimum=0,
        source="0, off: uet-htsim. 3: Scala Computing's build of REPS (unverified: its page was not read again)",
        text="Base RTTs without a new cumulative ACK, with bytes in flight, that freeze the ring too.",
    )


class State(PathState):
    """The ring, its unused entropies, and whether it is frozen."""

    kept: list[int] = array(MOST)
    fresh: list[int] = array(MOST)
    head: int  # place of the next one
    held: int
    fresh_count: int
    turn: int  # place of the next one while frozen
    exploring: int
    frozen_until_at_ps: int = OFF
    acked_seq: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Learn from an ACK, or choose for the next departing packet."""
    if signal.kind == Kind.SEND:
        choose(params, state, signal)
        if state.timer_at_ps[0] == OFF:
            watch(params, state, signal)
        return
    if signal.kind == Kind.TIMEOUT or (signal.kind == Kind.TIMER and signal.inflight_bytes > 0):
        freeze(params, state, signal)
    if state.frozen_until_at_ps != OFF and signal.now_ps > state.frozen_until_at_ps:
        thaw(params, state)
    if signal.kind == Kind.ACK:
        if signal.ecn == 0 and signal.hops > 0:  # caused by a packet, so that it tells of an entropy
            keep(params, state, signal)
        if signal.seq > state.acked_seq:
            state.acked_seq = signal.seq
            watch(params, state, signal)
    elif signal.kind == Kind.TIMER:
        watch(params, state, signal)


def watch(params: Params, state: State, signal: Signal) -> None:
    """Wait for the next cumulative ACK, if early detection is on."""
    state.timer_at_ps[0] = OFF
    if params.early_rtts > 0.0 and (signal.kind == Kind.SEND or signal.inflight_bytes > 0):
        wait_ps = int(params.early_rtts * signal.base_rtt_ps)
        state.timer_at_ps[0] = signal.now_ps + max(wait_ps, 1)


def freeze(params: Params, state: State, signal: Signal) -> None:
    """Take entropies of the ring only, for a while."""
    if params.freezes and state.frozen_until_at_ps == OFF and state.exploring == 0:
        state.frozen_until_at_ps = signal.now_ps + params.freeze_ps


def thaw(params: Params, state: State) -> None:
    """Forget the ring and look for other entropies."""
    state.frozen_until_at_ps = OFF
    state.head = 0
    state.held = 0
    state.fresh_count = 0
    state.turn = 0
    for i in range(params.ring):
        state.fresh[i] = 0
    state.exploring = params.explore


def keep(params: Params, state: State, signal: Signal) -> None:
    """Write a good entropy over the oldest place of the ring."""
    if state.fresh[state.head] == 0:
        state.fresh_count += 1
    state.kept[state.head] = signal.entropy
    state.fresh[state.head] = 1
    state.head = (state.head + 1) % params.ring
    state.held = min(state.held + 1, params.ring)


def choose(params: Params, state: State, signal: Signal) -> None:
    """Take an entropy of the ring, else a random one."""
    state.entropy = signal.draw % params.paths
    if state.exploring > 0:
        state.exploring -= 1
    elif state.frozen_until_at_ps != OFF:
        if state.held > 0:
            use(state, state.turn)
            state.turn = (state.turn + 1) % state.held
    elif state.fresh_count > 0:
        place = state.head  # of the oldest, once the ring is full
        for _ in range(params.ring):
            if state.fresh[place] != 0:
                break
            place = (place + 1) % params.ring
        use(state, place)


def use(state: State, place: int) -> None:
    """Take the entropy at a place, which is fresh no more."""
    state.entropy = state.kept[place]
    state.fresh_count -= state.fresh[place]
    state.fresh[place] = 0


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK, Kind.TIMEOUT}),
    reply_entropy="echoed",
    needs=frozenset({"ecn", "entropy", "reorder-tolerance"}),
    source="arXiv:2407.21625; uet-htsim, htsim/sim/uec_mp.cpp, UecMpReps",
    variants={"uet-htsim": {}},
)
