"""Programs of a job as a flat table of operations.

There is one line per operation, however many ranks run it. A loop becomes LOOP, its body and END; a stream ends with
STOP. Engines expand the table as they run.
Leaves out: whether every receive has its send; a run that waits for ever ends incomplete and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.grammar import plural
from weftwork.engine.rows.job import AXIS_DTYPE, COLLECT_DTYPE, DIGIT_DTYPE, OP_DTYPE, STREAM_DTYPE, Op, Rule
from weftwork.spec.job import (
    Arrivals,
    At,
    Await,
    Collect,
    Compute,
    Grid,
    Group,
    Job,
    Loop,
    Milestone,
    Notify,
    Operation,
    Peer,
    Receive,
    Send,
    Size,
    Wait,
)  # fmt: skip
from weftwork.spec.peers import coordinates, peers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings

__all__ = [
    "MAX_CHANNEL", "FlatJob", "check_job", "counters_of", "flatten", "priorities_of", "walk",
]  # fmt: skip

MAX_CHANNEL = (1 << 16) - 1  # a flow's identity keeps 16 bits for it
MOST_BYTES: Final = 2**62  # of a message: a sum of two is an int64
_BEFORE_THE_END: Final = f"less than {NEVER_PS} ({NEVER_PS // SECOND_PS:,} s), the end of simulated time"
Timed = At | Await | Collect | Compute | Milestone | Receive | Send | Notify | Wait
_PATTERNS = ("ring", "all-to-all")
_RULES = {"shift": Rule.SHIFT, "xor": Rule.XOR, "table": Rule.TABLE, "rank": Rule.RANK}


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatJob:
    """Arrays for the inputs of the engines.

    ``operations`` names the operation of each row of ``collects``.
    """

    ops: NDArray[np.void]
    streams: NDArray[np.void]
    tables: NDArray[np.int64]
    digits: NDArray[np.void]
    collects: NDArray[np.void]
    axes: NDArray[np.void]
    operations: tuple[str, ...]
    tokens: int
    has_receives: bool


def walk(job: Job) -> list[tuple[int, Operation, int]]:
    """Every operation once, with its program and loop count.

    The loop is the innermost loop around it (1 outside).
    """
    walked: list[tuple[int, Operation, int]] = []

    def add(program: int, operations: tuple[Operation, ...], count: int) -> None:
        for operation in operations:
            walked.append((program, operation, count))
            if isinstance(operation, Loop):
                add(program, operation.body, operation.count)

    for index, program in enumerate(job.programs):
        for stream in program.streams:
            add(index, stream, 1)
    return walked


def priorities_of(job: Job, default: int) -> set[int]:
    """Priorities of a job's data; ``default`` is the transport's priority."""
    sends = (op for _, op, _ in walk(job) if isinstance(op, Send | Arrivals))
    return {default if op.priority < 0 else op.priority for op in sends} | {default}


def flatten(job: Job, class_of_priority: Mapping[int, int], default_priority: int) -> FlatJob:
    """Write the programs of a job as tables.

    `weftwork.engine.lower` has checked the job before.

    Parameters
    ----------
    job : its programs
    class_of_priority : class index of each priority in use
    default_priority : of sends that name none
    """
    rows = _Rows(job.ranks, class_of_priority, default_priority)
    streams: list[tuple[int, int]] = []
    for index, program in enumerate(job.programs):
        for stream in program.streams:
            streams.append((index, rows.count))
            rows.emit(stream)
            rows.append({"code": Op.STOP})
    every = [operation for _, operation, _ in walk(job)]
    return FlatJob(
        ops=rows.table(),
        streams=np.array(streams, STREAM_DTYPE),
        tables=np.array(rows.tables, np.int64),
        digits=np.array(rows.digits, DIGIT_DTYPE),
        collects=np.array(rows.collects, COLLECT_DTYPE),
        axes=np.array(rows.axes, AXIS_DTYPE),
        operations=tuple(rows.operations),
        tokens=1 + max((op.token for op in every if isinstance(op, Notify | Await)), default=-1),
        has_receives=any(isinstance(op, Receive) for op in every),
    )


def _table(rows: list[dict[str, int]]) -> NDArray[np.void]:
    """Rows as a table; what a row does not name is 0, and -1 for its label."""
    ops = np.zeros(len(rows), OP_DTYPE)
    ops["label"] = -1
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(rows):  # few columns, and few choices of them
        alike.setdefault(tuple(row), []).append(place)
    for names, places in alike.items():
        columns = zip(*(rows[place].values() for place in places), strict=True)
        for name, column in zip(names, columns, strict=True):
            ops[name][places] = column
    return ops


class _Rows:
    """Operations in order, and the tables of their references.

    Each row of these tables is kept once.
    """

    def __init__(self, ranks: int, class_of_priority: Mapping[int, int], default_priority: int) -> None:
        self.count = 0  # of operations so far
        self._open: list[dict[str, int]] = []  # the last of the parts
        self._parts: list[list[dict[str, int]] | NDArray[np.void]] = [self._open]
        self.tables: list[int] = []
        self.digits: list[tuple[int, ...]] = []
        self.collects: list[tuple[float, ...]] = []
        self.axes: list[tuple[int, int]] = []
        self.operations: list[str] = []
        self._ranks = ranks
        self._table_at: dict[tuple[int, ...], int] = {}
        self._members_at: dict[Group, int] = {}
        self._class_of_priority = class_of_priority
        self._default_priority = default_priority
        self._known: dict[int, dict[str, int]] = {}  # rows that write nothing else, by the identity of the operation

    def emit(self, operations: tuple[Operation, ...]) -> None:
        """Append operations and the bodies of their loops."""
        for operation in operations:
            if isinstance(operation, Arrivals):
                self._open = []
                self._parts += [self._arrivals(operation), self._open]
                self.count += 2 * len(operation)
                continue
            if not isinstance(operation, Loop):
                row = self._known.get(id(operation))
                if row is None:
                    row = self._row(operation)
                    if not isinstance(operation, Send | Collect):  # programs repeat bodies, with the same objects
                        self._known[id(operation)] = row
                self.append(row)
                continue
            head = {"code": int(Op.LOOP), "value": operation.count}
            self.append(head)
            first = self.count
            self.emit(operation.body)
            self.append({"code": Op.END, "target": first})
            head["target"] = self.count

    def append(self, row: dict[str, int]) -> None:
        """Append one operation."""
        self._open.append(row)
        self.count += 1

    def table(self) -> NDArray[np.void]:
        """All operations."""
        return np.concatenate([part if isinstance(part, np.ndarray) else _table(part) for part in self._parts])

    def _arrivals(self, arrivals: Arrivals) -> NDArray[np.void]:
        """Alternating `At` and `Send` operations."""
        rows = np.zeros(2 * len(arrivals), OP_DTYPE)
        rows["label"] = -1
        at, send = rows[0::2], rows[1::2]
        at["code"], at["value"] = Op.AT, arrivals.at_ps
        one = self._row(Send(peer=Peer(rule="rank"), size=Size(total_bytes=0), priority=arrivals.priority))
        for name, value in one.items():
            send[name] = value
        send["shift"], send["total_bytes"], send["channel"] = arrivals.peer, arrivals.size_bytes, arrivals.channel
        return rows

    def _row(self, operation: Timed) -> dict[str, int]:
        match operation:
            case Compute():
                return {"code": Op.COMPUTE, "value": operation.duration_ps, "label": operation.label}
            case At():
                return {"code": Op.AT, "value": operation.at_ps}
            case Send():
                priority = self._default_priority if operation.priority < 0 else operation.priority
                return {
                    "code": Op.SEND, **self._peer(operation.peer), **self._size(operation.size),
                    "channel": operation.channel, "data_class": self._class_of_priority[priority],
                    "nic": operation.nic, "peer_rail": int(operation.rail == "peer"), "label": operation.label,
                }  # fmt: skip
            case Receive():
                return {"code": Op.RECEIVE, **self._peer(operation.peer), "channel": operation.channel}
            case Collect():
                return {
                    "code": Op.COLLECT, "value": self._collect(operation), "channel": operation.channel,
                    "label": operation.label,
                }  # fmt: skip
            case Wait():
                return {"code": Op.WAIT, "label": operation.label}
            case Notify():
                return {"code": Op.NOTIFY, "value": operation.token, "after_ps": operation.after_ps}
            case Await():
                return {"code": Op.AWAIT, "value": operation.token, "label": operation.label}
            case Milestone():
                return {"code": Op.MILESTONE, "value": operation.name}

    def _collect(self, collect: Collect) -> int:
        """Row of a collective's own parameters."""
        self.collects.append(
            (
                len(self.axes), len(collect.group.axes), _PATTERNS.index(collect.pattern), collect.amount_bytes,
                collect.size_bytes, collect.overhead_ps, collect.local_efficiency, collect.network_efficiency,
                collect.network_share, collect.queue_pairs,
            )
        )  # fmt: skip
        self.axes.extend(collect.group.axes)
        self.operations.append(collect.operation)
        return len(self.collects) - 1

    def _peer(self, peer: Peer) -> dict[str, int]:
        group = peer.group
        found = {
            "rule": int(_RULES[peer.rule]),
            "stride": group.stride if group else 1,
            "size": group.size if group else 1,
            "members": self._members(group),
            "shift": peer.shift,
            "step": peer.step,
        }
        if peer.table is not None:
            found["table"] = self._table(peer.table)
        return found

    def _size(self, size: Size) -> dict[str, int]:
        first = len(self.digits)
        self.digits.extend(
            (
                int(_RULES[digit.rule]), digit.group.stride, digit.group.size, self._members(digit.group), digit.shift,
                digit.step, digit.weight,
            )
            for digit in size.digits
        )  # fmt: skip
        return {
            "total_bytes": size.total_bytes, "parts": size.parts, "part_offset": size.offset, "first_digit": first,
            "digits": len(size.digits), "span": size.span, "span_stride": size.span_stride, "copies": size.copies,
        }  # fmt: skip

    def _members(self, group: Group | None) -> int:
        """Offset of a group's member table, or -1 without members."""
        if group is None or group.members is None:
            return -1
        if group not in self._members_at:
            ranks = np.arange(self._ranks, dtype=np.int64)
            self._members_at[group] = self._table((*coordinates(group, ranks).tolist(), *group.members))
        return self._members_at[group]

    def _table(self, table: tuple[int, ...]) -> int:
        if table not in self._table_at:
            self._table_at[table] = len(self.tables)
            self.tables.extend(table)
        return self._table_at[table]


