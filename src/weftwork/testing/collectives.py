"""Conformance kit of collective algorithms: programs run on symbols.

There is no time and no network. A symbol stands for what one rank contributes to one part. The kit runs the operations
of all ranks, in an order drawn from a seed, and finds whether every rank has the right pieces when it passes its end,
each contribution exactly once; whether anybody waits for ever and whether a message is left over; whether the parts add
up to the bytes of the call, and the messages to the closed form of the algorithm. It serves algorithms of your own as
well as the catalogue's.
Leaves out: time, and what a send reads after it was posted; that it may not be overwritten then is the library's care.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.job import (
    Await,
    Digit,
    Group,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Receive,
    Send,
    Size,
    Wait,
)
from weftwork.workload.collectives.algorithm import END, START, Algorithm, Schedule, Share, Traffic
from weftwork.workload.collectives.call import Call
from weftwork.workload.turns import in_turn

__all__ = ["check_collective"]

_QUEUE_PAIRS = 3  # chosen: divides neither the pieces nor the ranks of most calls, so that turns go on over loops


def check_collective(
    algorithm: Algorithm, call: Call, *, seeds: Sequence[int] = (0, 1), full: bool = True
) -> list[str]:
    """Run a call on symbols and check its result and traffic.

    The operation gives the result, the algorithm states its traffic.

    Parameters
    ----------
    algorithm : of the catalogue, or yours
    call : that it can do
    seeds : of the orders in which ranks and streams take turns
    full : also run it twice in a row, where the second may begin on some ranks before the first has ended on all, and
        with messages that take queue pairs in turn

    Returns
    -------
    what is wrong, a sentence each; empty if nothing is

    Raises
    ------
    ConfigError : the algorithm refuses the call
    """
    once = algorithm.schedule(replace(call, repeat=1))
    findings = _shape(once)
    for seed in seeds:
        run = _Run(once, seed)
        run.to_the_end()
        findings += run.findings or _traffic(run, algorithm.traffic(once.call))
    if full and not findings:
        twice = _Run(algorithm.schedule(replace(call, repeat=2)), seeds[0] if seeds else 0, checks_data=False)
        twice.to_the_end()
        findings += [f"done twice in a row: {text}" for text in twice.findings]
        dealt = _Run(_dealt(once), seeds[0] if seeds else 0)
        dealt.to_the_end()
        findings += [f"over {_QUEUE_PAIRS} queue pairs in turn: {text}" for text in dealt.findings]
    return list(dict.fromkeys(findings))


def _dealt(schedule: Schedule) -> Schedule:
    """The schedule with messages that use their queue pairs alternately."""
    is_switch = np.arange(len(schedule.rank_program)) >= schedule.call.ranks
    programs = in_turn(schedule.programs, schedule.rank_program, is_switch, _QUEUE_PAIRS)
    shares = tuple(share for share in schedule.share_of_connection for _ in range(_QUEUE_PAIRS))
    return replace(schedule, programs=programs, share_of_connection=shares)


@dataclass(slots=True)
class _Message:
    """Content of one send: the symbols of some parts."""

    symbols: dict[int, int]  # part -> ranks whose contribution it is, a bit each


@dataclass(slots=True)
class _Stream:
    """State of a stream: remaining operations, with their loop counter."""

    todo: Iterator[tuple[Operation, int]]
    now: tuple[Operation, int] | None = None
    receives: list[tuple[int, int, bool, int]] = field(default_factory=list)  # source, connection, reduce, ordinal


def _operations(operations: Sequence[Operation], counter: int = 0) -> Iterator[tuple[Operation, int]]:
    for operation in operations:
        if isinstance(operation, Loop):
            for index in range(operation.count):
                yield from _operations(operation.body, index)
        else:
            yield operation, counter


class _Coordinates:
    """Coordinates of ranks in groups.

    For a group with members they are in a table, made once.
    """

    def __init__(self) -> None:
        self._tables: dict[int, tuple[Group, dict[int, int]]] = {}

    def coordinate(self, group: Group, rank: int) -> int:
        """Coordinate of a rank in a group."""
        if group.members is None:
            return rank // group.stride % group.size
        if id(group) not in self._tables:
            table = {member: place for place, member in enumerate(group.members)}
            self._tables[id(group)] = (group, table)
        return self._tables[id(group)][1][rank]

    def peer(self, peer: Peer, rank: int, counter: int) -> int:
        """Peer of an operation; -1 if it is skipped."""
        if peer.rule == "rank":
            return peer.shift
        if peer.rule == "table":
            return -1 if peer.table is None else peer.table[rank]
        group = peer.group or Group(size=1)
        own = self.coordinate(group, rank)
        shifted = (own + peer.shift + peer.step * counter) % group.size
        other = shifted if peer.rule == "shift" else own ^ (peer.shift << (peer.step * counter))
        return rank + (other - own) * group.stride if group.members is None else group.members[other]

    def parts(self, size: Size, rank: int, counter: int) -> list[int]:
        """Parts in a message."""
        if size.parts == 0:
            return [0]
        first = size.offset + sum(self._digit(digit, rank, counter) for digit in size.digits)
        return [(first + index * size.span_stride) % size.parts for index in range(size.span)]

    def _digit(self, digit: Digit, rank: int, counter: int) -> int:
        own = self.coordinate(digit.group, rank)
        if digit.rule == "shift":
            return (own + digit.shift + digit.step * counter) % digit.group.size * digit.weight
        return (own ^ (digit.shift << (digit.step * counter))) * digit.weight


def _part_bytes(size: Size, part: int) -> int:
    if size.parts == 0:
        return size.total_bytes
    return size.total_bytes // size.parts + (part < size.total_bytes % size.parts)


def _owner(share: Share, part: int) -> int:
    return share.owners[part // (share.parts // len(share.owners))] if share.owners else -1


def _shape(schedule: Schedule) -> list[str]:
    """Mistakes of the shares, before a run."""
    call, shares = schedule.call, schedule.shares
    found = []
    total = sum(share.total_bytes for share in shares)
    if total != call.wire_bytes:
        found.append(f"the shares have {total:,} bytes, wanted {call.wire_bytes:,}")
    sizes = [share.total_bytes for share in shares]
    if sizes and max(sizes) - min(sizes) > 1:
        found.append(f"shares of {min(sizes):,} and of {max(sizes):,} bytes are not nearly equal")
    if len(schedule.rank_program) != call.ranks + schedule.switches:
        found.append(
            f"{plural(len(schedule.rank_program), 'rank has', 'ranks have')} a program, wanted {call.ranks} and "
            f"{plural(schedule.switches, 'switch', 'switches')}"
        )
    found += [
        f"{plural(share.parts, 'part does', 'parts do')} not belong to {plural(call.ranks, 'rank')} in equal numbers"
        for share in shares
        if share.owners and (share.parts % len(share.owners) or sorted(share.owners) != list(range(call.ranks)))
    ]
    return found


class _Run:
    """One run of a schedule on symbols."""

    def __init__(self, schedule: Schedule, seed: int, *, checks_data: bool = True) -> None:
        self.schedule = schedule
        self.call = schedule.call
        self.findings: list[str] = []
        self.sent: dict[tuple[int, int], int] = {}  # (source, destination) -> bytes
        self.by_nic: dict[tuple[int, int], int] = {}  # (GPU whose NIC sends, destination) -> bytes between domains
        self.parts: dict[tuple[int, int], int] = {}  # the same -> parts
        self._checks_data = checks_data
        self._places = _Coordinates()
        self._draw = random.Random(seed)
        count = len(schedule.rank_program)
        self._tokens: list[dict[int, int]] = [{} for _ in range(count)]
        self._milestones: list[list[int]] = [[] for _ in range(count)]
        self._wires: dict[tuple[int, int, int], deque[_Message]] = {}
        self._claims: dict[tuple[int, int, int], int] = {}  # by (source, destination, connection), as wires
        self._taken: dict[tuple[int, int, int], int] = {}
        self._data = [[self._first(share, rank) for share in schedule.shares] for rank in range(count)]
        self._streams = [
            (rank, _Stream(todo=_operations(stream)))
            for rank, index in enumerate(schedule.rank_program.tolist())
            for stream in schedule.programs[index].streams
        ]

    def _first(self, share: Share, rank: int) -> list[int]:
        """Symbols of a rank's parts at the start."""
        operation, parts = self.call.operation, max(1, share.parts)
        if rank >= self.call.ranks:
            return [0] * parts
        if operation == "all-gather":
            return [(_owner(share, part) == rank) << rank for part in range(parts)]
        if operation == "broadcast":
            return [(rank == self.call.root) << rank] * parts
        return [1 << rank] * parts

    def to_the_end(self) -> None:
        """Run all streams until all are blocked, then report what is left."""
        waiting = self._streams
        for _, stream in waiting:
            stream.now = next(stream.todo, None)
        moved = True
        while moved and not self.findings:
            moved = False
            self._draw.shuffle(waiting)
            for rank, stream in waiting:
                moved |= self._advance(rank, stream)
            waiting = [(rank, stream) for rank, stream in waiting if stream.now is not None]
        if self.findings:
            return
        for rank, stream in sorted(waiting, key=lambda found: found[0])[:1]:
            operation = stream.now[0] if stream.now else None
            self.findings.append(
                f"{plural(len(waiting), 'stream waits', 'streams wait')} for ever; rank {rank} at {operation}"
            )
        left = sum(len(wire) for wire in self._wires.values())
        if left and not waiting:
            self.findings.append(f"{plural(left, 'message is', 'messages are')} left over that nobody received")
        wanted = [START, END] * self.call.repeat
        for rank in range(len(self._milestones)):
            expected = wanted if rank < self.call.ranks else []
            if self._milestones[rank] != expected and not waiting:
                self.findings.append(f"rank {rank} passed {self._milestones[rank]}, wanted {expected}")

    def _advance(self, rank: int, stream: _Stream) -> bool:
        """Run a stream for a while, until it blocks; return whether it moved."""
        moved = False
        for _ in range(self._draw.randint(1, 8)):  # chosen: turns of different lengths find more orders
            if stream.now is None or self.findings or not self._step(rank, stream, *stream.now):
                return moved
            stream.now = next(stream.todo, None)
            moved = True
        return moved

    def _step(self, rank: int, stream: _Stream, operation: Operation, counter: int) -> bool:
        """Run one operation; False if it has to wait."""
        tokens = self._tokens[rank]
        match operation:
            case Send():
                self._send(rank, operation, counter)
            case Receive():
                source = self._places.peer(operation.peer, rank, counter)
                if source != -1:
                    wire = (source, rank, operation.channel)
                    ordinal = self._claims.get(wire, 0)
                    self._claims[wire] = ordinal + 1
                    stream.receives.append((source, operation.channel, operation.reduce, ordinal))
            case Wait():
                return self._wait(rank, stream)
            case Notify():
                tokens[operation.token] = tokens.get(operation.token, 0) + 1
            case Await():
                if tokens.get(operation.token, 0) == 0:
                    return False
                tokens[operation.token] -= 1
            case Milestone():
                self._mark(rank, operation.name)
        return True

    def _send(self, rank: int, send: Send, counter: int) -> None:
        to = self._places.peer(send.peer, rank, counter)
        if to == -1:
            return
        if to == rank or not 0 <= to < len(self._data) or send.channel >= len(self.schedule.share_of_connection):
            self.findings.append(f"rank {rank} sends to rank {to} on connection {send.channel}")
            return
        index = self.schedule.share_of_connection[send.channel]
        share, size = self.schedule.shares[index], send.size
        if (size.total_bytes, size.parts) != (share.total_bytes, share.parts):
            found = f"{size.total_bytes:,} bytes in {plural(size.parts, 'part')}"
            self.findings.append(f"{found} on connection {send.channel}, whose share is {share}")
            return
        parts = self._places.parts(size, rank, counter)
        mine = self._data[rank][index]
        symbols = {part: mine[part] for part in parts}
        if len(symbols) < len(parts):
            self.findings.append(f"rank {rank} sends a part twice in one message: {parts}")
        if self.call.operation in {"all-to-all", "send-receive"}:
            if size.copies == 1:
                symbols = dict.fromkeys(parts, 1 << rank)
            for part, ranks in symbols.items():
                if ranks.bit_count() != size.copies and self._checks_data:
                    held = ranks.bit_count()
                    self.findings.append(
                        f"rank {rank} holds part {part} of {plural(held, 'rank')}, sends it for {size.copies}"
                    )
        elif size.copies != 1:
            self.findings.append(
                f"rank {rank} sends {plural(size.copies, 'copy', 'copies')}, which only an all-to-all can mean"
            )
        size_bytes = size.copies * sum(_part_bytes(size, part) for part in parts)
        self.sent[rank, to] = self.sent.get((rank, to), 0) + size_bytes
        size_of_domain, ranks = self.call.domain, self.call.ranks
        if max(rank, to) < ranks and rank // size_of_domain != to // size_of_domain:
            by = rank - rank % size_of_domain + to % size_of_domain if send.rail == "peer" else rank
            self.by_nic[by, to] = self.by_nic.get((by, to), 0) + size_bytes
        self.parts[rank, to] = self.parts.get((rank, to), 0) + size.copies * len(parts)
        wire = self._wires.setdefault((rank, to, send.channel), deque())
        wire.append(_Message(symbols=symbols))

    def _wait(self, rank: int, stream: _Stream) -> bool:
        """Take the messages claimed by the stream's receives, in claim order."""
        while stream.receives:
            source, connection, reduce, ordinal = stream.receives[0]
            wire = self._wires.get((source, rank, connection))
            taken = self._taken.get((source, rank, connection), 0)
            if not wire or ordinal != taken:
                return False
            self._taken[source, rank, connection] = taken + 1
            self._take(rank, connection, wire.popleft(), reduce=reduce)
            stream.receives.pop(0)
        return True

    def _take(self, rank: int, connection: int, message: _Message, *, reduce: bool) -> None:
        mine = self._data[rank][self.schedule.share_of_connection[connection]]
        operation = self.call.operation
        for part, symbols in message.symbols.items():
            adds = reduce or operation in {"all-to-all", "send-receive"}
            if operation == "barrier":
                mine[part] |= symbols
            elif adds and mine[part] & symbols and self._checks_data:
                self.findings.append(f"rank {rank} gets a contribution to part {part} twice")
            else:
                mine[part] = mine[part] | symbols if adds else symbols

    def _mark(self, rank: int, name: int) -> None:
        self._milestones[rank].append(name)
        if name == END and self._checks_data:
            for index, share in enumerate(self.schedule.shares):
                for part, symbols in enumerate(self._data[rank][index]):
                    wanted = self._wanted(share, part, rank)
                    if wanted is not None and symbols != wanted:
                        found = f"has {symbols:b}, wanted {wanted:b}, a bit for each rank"
                        self.findings.append(f"rank {rank} ends and part {part} of share {index} {found}")
                        return

    def _wanted(self, share: Share, part: int, rank: int) -> int | None:
        """Ranks whose contributions a part must have at the end.

        None if it does not matter.
        """
        everybody = (1 << self.call.ranks) - 1
        match self.call.operation:
            case "all-reduce" | "barrier":
                return everybody
            case "all-gather":
                return 1 << _owner(share, part)
            case "reduce-scatter" | "all-to-all":
                return everybody if _owner(share, part) == rank else None
            case "broadcast":
                return 1 << self.call.root
            case "reduce":
                return everybody if rank == self.call.root else None
        return 1 << rank | 1 << (rank - self.call.distance) % self.call.ranks  # send-receive: its own, and what came


