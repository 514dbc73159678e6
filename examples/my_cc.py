"""A congestion control of one's own: halve the window for a round trip with a mark, else grow it by a packet.

Run it with ``weftwork run FILE --set transport.congestion_control=examples/my_cc.py``.
Source: additive increase, multiplicative decrease: Chiu and Jain, 1989, doi:10.1016/0169-7552(89)90019-6.
Leaves out: loss, which costs it nothing but the retransmission.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row


class Params:
    """What one may turn."""

    cut: float = row(
        default=0.5, minimum=0.01, maximum=0.99, source="chosen: half", text="Factor of the window after a mark."
    )


class State(SenderState):
    """What it remembers of a queue pair."""

    cut_seq: int


def step(params: Params, state: State, signal: Signal) -> None:
    """Set the window; the rate stays the line rate."""
    smallest = float(signal.mtu_bytes)
    largest = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12 + smallest
    if signal.kind == Kind.START:
        state.window_bytes = largest
    elif signal.kind == Kind.ACK:
        if signal.ecn == 1 and signal.seq > state.cut_seq:
            state.cut_seq = signal.next_seq
            state.window_bytes = max(params.cut * state.window_bytes, smallest)
        elif signal.ecn == 0:
            state.window_bytes = min(state.window_bytes + smallest * signal.bytes / state.window_bytes, largest)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.ACK}),
    needs=frozenset({"ecn"}),
    source="doi:10.1016/0169-7552(89)90019-6",
)
