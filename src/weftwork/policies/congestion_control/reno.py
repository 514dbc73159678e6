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

from weftwork.policies.interface import CongestionControl, Kind, Signal, row
from weftwork.policies.parts.retransmission_timer import (
    FIRST_TIMEOUT,
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    TIMEOUT_ABOVE_RTT,
    measure,
)
from weftwork.policies.parts.tcp_window import (
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


class Params:
    """Windows are counted in packets, which need no scale."""

    initial_packets: float = INITIAL_PACKETS
    initial_bytes: int = INITIAL_BYTES
    slow_start_packets: float = SLOW_START_PACKETS
    cut_takes_flight: bool = row(
        default=False,
        source="false: Linux, tcp_reno_ssthresh; true: RFC 5681, equation 4",
        text="Whether a loss halves unacknowledged bytes; if false, it halves the window.",
    )
    idle_restart: bool = IDLE_RESTART
    first_timeout_ps: int = FIRST_TIMEOUT
    min_timeout_ps: int = MIN_TIMEOUT
    timeout_above_rtt: bool = TIMEOUT_ABOVE_RTT
    max_timeout_ps: int = MAX_TIMEOUT


class State(WindowState):
    """One sending queue pair; windows in packets."""


def step(params: Params, state: State, signal: Signal) -> None:
    """Set the window and the timeout."""
    state.high_seq = max(state.high_seq, signal.next_seq)
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
    state.window_bytes = state.window * signal.mtu_bytes


def react(params: Params, state: State, signal: Signal) -> None:
    """Count arrivals and losses; grow if nothing holds the sender back.

    Recovery or the sender itself may hold it back.
    """
    if signal.rtt_ps > 0:
        measure(params, state, float(signal.rtt_ps))
    acknowledge(state, signal)
    if signal.lost_bytes > 0:
        lose_half(params, state, signal)
    elif not state.in_recovery and signal.arrived_bytes > 0 and is_filled(state, signal):
        grow(params, state, float(signal.arrived_bytes) / signal.mtu_bytes)


PLUGIN = CongestionControl(
    params=Params,
    state=State,
    step=step,
    signals=frozenset({Kind.RESUME, Kind.SEND, Kind.ACK, Kind.NAK, Kind.TIMEOUT}),
    is_loss_based=True,
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
