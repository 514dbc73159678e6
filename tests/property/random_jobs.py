"""Random small jobs for the scenarios: every operation and every rule of a peer occurs."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from weft.spec.job import (
    At,
    Await,
    Compute,
    Digit,
    Group,
    Job,
    Loop,
    Mark,
    Operation,
    Peer,
    Placement,
    Program,
    Receive,
    Send,
    Signal,
    Size,
    Wait,
)  # fmt: skip

TOKEN = 0
SHAPES = ("permutation", "incast", "all-to-all", "ring", "table", "exchange", "tokens", "groups")


def random_job(
    rng: Random,
    *,
    ports_of_host: list[int],
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
    priorities : that sends may use; -1 is the transport's own
    mtu_bytes : for sizes that end within and at the edge of a packet
    packets : wanted
    shape : one of `SHAPES`; any if None
    """
    hosts = len(ports_of_host)
    shared = rng.random() < 0.25  # several ranks on a host
    ranks = hosts * 2 if shared else hosts
    host = np.arange(ranks, dtype=np.int32) % hosts
    nic = np.array([rng.randrange(ports_of_host[h]) for h in host.tolist()], np.int32)
    if shape is None:
        shape = rng.choice(("table", "incast", "tokens")) if shared else rng.choice(SHAPES)
    if shape == "exchange" and ranks & (ranks - 1):
        shape = "all-to-all"
    if shape == "groups" and ranks % 2:
        shape = "ring"
    make = _Maker(rng, ranks, host, priorities, mtu_bytes, max(1, packets // ranks))
    programs, rank_class = make.programs(shape)
    return Job(
        name=shape,
        ranks=ranks,
        programs=programs,
        rank_class=rank_class,
        placement=Placement(host=host, nics=nic[:, None]),
        mark_names=("start", "step", "end"),
    )


class _Maker:
    """Writes programs for one set of ranks."""

    def __init__(
        self, rng: Random, ranks: int, host: NDArray[np.int32], priorities: list[int], mtu_bytes: int, packets: int
    ) -> None:
        self.rng = rng
        self.ranks = ranks
        self.host = host.tolist()
        self.priorities = priorities
        self.mtu_bytes = mtu_bytes
        self.packets = packets  # per rank
        self.receives = rng.random() < 0.6

    def programs(self, shape: str) -> tuple[tuple[Program, ...], NDArray[np.int32]]:
        one_class = np.zeros(self.ranks, np.int32)
        match shape:
            case "permutation":
                return (self._everybody(self._permutation()),), one_class
            case "all-to-all":
                return (self._everybody(self._all_to_all()),), one_class
            case "ring":
                return (self._everybody(self._ring(Group(size=self.ranks))),), one_class
            case "groups":
                return (self._everybody(self._ring(Group(stride=2, size=self.ranks // 2))),), one_class
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
        head: list[Operation] = [Mark(name=0)]
        if rng.random() < 0.3:
            head.append(At(at_ps=rng.choice((0, 1_000_000, rng.randrange(5_000_000)))))
        if rng.random() < 0.3:
            head.append(Compute(duration_ps=rng.choice((0, 500_000, rng.randrange(3_000_000)))))
        tail: list[Operation] = [Wait(), Mark(name=2)] if rng.random() < 0.7 else [Mark(name=2)]
        streams = [(*head, *operations, *tail)]
        if rng.random() < 0.2:
            streams.append(
                (
                    Compute(duration_ps=rng.randrange(2_000_000)),
                    Loop(count=2, body=(Mark(name=1), Compute(duration_ps=7))),
                )
            )
        return Program(streams=tuple(streams))

    def _size(self, packets: int) -> Size:
        exact = packets * self.mtu_bytes
        return Size(total_bytes=max(0, exact + self.rng.choice((0, 0, 1, -1, -self.rng.randrange(self.mtu_bytes)))))

    def _send(self, peer: Peer, size: Size, channel: int) -> Send:
        return Send(peer=peer, size=size, channel=channel, priority=self.rng.choice(self.priorities))

    def _shift(self, shift: int, step: int = 0) -> Peer:
        return Peer(rule="shift", group=Group(size=self.ranks), shift=shift, step=step)

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
            body += [Wait(), Mark(name=1)]
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
        return [Loop(count=steps, body=body), Mark(name=1)]

    def _exchange(self) -> list[Operation]:
        rounds = self.ranks.bit_length() - 1
        peer = Peer(rule="xor", group=Group(size=self.ranks), shift=1, step=1)
        body = (self._send(peer, self._size(max(1, self.packets // rounds)), 0), Receive(peer=peer), Wait())
        return [Loop(count=rounds, body=body)]

    def _table(self) -> list[Operation]:
        """Some ranks send to random others; the table's inverse receives where it can."""
        rng = self.rng
        order = list(range(self.ranks))
        rng.shuffle(order)
        to = [-1] * self.ranks
        for rank, peer in enumerate(order):
            if self.host[rank] != self.host[peer] and rng.random() < 0.9:
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
        """All hosts but the target's send to rank 0, which may receive late."""
        rng = self.rng
        messages = rng.randint(1, 3)
        rank_class = np.array([0 if h == self.host[0] else 1 for h in self.host], np.int32)
        senders = [rank for rank in range(self.ranks) if rank_class[rank] == 1]
        rank_class[[r for r in range(1, self.ranks) if rank_class[r] == 0]] = 2
        receive: list[Operation] = [Compute(duration_ps=rng.randrange(20_000_000))] if rng.random() < 0.5 else []
        if self.receives:
            receive.append(Loop(count=messages, body=tuple(Receive(peer=Peer(rule="rank", shift=s)) for s in senders)))
        send = self._send(Peer(rule="rank", shift=0), self._size(max(1, self.packets // messages)), 0)
        programs = (
            Program(streams=((*receive, Wait(), Mark(name=2)),)),
            self._everybody([Loop(count=messages, body=(send,))]),
            Program(streams=()),
        )
        return programs, rank_class

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
                    Signal(token=TOKEN),
                    Signal(token=TOKEN),
                ),
            ),
            Mark(name=1),
        )
        other = (
            Loop(
                count=count,
                body=(Await(token=TOKEN), self._send(peer, self._size(half), 1), Compute(duration_ps=1_000)),
            ),
        )
        return Program(streams=(first, other, other))

    def _pairs(self) -> tuple[int, ...]:
        """Ranks in twos on different hosts; -1 for who is left over."""
        free = list(range(self.ranks))
        self.rng.shuffle(free)
        table = [-1] * self.ranks
        while free:
            one = free.pop()
            other = next((rank for rank in free if self.host[rank] != self.host[one]), None)
            if other is not None:
                free.remove(other)
                table[one], table[other] = other, one
        return tuple(table)
