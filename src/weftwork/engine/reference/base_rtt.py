"""The base RTT of a queue pair, without queues.

A full data packet goes there, and an ACK comes back.
Source: `docs/models/packet-engine.md`, section Base RTT.
Leaves out: routes that come later; the first table and the first candidate of each group decide.
"""

from __future__ import annotations

from weftwork.base.clock import serialisation_ps
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.forwarding import DELIVER, UNREACHABLE

__all__ = ["base_rtt_ps"]


def base_rtt_ps(engine_input: PacketInput, source: int, destination: int) -> int:
    """Round trip between two NIC port ids; 0 without a route."""
    transport = engine_input.transport
    hop_bytes = transport.telemetry_hop_bytes
    data_bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes
    there_ps, hops = _one_way(engine_input, source, destination, data_bytes, hop_bytes)
    ack_bytes = transport.ack_bytes + transport.echo_bytes + transport.telemetry_bytes + hops * hop_bytes
    back_ps, _ = _one_way(engine_input, destination, source, ack_bytes, 0)
    return there_ps + back_ps if there_ps and back_ps else 0


def _one_way(engine_input: PacketInput, origin: int, target: int, size_bytes: int, hop_bytes: int) -> tuple[int, int]:
    """One-way time of a frame, and its number of switches.

    The frame grows by ``hop_bytes`` at each switch. The time is 0 without a route.
    """
    table = engine_input.routes[0]
    wire_bytes = size_bytes + engine_input.transport.interframe_bytes
    total_ps, hops, port = 0, 0, origin
    while True:
        total_ps += int(engine_input.port_delay_ps[port]) + serialisation_ps(
            wire_bytes + hops * hop_bytes, int(engine_input.port_rate_bps[port])
        )
        arrival = int(engine_input.port_peer[port])
        if arrival == target:
            return total_ps, hops
        group = int(table.group_of[int(engine_input.port_node[arrival]), int(engine_input.attachment[target])])
        if group == UNREACHABLE or int(engine_input.attachment[arrival]) >= 0:  # or a host, which does not forward
            return 0, hops
        hops += 1
        is_last = group == DELIVER
        port = int(engine_input.port_peer[target]) if is_last else int(table.group_ports[int(table.group_ptr[group])])
