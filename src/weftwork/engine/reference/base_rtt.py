"""The base RTT of a queue pair: there with a full data packet, back with an ACK, without queues.

Source: `docs/models/packet-engine.md`, section Base RTT.
Leaves out: routes that come later; the first table and the first candidate of each group decide.
"""

from __future__ import annotations

from weftwork.base.clock import serialisation_ps
from weftwork.engine.plan import Plan
from weftwork.engine.reference.forwarding import DELIVER, UNREACHABLE

__all__ = ["base_rtt_ps"]


def base_rtt_ps(plan: Plan, source: int, destination: int) -> int:
    """Round trip between two NIC ports, given by their ids; 0 without a route."""
    transport = plan.transport
    data_bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes
    there_ps = _one_way_ps(plan, source, destination, data_bytes)
    back_ps = _one_way_ps(plan, destination, source, transport.ack_bytes)
    return there_ps + back_ps if there_ps and back_ps else 0


def _one_way_ps(plan: Plan, origin: int, target: int, size_bytes: int) -> int:
    table = plan.routes[0]
    wire_bytes = size_bytes + plan.transport.interframe_bytes
    total_ps, port = 0, origin
    while True:
        total_ps += int(plan.port_delay_ps[port]) + serialisation_ps(wire_bytes, int(plan.port_rate_bps[port]))
        arrival = int(plan.port_peer[port])
        if arrival == target:
            return total_ps
        group = int(table.group_of[int(plan.port_node[arrival]), int(plan.attachment[target])])
        if group == UNREACHABLE or int(plan.attachment[arrival]) >= 0:  # or a host, which does not forward
            return 0
        is_last = group == DELIVER
        port = int(plan.port_peer[target]) if is_last else int(table.group_ports[int(table.group_ptr[group])])