def check_job(job: Job, host_of_rank: NDArray[np.int64], findings: Findings, *, by_packet: bool = True) -> None:
    """Find mistakes of a job that no engine can run.

    They are peers out of range, sends to oneself, wrong groups, negative sizes and times, and collectives whose order
    nobody knows.

    Parameters
    ----------
    job : its programs
    host_of_rank : shape (ranks,), the node of each rank
    findings : take them
    by_packet : also what only the flow engine can run: whole collectives, and several jobs in one
    """
    if len(job.first_rank) not in {0, len(job.programs)}:
        wrong = (
            f"found {plural(len(job.first_rank), 'first rank')}, wanted one for each of the "
            f"{plural(len(job.programs), 'program')}"
        )
        findings.wrong("job.first_rank", wrong)
        return
    if by_packet and any(job.first_rank):
        several = "found programs that count from another rank than 0, which only the flow engine runs: fidelity: flow"
        findings.wrong("job.first_rank", several)
    members = [np.flatnonzero(job.rank_program == index) for index in range(len(job.programs))]
    # A switch of NVLink names the same peers once for each slice, piece and channel, and each costs ranks x counters.
    of_peer: dict[tuple[int, int, Peer], str | None] = {}
    of_value: dict[int, str | None] = {}  # by the identity of the operation: programs repeat bodies
    for index, operation, count in walk(job):
        if id(operation) not in of_value:
            of_value[id(operation)] = _value_mistake(job, operation, by_packet=by_packet)
        text = of_value[id(operation)]
        first = job.first_rank[index] if job.first_rank else 0
        if text is None and isinstance(operation, Send | Receive):
            peer = operation.peer
            if peer.rule == "rank":  # cheap, and a program per rank may have very many different ones
                text = _peer_mistake(job, peer, members[index], count, host_of_rank, first)
            else:
                key = (index, len(counters_of(peer, count)), peer)
                if key not in of_peer:
                    of_peer[key] = _peer_mistake(job, peer, members[index], count, host_of_rank, first)
                text = of_peer[key]
        if text is None and isinstance(operation, Arrivals):
            text = _arrivals_mistake(job, operation, members[index], host_of_rank, first)
        if text is not None:
            findings.wrong(f"job.programs.{index}.{type(operation).__name__}", text)
    _check_order(job, findings)


