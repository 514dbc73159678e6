"""The traffic matrix of a job.

It has the bytes of each queue pair between servers, and its NIC ports.

Sends and arrivals are added up over loops. A collective that the flow engine runs whole becomes the flows that
`native/flow/collective.hpp` makes of it. A part of a whole counts as the mean part, as in
`weftwork.study.prepare.job_volume`.
Leaves out: when bytes are sent; NIC ports to which a queue pair moves after a fault; headers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weftwork.engine.programs import counters_of
from weftwork.spec.job import Arrivals, Collect, Loop, Operation, Send
from weftwork.spec.peers import peers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Grid, Job

__all__ = ["TrafficMatrix", "traffic_matrix"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrafficMatrix:
    """One row for each queue pair between servers.

    Rows are ordered by source, destination and channel.

    Attributes
    ----------
    source, destination, channel : shape (queue pairs,), int64: ranks, and the number among those of the two
    source_port, destination_port : int64, global ids of the NIC ports of its first message
    size_bytes : float64, all that it carries
    priority : int64, the highest of its messages; -1: that of the transport
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    channel: NDArray[np.int64]
    source_port: NDArray[np.int64]
    destination_port: NDArray[np.int64]
    size_bytes: NDArray[np.float64]
    priority: NDArray[np.int64]


@dataclass(slots=True)
class _Columns:
    """Columns of the rows; several rows may be of one queue pair."""

    fabric: Fabric
    job: Job
    whole: list[NDArray[np.int64]] = field(default_factory=list)  # shape (rows, 6): all columns but the bytes
    size_bytes: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def rank_node(self) -> NDArray[np.int64]:
        """Node of each rank."""
        nodes: NDArray[np.int64] = self.fabric.hosts[self.job.placement.host]
        return nodes

    def port(self, rank: NDArray[np.int64], of: NDArray[np.int64], column: int) -> NDArray[np.int64]:
        """Port of a rank's server with the number of a column of ``of``.

        The rank's own port if the server lacks that number.
        """
        base, nics = self.fabric.ports.base, self.job.placement.nics
        node = self.rank_node[rank]
        wanted = base[node] + nics[of, column]
        found: NDArray[np.int64] = np.where(wanted < base[node + 1], wanted, base[node] + nics[rank, column])
        return found

    def add(
        self,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_port: NDArray[np.int64],
        size_bytes: NDArray[np.float64] | float,
        channel: NDArray[np.int64] | int,
        priority: int = -1,
    ) -> None:
        """Note the sends of some ranks.

        Traffic inside a server is left out.
        """
        node = self.rank_node
        over = node[source] != node[destination]
        columns = (source, destination, channel, source_port, destination_port, priority)
        rows = np.stack([np.broadcast_to(np.asarray(column, np.int64), source.shape)[over] for column in columns], 1)
        self.whole.append(rows)
        self.size_bytes.append(np.broadcast_to(np.asarray(size_bytes, np.float64), source.shape)[over])


def traffic_matrix(fabric: Fabric, job: Job) -> TrafficMatrix:
    """Add up the bytes that every queue pair sends to another server.

    Parameters
    ----------
    fabric, job : without mistakes
    """
    found = _Columns(fabric, job)
    for index, program in enumerate(job.programs):
        ranks = np.flatnonzero(job.rank_program == index)
        first = job.first_rank[index] if job.first_rank else 0
        for stream in program.streams:
            for operation, times, count in _runs(stream, 1, 1):
                if isinstance(operation, Send):
                    _send(found, operation, ranks, first, times, count)
                elif isinstance(operation, Arrivals):
                    _arrivals(found, operation, ranks, first)
                elif isinstance(operation, Collect):
                    _collect(found, operation, ranks, first, times * count)
    rows = np.concatenate([np.empty((0, 6), np.int64), *found.whole])
    size_bytes = np.concatenate([np.empty(0), *found.size_bytes])
    pairs, first_row, pair = np.unique(rows[:, :3], axis=0, return_index=True, return_inverse=True)
    total = np.zeros(len(pairs))
    np.add.at(total, pair.ravel(), size_bytes)
    priority = np.full(len(pairs), -1, np.int64)
    np.maximum.at(priority, pair.ravel(), rows[:, 5])
    sends = total > 0
    kept = first_row[sends]
    return TrafficMatrix(
        source=rows[kept, 0],
        destination=rows[kept, 1],
        channel=rows[kept, 2],
        source_port=rows[kept, 3],
        destination_port=rows[kept, 4],
        size_bytes=total[sends],
        priority=priority[sends],
    )


