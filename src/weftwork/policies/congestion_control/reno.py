"""TCP Reno: slow start, additive increase, and half the window at a loss.

After slow start the window grows by one packet per round trip. It has a timeout of its own.
Source: RFC 5681, sections 3 and 4.1 (windows); RFC 6582 and RFC 6675 (one cut per window of data, SACK); RFC 6298
(timeout); RFC 3465 and RFC 6928 (slow start); Linux, net/ipv4/tcp_cong.c and include/net/tcp.h, as told at each row.
Leaves out: the handshake; delayed ACKs beyond the transport's `ack_every`; PRR, RACK and tail-loss probes; ECN; packets
that were cut; spurious losses; a second cut for what is lost while recovery goes on; Linux's gradual decay after idle.

Which packets are lost is for the transport to say: with `recovery: selective-repeat` it is SACK, and a threshold of 2
packets (`reorder_threshold`) is the rule of three duplicates. The window counts packets of `mtu` payload. What arrived
beyond a gap or is known to be lost is not in flight (RFC 6675), so that recovery goes on with a window of `ssthresh`.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

NO_THRESHOLD = 1e15  # chosen: above any window in packets; slow start goes on until the first loss
FEWEST = 2.0  # RFC 5681, equation 4: a cut leaves two packets at least


class Params:
    """Windows are counted in packets, which need no scale."""

    initial_packets: float = row(
        default=10.0, minimum=1, source="RFC 6928, section 2; Linux, TCP_INIT_CWND", text="First window, in packets."
    )
    initial_bytes: int = row(
        default=0,
        minimum=0,
        source="0: Linux; RFC 6928, section 2: 14,600",
        text="The first window holds no more than this, or two packets; 0: no such limit.",
    )
    slow_start_packets: float = row(
        default=0.0,
        minimum=0,
        source="0: Linux, tcp_slow_start; RFC 3465, section 2.3: L = 2",
        text="Packets by which one ACK raises the window in slow start at most; 0: all that it acknowledges.",
    )
    cut_takes_flight: bool = row(
        default=False,
        source="false: Linux, tcp_reno_ssthresh; true: RFC 5681, equation 4",
        text="Whether a loss halves unacknowledged bytes; if false, it halves the window.",
    )
    idle_restart: bool = row(
        default=True,
        source="RFC 5681, section 4.1; Linux, tcp_slow_start_after_idle 1",
        text="After more than a timeout without sending, the window is the first one at most.",
    )
    first_timeout_ps: int = row(
        default=0,
        minimum=0,
        source="0: RFC 6298, section 2.2, with the handshake as first sample; without one section 2.1: 1 s",
        text="Timeout before the first RTT is known; 0: as if a handshake had measured the base RTT.",
    )
    min_timeout_ps: int = row(
        default="200ms",
        minimum=1_000_000,
        source="Linux, TCP_RTO_MIN: 200 ms; RFC 6298, section 2.4: 1 s",
        text="Shortest timeout.",
    )
    timeout_above_rtt: bool = row(
        default=True,
        source="true: Linux, tcp_rtt_estimator and __tcp_set_rto; false: RFC 6298, section 2.4",
        text="The smoothed RTT is added to the shortest timeout, and not counted in it.",
    )
    max_timeout_ps: int = row(
        default="120s",
        minimum=1_000_000,
        source="Linux, TCP_RTO_MAX: 120 s; RFC 6298, section 2.5: 60 s or more",
        text="Longest timeout.",
    )


class State(SenderState):
    """One sending queue pair; windows in packets."""

    window: float
    threshold: float = NO_THRESHOLD
    high_seq: int  # first number that was never sent
    acked_seq: int
    recover_seq: int  # losses below are of a window that was cut already
    in_recovery: bool
    timeouts: int  # in a row
    sent_at_ps: int = OFF
    smoothed_ps: float
    variation_ps: float


def step(params: Params, state: State, signal: Signal) -> None:
    """Set the window and the timeout."""
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        start(params, state, signal)
    elif signal.kind == Kind.RESUME:
        resume(params, state, signal)
    elif signal.kind == Kind.SEND:
        state.sent_at_ps = signal.now_ps
    elif signal.kind == Kind.ACK:
        acknowledge(params, state, signal)
    elif signal.kind == Kind.NAK:
        lose(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        time_out(params, state, signal)
    state.window_bytes = state.window * signal.mtu_bytes


def start(params: Params, state: State, signal: Signal) -> None:
    """Begin with the first window and the RTT of an empty path.

    A handshake would have measured this RTT.
    """
    state.window = first_window(params, signal)
    if params.first_timeout_ps > 0:
        state.timeout_ps = params.first_timeout_ps
    else:
        measure(params, state, float(signal.base_rtt_ps))


def first_window(params: Params, signal: Signal) -> float:
    """The initial window (RFC 6928, section 2)."""
    if params.initial_bytes == 0:
        return params.initial_packets
    return min(params.initial_packets, max(float(params.initial_bytes) / signal.mtu_bytes, FEWEST))


def resume(params: Params, state: State, signal: Signal) -> None:
    """Begin again after a long silence (RFC 5681, section 4.1).

    `ssthresh` remembers the old window.
    """
    is_long = state.sent_at_ps != OFF and signal.now_ps - state.sent_at_ps > state.timeout_ps
    if params.idle_restart and is_long:
        state.window = min(state.window, first_window(params, signal))


def measure(params: Params, state: State, rtt_ps: float) -> None:
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


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals and losses; grow if nothing holds the sender back.

    Recovery or the sender itself may hold it back.
    """
    if signal.rtt_ps > 0:
        measure(params, state, float(signal.rtt_ps))
    if signal.seq > state.acked_seq:
        state.acked_seq = signal.seq
        state.timeouts = 0
    if signal.seq >= state.recover_seq:
        state.in_recovery = False
    if signal.lost_bytes > 0:
        lose(params, state, signal)
    elif not state.in_recovery and signal.arrived_bytes > 0 and is_filled(state, signal):
        grow(params, state, float(signal.arrived_bytes) / signal.mtu_bytes)


