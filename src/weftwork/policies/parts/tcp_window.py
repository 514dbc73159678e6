"""TCP's window in packets: the first one, slow start, and one cut per window of data.

Which packets are lost is for the transport to say (SACK). What is told here is what a sender does then: it cuts once,
holds the window until all data of that time is acknowledged, and falls to one packet after a timeout.
Source: RFC 5681, sections 3 and 4.1; RFC 6582 and RFC 6675 (one cut per window of data, SACK); RFC 7661 (a window that
is not used does not grow); RFC 3465 and RFC 6928 (slow start); Linux, net/ipv4/tcp_cong.c, as told at each row.
Growth by a packet per round trip and cuts by half are Reno's; a control with others takes the parts of them.
Leaves out: PRR, RACK and tail-loss probes; spurious losses; Linux's gradual decay after idle.
"""

from __future__ import annotations

from typing import Protocol

from weftwork.policies.interface import OFF, Signal, row
from weftwork.policies.parts.retransmission_timer import TimerParams, TimerState, back_off, first_timeout

__all__ = [
    "FEWEST", "IDLE_RESTART", "INITIAL_BYTES", "INITIAL_PACKETS", "NO_THRESHOLD", "SLOW_START_PACKETS", "WindowParams",
    "WindowState", "acknowledge", "begin", "collapse", "enter_recovery", "first_window", "grow", "half", "is_filled",
    "is_loss_new", "lose_half", "restart", "slow_start", "time_out_half",
]  # fmt: skip

NO_THRESHOLD = 1e15  # chosen: above any window in packets; slow start goes on until the first loss or mark
FEWEST = 2.0  # RFC 5681, equation 4; RFC 9438, section 4.6; Linux, tcp_dctcp.c: a cut leaves two packets at least

INITIAL_PACKETS = row(
    default=10.0, minimum=1, source="RFC 6928, section 2; Linux, TCP_INIT_CWND", text="First window, in packets."
)
INITIAL_BYTES = row(
    default=0,
    minimum=0,
    source="0: Linux; RFC 6928, section 2: 14,600",
    text="The first window holds no more than this, or two packets; 0: no such limit.",
)
SLOW_START_PACKETS = row(
    default=0.0,
    minimum=0,
    source="0: Linux, tcp_slow_start; RFC 3465, section 2.3: L = 2",
    text="Packets by which one ACK raises the window in slow start at most; 0: all that it acknowledges.",
)
IDLE_RESTART = row(
    default=True,
    source="RFC 5681, section 4.1; Linux, tcp_slow_start_after_idle 1",
    text="After more than a timeout without sending, the window is the first one at most.",
)


class WindowParams(TimerParams, Protocol):
    """Parameters that the functions read."""

    initial_packets: float
    initial_bytes: int
    slow_start_packets: float
    cut_takes_flight: bool
    idle_restart: bool


class WindowState(TimerState):
    """One sending queue pair; windows in packets."""

    window: float
    threshold: float = NO_THRESHOLD
    high_seq: int  # first number that was never sent
    acked_seq: int
    recover_seq: int  # losses below are of a window that was cut already
    in_recovery: bool
    timeouts: int  # in a row
    sent_at_ps: int = OFF


def begin(params: WindowParams, state: WindowState, signal: Signal) -> None:
    """Set the first window and the first timeout."""
    state.window = first_window(params, signal)
    first_timeout(params, state, signal.base_rtt_ps)


def first_window(params: WindowParams, signal: Signal) -> float:
    """The initial window (RFC 6928, section 2)."""
    if params.initial_bytes == 0:
        return params.initial_packets
    return min(params.initial_packets, max(float(params.initial_bytes) / signal.mtu_bytes, FEWEST))


def restart(params: WindowParams, state: WindowState, signal: Signal) -> None:
    """Begin again after a long silence (RFC 5681, section 4.1).

    `ssthresh` remembers the old window.
    """
    is_long = state.sent_at_ps != OFF and signal.now_ps - state.sent_at_ps > state.timeout_ps
    if params.idle_restart and is_long:
        state.window = min(state.window, first_window(params, signal))


def acknowledge(state: WindowState, signal: Signal) -> None:
    """Take the number of an ACK: timeouts in a row end, and so may recovery."""
    if signal.seq > state.acked_seq:
        state.acked_seq = signal.seq
        state.timeouts = 0
    if signal.seq >= state.recover_seq:
        state.in_recovery = False


def is_filled(state: WindowState, signal: Signal) -> bool:
    """Whether at least half of the window was in flight (RFC 7661).

    Linux does the same in slow start (tcp_is_cwnd_limited). Less means that the sender had nothing to send, or that its
    NIC was the limit.
    """
    return 2 * (signal.inflight_bytes + signal.arrived_bytes) >= state.window_bytes


def slow_start(params: WindowParams, state: WindowState, packets: float) -> bool:
    """Grow by what an ACK acknowledges (RFC 5681, equation 2); return whether this is slow start."""
    if state.window >= state.threshold:
        return False
    step_packets = min(packets, params.slow_start_packets) if params.slow_start_packets > 0.0 else packets
    state.window = min(state.window + step_packets, state.threshold)
    return True


def grow(params: WindowParams, state: WindowState, packets: float) -> None:
    """Slow start or congestion avoidance (RFC 5681, equations 2 and 3)."""
    if not slow_start(params, state, packets):
        state.window += packets / state.window


def half(params: WindowParams, state: WindowState) -> float:
    """Half window after a loss (RFC 5681, equation 4; RFC 8257, section 3.5)."""
    before = state.window
    if params.cut_takes_flight:
        before = float(state.high_seq - state.acked_seq)
    return max(before / 2.0, FEWEST)


def is_loss_new(state: WindowState, signal: Signal) -> bool:
    """Whether a loss is not of a window that was cut already (RFC 6582, RFC 6675)."""
    return signal.seq >= state.recover_seq


def enter_recovery(state: WindowState) -> None:
    """Hold the window at the threshold until all that was sent is acknowledged."""
    state.window = state.threshold
    state.recover_seq = state.high_seq
    state.in_recovery = True


def collapse(params: WindowParams, state: WindowState) -> None:
    """Fall to one packet and double the timeout (RFC 5681, section 3.1; RFC 6298, section 5.5)."""
    state.timeouts += 1
    state.window = 1.0
    state.recover_seq = state.high_seq
    state.in_recovery = False
    back_off(params, state)


def lose_half(params: WindowParams, state: WindowState, signal: Signal) -> None:
    """Halve the window once per window of data (RFC 6582, RFC 6675).

    It holds until all of the data is acknowledged.
    """
    if is_loss_new(state, signal):
        state.threshold = half(params, state)
        enter_recovery(state)


def time_out_half(params: WindowParams, state: WindowState) -> None:
    """Halve the threshold and fall to one packet (RFC 5681, section 3.1)."""
    if state.timeouts == 0:  # RFC 5681, section 3.1: what is lost again does not lower the threshold again
        state.threshold = half(params, state)
    collapse(params, state)
