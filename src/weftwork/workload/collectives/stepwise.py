"""Collectives as sends and receives, for engines without `Collect`.

A ring becomes its steps: as many rings as an NVLink domain has members, each entering a domain by the NICs of another
member and with an equal share of the bytes; an all-to-all becomes a message to each other member. A collective then
blocks its stream until it is done, where a whole one is only waited for.
Source: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (rings).
Efficiencies and the share of `weftwork.spec.job.Collect` count as there: a message carries as many bytes more. The
overhead is waited for first, less the latencies of the path that the steps themselves wait for.
Leaves out: steps that overlap, as those of `weftwork.workload.collectives.algorithms` do; trees and switches that
reduce, which are rings of as many bytes as they need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import (
    Arrivals,
    Collect,
    Compute,
    Grid,
    Job,
    Loop,
    Operation,
    Peer,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["cosets", "stepwise"]

MAX_CHANNEL = (1 << 16) - 1  # as engines have it: 16 bits of a flow's identity


def cosets(grid: Grid, ranks: int, first_rank: int = 0) -> NDArray[np.int64]:
    """Groups of a grid as an array (groups, members).

    Members are in the order of their coordinate.

    Parameters
    ----------
    grid : whose axes
    ranks : of the job
    first_rank : from which they count

    Examples
    --------
    >>> cosets(Grid(axes=((2, 2),)), 4).tolist()
    [[0, 2], [1, 3]]
    """
    rank = np.arange(ranks, dtype=np.int64)
    rest, coordinate, weight = rank.copy(), np.zeros(ranks, np.int64), 1
    for stride, size in grid.axes:
        digit = rank // stride % size
        rest -= digit * stride
        coordinate += digit * weight
        weight *= size
    order = np.lexsort((coordinate, rest))
    return rank[order].reshape(-1, grid.size) + first_rank


def stepwise(job: Job, domain: NDArray[np.int64], *, near_latency_ps: int = 0, far_latency_ps: int = 0) -> Job:
    """Replace every `Collect` of a job by sends and receives.

    Parameters
    ----------
    job : with collectives
    domain : shape (ranks,), the NVLink domain of each rank, a number of its own where it has none
    near_latency_ps, far_latency_ps : of a message inside a domain and over the network, which an engine adds to each
        step and which the overhead of a collective has too

    Returns
    -------
    a job of the same ranks, milestones and labels

    Raises
    ------
    ConfigError : it needs more channels than a flow's identity holds, or a ring's bytes have no steps
    """
    writer = _Writer(job, domain, near_latency_ps, far_latency_ps)
    programs = tuple(
        Program(streams=tuple(writer.again(stream) for stream in program.streams)) for program in job.programs
    )
    return replace(job, programs=programs)


class _Writer:
    """Rewritten operations, each distinct one once.

    Programs repeat operations.
    """

    def __init__(self, job: Job, domain: NDArray[np.int64], near_latency_ps: int, far_latency_ps: int) -> None:
        self._job = job
        self._domain = domain
        self._latency_ps = near_latency_ps, far_latency_ps
        self._columns: int = job.placement.nics.shape[1]
        self._known: dict[int, tuple[Operation, ...]] = {}
        self._rings: dict[Grid, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        if any(job.first_rank):
            text = "found several jobs on one fabric, wanted one: only the flow engine runs several"
            raise ConfigError("jobs", [Mistake(path="jobs", text=text)])
        grids = {operation.group for operation in _all(job) if isinstance(operation, Collect)}
        self._width: int = max([1, *(len(self._rings_of(grid)) * self._columns for grid in grids)])

    def again(self, operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        """A rewritten stream or loop body."""
        found: list[Operation] = []
        for operation in operations:
            if id(operation) not in self._known:
                self._known[id(operation)] = self._one(operation)
            found += self._known[id(operation)]
        return tuple(found)

    def _one(self, operation: Operation) -> tuple[Operation, ...]:
        if isinstance(operation, Loop):
            return (replace(operation, body=self.again(operation.body)),)
        if isinstance(operation, Send | Receive):
            return (replace(operation, channel=self._channel(operation.channel, 0)),)
        if isinstance(operation, Arrivals):
            self._channel(int(operation.channel.max(initial=0)), 0)  # refuses what is too large
            return (replace(operation, channel=operation.channel * self._width),)
        if not isinstance(operation, Collect):
            return (operation,)
        if operation.group.size == 1:
            return ()
        overhead_ps = max(0, operation.overhead_ps - self._waited_ps(operation))
        late = (Compute(duration_ps=overhead_ps, label=operation.label),) if overhead_ps else ()
        return (*late, *(self._ring(operation) if operation.pattern == "ring" else self._all_to_all(operation)))

    def _waited_ps(self, operation: Collect) -> int:
        """Path latencies that the steps of a ring wait for, except the last step.

        A far step waits for its ACK too.
        """
        if operation.pattern != "ring":
            return 0
        near_ps, far_ps = self._latency_ps
        following = np.array(self._rings_of(operation.group)[0][0])
        group = cosets(operation.group, self._job.ranks)[0]
        far = int((self._domain[group] != self._domain[following[group]]).sum())
        rounds = 2 if operation.operation == "all-reduce" else 1
        of_steps_ps = rounds * ((len(group) - far) * near_ps + far * 2 * far_ps)
        return max(0, of_steps_ps * (len(group) - 1) // len(group) - (far_ps if far else near_ps))

    def _channel(self, channel: int, part: int) -> int:
        found = channel * self._width + part
        if found > MAX_CHANNEL:
            text = f"needs {plural(found + 1, 'channel')}, wanted at most {MAX_CHANNEL + 1:,}: take smaller groups"
            raise ConfigError("training", [Mistake(path="training", text=text)])
        return found

    def _ring(self, operation: Collect) -> tuple[Operation, ...]:
        members: int = operation.group.size
        steps: int = (2 if operation.operation == "all-reduce" else 1) * (members - 1)
        rings = self._rings_of(operation.group)
        parts = steps * len(rings) * self._columns
        body: list[Operation] = []
        for ring, (following, leading) in enumerate(rings):
            for column in range(self._columns):
                part = ring * self._columns + column
                channel = self._channel(operation.channel, part)
                for to, of, share in self._near_and_far(following, leading, operation):
                    size = Size(total_bytes=round(operation.amount_bytes * share), parts=parts, offset=part)
                    reduces = operation.operation != "all-gather"
                    if to is not None:
                        body.append(
                            Send(peer=to, size=size, channel=channel, nic=column, rail="peer", label=operation.label)
                        )
                    if of is not None:
                        body.append(Receive(peer=of, channel=channel, reduce=reduces))
        return (Loop(count=steps, body=(*body, Wait(label=operation.label))),)

    def _all_to_all(self, operation: Collect) -> tuple[Operation, ...]:
        groups = cosets(operation.group, self._job.ranks)
        members = operation.group.size
        body: list[Operation] = []
        for shift in range(1, members):
            to = self._table(groups, np.roll(groups, -shift, axis=1))
            of = self._table(groups, np.roll(groups, shift, axis=1))
            channel = self._channel(operation.channel, 0)
            for peer, source, share in self._near_and_far(to, of, operation):
                size = Size(total_bytes=round(operation.amount_bytes * share), parts=members)
                if peer is not None and share > 0:
                    body.append(Send(peer=peer, size=size, channel=channel, rail="peer", label=operation.label))
                if source is not None and share > 0:
                    body.append(Receive(peer=source, channel=channel))
        return (*body, Wait(label=operation.label))

    def _near_and_far(
        self, to: tuple[int, ...], of: tuple[int, ...], operation: Collect
    ) -> list[tuple[Peer | None, Peer | None, float]]:
        """Peers of each rank near and far, and the weight of a byte.

        Near peers are inside the rank's domain, far peers outside. The weight is that of a byte to these peers.
        """
        far = operation.network_share if operation.pattern == "all-to-all" else 1.0
        found = []
        for is_far, share in ((False, 1 / operation.local_efficiency), (True, far / operation.network_efficiency)):
            sent, received = (self._only(table, is_far=is_far) for table in (to, of))
            if sent is not None or received is not None:
                found.append((sent, received, share))
        return found

    def _only(self, table: tuple[int, ...], *, is_far: bool) -> Peer | None:
        """The peers in another domain, or in the same; None without any."""
        peers = np.array(table)
        there = (peers >= 0) & ((self._domain != self._domain[peers]) == is_far)
        return Peer(rule="table", table=tuple(np.where(there, peers, -1).tolist())) if there.any() else None

    def _table(self, groups: NDArray[np.int64], others: NDArray[np.int64]) -> tuple[int, ...]:
        table = np.full(self._job.ranks, -1, np.int64)
        table[groups.ravel()] = others.ravel()
        return tuple(table.tolist())

    def _rings_of(self, grid: Grid) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Successor and predecessor of each rank in each ring."""
        if grid not in self._rings:
            groups = cosets(grid, self._job.ranks)
            width = max(_members_of_a_domain(self._domain[group]) for group in groups)
            found = []
            for ring in range(width):
                ordered = np.array([_through_domains(group, self._domain[group], ring) for group in groups])
                found.append((self._table(ordered, np.roll(ordered, -1, axis=1)),
                              self._table(ordered, np.roll(ordered, 1, axis=1))))  # fmt: skip
            self._rings[grid] = found
        return self._rings[grid]


def _members_of_a_domain(domain: NDArray[np.int64]) -> int:
    """Most members of a domain; 1 for a single domain.

    Within a single domain one ring uses all of NVLink.
    """
    counts = np.unique(domain, return_counts=True)[1]
    return 1 if len(counts) == 1 else int(counts.max())


def _through_domains(group: NDArray[np.int64], domain: NDArray[np.int64], ring: int) -> NDArray[np.int64]:
    """Members domain by domain; ring j enters each domain at its member j."""
    parts = []
    for one in dict.fromkeys(domain.tolist()):
        own = group[domain == one]
        parts.append(np.roll(own, -(ring % len(own))))
    return np.concatenate(parts)


def _all(job: Job) -> list[Operation]:
    """Every operation of a job once, including those in loops."""
    seen: dict[int, Operation] = {}

    def visit(operations: tuple[Operation, ...]) -> None:
        for operation in operations:
            if id(operation) not in seen:
                seen[id(operation)] = operation
                if isinstance(operation, Loop):
                    visit(operation.body)

    for program in job.programs:
        for stream in program.streams:
            visit(stream)
    return list(seen.values())
