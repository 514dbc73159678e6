"""Phases inside and across NVLink domains.

`hierarchical` and `nvls` are made of them. Rank s D + l is GPU l of domain s. Part (s D + l) K + k is piece k of what
that rank owns. A *slice* of a domain is all parts of the GPUs l of all domains, a *rail* the GPUs l themselves. An
NVLink switch is a rank of its own behind those of the GPUs: it adds what all GPUs of its domain send, and sends to all
of them what one of them sends.
Source: NCCL, src/device/all_reduce.h, the kernels for NVLS: multimem.ld_reduce and multimem.st through the switch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from weftwork.spec.job import Await, Digit, Group, Loop, Notify, Operation, Peer, Wait
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.streams import Cut, Lane, Streams, counter, exchange, ring

__all__ = ["Domains", "Pair", "in_order", "switch_gathers", "switch_reduces"]

Pair = tuple[list[Operation], list[Operation]]  # a sending and a receiving stream


def in_order(pairs: Iterable[Pair]) -> Pair:
    """The same phase of one piece after the other."""
    found: Pair = ([], [])
    for sending, receiving in pairs:
        found[0].extend(sending)
        found[1].extend(receiving)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Domains:
    """Numbers of ranks and parts, and the peers of ranks.

    Attributes
    ----------
    size : GPUs of a domain, D
    count : domains, S
    pieces : of a part, K
    per_group : domains of a group of switches; 1 where groups do not matter
    """

    size: int
    count: int
    pieces: int
    per_group: int = 1

    @classmethod
    def of(cls, call: Call, pieces: int) -> Domains:
        """The domains of a call."""
        return cls(size=call.domain, count=call.servers, pieces=pieces)

    @property
    def ranks(self) -> int:
        """Upper bound of rank numbers: GPUs plus switches."""
        return (self.size + 1) * self.count

    @property
    def inside(self) -> Group:
        """The GPUs of a domain."""
        return Group(size=self.size)

    @property
    def groups(self) -> int:
        """Number of groups of switches, or of domains where groups do not matter."""
        return self.count // self.per_group

    @property
    def within(self) -> Group:
        """The GPUs of a rail in one group."""
        return Group(stride=self.size, size=self.per_group)

    @property
    def across(self) -> Group:
        """The GPUs of a rail, one of each group."""
        return Group(stride=self.size * self.per_group, size=self.groups)

    @property
    def switch(self) -> Peer:
        """The switch of a GPU's domain."""
        return _switch(self.size, self.count)

    def gpu(self, first: int, step: int) -> Peer:
        """GPU ``first + step i`` of a switch's domain.

        In the group, each switch comes after its GPUs.
        """
        return Peer(rule="shift", group=_with_switches(self.size, self.count), shift=first - self.size, step=step)

    def local(self, shift: int = 0, step: int = 0) -> Digit:
        """GPU within its domain, as a digit of parts."""
        return Digit(group=self.inside, shift=shift, step=step, weight=self.pieces)

    def remote(self, shift: int = 0, step: int = 0) -> Digit:
        """The group, as a digit of parts; the domain where groups do not matter."""
        weight = self.size * self.per_group * self.pieces
        return Digit(group=self.across, shift=shift, step=step, weight=weight)

    def member(self, shift: int = 0, step: int = 0) -> Digit:
        """The domain within its group, as a digit of parts."""
        return Digit(group=self.within, shift=shift, step=step, weight=self.size * self.pieces)

    def slice(self, piece: int) -> Cut:
        """Piece ``piece`` of a slice."""
        return Cut(offsets=(piece,), span=self.count, stride=self.size * self.pieces)

    def rail(self, piece: int) -> Cut:
        """Piece ``piece`` of the data that a GPU of this rail, and of this place in its group, owns."""
        place = (self.member(),) if self.per_group > 1 else ()
        return Cut(offsets=(piece,), fixed=(self.local(), *place))

    def rail_of_groups(self, piece: int) -> Cut:
        """Piece ``piece`` of the data that the GPUs of this rail in all groups own."""
        stride = self.size * self.per_group * self.pieces
        return Cut(offsets=(piece,), fixed=(self.local(),), span=self.groups, stride=stride)

    def ring_inside(self, lane: Lane, piece: int, tokens: tuple[int, int, int], *, reduces: bool) -> Pair:
        """Reduce-scatter or gather slices on a ring inside the domain."""
        steps = self.size - 1
        first, adds, stores = (-1, steps, 0) if reduces else (0, 0, steps)
        return ring(
            lane, self.inside, self.local(), self.slice(piece), first=first, reduces=adds, stores=stores, tokens=tokens
        )

    def ring_across(
        self, lane: Lane, piece: int, tokens: tuple[int, int, int], *, reduces: bool, gathers: bool
    ) -> Pair:
        """Reduce-scatter, gather or both, on the ring of a rail.

        The data is that of the GPUs of the rail.
        """
        steps = self.groups - 1
        first, adds, stores = -1 if reduces else 0, steps * reduces, steps * gathers
        return ring(
            lane, self.across, self.remote(), self.rail(piece), first=first, reduces=adds, stores=stores, tokens=tokens
        )

    def ring_within(self, lane: Lane, piece: int, tokens: tuple[int, int, int], *, reduces: bool) -> Pair:
        """Reduce-scatter or gather on the ring of a rail inside a group."""
        steps = self.per_group - 1
        first, adds, stores = (-1, steps, 0) if reduces else (0, 0, steps)
        return ring(
            lane, self.within, self.member(), self.rail_of_groups(piece), first=first, reduces=adds, stores=stores,
            tokens=tokens,
        )  # fmt: skip

    def direct_within(self, lane: Lane, piece: int, go: int, done: int, *, reduces: bool) -> Pair:
        """Reduce-scatter or gather by direct sends among the GPUs of a rail inside a group."""
        moving = self.member(1, 1) if reduces else self.member()
        return exchange(lane, self.within, moving, self.rail_of_groups(piece), reduce=reduces, go=go, done=done)

    def direct_across(
        self, lane: Lane, piece: int, tokens: tuple[int, int, int], *, reduces: bool, gathers: bool
    ) -> Pair:
        """Reduce-scatter, gather or both, by direct sends among the GPUs of a rail."""
        go, between, done = tokens
        cut, phases = self.rail(piece), []
        if reduces:
            end = between if gathers else done
            phases.append(exchange(lane, self.across, self.remote(1, 1), cut, reduce=True, go=go, done=end))
        if gathers:
            begin = between if reduces else go
            phases.append(exchange(lane, self.across, self.remote(), cut, reduce=False, go=begin, done=done))
        return in_order(phases)

    def direct_inside(self, lane: Lane, piece: int, go: int, done: int, *, reduces: bool) -> Pair:
        """Reduce-scatter or gather slices by direct sends inside the domain.

        A GPU sends to all GPUs of the domain at once.
        """
        moving = self.local(1, 1) if reduces else self.local()
        return exchange(lane, self.inside, moving, self.slice(piece), reduce=reduces, go=go, done=done)

    def nvls_inside(self, lane: Lane, piece: int, go: int, done: int, *, reduces: bool) -> Pair:
        """Reduce-scatter or gather slices through the NVLink switch: the GPU's side."""
        cut, switch = self.slice(piece), self.switch
        everyone = self.size
        if reduces:  # all slices go up, the own one comes down with those of all
            digits = (counter(self.ranks, everyone, self.pieces),)
            sends: Operation = lane.send(switch, digits, offset=piece, span=cut.span, stride=cut.stride)
            sending: list[Operation] = [Await(token=go), Loop(count=everyone, body=(sends,))]
            return sending, [lane.receive(switch), *lane.passed(done)]
        own = lane.send(switch, (self.local(),), offset=piece, span=cut.span, stride=cut.stride)
        all_of_them = Loop(count=everyone, body=(lane.receive(switch),))
        return [Await(token=go), own], [all_of_them, *lane.passed(done)]


