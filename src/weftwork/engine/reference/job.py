"""The job of the reference engine.

The streams of every rank run their programs and post messages.
Source: `docs/models/packet-engine.md`, section The job; `weftwork.spec.job` says what a program is.
Leaves out: collectives, which are programs of sends and receives by now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.rows.job import DIGIT_DTYPE, OP_DTYPE, Op, Rule

__all__ = ["DigitRow", "JobRun", "Network", "OpRow", "Posted", "RankStream"]

NOT_AWAITING = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class OpRow:
    """One row of `OP_DTYPE` as plain integers."""

    code: int
    value: int
    target: int
    rule: int
    stride: int
    size: int
    members: int
    shift: int
    step: int
    table: int
    total_bytes: int
    parts: int
    part_offset: int
    first_digit: int
    digits: int
    span: int
    span_stride: int
    copies: int
    channel: int
    data_class: int
    nic: int
    peer_rail: int
    after_ps: int
    label: int  # the flow engine reads it


@dataclass(frozen=True, kw_only=True, slots=True)
class DigitRow:
    """One row of `DIGIT_DTYPE` as plain integers."""

    rule: int
    stride: int
    size: int
    members: int
    shift: int
    step: int
    weight: int


class Network(Protocol):
    """Transport of a job's messages."""

    def send(self, source: int, destination: int, size_bytes: int, op: OpRow, completed: Callable[[], None]) -> None:
        """Post a message of a SEND.

        ``completed`` is called when the sender knows that all of it has arrived.
        """

    def claim(self, source: int, destination: int, channel: int, completed: Callable[[], None]) -> bool:
        """Ask for the next message with this name.

        Returns whether it is there, else ``completed`` is called then.
        """


class Posted(NamedTuple):
    """A posted or requested message, and its place."""

    kind: Literal["send", "receive"]
    op: int  # index of the operation
    peer: int
    channel: int
    ordinal: int  # on its (source, destination, channel)


