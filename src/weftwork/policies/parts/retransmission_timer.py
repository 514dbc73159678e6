"""The round trip as TCP estimates it, and the timeout that follows from it.

Source: RFC 6298, sections 2 and 5; Linux, include/net/tcp.h and net/ipv4/tcp_input.c, as told at each row.
Leaves out: Linux's least variation within a round trip (rttvar_us, mdev_max_us); clocks of a millisecond.
"""

from __future__ import annotations

from typing import Protocol

from weftwork.policies.interface import SenderState, row

__all__ = [
    "FIRST_TIMEOUT", "MAX_TIMEOUT", "MIN_TIMEOUT", "TIMEOUT_ABOVE_RTT", "TimerParams", "TimerState", "back_off",
    "first_timeout", "measure",
]  # fmt: skip

FIRST_TIMEOUT = row(
    default=0,
    minimum=0,
    source="0: RFC 6298, section 2.2, with the handshake as first sample; without one section 2.1: 1 s",
    text="Timeout before the first RTT is known; 0: as if a handshake had measured the base RTT.",
)
MIN_TIMEOUT = row(
    default="200ms",
    minimum=1_000_000,
    source="Linux, TCP_RTO_MIN: 200 ms; RFC 6298, section 2.4: 1 s",
    text="Shortest timeout.",
)
TIMEOUT_ABOVE_RTT = row(
    default=True,
    source="true: Linux, tcp_rtt_estimator and __tcp_set_rto; false: RFC 6298, section 2.4",
    text="The smoothed RTT is added to the shortest timeout, and not counted in it.",
)
MAX_TIMEOUT = row(
    default="120s",
    minimum=1_000_000,
    source="Linux, TCP_RTO_MAX: 120 s; RFC 6298, section 2.5: 60 s or more",
    text="Longest timeout.",
)


class TimerParams(Protocol):
    """Parameters that the functions read."""

    first_timeout_ps: int
    min_timeout_ps: int
    timeout_above_rtt: bool
    max_timeout_ps: int


class TimerState(SenderState):
    """The estimate of one sending queue pair."""

    smoothed_ps: float
    variation_ps: float


def first_timeout(params: TimerParams, state: TimerState, base_rtt_ps: int) -> None:
    """Begin with the parameter, or with the RTT of an empty path.

    A handshake would have measured this RTT.
    """
    if params.first_timeout_ps > 0:
        state.timeout_ps = params.first_timeout_ps
    else:
        measure(params, state, float(base_rtt_ps))


def measure(params: TimerParams, state: TimerState, rtt_ps: float) -> None:
    """Estimate RTT and timeout (RFC 6298, sections 2.2 to 2.5 and 5.7).

    A sample ends the doubling.
    """
    if state.smoothed_ps == 0.0:
        state.smoothed_ps = rtt_ps
        state.variation_ps = rtt_ps / 2.0
    else:
        state.variation_ps = 0.75 * state.variation_ps + 0.25 * abs(state.smoothed_ps - rtt_ps)
        state.smoothed_ps = 0.875 * state.smoothed_ps + 0.125 * rtt_ps
    least_ps = float(params.min_timeout_ps)
    timeout_ps = max(state.smoothed_ps + 4.0 * state.variation_ps, least_ps)
    if params.timeout_above_rtt:
        timeout_ps = state.smoothed_ps + max(4.0 * state.variation_ps, least_ps)
    state.timeout_ps = min(int(timeout_ps), params.max_timeout_ps)


def back_off(params: TimerParams, state: TimerState) -> None:
    """Double the timeout (RFC 6298, section 5.5)."""
    state.timeout_ps = min(2 * state.timeout_ps, params.max_timeout_ps)
