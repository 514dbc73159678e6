"""The longest base RTT between any two NIC ports of a fabric.

It is over the paths of first candidates, without queues.
Source: `docs/models/packet-engine.md`, section Base RTT. Leaves out: routes that come later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.packet_input import PacketInput

__all__ = ["fabric_base_rtt_ps"]

_PAIRS: Final = 1 << 20  # chosen: at a time, 8 MB in each array
_DELIVER: Final = -2  # RouteTable.group_of: this node is the attachment


def fabric_base_rtt_ps(engine_input: PacketInput) -> int:
    """Longest base RTT between two connected NIC ports; 0 without any.

    The round trip is that of a full packet and its ACK. Ports with the same switch, rates and delays are alike, so that
    one of them stands for all.

    Parameters
    ----------
    engine_input : whose first table of routes, rates and delays hold
    """
    nic = np.flatnonzero(engine_input.attachment >= 0)
    nic = nic[engine_input.port_peer[nic] >= 0]
    if not len(nic):
        return 0
    peer = engine_input.port_peer[nic]
    kinds = np.stack(
        [
            engine_input.attachment[nic],
            *(
                column[ends]
                for column in (engine_input.port_rate_bps, engine_input.port_delay_ps)
                for ends in (nic, peer)
            ),
        ],
        axis=1,
    )
    _, first, counts = np.unique(kinds, axis=0, return_index=True, return_counts=True)
    ports = np.concatenate([nic[first], _seconds(kinds, nic, first, counts)])
    longest = 0
    step = max(1, _PAIRS // len(ports))
    for start in range(0, len(ports), step):
        there, back = (grid.ravel() for grid in np.meshgrid(ports, ports[start : start + step]))
        apart = there != back
        round_ps = _round_trips_ps(engine_input, there[apart], back[apart])
        longest = max(longest, int(round_ps.max(initial=0)))
    return longest


def _seconds(
    kinds: NDArray[np.int64], nic: NDArray[np.int64], first: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """A second port of each kind with several ports.

    Pairs of one kind are then looked at too.
    """
    rest = np.delete(np.arange(len(nic)), first)
    _, again = np.unique(kinds[rest], axis=0, return_index=True)
    found: NDArray[np.int64] = nic[rest[again]] if (counts > 1).any() else nic[:0]
    return found


def _round_trips_ps(
    engine_input: PacketInput, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Round trips of pairs of NIC ports; 0 without a route in either direction."""
    transport = engine_input.transport
    hop_bytes = transport.telemetry_hop_bytes
    data_bytes = transport.mtu_bytes + transport.data_overhead_bytes + transport.telemetry_bytes
    there_ps, hops = _one_way_ps(engine_input, source, destination, np.full(len(source), data_bytes), hop_bytes)
    ack_bytes = transport.ack_bytes + transport.echo_bytes + transport.telemetry_bytes + hop_bytes * hops
    back_ps, _ = _one_way_ps(engine_input, destination, source, ack_bytes, 0)
    return np.where((there_ps > 0) & (back_ps > 0), there_ps + back_ps, 0)


def _one_way_ps(
    engine_input: PacketInput,
    origin: NDArray[np.int64],
    target: NDArray[np.int64],
    size_bytes: NDArray[np.int64],
    hop_bytes: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One-way time of each pair, 0 without a route, and passed switches."""
    table = engine_input.routes[0]
    total_ps = np.zeros(len(origin), np.int64)
    hops = np.zeros(len(origin), np.int64)
    port, under_way = origin.astype(np.int64), np.arange(len(origin))
    wire_bytes = size_bytes.astype(np.int64) + engine_input.transport.interframe_bytes
    while len(under_way):
        bits = wire_bytes[under_way] * (8 * SECOND_PS)
        rates = engine_input.port_rate_bps[port]
        total_ps[under_way] += engine_input.port_delay_ps[port] - (-bits // rates)
        arrival = engine_input.port_peer[port].astype(np.int64)
        on = arrival != target[under_way]
        under_way, arrival = under_way[on], arrival[on]
        group = table.group_of[engine_input.port_node[arrival], engine_input.attachment[target[under_way]]]
        lost = (group == -1) | (engine_input.attachment[arrival] >= 0)
        total_ps[under_way[lost]] = 0
        under_way, group = under_way[~lost], group[~lost].astype(np.int64)
        hops[under_way] += 1
        wire_bytes[under_way] += hop_bytes
        last = group == _DELIVER
        port = engine_input.port_peer[target[under_way]].astype(np.int64)
        port[~last] = table.group_ports[table.group_ptr[group[~last]]]
    return total_ps, hops