def _check_order(job: Job, findings: Findings) -> None:
    """Find collectives whose members may call them in different orders.

    Calls of a channel of a group meet by their order, and two streams of a rank have none.
    """
    for index, program in enumerate(job.programs):
        stream_of: dict[tuple[Grid, int], int] = {}
        for number, stream in enumerate(program.streams):
            for group, channel in _collected(stream):
                if stream_of.setdefault((group, channel), number) != number:
                    text = (
                        f"streams {stream_of[group, channel]} and {number} both call collectives on channel {channel} "
                        f"of {group}, wanted a channel for each: ranks may call them in different orders"
                    )
                    findings.wrong(f"job.programs.{index}.Collect", text)


def _collected(operations: tuple[Operation, ...]) -> set[tuple[Grid, int]]:
    """Groups and channels of the collectives of a stream."""
    found = set()
    for operation in operations:
        if isinstance(operation, Loop):
            found |= _collected(operation.body)
        elif isinstance(operation, Collect):
            found.add((operation.group, operation.channel))
    return found


def _value_mistake(  # noqa: PLR0911 - one answer for each operation
    job: Job, operation: Operation, *, by_packet: bool
) -> str | None:
    match operation:
        case Compute(duration_ps=value) | At(at_ps=value) | Notify(after_ps=value) if not 0 <= value < NEVER_PS:
            return f"found {value} ps, wanted 0 or more and {_BEFORE_THE_END}"
        case Collect() if by_packet:
            return (
                "found a collective as one operation, wanted its sends and receives: only the flow engine runs it whole"
            )
        case Collect(channel=channel, queue_pairs=pairs) if (
            pairs < 1 or channel < 0 or (channel + 1) * pairs - 1 > MAX_CHANNEL
        ):
            return (
                f"found channel {channel} of {plural(pairs, 'queue pair')}, wanted 0 to {MAX_CHANNEL} in all, at "
                "least one pair"
            )
        case Collect() if (text := _collect_mistake(operation)) is not None:
            return text
        case Send(size=size) if (text := _size_mistake(job, size)) is not None:
            return text
        case Arrivals() if (text := _columns_mistake(operation)) is not None:
            return text
        case Send(nic=nic) if not 0 <= nic < job.placement.nics.shape[1]:
            return f"found NIC port {nic}, wanted 0 to {job.placement.nics.shape[1] - 1}, columns of placement.nics"
        case Send(priority=priority) | Arrivals(priority=priority) if priority > 7:  # IEEE 802.1Q: three bits
            return f"found priority {priority}, wanted 0 to 7"
        case Send(channel=channel) | Receive(channel=channel) if not 0 <= channel <= MAX_CHANNEL:
            return f"found channel {channel}, wanted 0 to {MAX_CHANNEL}"
        case Notify(token=token) | Await(token=token) if token < 0:
            return f"found token {token}, wanted 0 or more"
        case Milestone(name=name) if not 0 <= name < len(job.milestone_names):
            return f"found name {name}, wanted an index into the {len(job.milestone_names)} milestone_names"
        case Loop(count=count) if count < 0:
            return f"found a count of {count}, wanted 0 or more"
    return None


