"""DCTCP: the window falls by half the share of marked packets.

It falls once in a window of data.
Source: RFC 8257, sections 3.3 to 3.5; Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192; Linux,
net/ipv4/tcp_dctcp.c; HPCC-ns3, rdma-hw.cc (a DCTCP that sets a rate); the rest as in reno.py.
Leaves out: the handshake; the receiver's state machine for delayed ACKs, since each ACK tells how much came marked;
PRR (the window falls at once), RACK and tail-loss probes; packets that were cut; spurious losses; whole windows.

Switches mark above one threshold K: `fabric.switch.ecn` with `kmin` = `kmax` = K and `pmax` of 1. HPCC-ns3 takes 30 kB
at 10 Gb/s for K, in proportion to the rate.
"""

from __future__ import annotations

from weftwork.policies.interface import OFF, CongestionControl, Kind, SenderState, Signal, row

__all__ = ["PLUGIN", "Params", "State", "step"]

NO_THRESHOLD = 1e15  # chosen: above any window in packets; slow start goes on until the first mark or loss
FEWEST = 2.0  # RFC 5681, equation 4; Linux, tcp_dctcp.c: a cut leaves two packets at least
ALPHA_UNITS = 1024  # Linux, tcp_dctcp.c, DCTCP_MAX_ALPHA
PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class Params:
    """Windows in packets, which need no scale; rates of the authors.

    The authors do not scale rates.
    """

    g: float = row(
        default=1 / 16,
        minimum=0.001,
        maximum=1,
        source="RFC 8257, section 4.2; Linux, dctcp_shift_g 4; HPCC-ns3, simulation/run.py",
        text="Weight of the newest share in alpha.",
    )
    alpha_initial: float = row(
        default=1.0,
        minimum=0,
        maximum=1,
        source="RFC 8257, section 4.2; Linux, dctcp_alpha_on_init 1024; HPCC-ns3",
        text="Alpha before the first window of data.",
    )
    whole_alpha: bool = row(
        default=False,
        source="false: RFC 8257; true: Linux, tcp_dctcp.c, which no longer reacts where less than 1/64 is marked",
        text="Alpha is a whole number of 1/1024, rounded down; below 16 of them it falls to 0 at once.",
    )
    grows_while_cut: bool = row(
        default=False,
        source="false: Linux, state CWR; true: RFC 8257, section 3.4",
        text="The window grows also in the round trip after a cut, by ACKs without a mark.",
    )
    rate_based: bool = row(
        default=False,
        source="false: RFC 8257; true: HPCC-ns3, rdma-hw.cc",
        text="Alpha cuts a rate, which starts at the line rate and rises once in a window of data.",
    )
    ai_rate_bps: int = row(
        default=0,
        minimum=0,
        source="0: RFC 8257, section 3.4; HPCC-ns3, simulation/run.py: 615 Mb/s, 1 kB in 13 us, at every line rate",
        text="If rate_based: additive increase; 0: one packet in a base RTT.",
    )
    min_rate_bps: int = row(
        default="1Gbps",
        minimum=1000,
        source="HPCC-ns3, simulation/run.py (MIN_RATE 1000Mb/s), at every line rate",
        text="If rate_based: the rate is never cut below this.",
    )
    window_bdps: float = row(
        default=1.0,
        minimum=0,
        source="HPCC-ns3, simulation/run.py: HAS_WIN 1, VAR_WIN 1",
        text="If rate_based: payload in flight at most, in rate x base RTT of the path, and a packet; 0: no window.",
    )
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
        source="false: Linux, tcp_dctcp.c; true: RFC 5681, equation 4",
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

    alpha: float
    arrived_bytes: int  # in this window of data
    marked_bytes: int
    window_seq: int  # where this window of data ends
    cut_seq: int  # marks up to the ACK of this number are of a window that was cut already
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
    """Set the window and the timeout, or the rate."""
    state.high_seq = max(state.high_seq, signal.next_seq)
    if signal.kind == Kind.START:
        state.alpha = params.alpha_initial
    if params.rate_based:
        pace(params, state, signal)
    else:
        turn(params, state, signal)
        state.window_bytes = state.window * signal.mtu_bytes


def turn(params: Params, state: State, signal: Signal) -> None:
    """React as TCP does, with a window."""
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


def count(state: State, signal: Signal) -> None:
    """Count arrived and marked bytes (RFC 8257, section 3.3, steps 1 to 3)."""
    state.arrived_bytes += signal.arrived_bytes
    state.marked_bytes += signal.marked_bytes


