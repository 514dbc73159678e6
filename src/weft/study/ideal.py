"""The ideal completion time of a message: alone on an empty fabric, at line rate, on the path of first candidates.

Its packets follow each other through store-and-forward links. The last one arrives after the longest monotone walk
through the table (packet, link) of serialisation times, plus the delays; that is exact for one flow that is never held
back.
Leaves out: windows and pacing, which hold back even a lone flow, so that a slowdown of 1 is the best that any control
can do.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from weft.base.clock import serialisation_ps

if TYPE_CHECKING:
    from weft.engine.plan import Plan

__all__ = ["IdealTimes", "pipeline_ps"]

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


class IdealTimes:
    """Ideal completion times on one plan; paths and results are kept, since few of them differ."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._path = cache(self._walk)
        self._time = cache(self._compute)

    def between(self, source_port: int, destination_port: int, size_bytes: int) -> int | None:
        """Ideal time in picoseconds from one NIC port to another; None where no path leads there at time 0."""
        plan = self._plan
        first = int(plan.port_peer[source_port])
        middle = self._path(int(plan.port_node[first]), int(plan.attachment[destination_port]))
        if middle is None:
            return None
        last = int(plan.port_peer[destination_port])
        is_direct = int(plan.port_node[first]) == int(plan.port_node[destination_port])
        ports = (source_port,) if is_direct else (source_port, *middle, last)
        gap = plan.transport.interframe_bytes
        hops = [(int(plan.port_rate_bps[port]), gap, int(plan.port_delay_ps[port])) for port in ports]
        nic = plan.nics[plan.node_device[plan.port_node[destination_port]]]
        if nic["pcie_rate_bps"] or nic["pcie_latency_ps"]:
            hops.append((int(nic["pcie_rate_bps"]), 0, int(nic["pcie_latency_ps"])))
        return self._time(size_bytes, tuple(hops))

    def _compute(self, size_bytes: int, hops: tuple[Hop, ...]) -> int:
        transport = self._plan.transport
        extra = transport.data_overhead_bytes + transport.telemetry_bytes
        mtu = transport.mtu_bytes
        packets = max(1, -(-size_bytes // mtu))
        if packets == 1:
            return pipeline_ps((size_bytes + extra + transport.first_extra_bytes,), 0, hops)
        tail = size_bytes - (packets - 1) * mtu
        frames = (mtu + extra + transport.first_extra_bytes, mtu + extra, tail + extra)
        return pipeline_ps(frames, packets - 2, hops)

    def _walk(self, node: int, attachment: int) -> tuple[int, ...] | None:
        """Ports from a switch to an attachment, by the first candidate of every switch."""
        plan = self._plan
        table = plan.routes[0]
        ports: list[int] = []
        while (group := int(table.group_of[node, attachment])) >= 0:
            port = int(table.group_ports[table.group_ptr[group]])
            ports.append(port)
            node = int(plan.port_node[plan.port_peer[port]])
        is_there = group == -2 or bool(
            np.any(plan.attachment[plan.port_base[node] : plan.port_base[node + 1]] == attachment)
        )
        return tuple(ports) if is_there else None