def _traffic(run: _Run, said: Traffic) -> list[str]:
    """Compare sent bytes with the closed form.

    Parts of unequal size shift a rank by less than a byte a part.
    """
    call = run.call
    count = call.ranks

    def is_network(source: int, to: int) -> bool:
        return source < count and to < count and source // call.domain != to // call.domain

    def busiest(of: dict[tuple[int, int], int], end: int) -> int:
        sums = [0] * count
        for pair, number in of.items():
            if pair[end] < count:
                sums[pair[end]] += number
        return max(sums)

    found = []
    rounding = max(busiest(run.parts, 0), busiest(run.parts, 1)) if call.operation != "barrier" else 0
    total, network = sum(run.sent.values()), sum(run.by_nic.values())
    if total != said.total_bytes:
        found.append(f"{total:,} bytes were sent, wanted {said.total_bytes:,}, the closed form")
    if abs(network - said.network_bytes) > sum(parts for pair, parts in run.parts.items() if is_network(*pair)):
        found.append(f"network_bytes: found {network:,}, the closed form says {said.network_bytes:,}")
    local = {pair: size_bytes for pair, size_bytes in run.sent.items() if not is_network(*pair)}
    seen = {
        "sent_bytes": (busiest(run.sent, 0), said.sent_bytes),
        "received_bytes": (busiest(run.sent, 1), said.received_bytes),
        "network_sent_bytes": (busiest(run.by_nic, 0), said.network_sent_bytes),
        "network_received_bytes": (busiest(run.by_nic, 1), said.network_received_bytes),
        "local_sent_bytes": (busiest(local, 0), said.local_sent_bytes),
        "local_received_bytes": (busiest(local, 1), said.local_received_bytes),
    }
    for name, (measured, stated) in seen.items():
        if abs(measured - stated) > rounding:
            found.append(f"{name}: found {measured:,}, the closed form says {stated:,}")
    return found