class RankStream:
    """One stream of one rank: its position and its waits."""

    def __init__(self, job: JobRun, rank: int, index: int, first_op: int) -> None:
        self.job = job
        self.clock = job.clock
        self.rank = rank
        self.index = index
        self.position = first_op
        self.loops: list[list[int]] = []  # counter and count, innermost last
        self.pending = 0  # sends and receives that are not complete
        self.is_waiting = False
        self.awaits = NOT_AWAITING
        self.is_scheduled = False
        self.has_stopped = False
        self.is_timed = False  # until an instant that its program names
        self.posted: list[Posted] = []  # whether complete or not

    def schedule(self, at_ps: int) -> None:
        """Continue at an instant, once for any number of requests."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self.clock.at(at_ps, Phase.AGENDA, (Agenda.JOB, self.rank, self.index), self.run)

    def completed(self) -> None:
        """Complete one send or receive of the stream."""
        self.pending -= 1
        if self.is_waiting and self.pending == 0:
            self.schedule(self.clock.now_ps)

    def run(self) -> None:
        """Run until something blocks."""
        self.is_scheduled = False
        if self.is_timed:
            self.is_timed = False
            self.position += 1
        while self._run_one(self.job.ops[self.position]):
            pass

    def _run_one(self, op: OpRow) -> bool:
        """Run one operation; returns whether the stream goes on."""
        now_ps = self.clock.now_ps
        match Op(op.code):
            case Op.STOP:
                self.has_stopped = True
                return False
            case Op.COMPUTE:
                self.is_timed = True
                self.schedule(now_ps + op.value)
                return False
            case Op.AT:
                if op.value > now_ps:
                    self.is_timed = True
                    self.schedule(op.value)
                    return False
            case Op.WAIT:
                self.is_waiting = self.pending > 0
                if self.is_waiting:
                    return False
            case Op.AWAIT:
                tokens = self.job.tokens[self.rank]
                if tokens[op.value] == 0:
                    self.awaits = op.value
                    return False
                self.awaits = NOT_AWAITING
                tokens[op.value] -= 1
            case Op.LOOP:
                if op.value <= 0:
                    self.position = op.target
                    return True
                self.loops.append([0, op.value])
            case Op.END:
                self.loops[-1][0] += 1
                if self.loops[-1][0] < self.loops[-1][1]:
                    self.position = op.target
                    return True
                self.loops.pop()
            case _:
                self._post(op)
        self.position += 1
        return True

    def _post(self, op: OpRow) -> None:
        """Run an operation that never blocks."""
        match Op(op.code):
            case Op.SEND:
                peer = self._peer(op)
                if peer >= 0:
                    self.pending += 1
                    self._note("send", peer, op.channel, self.job.sent[self.rank, peer, op.channel])
                    self.job.sent[self.rank, peer, op.channel] += 1
                    self.job.network.send(self.rank, peer, self._size_bytes(op), op, self.completed)
            case Op.RECEIVE:
                peer = self._peer(op)
                if peer >= 0:
                    self._note("receive", peer, op.channel, self.job.asked[peer, self.rank, op.channel])
                    self.job.asked[peer, self.rank, op.channel] += 1
                    if not self.job.network.claim(peer, self.rank, op.channel, self.completed):
                        self.pending += 1
            case Op.NOTIFY:
                self._signal(op)
            case Op.MILESTONE:
                self.job.milestones.append((self.rank, op.value, self.clock.now_ps))

    def _note(self, kind: Literal["send", "receive"], peer: int, channel: int, ordinal: int) -> None:
        self.posted.append(Posted(kind, self.position, peer, channel, ordinal))

    def _signal(self, op: OpRow) -> None:
        if op.after_ps == 0:
            self.job.signal(self.rank, op.value)
            return
        at_ps = self.clock.now_ps + op.after_ps
        identity = (Agenda.SIGNAL, self.rank, op.value)
        self.clock.at(at_ps, Phase.AGENDA, identity, lambda: self.job.signal(self.rank, op.value))

    @property
    def turn(self) -> int:
        """Counter of the innermost loop; 0 outside loops."""
        return self.loops[-1][0] if self.loops else 0

    def _peer(self, op: OpRow) -> int:
        """Peer rank; negative if the operation is skipped.

        See `weftwork.spec.job.Peer`.
        """
        if op.rule == Rule.RANK:
            return op.shift
        if op.rule == Rule.TABLE:
            return self.job.tables[op.table + self.rank]
        own = self._coordinate(op)
        other = self._combined(op)
        if op.members >= 0:
            return self.job.tables[op.members + len(self.job.streams) + other]
        return self.rank + (other - own) * op.stride

    def _coordinate(self, row: OpRow | DigitRow) -> int:
        """Coordinate of the rank in a group of an operation or digit."""
        if row.members >= 0:
            return self.job.tables[row.members + self.rank]
        return self.rank // row.stride % row.size

    def _combined(self, row: OpRow | DigitRow) -> int:
        """Coordinate after rule, shift and loop counter."""
        if row.rule == Rule.SHIFT:
            return (self._coordinate(row) + row.shift + row.step * self.turn) % row.size
        return self._coordinate(row) ^ row.shift << row.step * self.turn

    def _size_bytes(self, op: OpRow) -> int:
        """Size of the message; see `weftwork.spec.job.Size`."""
        if op.parts == 0:
            return op.total_bytes * op.copies
        digits = self.job.digits[op.first_digit : op.first_digit + op.digits]
        first = op.part_offset + sum(self._combined(digit) * digit.weight for digit in digits)
        parts = [(first + j * op.span_stride) % op.parts for j in range(op.span)]
        return op.copies * sum(op.total_bytes // op.parts + (part < op.total_bytes % op.parts) for part in parts)


class JobRun:
    """All streams of all ranks.

    Parameters
    ----------
    engine_input : of which it reads the job's programs
    clock : what time it is
    network : what carries the messages

    Attributes
    ----------
    streams : by rank and index
    tokens : by rank and token
    milestones : rank, name, instant, as they happen
    sent, asked : messages sent and asked for, by (source, destination, channel)
    """

    def __init__(self, engine_input: PacketInput, clock: Clock, network: Network) -> None:
        self.clock = clock
        self.network = network
        names = OP_DTYPE.names or ()
        self.ops = [OpRow(**dict(zip(names, row, strict=True))) for row in engine_input.ops.tolist()]
        self.tables: list[int] = engine_input.tables.tolist()
        terms = DIGIT_DTYPE.names or ()
        self.digits = [DigitRow(**dict(zip(terms, row, strict=True))) for row in engine_input.digits.tolist()]
        first_ops: dict[int, list[int]] = {}
        for rank_program, first_op in engine_input.streams.tolist():
            first_ops.setdefault(rank_program, []).append(first_op)
        self.streams = [
            [RankStream(self, rank, index, first_op) for index, first_op in enumerate(first_ops.get(rank_program, []))]
            for rank, rank_program in enumerate(engine_input.rank_program.tolist())
        ]
        self.tokens = [[0] * engine_input.tokens for _ in self.streams]
        self.milestones: list[tuple[int, int, int]] = []
        self.sent: Counter[tuple[int, int, int]] = Counter()
        self.asked: Counter[tuple[int, int, int]] = Counter()

    def start(self) -> None:
        """Let every stream begin at 0."""
        for streams in self.streams:
            for stream in streams:
                stream.schedule(0)

    def signal(self, rank: int, token: int) -> None:
        """Count a token up and wake all waiting streams of the rank.

        Each stream tests again when it runs.
        """
        self.tokens[rank][token] += 1
        for stream in self.streams[rank]:
            if stream.awaits == token:
                stream.schedule(self.clock.now_ps)

    def has_ended(self) -> bool:
        """Whether every stream has come to its end."""
        return all(stream.has_stopped for streams in self.streams for stream in streams)