def _collect_mistake(collect: Collect) -> str | None:
    if collect.amount_bytes < 0 or not 0 <= collect.overhead_ps < NEVER_PS:
        found = f"{collect.amount_bytes} bytes after {collect.overhead_ps} ps"
        return f"found {found}, wanted 0 or more of both, and {_BEFORE_THE_END}"
    if collect.amount_bytes > MOST_BYTES:
        return f"found {collect.amount_bytes} bytes, wanted at most {MOST_BYTES}"
    if not (collect.local_efficiency > 0 and collect.network_efficiency > 0 and 0 <= collect.network_share <= 1):
        found = f"{collect.local_efficiency:g}, {collect.network_efficiency:g} and a share of {collect.network_share:g}"
        return f"found efficiencies of {found}, wanted more than 0, and a share from 0 to 1"
    if any(stride < 1 or size < 1 for stride, size in collect.group.axes):
        return f"found {collect.group}, wanted strides and sizes of at least 1"
    return None


def _peer_mistake(
    job: Job, peer: Peer, ranks: NDArray[np.int64], count: int, host_of_rank: NDArray[np.int64], first: int
) -> str | None:
    if peer.rule == "table" and (peer.table is None or len(peer.table) != job.ranks):
        return (
            f"found a table of {plural(len(peer.table or ()), 'entry', 'entries')}, wanted one for each of the "
            f"{plural(job.ranks, 'rank')}"
        )
    if peer.rule in {"shift", "xor"}:
        if peer.group is None:
            return f"found the rule '{peer.rule}' without a group, wanted a group"
        if (text := _group_mistake(job, peer.group, ranks)) is not None:
            return text
    if peer.shift < 0 and peer.rule != "shift":
        return f"found the shift {peer.shift}, wanted 0 or more"
    if peer.rule == "xor" and (text := _xor_mistake(peer, count)) is not None:
        return text
    is_one_pair = peer.rule == "rank" and peer.shift + first < job.ranks and len(ranks) == 1
    if is_one_pair and host_of_rank[ranks[0]] != host_of_rank[peer.shift + first]:
        return None  # a quick way out, since a program per rank may have very many sends
    for counter in counters_of(peer, count):
        local = peers_of(peer, ranks - first, counter)
        there = local != -1 if peer.rule == "table" else np.ones(len(ranks), np.bool_)
        other = np.where(there, local + first, -1)
        outside = there & ((other < 0) | (other >= job.ranks))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            return f"the peer of rank {ranks[at]} would be rank {other[at]}, wanted 0 to {job.ranks - 1}"
        own, far = ranks[there], other[there]
        if (own == far).any():
            return f"rank {own[own == far][0]} would send to itself"
        near = host_of_rank[own] == host_of_rank[far]
        if near.any() and job.placement.gpu is None:
            pair = f"ranks {own[near][0]} and {far[near][0]} are on one host"
            return f"{pair}, but placement.gpu does not say which of its GPUs they are"
    return None


