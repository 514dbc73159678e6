"""Hottest hop, small: a queue pair leaves a path with a long queue. For tests of the interface, not for results.

Source: the telemetry of Li et al., HPCC, SIGCOMM 2019, doi:10.1145/3341302.3342085, read by a path selection.
Leaves out: how long a queue lasts.
"""

from __future__ import annotations

from weftwork.policies.interface import HOPS, Kind, PathSelection, PathState, Signal, row


class Params:
    most_bytes: int = row(default=5_000, minimum=0, source="a test", text="Queue above which the path is left.")


class State(PathState):
    worst_bytes: int
    heard: int


def step(params: Params, state: State, signal: Signal) -> None:
    if signal.kind == Kind.ACK:
        state.heard += signal.hops
        for hop in range(HOPS):
            if hop < signal.hops:
                state.worst_bytes = max(state.worst_bytes, signal.hop_queue_bytes[hop])
    elif signal.kind == Kind.SEND and state.worst_bytes > params.most_bytes:
        state.entropy = (signal.draw + state.heard) % 65_536
        state.worst_bytes = 0


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    needs=frozenset({"telemetry", "reorder-tolerance"}),
    source="a test",
)
