"""The ideal completion time of a message: alone on an empty fabric, at line rate, on the path of first candidates.

Its packets follow each other through store-and-forward links. The last one arrives after the longest monotone walk
through the table (packet, link) of serialisation times, plus the delays; that is exact for one flow that is never held
back.
Leaves out: windows and pacing, which hold back even a lone flow, so that a slowdown of 1 is the best that any control
can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.base.clock import serialisation_ps
from weft.spec.fabric import HOST
from weft.topology.routing import DELIVER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.engine.plan import Plan

__all__ = ["ideal_times_ps", "pipeline_ps"]

Hop = tuple[int, int, int]  # rate_bps (0: takes no time), bytes between frames, delay_ps behind it


def pipeline_ps(frames: tuple[int, ...], middle: int, hops: tuple[Hop, ...]) -> int:
    """Time from the first bit sent to the last bit received.

    Parameters
    ----------
    frames : bytes of the first frame, of one in the middle and of the last; or of one frame alone
    middle : how many frames are in the middle, 0 or more
    hops : links in order

    Returns
    -------
    picoseconds

    Examples
    --------
    >>> hop = (400_000_000_000, 0, 1_000)
    >>> pipeline_ps((4096,), 0, (hop, hop)), pipeline_ps((4096, 4096, 4096), 1, (hop, hop))
    (165840, 329680)
    """
    delay = sum(hop[2] for hop in hops)
    times = [[serialisation_ps(size + gap, rate) if rate else 0 for rate, gap, _ in hops] for size in frames]
    if len(frames) == 1:
        return delay + sum(times[0])
    first, mid, last = times
    count = len(hops)
    if middle == 0:
        return delay + max(sum(first[: at + 1]) + sum(last[at:]) for at in range(count))
    # The walk leaves the first frame on link a and joins the last on link b; the rest is spent on the slowest between.
    return delay + max(
        sum(first[: a + 1]) + sum(mid[a : b + 1]) + (middle - 1) * max(mid[a : b + 1]) + sum(last[b:])
        for a in range(count)
        for b in range(a, count)
    )


def ideal_times_ps(
    plan: Plan, source_port: NDArray[Any], destination_port: NDArray[Any], size_bytes: NDArray[Any]
) -> NDArray[np.int64]:
    """Ideal completion times of messages.

    Most of them share a path that looks the same and a size, so each distinct case is worked out once.

    Parameters
    ----------
    plan : the run's
    source_port, destination_port : shape (messages,), NIC ports
    size_bytes : shape (messages,)

    Returns
    -------
    shape (messages,), picoseconds; -1 where no path leads there at time 0
    """
    if len(size_bytes) == 0:
        return np.empty(0, np.int64)
    first_hop = plan.port_peer[source_port]
    last_hop = plan.port_peer[destination_port]
    node = plan.port_node[destination_port]
    case = np.stack(
        [
            plan.port_node[first_hop],
            plan.port_rate_bps[source_port],
            plan.port_delay_ps[source_port],
            plan.attachment[destination_port],
            plan.port_rate_bps[last_hop],
            plan.port_delay_ps[last_hop],
            plan.node_device[node],
            np.where(plan.node_kind[plan.port_node[last_hop]] == HOST, node, -1),  # linked to a host without a switch
            size_bytes,
        ],
        axis=1,
    ).astype(np.int64)
    _, example, which = np.unique(case, axis=0, return_index=True, return_inverse=True)
    paths: dict[tuple[int, int], tuple[int, ...] | None] = {}
    times: list[int] = []
    for source, destination, size in zip(
        source_port[example].tolist(), destination_port[example].tolist(), size_bytes[example].tolist(), strict=True
    ):
        ends = int(plan.port_node[plan.port_peer[source]]), int(plan.attachment[destination])
        if ends not in paths:
            paths[ends] = _walk(plan, *ends)
        middle = paths[ends]
        times.append(-1 if middle is None else _message_ps(plan, size, _hops(plan, source, destination, middle)))
    return np.array(times, np.int64)[which.ravel()]


def _hops(plan: Plan, source_port: int, destination_port: int, middle: tuple[int, ...]) -> tuple[Hop, ...]:
    """Links from one NIC port to another, and the host interface behind the last one."""
    first = int(plan.port_peer[source_port])
    is_direct = plan.port_node[first] == plan.port_node[destination_port]
    ports = (source_port,) if is_direct else (source_port, *middle, int(plan.port_peer[destination_port]))
    gap = plan.transport.interframe_bytes
    hops = [(int(plan.port_rate_bps[port]), gap, int(plan.port_delay_ps[port])) for port in ports]
    nic = plan.nics[plan.node_device[plan.port_node[destination_port]]]
    if nic["pcie_rate_bps"] or nic["pcie_latency_ps"]:
        hops.append((int(nic["pcie_rate_bps"]), 0, int(nic["pcie_latency_ps"])))
    return tuple(hops)


def _message_ps(plan: Plan, size_bytes: int, hops: tuple[Hop, ...]) -> int:
    transport = plan.transport
    extra = transport.data_overhead_bytes + transport.telemetry_bytes
    mtu = transport.mtu_bytes
    packets = max(1, -(-size_bytes // mtu))
    if packets == 1:
        return pipeline_ps((size_bytes + extra + transport.first_extra_bytes,), 0, hops)
    tail = size_bytes - (packets - 1) * mtu
    return pipeline_ps((mtu + extra + transport.first_extra_bytes, mtu + extra, tail + extra), packets - 2, hops)


def _walk(plan: Plan, node: int, attachment: int) -> tuple[int, ...] | None:
    """Ports from a switch to an attachment, by the first candidate of every switch; None where there is no way."""
    table = plan.routes[0]
    ports: list[int] = []
    while (group := int(table.group_of[node, attachment])) >= 0:
        port = int(table.group_ports[table.group_ptr[group]])
        ports.append(port)
        node = int(plan.port_node[plan.port_peer[port]])
    own = plan.attachment[plan.port_base[node] : plan.port_base[node + 1]]
    return tuple(ports) if group == DELIVER or (own == attachment).any() else None
