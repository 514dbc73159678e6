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

from weftwork.policies.interface import CongestionControl, Kind, Signal, row
from weftwork.policies.parts.retransmission_timer import (
    FIRST_TIMEOUT,
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    TIMEOUT_ABOVE_RTT,
    measure,
)
from weftwork.policies.parts.tcp_window import (
    FEWEST,
    IDLE_RESTART,
    INITIAL_BYTES,
    INITIAL_PACKETS,
    SLOW_START_PACKETS,
    WindowState,
    acknowledge,
    begin,
    grow,
    is_filled,
    lose_half,
    restart,
    time_out_half,
)

__all__ = ["PLUGIN", "Params", "State", "step"]

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
    initial_packets: float = INITIAL_PACKETS
    initial_bytes: int = INITIAL_BYTES
    slow_start_packets: float = SLOW_START_PACKETS
    cut_takes_flight: bool = row(
        default=False,
        source="false: Linux, tcp_dctcp.c; true: RFC 5681, equation 4",
        text="Whether a loss halves unacknowledged bytes; if false, it halves the window.",
    )
    idle_restart: bool = IDLE_RESTART
    first_timeout_ps: int = FIRST_TIMEOUT
    min_timeout_ps: int = MIN_TIMEOUT
    timeout_above_rtt: bool = TIMEOUT_ABOVE_RTT
    max_timeout_ps: int = MAX_TIMEOUT


class State(WindowState):
    """One sending queue pair; windows in packets."""

    alpha: float
    arrived_bytes: int  # in this window of data
    marked_bytes: int
    window_seq: int  # where this window of data ends
    cut_seq: int  # marks up to the ACK of this number are of a window that was cut already


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
        begin(params, state, signal)
    elif signal.kind == Kind.RESUME:
        restart(params, state, signal)
    elif signal.kind == Kind.SEND:
        state.sent_at_ps = signal.now_ps
    elif signal.kind == Kind.ACK:
        react(params, state, signal)
    elif signal.kind == Kind.NAK:
        lose_half(params, state, signal)
    elif signal.kind == Kind.TIMEOUT:
        time_out_half(params, state)


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


def react(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals, marks and losses; cut once per window, or grow."""
    if signal.rtt_ps > 0:
        measure(params, state, float(signal.rtt_ps))
    acknowledge(state, signal)
    count(state, signal)
    if signal.seq >= state.window_seq:
        learn(params, state, signal)
    is_marked = signal.marked_bytes > 0
    if signal.lost_bytes > 0:
        lose_half(params, state, signal)
    if state.in_recovery:
        return
    if is_marked and signal.seq > state.cut_seq and signal.seq >= state.recover_seq:
        state.window = max(state.window * (1.0 - state.alpha / 2.0), FEWEST)  # RFC 8257, section 3.3, step 9
        state.threshold = state.window
        state.cut_seq = state.high_seq
    is_whole = signal.seq > state.cut_seq or params.grows_while_cut
    if not is_marked and is_whole and signal.arrived_bytes > 0 and is_filled(state, signal):
        grow(params, state, float(signal.arrived_bytes) / signal.mtu_bytes)


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
