"""A training job as programs of its ranks.

Ranks that do the same share one program. A million ranks are a few kilobytes: groups are strides, repetition is a loop,
and engines expand a program only as far as they have run it. What crosses servers is a message; every other dependency
is local to a rank.

A rank runs the streams of its program side by side. A stream runs its operations in order: ``Compute`` and ``At`` take
time, ``Send`` and ``Receive`` are posted and return at once, ``Wait`` ends when all that this stream has posted is
complete (a send when its last byte is acknowledged, a receive when its message has arrived whole, a collective when
every member has its result). ``Notify`` and ``Await`` order the streams of one rank. ``Milestone`` records the instant,
for collectives and iterations. Operations that take time carry a ``label``: what that time is spent on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Arrivals",
    "At",
    "Await",
    "Collect",
    "Compute",
    "Digit",
    "Grid",
    "Group",
    "Job",
    "Loop",
    "Milestone",
    "Notify",
    "Operation",
    "Peer",
    "Placement",
    "Program",
    "Receive",
    "Send",
    "Size",
    "Wait",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """An ordered group of ranks.

    Every rank has a coordinate, and every coordinate is a rank. By strides: the ranks {base + i stride : 0 <= i <
    size}; rank r has coordinate (r // stride) mod size.
    By ``members``: one group, whose member i is ``members[i]``; ranks that are not named have no coordinate and may not
    use the group. ``stride`` means nothing then.
    """

    stride: int = 1
    size: int
    members: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """The peer of a message, as a rule on the rank and loop counter.

    The counter is that of the innermost loop, ``i`` (0 outside a loop). ``shift``: member (c + shift + step i) mod size
    of the group, c being the rank's own coordinate.
    ``xor``: member c xor (shift << (step i)).
    ``table``: the rank's entry in ``table``; -1 skips the operation.
    ``rank``: the rank ``shift`` itself.
    """

    rule: Literal["shift", "xor", "table", "rank"]
    group: Group | None = None
    shift: int = 0
    step: int = 0
    table: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Digit:
    """One term of a part's number, from coordinate and loop counter.

    The coordinate c is the rank's in ``group``; the loop counter is i. ``shift``: ((c + shift + step i) mod size)
    weight. ``xor``: (c xor (shift << (step i))) weight.
    """

    group: Group
    rule: Literal["shift", "xor"] = "shift"
    shift: int = 0
    step: int = 0
    weight: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Size of a message: ``total_bytes``, or some of its near-equal parts.

    Parts are used with ``parts`` > 0. The first ``total_bytes mod parts`` parts are one byte longer than the others.
    The message carries the parts (offset + sum of the digits + j span_stride) mod parts for 0 <= j < span, ``copies``
    times: on behalf of so many ranks, of which this is one.
    """

    total_bytes: int
    parts: int = 0
    digits: tuple[Digit, ...] = ()
    offset: int = 0
    span: int = 1
    span_stride: int = 1
    copies: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Groups of ranks that differ only in the digits named here.

    An axis (stride, size) is the digit ``(r // stride) mod size``; the coordinate of a rank is made of its digits, the
    first axis changing fastest. So ((1, 8),) are the groups of eight neighbours, ((8, 2), (64, 4)) groups of eight
    ranks.
    """

    axes: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Members of one group."""
        return prod([size for _, size in self.axes])


@dataclass(frozen=True, kw_only=True, slots=True)
class Collect:
    """Join a collective operation of the rank's group.

    The operation is posted and returns at once. The n-th call of every member on one ``channel`` of one group is one
    operation. It begins when all members have posted it and the one before it on that channel of that group is done,
    lasts ``overhead_ps`` and then for as long as its bytes take.

    ``ring``: ``amount_bytes`` cross every edge of a ring through the members (2 (n - 1) / n of the buffer for an
    all-reduce, (n - 1) / n for an all-gather or reduce-scatter). Members of one NVLink domain follow each other, and
    there are as many rings as a domain has members, each leaving and entering a domain by the NIC of another member,
    with an equal share of the bytes.
    ``all-to-all``: every member brings ``amount_bytes`` and sends an equal part of it to every member, itself
    included; between domains ``network_share`` of it.
    Inside a domain bytes count ``1 / local_efficiency`` times, between domains ``1 / network_efficiency`` times
    (protocols, in-switch reductions).

    Parameters
    ----------
    operation, size_bytes : what it is, as nccl-tests counts it, for people
    queue_pairs : over which what two ranks send each other is split evenly; those of channel c have the numbers
        c queue_pairs to (c + 1) queue_pairs - 1
    """

    operation: str
    size_bytes: int
    group: Grid
    channel: int
    pattern: Literal["ring", "all-to-all"]
    amount_bytes: int
    overhead_ps: int = 0
    local_efficiency: float = 1.0
    network_efficiency: float = 1.0
    network_share: float = 1.0
    queue_pairs: int = 1
    label: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Compute:
    """Keep this stream busy."""

    duration_ps: int
    label: int = -1  # index into Job.labels; -1: none


@dataclass(frozen=True, kw_only=True, slots=True)
class At:
    """Wait for an instant of the run."""

    at_ps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Send:
    """Post a message.

    Messages of one (source, destination, channel) travel on one queue pair, in order. Between servers it leaves and
    arrives by a NIC port of ``Placement.nics``: column ``nic`` of the sender's row and of the receiver's; with
    ``rail="peer"`` by the receiver's port numbers at both ends, so that it stays on one rail. The first message of a
    queue pair decides. Inside a server it goes by NVLink or PCIe.
    """

    peer: Peer
    size: Size
    channel: int = 0
    priority: int = -1  # of the data packets; -1: the transport's
    nic: int = 0
    rail: Literal["own", "peer"] = "own"
    label: int = -1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Arrivals:
    """Messages that start at given instants, independently, as arrays.

    They are alternating `At` and `Send` operations.

    Attributes
    ----------
    at_ps : shape (messages,), int64, when each is posted
    peer : shape (messages,), int64, the rank that each goes to
    size_bytes : shape (messages,), int64
    channel : shape (messages,), int64
    priority : of the data packets; -1: the transport's
    """

    at_ps: NDArray[np.int64]
    peer: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    channel: NDArray[np.int64]
    priority: int = -1

    def __len__(self) -> int:
        return len(self.at_ps)

    def __eq__(self, other: object) -> bool:
        """Compare value by value."""
        if not isinstance(other, Arrivals):
            return NotImplemented
        pairs = ((self.at_ps, other.at_ps), (self.peer, other.peer), (self.size_bytes, other.size_bytes),
                 (self.channel, other.channel))  # fmt: skip
        return self.priority == other.priority and all(np.array_equal(own, its) for own, its in pairs)

    __hash__ = None  # type: ignore[assignment]  # arrays change


@dataclass(frozen=True, kw_only=True, slots=True)
class Receive:
    """Expect the next message from a peer on a channel.

    It may have arrived already. ``reduce`` says that what arrives is added to what is here, else it takes its place.
    Engines need not know: it costs them nothing. `weftwork.testing.collectives` runs programs on symbols and does.
    """

    peer: Peer
    channel: int = 0
    reduce: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """Wait until everything that this stream has posted is complete."""

    label: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Notify:
    """Increment ``token`` of this rank, now or ``after_ps`` later.

    The stream goes on at once. A delay is a latency that keeps nobody busy: what follows may overlap it.
    """

    token: int
    after_ps: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Await:
    """Wait until ``token`` of this rank is above zero, then decrement it."""

    token: int
    label: int = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Milestone:
    """Record the instant at which this rank gets here.

    ``name`` indexes `Job.milestone_names`.
    """

    name: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Loop:
    """Run ``body`` ``count`` times.

    The operations directly inside see the counter in their rules.
    """

    count: int
    body: tuple[Operation, ...]


Operation = Compute | At | Send | Arrivals | Receive | Collect | Wait | Notify | Await | Milestone | Loop


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The streams that a rank runs."""

    streams: tuple[tuple[Operation, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Placement of ranks on GPUs and NIC ports.

    Attributes
    ----------
    host : shape (ranks,), index among the fabric's hosts
    nics : shape (ranks, k), ports of that host that the rank's messages may use, the usual one first
    gpu : shape (ranks,), which GPU of the server the rank is; -1 - d for the NVLink switch of domain d, which takes
        part in a job where it reduces or multicasts; None where every host has one rank, or ranks of a host send
        nothing to each other
    """

    host: NDArray[np.int32]
    nics: NDArray[np.int32]
    gpu: NDArray[np.int32] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Programs, and for each rank its program and placement.

    Parameters
    ----------
    name : for people
    ranks : how many
    programs : one for all ranks that do the same
    rank_program : shape (ranks,), index into ``programs``
    placement : of the ranks on hosts
    milestone_names : names of the instants that `Milestone` records
    labels : what time is spent on, such as ``compute`` or ``tensor``
    first_rank : where jobs share a fabric, by program: the rank from which peers and groups count; empty: from 0
    origins : by program, the program whose computing it slows down, itself if it slows none; empty: none is slowed
    """

    name: str
    ranks: int
    programs: tuple[Program, ...]
    rank_program: NDArray[np.int32]
    placement: Placement
    milestone_names: tuple[str, ...] = field(default=())
    labels: tuple[str, ...] = field(default=())
    first_rank: tuple[int, ...] = field(default=())
    origins: tuple[int, ...] = field(default=())

    @property
    def gpus(self) -> int:
        """Ranks that are GPUs: all except NVLink switches that take part."""
        gpu = self.placement.gpu
        return self.ranks if gpu is None else int((gpu >= 0).sum())
