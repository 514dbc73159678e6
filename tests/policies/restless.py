"""A path selection that moves with every message and hears all. For tests of the interface, not for results.

Source: chosen: no published selection uses every signal and every field.
Leaves out: any sense.
"""

from __future__ import annotations

from weftwork.policies.interface import Kind, PathSelection, PathState, Signal, row


class Params:
    entropies: int = row(default=300, minimum=1, maximum=65_536, source="chosen: a few", text="Paths drawn from.")


class State(PathState):
    heard: int


def step(params: Params, state: State, signal: Signal) -> None:
    total = signal.kind + signal.bytes + 3 * signal.ecn + 5 * signal.seq + 7 * signal.next_seq + 11 * signal.entropy
    total += signal.now_ps % 1009 + 17 * (signal.rtt_ps % 1013) + 19 * (signal.host_delay_ps % 1019)
    total += signal.base_rtt_ps % 1033 + 29 * (signal.inflight_bytes % 1039) + 31 * (signal.backlog_bytes % 1049)
    state.heard = (state.heard + total + signal.draw % 1051) % 9973
    if signal.kind == Kind.SEND:
        state.entropy = (state.heard + signal.draw) % params.entropies


PLUGIN = PathSelection(
    params=Params,
    state=State,
    step=step,
    per="message",
    signals=frozenset({Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    needs=frozenset({"rtt", "entropy"}),
    source="none",
)