@lru_cache(maxsize=8)  # chosen: a job has few kinds of domains, and a tuple may name all its ranks
def _switch(size: int, count: int) -> Peer:
    """The switch of each GPU's domain."""
    gpus = size * count
    return Peer(rule="table", table=(*(gpus + rank // size for rank in range(gpus)), *[-1] * count))


@lru_cache(maxsize=8)  # chosen: a job has few kinds of domains, and a tuple may name all its ranks
def _with_switches(size: int, count: int) -> Group:
    """All ranks, each switch after the GPUs of its domain."""
    gpus = size * count
    members = tuple(
        rank for domain in range(count) for rank in (*range(domain * size, (domain + 1) * size), gpus + domain)
    )
    return Group(size=len(members), members=members)


def switch_reduces(domains: Domains, lane: Lane, found: Streams) -> None:
    """Add to a switch's streams: reduce each slice for its owner.

    Each slice is added up as all GPUs send it, and goes to the GPU that owns it.
    """
    size, pieces, ready = domains.size, domains.pieces, found.token()
    gpu = domains.gpu(0, 1)
    added = (Loop(count=size, body=(lane.receive(gpu, reduce=True),)), Wait(), Notify(token=ready))
    receiving = [Loop(count=size, body=added)] * pieces
    sending = []
    for piece in range(pieces):
        cut, digits = domains.slice(piece), (counter(domains.ranks, size, pieces),)
        send = lane.send(gpu, digits, offset=piece, span=cut.span, stride=cut.stride)
        sending.append(Loop(count=size, body=(Await(token=ready), send)))
    found.add(receiving, sending)


def switch_gathers(domains: Domains, lane: Lane, found: Streams) -> None:
    """Add to a switch's streams: send each GPU's slice to all GPUs."""
    everyone = domains.gpu(0, 1)
    for owner in range(domains.size):  # streams of their own: nobody waits for the slice of another
        ready = found.token()
        receiving: list[Operation] = []
        sending: list[Operation] = []
        for piece in range(domains.pieces):
            cut = domains.slice(piece)
            receiving += [lane.receive(domains.gpu(owner, 0)), Wait(), Notify(token=ready)]
            offset = owner * domains.pieces + piece
            send = lane.send(everyone, offset=offset, span=cut.span, stride=cut.stride)
            sending += [Await(token=ready), Loop(count=domains.size, body=(send,))]
        found.add(receiving, sending)
