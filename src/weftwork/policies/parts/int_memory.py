"""In-band telemetry of the last ACK, with which that of the next one is compared.

Source: Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, algorithm 1 (L, the link feedback of the last ACK);
HPCC-ns3, rdma-hw.cc, as told at each row.
Leaves out: what a control computes from two ACKs.
"""

from __future__ import annotations

from typing import Protocol

from weftwork.policies.interface import HOPS, SenderState, Signal, array

__all__ = ["PS_PER_BYTE_SECOND", "HopState", "RoundParams", "knows_path", "remember", "round_bytes", "round_ps"]

PS_PER_BYTE_SECOND = 8e12  # bits per byte x picoseconds per second


class RoundParams(Protocol):
    """Parameters that the functions read."""

    fabric_rtt: bool


class HopState(SenderState):
    """Telemetry of the last ACK, hop by hop."""

    last_queue_bytes: list[int] = array(HOPS)
    last_tx_bytes: list[int] = array(HOPS)
    last_at_ps: list[int] = array(HOPS)
    last_port: list[int] = array(HOPS)
    hops: int


def knows_path(state: HopState, signal: Signal) -> bool:
    """Whether the last ACK came over the same ports."""
    known = state.hops == signal.hops
    for i in range(signal.hops):
        known = known and state.last_port[i] == signal.hop_port[i]
    return known


def remember(state: HopState, signal: Signal) -> None:
    """Store the telemetry of each hop."""
    state.hops = signal.hops
    for i in range(signal.hops):
        state.last_queue_bytes[i] = signal.hop_queue_bytes[i]
        state.last_tx_bytes[i] = signal.hop_tx_bytes[i]
        state.last_at_ps[i] = signal.hop_at_ps[i]
        state.last_port[i] = signal.hop_port[i]


def round_ps(params: RoundParams, signal: Signal) -> float:
    """Round trip without queues, in which a window is sent: of the fabric, or of the flow's own path."""
    longest_ps = signal.fabric_base_rtt_ps if params.fabric_rtt else 0
    return float(max(longest_ps, signal.base_rtt_ps, 1))  # a pair without a route at time 0 has none


def round_bytes(params: RoundParams, signal: Signal) -> float:
    """Bytes that the line takes in this time, the largest window."""
    return float(signal.line_rate_bps) * round_ps(params, signal) / PS_PER_BYTE_SECOND