def _columns_mistake(arrivals: Arrivals) -> str | None:
    """Columns of unequal length, or with values out of range.

    Values are instants, sizes and channels.
    """
    columns = (arrivals.at_ps, arrivals.peer, arrivals.size_bytes, arrivals.channel)
    lengths = sorted({len(column) for column in columns})
    if len(lengths) > 1:
        return f"found columns of {', '.join(map(str, lengths))} values, wanted one of each for every message"
    for column, unit in ((arrivals.at_ps, "ps"), (arrivals.size_bytes, "bytes")):
        if column.min(initial=0) < 0:
            return f"found {column.min()} {unit}, wanted 0 or more"
    low, high = int(arrivals.channel.min(initial=0)), int(arrivals.channel.max(initial=0))
    if low < 0 or high > MAX_CHANNEL:
        return f"found channel {low if low < 0 else high}, wanted 0 to {MAX_CHANNEL}"
    return None


def _arrivals_mistake(
    job: Job, arrivals: Arrivals, ranks: NDArray[np.int64], host_of_rank: NDArray[np.int64], first: int
) -> str | None:
    """Mistakes as of `_peer_mistake`, for each peer."""
    for peer in np.unique(arrivals.peer).tolist():
        if (text := _peer_mistake(job, Peer(rule="rank", shift=peer), ranks, 1, host_of_rank, first)) is not None:
            return text
    return None