def is_filled(state: State, signal: Signal) -> bool:
    """Whether at least half of the window was in flight (RFC 7661).

    Linux does the same in slow start (tcp_is_cwnd_limited). Less means that the sender had nothing to send, or that its
    NIC was the limit.
    """
    return 2 * (signal.inflight_bytes + signal.arrived_bytes) >= state.window_bytes


def grow(params: Params, state: State, packets: float) -> None:
    """Slow start or congestion avoidance (RFC 5681, equations 2 and 3)."""
    if state.window < state.threshold:
        step_packets = min(packets, params.slow_start_packets) if params.slow_start_packets > 0.0 else packets
        state.window = min(state.window + step_packets, state.threshold)
    else:
        state.window += packets / state.window


def half(params: Params, state: State, signal: Signal) -> float:
    """Half window after a loss (RFC 5681, equation 4)."""
    before = state.window
    if params.cut_takes_flight:
        before = float(state.high_seq - state.acked_seq)
    return max(before / 2.0, FEWEST)


def lose(params: Params, state: State, signal: Signal) -> None:
    """Cut once per window of data (RFC 6582, RFC 6675).

    The window holds until all of the data is acknowledged.
    """
    if signal.seq >= state.recover_seq:
        state.threshold = half(params, state, signal)
        state.window = state.threshold
        state.recover_seq = state.high_seq
        state.in_recovery = True


def time_out(params: Params, state: State, signal: Signal) -> None:
    """Fall to one packet and double the timeout.

    Source: RFC 5681, section 3.1; RFC 6298, section 5.5.
    """
    if state.timeouts == 0:  # RFC 5681, section 3.1: what is lost again does not lower the threshold again
        state.threshold = half(params, state, signal)
    state.timeouts += 1
    state.window = 1.0
    state.recover_seq = state.high_seq
    state.in_recovery = False
    state.timeout_ps = min(2 * state.timeout_ps, params.max_timeout_ps)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    needs=frozenset({"rtt"}),
    source="RFC 5681, RFC 6582, RFC 6675, RFC 6298; Linux, net/ipv4/tcp_cong.c",
    variants={
        # What hosts run: the defaults above.
        "linux": {},
        # The letter of the standards.
        "rfc-5681": {
            "initial_bytes": 14_600,
            "slow_start_packets": 2.0,
            "cut_takes_flight": True,
            "min_timeout_ps": "1s",
            "timeout_above_rtt": False,
            "max_timeout_ps": "60s",
        },
    },
)
