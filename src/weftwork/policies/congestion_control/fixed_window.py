"""Fixed window: line rate, with a fixed number of bytes in flight.

Source: sliding window with a constant size; the yardstick of every other control.
Leaves out: any reaction to congestion.
"""

from __future__ import annotations

from weftwork.policies.interface import CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class Params:
    """The size of the window."""

    window_bytes: int = row(
        default=0,
        minimum=0,
        source="chosen: one bandwidth-delay product just fills an empty path",
        text="Payload in flight at most; 0 is line rate x base RTT of the path, and one packet.",
    )


class State(SenderState):
    """No state besides rate and window."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Set the window once, when the queue pair starts."""
    if signal.kind == Kind.START:
        if params.window_bytes > 0:
            state.window_bytes = max(params.window_bytes, signal.mtu_bytes)
        else:
            path_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND
            state.window_bytes = path_bytes + signal.mtu_bytes


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset(),
    source="sliding window of constant size; RFC 9293, section 3.8.6, with nothing that moves it",
)