def learn(params: Params, state: State, signal: Signal) -> None:
    """Update alpha at the end of a window of data (RFC 8257, section 3.3)."""
    if state.arrived_bytes == 0:
        return
    marked_bytes = min(state.marked_bytes, state.arrived_bytes)
    if params.whole_alpha:
        units = int(state.alpha * ALPHA_UNITS)
        fall = int(units * params.g)
        units -= fall if fall > 0 else units
        units += marked_bytes * int(ALPHA_UNITS * params.g) // state.arrived_bytes
        state.alpha = float(min(units, ALPHA_UNITS)) / ALPHA_UNITS
    else:
        state.alpha = (1.0 - params.g) * state.alpha + params.g * float(marked_bytes) / state.arrived_bytes
    state.arrived_bytes = 0
    state.marked_bytes = 0
    state.window_seq = signal.next_seq


def acknowledge(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals, marks and losses; cut once per window, or grow."""
    if signal.rtt_ps > 0:
        measure(params, state, float(signal.rtt_ps))
    if signal.seq > state.acked_seq:
        state.acked_seq = signal.seq
        state.timeouts = 0
    if signal.seq >= state.recover_seq:
        state.in_recovery = False
    count(state, signal)
    if signal.seq >= state.window_seq:
        learn(params, state, signal)
    is_marked = signal.marked_bytes > 0
    if signal.lost_bytes > 0:
        lose(params, state, signal)
    if state.in_recovery:
        return
    if is_marked and signal.seq > state.cut_seq and signal.seq >= state.recover_seq:
        state.window = max(state.window * (1.0 - state.alpha / 2.0), FEWEST)  # RFC 8257, section 3.3, step 9
        state.threshold = state.window
        state.cut_seq = state.high_seq
    is_whole = signal.seq > state.cut_seq or params.grows_while_cut
    if not is_marked and is_whole and signal.arrived_bytes > 0 and is_filled(state, signal):
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
    """Half window after a loss (RFC 8257, section 3.5; RFC 5681, equation 4)."""
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


def pace(params: Params, state: State, signal: Signal) -> None:
    """Set a rate and its window (HPCC-ns3, HandleAckDctcp and GetWin)."""
    line_bps = float(signal.line_rate_bps)
    if signal.kind == Kind.START:
        state.rate_bps = line_bps
    elif signal.kind == Kind.ACK:
        count(state, signal)
        is_over = signal.seq > state.window_seq
        if state.window_seq == 0:  # the first round trip moves no alpha
            state.window_seq = signal.next_seq
        elif is_over:
            learn(params, state, signal)
        if signal.marked_bytes > 0 and signal.seq > state.cut_seq:
            state.rate_bps = max(state.rate_bps * (1.0 - state.alpha / 2.0), float(params.min_rate_bps))
            state.cut_seq = signal.next_seq
        if is_over and signal.seq > state.cut_seq:
            rise_bps = float(params.ai_rate_bps)
            if params.ai_rate_bps == 0:
                rise_bps = float(signal.mtu_bytes) * PS_PER_BYTE_SECOND / max(signal.base_rtt_ps, 1)
            state.rate_bps = state.rate_bps + rise_bps
    state.rate_bps = min(state.rate_bps, line_bps)
    if params.window_bdps > 0.0:
        path_bytes = line_bps * float(signal.base_rtt_ps) / PS_PER_BYTE_SECOND
        full_bytes = params.window_bdps * path_bytes + signal.mtu_bytes
        state.window_bytes = max(full_bytes * state.rate_bps / line_bps, float(signal.mtu_bytes))


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    needs=frozenset({"ecn", "rtt"}),
    source="RFC 8257; Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192; Linux, net/ipv4/tcp_dctcp.c",
    variants={
        # What hosts run, but for the rounding of alpha (`whole_alpha`): the defaults above.
        "linux": {},
        # The letter of the standard, which is the paper's algorithm.
        "rfc-8257": {
            "grows_while_cut": True,
            "initial_bytes": 14_600,
            "slow_start_packets": 2.0,
            "cut_takes_flight": True,
            "min_timeout_ps": "1s",
            "timeout_above_rtt": False,
            "max_timeout_ps": "60s",
        },
        # `dctcp` of github.com/alibaba-edu/High-Precision-Congestion-Control, simulation/run.py and rdma-hw.cc, which
        # the figures of HPCC were made with: a rate from the line rate down, under PFC; K is 30 kB at 10 Gb/s.
        "hpcc-repo": {"rate_based": True, "ai_rate_bps": "615Mbps"},
    },
)
