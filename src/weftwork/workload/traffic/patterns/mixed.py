"""Mixed: a ring all-reduce, small flows and an incast at once.

The ring is on half of the hosts, the other traffic among the others. Even hosts are a ring in a random order, as where
a scheduler has placed a job on what was free. Among odd hosts flows arrive as one Poisson process, and from the first
instant on some of them send to one, as writers of a checkpoint do. On fewer than eight hosts all of them take both
parts.
Source: the ring: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002; arrivals: Alizadeh et al.,
SIGCOMM 2010, doi:10.1145/1851182.1851192; both beside each other: chosen, what a shared fabric carries.
Leaves out: the time of additions, and cutting the ring's parts into pieces by which its steps would overlap.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.random import Stream, draw
from weftwork.base.units import format_quantity
from weftwork.spec.job import Job, Loop, Operation, Peer, Program, Receive, Send, Size, Wait
from weftwork.spec.plug_in import (
    SIZE,
    FileName,
    Findings,
    Measure,
    Number,
    Pattern,
    PatternInput,
    Record,
    TrafficSize,
    Whole,
    row,
)  # fmt: skip
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.arrivals import arriving
from weftwork.workload.traffic.sizes import load_sizes, published_sizes

__all__ = ["PATTERN"]

_APART: Final = 8  # hosts from which on nobody has both parts: four for the ring, and an incast of at most 3:1
_SENDERS: Final = 8  # chosen: servers of a rack
_LAST_CHANNEL: Final = 65_535  # a flow's identity keeps 16 bits for its channel


class Keys(Record):
    """The keys of mixed traffic."""

    all_reduce_bytes: int = row(
        "all_reduce",
        Measure(quantity=SIZE, low=1),
        default="16MiB",
        text="Bytes of the all-reduce.",
        source="chosen: gradients of a bucket",
    )
    incast_bytes: int = row(
        "incast",
        Measure(quantity=SIZE, low=1),
        default="1MiB",
        text="Bytes that each sender of the incast sends.",
        source="chosen: twice what 400 Gb/s carry in a round trip of 10 us",
    )
    senders: int | None = row(
        "senders",
        Whole(low=1, high=65_536, unit="hosts"),
        absent="8, or as many as there are",
        text="Hosts of the incast that send.",
        source="chosen: servers of a rack",
    )
    flows: int = row(
        "flows",
        Whole(low=1, high=100_000_000, unit="flows"),
        default=500,
        text="Small flows that arrive.",
        source="chosen: as long as the all-reduce on 64 hosts",
    )
    load: float = row(
        "load",
        Number(above=0, high=1),
        default=0.3,
        text="Mean payload of the small flows, as a share of the rate of the links of odd hosts.",
        source="chosen: below the load of most papers, since it comes on top",
    )
    sizes: str = row(
        "sizes",
        FileName(endings=(".csv",), names=published_sizes()),
        default="web-search",
        text="Distribution of the sizes of small flows: a published one, or a file relative to the scenario's folder.",
        source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192: web search",
    )


def _parts(hosts: int) -> tuple[range, range]:
    """Hosts of the ring, and the other hosts."""
    return (range(hosts), range(hosts)) if hosts < _APART else (range(0, hosts, 2), range(1, hosts, 2))


def _resolve(keys: Keys, hosts: int | None, found: Findings) -> Keys:
    """Fill in the number of senders of the incast."""
    if hosts is None:
        return keys
    most = len(_parts(hosts)[1]) - 1
    if keys.senders is not None and keys.senders > most:
        found.wrong("senders", f"found {keys.senders}, wanted at most {most}, the other hosts without their receiver")
    return keys


def _senders(keys: Keys, hosts: int) -> int:
    return min(_SENDERS, len(_parts(hosts)[1]) - 1) if keys.senders is None else keys.senders


def _ring(ring: list[int], hosts: int, keys: Keys, priority: int) -> tuple[Operation, ...]:
    """Operations of every host of the ring."""
    after, before = ([-1] * hosts for _ in range(2))
    for at, host in enumerate(ring):
        after[host] = ring[(at + 1) % len(ring)]
        before[host] = ring[at - 1]
    size = Size(total_bytes=-(-keys.all_reduce_bytes // len(ring)))
    step = (
        Send(peer=Peer(rule="table", table=tuple(after)), size=size, priority=priority),
        Receive(peer=Peer(rule="table", table=tuple(before))),
        Wait(),
    )
    return (Loop(count=2 * (len(ring) - 1), body=step),)


def _job(keys: Keys, given: PatternInput) -> Job:
    """A program for each host."""
    hosts, priority = given.hosts, given.priority
    members, others = _parts(hosts)
    ring = sorted(members, key=lambda host: draw(given.seed, Stream.TRAFFIC, host, 2, 0))
    small = arriving(
        hosts=len(others),
        flows=keys.flows,
        load=keys.load,
        host_rate_bps=given.host_rate_bps * len(others) // hosts,
        sizes=load_sizes(keys.sizes),
        seed=given.seed,
    ).posted(np.array(others, np.int64), priority)
    # Its channel belongs to no part of the ring, and to a small flow only where a pair has 65,536 of them.
    used = max((int(flows.channel.max(initial=0)) for flows in small.values()), default=0)
    burst = Send(
        peer=Peer(rule="rank", shift=others[0]),
        size=Size(total_bytes=keys.incast_bytes),
        channel=min(used + 1, _LAST_CHANNEL),
        priority=priority,
    )
    sending = set(others[len(others) - _senders(keys, hosts) :])
    programs = [Program(streams=(_ring(ring, hosts, keys, priority),))]
    rank_program = np.zeros(hosts, np.int32)
    for host in others:
        streams: list[tuple[Operation, ...]] = [(small[host],)] if host in small else []
        if host in sending:
            streams.append((burst, Wait()))
        if host in members:
            streams.append(programs[0].streams[0])
        rank_program[host] = len(programs)
        programs.append(Program(streams=tuple(streams)))
    return Job(
        name="mixed",
        ranks=hosts,
        programs=tuple(programs),
        rank_program=rank_program,
        placement=one_per_host(hosts),
    )


def _size(keys: Keys, given: PatternInput) -> TrafficSize:
    ring, senders = len(_parts(given.hosts)[0]), _senders(keys, given.hosts)
    steps = 2 * (ring - 1) * ring
    return TrafficSize(
        messages=steps + keys.flows + senders,
        queue_pairs=ring + keys.flows + senders,
        payload_bytes=steps * -(-keys.all_reduce_bytes // ring)
        + round(keys.flows * load_sizes(keys.sizes).mean_bytes)
        + senders * keys.incast_bytes,
    )


def _words(keys: Keys, job: Job) -> str:
    return (
        f"mixed traffic on {plural(job.ranks, 'host')}: an all-reduce of "
        f"{format_quantity(SIZE, keys.all_reduce_bytes)},"
        f" an incast of {_senders(keys, job.ranks)}:1, {plural(keys.flows, 'small flow')}"
    )


PATTERN: Final = Pattern(
    keys=Keys,
    resolve=_resolve,
    job=_job,
    size=_size,
    words=_words,
    source="Patarasuk and Yuan, JPDC 69(2), 2009; Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192",
)
