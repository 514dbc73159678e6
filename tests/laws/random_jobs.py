"""Random small jobs for the scenarios: every operation, every rule of a peer and every kind of size occurs."""

from __future__ import annotations

from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.device import Server
from weftwork.spec.job import (
    At,
    Await,
    Compute,
    Digit,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip

TOKEN = 0
SHAPES = ("permutation", "incast", "all-to-all", "ring", "table", "exchange", "tokens", "groups", "members")
MOST_RANKS = 10


def random_job(
    rng: Random,
    *,
    ports_of_host: list[int],
    servers: list[Server],
    priorities: list[int],
    mtu_bytes: int,
    packets: int,
    shape: str | None = None,
) -> Job:
    """Ranks on hosts, and what they do: about ``packets`` data packets in all, more where a shape repeats.

    Parameters
    ----------
    rng : where every choice comes from
    ports_of_host : how many NIC ports each host has
    servers : what each host is; where one has several GPUs, ranks are GPUs and send inside it too
    priorities : that sends may use; -1 is the transport's own
    mtu_bytes : for sizes that end within and at the edge of a packet
    packets : wanted
    shape : one of `SHAPES`; any if None
    """
    placement, is_shared = _placement(rng, ports_of_host, servers)
    ranks = len(placement.host)
    if shape is None:
        shape = rng.choice(("table", "incast", "tokens")) if is_shared else rng.choice(SHAPES)
    if shape == "exchange" and ranks & (ranks - 1):
        shape = "all-to-all"
    if shape == "groups" and ranks % 2:
        shape = "ring"
    has_rails = min(ports_of_host) > placement.nics.max()
    make = _Maker(rng, placement, priorities, mtu_bytes, max(1, packets // ranks), has_rails=has_rails)
    programs, rank_program = make.programs(shape)
    return Job(
        name=shape,
        ranks=ranks,
        programs=programs,
        rank_program=rank_program,
        placement=placement,
        milestone_names=("start", "step", "end"),
    )


def _placement(rng: Random, ports_of_host: list[int], servers: list[Server]) -> tuple[Placement, bool]:
    """Ranks on hosts or on their GPUs and NVLink switches; and whether some share a host that has no GPUs."""
    hosts = len(ports_of_host)
    gpu: list[int] | None = None
    is_shared = False
    if any(server.gpus > 1 for server in servers):
        places = _places(rng, servers)
        host = [place[0] for place in places]
        gpu = [place[1] for place in places]
    else:
        is_shared = rng.random() < 0.25
        host = list(range(hosts)) * (2 if is_shared else 1)
    columns = rng.choice((1, 2, 2, 3)) if max(ports_of_host) > 1 else rng.choice((1, 1, 1, 2))
    nics = []
    for h in host:
        own = rng.sample(range(ports_of_host[h]), ports_of_host[h])
        nics.append([own[column % len(own)] for column in range(columns)] if rng.random() < 0.8 else own[:1] * columns)
    return Placement(
        host=np.array(host, np.int32),
        nics=np.array(nics, np.int32),
        gpu=None if gpu is None else np.array(gpu, np.int32),
    ), is_shared


def _places(rng: Random, servers: list[Server]) -> list[tuple[int, int]]:
    """Some GPUs of every host, perhaps an NVLink switch: pairs of a host and a GPU, or -1 - domain."""
    own: list[list[tuple[int, int]]] = []
    for host, server in enumerate(servers):
        domains = server.gpus // server.nvlink_domain_gpus if server.nvlink_domain_gpus else 0
        gpus = rng.sample(range(server.gpus), rng.randint(1, server.gpus))
        switches = [-1 - domain for domain in range(domains) if rng.random() < 0.3]
        own.append([(host, gpu) for gpu in (*gpus, *switches)])
    places = [places[0] for places in own]
    rest = [place for places in own for place in places[1:]]
    rng.shuffle(rest)
    places += rest[: max(2, MOST_RANKS - len(places))]
    return sorted(places) if rng.random() < 0.5 else places


class _Maker:
    """Writes programs for one set of ranks."""

    def __init__(
        self,
        rng: Random,
        placement: Placement,
        priorities: list[int],
        mtu_bytes: int,
        packets: int,
        *,
        has_rails: bool,
    ) -> None:
        self.rng = rng
        self.host: list[int] = placement.host.tolist()
        self.has_gpus = placement.gpu is not None
        self.ranks = len(self.host)
        self.columns = placement.nics.shape[1]
        self.rails: tuple[Literal["own", "peer"], ...] = ("own", "peer") if has_rails else ("own",)
        self.priorities = priorities
        self.mtu_bytes = mtu_bytes
        self.packets = packets  # per rank
        self.receives = rng.random() < 0.6
        self.everyone = self._ordered() if rng.random() < 0.25 else Group(size=self.ranks)

    def _ordered(self) -> Group:
        """All ranks in an order of its own."""
        return Group(size=self.ranks, members=tuple(self.rng.sample(range(self.ranks), self.ranks)))

    def _may_send(self, one: int, other: int) -> bool:
        return one != other and (self.has_gpus or self.host[one] != self.host[other])

    def programs(self, shape: str) -> tuple[tuple[Program, ...], NDArray[np.int32]]:
        one_class = np.zeros(self.ranks, np.int32)
        match shape:
            case "permutation":
                return (self._everybody(self._permutation()),), one_class
            case "all-to-all":
                return (self._everybody(self._all_to_all()),), one_class
            case "ring":
                return (self._everybody(self._ring(self.everyone)),), one_class
            case "groups":
                return (self._everybody(self._ring(Group(stride=2, size=self.ranks // 2))),), one_class
            case "members":
                return self._members()
            case "exchange":
                return (self._everybody(self._exchange()),), one_class
            case "table":
                return (self._everybody(self._table()),), one_class
            case "tokens":
                return (self._tokens(),), one_class
            case _:
                return self._incast()

    def _everybody(self, operations: list[Operation]) -> Program:
        """One program, perhaps with a start time, work and marks around, perhaps twice side by side."""
        rng = self.rng
        head: list[Operation] = [Milestone(name=0)]
        if rng.random() < 0.3:
            head.append(At(at_ps=rng.choice((0, 1_000_000, rng.randrange(5_000_000)))))
        if rng.random() < 0.3:
            head.append(Compute(duration_ps=rng.choice((0, 500_000, rng.randrange(3_000_000)))))
        tail: list[Operation] = [Wait(), Milestone(name=2)] if rng.random() < 0.7 else [Milestone(name=2)]
        streams = [(*head, *operations, *tail)]
        if rng.random() < 0.2:
            streams.append(
                (
                    Compute(duration_ps=rng.randrange(2_000_000)),
                    Loop(count=2, body=(Milestone(name=1), Compute(duration_ps=7))),
                )
            )
        return Program(streams=tuple(streams))

    def _size(self, packets: int) -> Size:
        exact = packets * self.mtu_bytes
        total = max(0, exact + self.rng.choice((0, 0, 1, -1, -self.rng.randrange(self.mtu_bytes))))
        return self._parts(total) if self.rng.random() < 0.3 else Size(total_bytes=total)

    def _parts(self, wanted_bytes: int) -> Size:
        """Some of the parts of a buffer, about so many bytes in all."""
        rng = self.rng
        parts = rng.randint(1, 6)
        span, copies = rng.randint(1, parts), rng.choice((1, 1, 2, 3))
        return Size(
            total_bytes=wanted_bytes * parts // (span * copies),
            parts=parts,
            digits=tuple(self._digit() for _ in range(rng.randint(0, 3))),
            offset=rng.randint(-3, 7),
            span=span,
            span_stride=rng.choice((0, 1, 1, 2, 5)),
            copies=copies,
        )

    def _digit(self) -> Digit:
        rng = self.rng
        group = self._ordered() if rng.random() < 0.3 else Group(stride=rng.randint(1, 3), size=rng.randint(1, 5))
        weight = rng.choice((1, 1, 2, 3, -1))
        if rng.random() < 0.4:
            return Digit(group=group, rule="xor", shift=rng.randint(0, 5), step=rng.randint(0, 2), weight=weight)
        return Digit(group=group, shift=rng.randint(-4, 4), step=rng.randint(-2, 2), weight=weight)

    def _send(self, peer: Peer, size: Size, channel: int) -> Send:
        rng = self.rng
        return Send(
            peer=peer,
            size=size,
            channel=channel,
            priority=rng.choice(self.priorities),
            nic=rng.randrange(self.columns),
            rail=rng.choice(self.rails),
        )

    def _shift(self, shift: int, step: int = 0) -> Peer:
        return Peer(rule="shift", group=self.everyone, shift=shift, step=step)

    def _permutation(self) -> list[Operation]:
        rng = self.rng
        count = rng.randint(1, 3)
        shift = rng.randint(1, self.ranks - 1)
        channels = rng.sample((0, 1, 7), rng.randint(1, 2))
        body: list[Operation] = []
        for channel in channels:
            body.append(
                self._send(self._shift(shift), self._size(max(1, self.packets // (count * len(channels)))), channel)
            )
            if self.receives:
                body.append(Receive(peer=self._shift(-shift), channel=channel))
        if rng.random() < 0.5:
            body += [Wait(), Milestone(name=1)]
        return [Loop(count=count, body=tuple(body))]

    def _all_to_all(self) -> list[Operation]:
        others = self.ranks - 1
        size = self._size(max(1, self.packets // others))
        body: list[Operation] = [self._send(self._shift(1, 1), size, 0)]
        if self.receives:
            body.append(Receive(peer=self._shift(-1, -1)))
        if self.rng.random() < 0.3:
            body.append(Wait())
        return [Loop(count=others, body=tuple(body))]

    def _ring(self, group: Group) -> list[Operation]:
        if group.size < 2:
            return self._permutation()
        steps = 2 * (group.size - 1)
        total = max(group.size, self.packets * self.mtu_bytes * group.size // steps + self.rng.randrange(group.size))
        size = Size(total_bytes=total, parts=group.size, digits=(Digit(group=group, step=-1),))
        body = (
            self._send(Peer(rule="shift", group=group, shift=1), size, 3),
            Receive(peer=Peer(rule="shift", group=group, shift=-1), channel=3),
            Wait(),
        )
        return [Loop(count=steps, body=body), Milestone(name=1)]

    def _members(self) -> tuple[tuple[Program, ...], NDArray[np.int32]]:
        """One or two rings of some ranks in any order; the others have nothing to do."""
        rng = self.rng
        free = rng.sample(range(self.ranks), self.ranks)
        rank_program = np.zeros(self.ranks, np.int32)
        programs = [Program(streams=())]
        while len(free) >= 2 and len(programs) < 3:
            members = [free.pop() for _ in range(rng.randint(2, len(free)))]
            rank_program[members] = len(programs)
            programs.append(self._everybody(self._ring(Group(size=len(members), members=tuple(members)))))
        return tuple(programs), rank_program

    def _exchange(self) -> list[Operation]:
        rounds = self.ranks.bit_length() - 1
        peer = Peer(rule="xor", group=self.everyone, shift=1, step=1)
        body = (self._send(peer, self._size(max(1, self.packets // rounds)), 0), Receive(peer=peer), Wait())
        return [Loop(count=rounds, body=body)]

    def _table(self) -> list[Operation]:
        """Some ranks send to random others; the table's inverse receives where it can."""
        rng = self.rng
        order = list(range(self.ranks))
        rng.shuffle(order)
        to = [-1] * self.ranks
        for rank, peer in enumerate(order):
            if self._may_send(rank, peer) and rng.random() < 0.9:
                to[rank] = peer
        back = [-1] * self.ranks
        for rank, peer in enumerate(to):
            if peer >= 0:
                back[peer] = rank
        operations: list[Operation] = []
        for _ in range(rng.randint(1, 3)):
            operations.append(self._send(Peer(rule="table", table=tuple(to)), self._size(max(1, self.packets // 2)), 0))
            if self.receives:
                operations.append(Receive(peer=Peer(rule="table", table=tuple(back))))
        return operations

    def _incast(self) -> tuple[tuple[Program, ...], NDArray[np.int32]]:
        """All that may send to rank 0, which may receive late."""
        rng = self.rng
        messages = rng.randint(1, 3)
        senders = [rank for rank in range(self.ranks) if self._may_send(rank, 0)]
        rank_program = np.full(self.ranks, 2, np.int32)
        rank_program[senders] = 1
        rank_program[0] = 0
        receive: list[Operation] = [Compute(duration_ps=rng.randrange(20_000_000))] if rng.random() < 0.5 else []
        if self.receives:
            receive.append(Loop(count=messages, body=tuple(Receive(peer=Peer(rule="rank", shift=s)) for s in senders)))
        send = self._send(Peer(rule="rank", shift=0), self._size(max(1, self.packets // messages)), 0)
        programs = (
            Program(streams=((*receive, Wait(), Milestone(name=2)),)),
            self._everybody([Loop(count=messages, body=(send,))]),
            Program(streams=()),
        )
        return programs, rank_program

    def _tokens(self) -> Program:
        """A stream waits for its peer's message, then lets two others send."""
        rng = self.rng
        half = max(1, self.packets // 4)
        order = self._pairs()
        peer = Peer(rule="table", table=order)
        count = rng.randint(1, 3)
        first = (
            Loop(
                count=count,
                body=(
                    self._send(peer, self._size(half), 0),
                    Receive(peer=peer, channel=0),
                    Wait(),
                    Notify(token=TOKEN),
                    Notify(token=TOKEN),
                ),
            ),
            Milestone(name=1),
        )
        other = (
            Loop(
                count=count,
                body=(Await(token=TOKEN), self._send(peer, self._size(half), 1), Compute(duration_ps=1_000)),
            ),
        )
        return Program(streams=(first, other, other))

    def _pairs(self) -> tuple[int, ...]:
        """Ranks in twos that may send to each other; -1 for who is left over."""
        free = list(range(self.ranks))
        self.rng.shuffle(free)
        table = [-1] * self.ranks
        while free:
            one = free.pop()
            other = next((rank for rank in free if self._may_send(rank, one)), None)
            if other is not None:
                free.remove(other)
                table[one], table[other] = other, one
        return tuple(table)
