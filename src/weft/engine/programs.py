"""Programs of a job as a flat table of operations, one line per operation however many ranks run it.

A loop becomes LOOP, its body and END; a stream ends with STOP. Engines expand the table as they run.
Leaves out: whether every receive has its send; a run that waits for ever ends incomplete and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.base.errors import Mistake
from weft.engine.plan import OP_DTYPE, STREAM_DTYPE, Op, Rule
from weft.spec.job import (
    At, Await, Compute, Job, Loop, Mark, Operation, Peer, Receive, Send, Signal, Wait,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

__all__ = ["MAX_CHANNEL", "FlatJob", "flatten", "job_mistakes", "peers_of", "priorities_of", "walk"]

MAX_CHANNEL = (1 << 16) - 1  # a flow's identity keeps 16 bits for it
_RULES = {"shift": Rule.SHIFT, "xor": Rule.XOR, "table": Rule.TABLE, "rank": Rule.RANK}


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatJob:
    """Arrays as `weft.engine.plan.Plan` wants them."""

    ops: NDArray[np.void]
    streams: NDArray[np.void]
    tables: NDArray[np.int64]
    tokens: int
    has_receives: bool


def walk(job: Job) -> Iterator[tuple[int, Operation, int]]:
    """Yield every operation once, with its class and how often the innermost loop around it runs (1 outside)."""

    def inside(operations: tuple[Operation, ...], count: int) -> Iterator[tuple[Operation, int]]:
        for operation in operations:
            yield operation, count
            if isinstance(operation, Loop):
                yield from inside(operation.body, operation.count)

    for index, program in enumerate(job.programs):
        for stream in program.streams:
            for operation, count in inside(stream, 1):
                yield index, operation, count


def priorities_of(job: Job, default: int) -> set[int]:
    """Priorities that the data of a job uses; ``default`` stands for the transport's own."""
    return {default if op.priority < 0 else op.priority for _, op, _ in walk(job) if isinstance(op, Send)} | {default}


def peers_of(peer: Peer, ranks: NDArray[np.int64], counter: int) -> NDArray[np.int64]:
    """Who the peer of each rank is at one value of the loop's counter; -1 where the operation is skipped.

    Parameters
    ----------
    peer : the rule
    ranks : shape (ranks,)
    counter : of the innermost loop

    Returns
    -------
    shape (ranks,)
    """
    if peer.rule == "rank":
        return np.full(len(ranks), peer.shift, np.int64)
    if peer.rule == "table":
        return np.asarray(peer.table, np.int64)[ranks]
    stride, size = (peer.group.stride, peer.group.size) if peer.group is not None else (1, 1)
    own = ranks // stride % size
    other = (own + peer.shift + peer.step * counter) % size if peer.rule == "shift" else own ^ (peer.shift << (peer.step * counter))
    return ranks + (other - own) * stride


def flatten(job: Job, class_of_priority: Mapping[int, int], default_priority: int) -> FlatJob:
    """Write the programs of a job that `weft.engine.lower` has found right as tables.

    Parameters
    ----------
    job : its programs
    class_of_priority : class index of each priority in use
    default_priority : of sends that name none
    """
    rows: list[dict[str, int]] = []
    streams: list[tuple[int, int]] = []
    tables: list[int] = []
    table_at: dict[tuple[int, ...], int] = {}
    tokens = 0
    has_receives = False

    def ends(peer: Peer) -> dict[str, int]:
        group = peer.group
        found = {"rule": int(_RULES[peer.rule]), "stride": group.stride if group else 1, "size": group.size if group else 1}
        if peer.table is not None:
            if peer.table not in table_at:
                table_at[peer.table] = len(tables)
                tables.extend(peer.table)
            found["table"] = table_at[peer.table]
        return {**found, "shift": peer.shift, "step": peer.step}

    def emit(operations: tuple[Operation, ...]) -> None:
        nonlocal tokens, has_receives
        for operation in operations:
            match operation:
                case Compute():
                    rows.append({"code": Op.COMPUTE, "value": operation.duration_ps})
                case At():
                    rows.append({"code": Op.AT, "value": operation.at_ps})
                case Send():
                    size = operation.size
                    priority = default_priority if operation.priority < 0 else operation.priority
                    rows.append({
                        "code": Op.SEND, **ends(operation.peer), "channel": operation.channel,
                        "total_bytes": size.total_bytes, "parts": size.parts, "part_shift": size.part_shift,
                        "part_step": size.part_step, "data_class": class_of_priority[priority],
                    })  # fmt: skip
                case Receive():
                    has_receives = True
                    rows.append({"code": Op.RECEIVE, **ends(operation.peer), "channel": operation.channel})
                case Wait():
                    rows.append({"code": Op.WAIT})
                case Signal() | Await():
                    tokens = max(tokens, operation.token + 1)
                    rows.append({"code": Op.SIGNAL if isinstance(operation, Signal) else Op.AWAIT, "value": operation.token})
                case Mark():
                    rows.append({"code": Op.MARK, "value": operation.name})
                case Loop():
                    head = len(rows)
                    rows.append({"code": Op.LOOP, "value": operation.count})
                    emit(operation.body)
                    rows.append({"code": Op.END, "target": head + 1})
                    rows[head]["target"] = len(rows)

    for index, program in enumerate(job.programs):
        for stream in program.streams:
            streams.append((index, len(rows)))
            emit(stream)
            rows.append({"code": Op.STOP})
    ops = np.zeros(len(rows), OP_DTYPE)
    for name in OP_DTYPE.names or ():
        ops[name] = [row.get(name, 0) for row in rows]
    return FlatJob(
        ops=ops,
        streams=np.array(streams, STREAM_DTYPE),
        tables=np.array(tables, np.int64),
        tokens=tokens,
        has_receives=has_receives,
    )