def _size_mistake(job: Job, size: Size) -> str | None:
    if size.total_bytes < 0 or size.parts < 0:
        return f"found {size.total_bytes} bytes in {plural(size.parts, 'part')}, wanted 0 or more of both"
    if size.total_bytes > MOST_BYTES:
        return f"found {size.total_bytes} bytes, wanted at most {MOST_BYTES}"
    if size.span < 1 or size.span_stride < 0 or size.copies < 1 or (size.parts and size.span > size.parts):
        found = f"span {size.span}, span_stride {size.span_stride}, copies {size.copies}"
        return (
            f"found {found}, wanted a span of 1 to {plural(size.parts, 'part')}, a stride of 0 or more and at "
            "least one copy"
        )
    every = np.arange(job.ranks, dtype=np.int64)
    for digit in size.digits:
        ranks = every if digit.group.members is None else np.asarray(digit.group.members, np.int64)
        if (text := _group_mistake(job, digit.group, ranks)) is not None:
            return text
        if digit.rule == "xor" and (digit.shift < 0 or digit.step < 0):
            return f"found the rule 'xor' with {digit.shift} << {digit.step} i, wanted 0 or more of both"
    return None


def _group_mistake(job: Job, group: Group, ranks: NDArray[np.int64]) -> str | None:
    if group.size < 1 or group.stride < 1:
        return f"found {group}, wanted a group with a size and a stride of at least 1"
    if group.members is None:
        return None
    named = set(group.members)
    if len(group.members) != group.size or len(named) != group.size:
        return (
            f"found {plural(len(group.members), 'member')}, {len(named)} of them different, wanted {group.size}, "
            "the size"
        )
    if min(named) < 0 or max(named) >= job.ranks:
        return f"found members {min(named)} to {max(named)}, wanted ranks from 0 to {job.ranks - 1}"
    strangers = np.setdiff1d(ranks, np.asarray(group.members, np.int64))
    return f"rank {strangers[0]} uses a group that does not name it" if len(strangers) else None


def _xor_mistake(peer: Peer, count: int) -> str | None:
    """Mistake of a rule ``xor`` that leaves a member without a partner.

    Its size must be a power of two above every number that is combined.
    """
    size = peer.group.size if peer.group is not None else 0
    if size & (size - 1) or peer.step < 0:
        return (
            f"found the rule 'xor' on {plural(size, 'rank')} with step {peer.step}, wanted a power of two and no "
            "negative step"
        )
    last = peer.step * max(count - 1, 0)
    if last + peer.shift.bit_length() > size.bit_length() or peer.shift << last >= size:
        return (
            f"found the rule 'xor' with {peer.shift} << {last}, wanted less than the {plural(size, 'rank')} of "
            "the group"
        )
    return None


def counters_of(peer: Peer, count: int) -> range:
    """Loop counters that give different peers.

    Shifts repeat after the members of the group.
    """
    if peer.step == 0 or peer.rule in {"table", "rank"}:
        return range(min(count, 1))
    return range(min(count, peer.group.size)) if peer.rule == "shift" and peer.group is not None else range(count)