def _runs(operations: tuple[Operation, ...], times: int, count: int) -> Iterator[tuple[Operation, int, int]]:
    """Yield each operation, the runs of its innermost loop, and the loop's count."""
    for operation in operations:
        if isinstance(operation, Loop):
            yield from _runs(operation.body, times * count, operation.count)
        else:
            yield operation, times, count


def _send(found: _Columns, send: Send, ranks: NDArray[np.int64], first: int, times: int, count: int) -> None:
    size = send.size
    each_bytes = size.total_bytes * (size.span / size.parts if size.parts else 1) * size.copies
    counters = counters_of(send.peer, count)
    for counter in counters:
        local = peers_of(send.peer, ranks - first, counter)
        there = local != -1 if send.peer.rule == "table" else np.ones(len(ranks), np.bool_)
        source, destination = ranks[there], local[there] + first
        door = destination if send.rail == "peer" else source
        runs = times * len(range(counter, count, len(counters)))
        ports = found.port(source, door, send.nic), found.port(destination, destination, send.nic)
        found.add(source, destination, *ports, each_bytes * runs, send.channel, send.priority)


def _arrivals(found: _Columns, arrivals: Arrivals, ranks: NDArray[np.int64], first: int) -> None:
    for rank in ranks.tolist():
        source, destination = np.full(len(arrivals), rank), arrivals.peer + first
        ports = found.port(source, source, 0), found.port(destination, destination, 0)
        size_bytes = arrivals.size_bytes.astype(np.float64)
        found.add(source, destination, *ports, size_bytes, arrivals.channel, arrivals.priority)


def _collect(found: _Columns, collect: Collect, ranks: NDArray[np.int64], first: int, times: int) -> None:
    """As `Collectives` of native/flow/collective.hpp.

    Each group appears once, with the program of its first member.
    """
    offsets = _offsets(collect.group)
    for own in ranks.tolist():
        if _place(collect.group, own - first) == 0 and len(offsets) > 1:
            members = own + offsets
            (_ring if collect.pattern == "ring" else _all_to_all)(found, collect, members, times)


def _offsets(grid: Grid) -> NDArray[np.int64]:
    """Offsets from the first member of a group to each member.

    They are in the order of coordinates.
    """
    offsets = np.zeros(1, np.int64)
    for stride, size in grid.axes:
        offsets = (np.arange(size)[:, None] * stride + offsets).ravel()
    return offsets


def _place(grid: Grid, rank: int) -> int:
    return sum(rank // stride % size for stride, size in grid.axes)


def _ring(found: _Columns, collect: Collect, members: NDArray[np.int64], times: int) -> None:
    gpu, kind = found.job.placement.gpu, found.fabric.node_server
    domains: dict[tuple[int, int], list[int]] = {}
    for rank, node in zip(members.tolist(), found.rank_node[members].tolist(), strict=True):
        each = found.fabric.servers[0 if kind is None else int(kind[node])].nvlink_domain_gpus
        domain = -1 if gpu is None or not each else int(gpu[rank]) // each
        domains.setdefault((node, domain), []).append(rank)
    parts = list(domains.values())
    if len(parts) == 1:
        return
    sizes = Counter(len(part) for part in parts)
    rings = max(sizes, key=lambda size: (sizes[size], size))
    rows = [
        (own[(ring - 1) % len(own)], own[ring % len(own)], other[ring % len(other)])
        for own, other in zip(parts, [*parts[1:], parts[0]], strict=True)
        for ring in range(rings)
    ]
    last, door, following = np.array(rows, np.int64).T
    columns = found.job.placement.nics.shape[1]
    each_bytes = times * collect.amount_bytes / (rings * columns * collect.network_efficiency * collect.queue_pairs)
    for column in range(columns):
        ports = found.port(door, door, column), found.port(following, following, column)
        for channel in _channels(collect):
            found.add(last, following, *ports, each_bytes, channel)


def _all_to_all(found: _Columns, collect: Collect, members: NDArray[np.int64], times: int) -> None:
    source, destination = (side.ravel() for side in np.meshgrid(members, members, indexing="ij"))
    columns = found.job.placement.nics.shape[1]
    part = collect.network_share / (len(members) * columns * collect.network_efficiency * collect.queue_pairs)
    for column in range(columns):
        ports = found.port(source, destination, column), found.port(destination, destination, column)
        for channel in _channels(collect):
            found.add(source, destination, *ports, times * collect.amount_bytes * part, channel)


def _channels(collect: Collect) -> range:
    return range(collect.channel * collect.queue_pairs, (collect.channel + 1) * collect.queue_pairs)