def job_mistakes(job: Job, host_of_rank: NDArray[np.int64]) -> list[Mistake]:
    """Find what no engine can run: peers out of range, sends to oneself or inside a server, negative sizes and times.

    Parameters
    ----------
    job : its programs
    host_of_rank : shape (ranks,), the node of each rank
    """
    mistakes: list[Mistake] = []
    members = [np.flatnonzero(job.rank_class == index) for index in range(len(job.programs))]
    for index, operation, count in walk(job):
        text = _value_mistake(job, operation)
        if text is None and isinstance(operation, Send | Receive):
            text = _peer_mistake(job, operation.peer, members[index], count, host_of_rank)
        if text is not None:
            mistakes.append(Mistake(path=f"job.programs.{index}.{type(operation).__name__}", text=text))
    return mistakes


def _value_mistake(job: Job, operation: Operation) -> str | None:
    match operation:
        case Compute(duration_ps=value) | At(at_ps=value) if value < 0:
            return f"found {value} ps, wanted 0 or more"
        case Send(size=size) if size.total_bytes < 0 or size.parts < 0:
            return f"found {size.total_bytes} bytes in {size.parts} parts, wanted 0 or more of both"
        case Send(priority=priority) if priority > 7:  # IEEE 802.1Q: three bits
            return f"found priority {priority}, wanted 0 to 7"
        case Send(channel=channel) | Receive(channel=channel) if not 0 <= channel <= MAX_CHANNEL:
            return f"found channel {channel}, wanted 0 to {MAX_CHANNEL}"
        case Signal(token=token) | Await(token=token) if token < 0:
            return f"found token {token}, wanted 0 or more"
        case Mark(name=name) if not 0 <= name < len(job.mark_names):
            return f"found name {name}, wanted an index into the {len(job.mark_names)} mark_names"
        case Loop(count=count) if count < 0:
            return f"found a count of {count}, wanted 0 or more"
    return None


def _peer_mistake(job: Job, peer: Peer, ranks: NDArray[np.int64], count: int, host_of_rank: NDArray[np.int64]) -> str | None:
    if peer.rule == "table" and (peer.table is None or len(peer.table) != job.ranks):
        return f"found a table of {len(peer.table or ())} entries, wanted one for each of the {job.ranks} ranks"
    if peer.rule in {"shift", "xor"} and (peer.group is None or peer.group.size < 1 or peer.group.stride < 1):
        return f"found the rule '{peer.rule}' with {peer.group}, wanted a group of at least one rank and a stride of at least 1"
    if peer.shift < 0 and peer.rule != "shift":
        return f"found the shift {peer.shift}, wanted 0 or more"
    if peer.rule == "xor" and (text := _xor_mistake(peer, count)) is not None:
        return text
    for counter in _counters(peer, count):
        other = peers_of(peer, ranks, counter)
        there = other != -1 if peer.rule == "table" else np.ones(len(ranks), np.bool_)
        outside = there & ((other < 0) | (other >= job.ranks))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            return f"the peer of rank {ranks[at]} would be rank {other[at]}, wanted 0 to {job.ranks - 1}"
        own, far = ranks[there], other[there]
        if (own == far).any():
            return f"rank {own[own == far][0]} would send to itself"
        near = host_of_rank[own] == host_of_rank[far]
        if near.any():
            pair = f"ranks {own[near][0]} and {far[near][0]} are on one host"
            return f"{pair}; transfers inside a server are not modelled yet, place them on two hosts"
    return None


def _xor_mistake(peer: Peer, count: int) -> str | None:
    """Every member has a partner only where the size is a power of two and above every number that it is combined with."""
    size = peer.group.size if peer.group is not None else 0
    if size & (size - 1) or peer.step < 0:
        return f"found the rule 'xor' on {size} ranks with step {peer.step}, wanted a power of two and no negative step"
    last = peer.step * max(count - 1, 0)
    if last + peer.shift.bit_length() > size.bit_length() or peer.shift << last >= size:
        return f"found the rule 'xor' with {peer.shift} << {last}, wanted less than the {size} ranks of the group"
    return None


def _counters(peer: Peer, count: int) -> range:
    """Values of the loop's counter that give different peers: a shift repeats after as many as the group has members."""
    if peer.step == 0 or peer.rule in {"table", "rank"}:
        return range(min(count, 1))
    return range(min(count, peer.group.size)) if peer.rule == "shift" and peer.group is not None else range(count)
