"""A ring all-reduce on the even hosts, and an incast of the odd hosts on the first of them, from the same instant on.

Source: Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002 (the ring): 2 (n - 1) steps, each with an
n-th of the bytes from every rank to the next.
Leaves out: the time of additions, and cutting parts into pieces by which steps would overlap.
"""

from __future__ import annotations

import numpy as np

from weftwork.spec.job import Job, Loop, Peer, Program, Receive, Send, Size, Wait
from weftwork.spec.plug_in import SIZE, Findings, Measure, Pattern, PatternInput, Record, row
from weftwork.workload.placement import one_per_host


class Keys(Record):
    """What a scenario may set."""

    all_reduce_bytes: int = row(
        "all_reduce",
        Measure(quantity=SIZE, low=1),
        default="16MiB",
        text="Bytes of the all-reduce.",
        source="chosen: gradients of a bucket",
    )
    incast_bytes: int = row(
        "incast",
        Measure(quantity=SIZE, low=0),
        default="4MiB",
        text="Bytes that each odd host but the first sends to the first; 0 leaves the incast out.",
        source="chosen: it lasts longer than the all-reduce",
    )


def resolve(keys: Keys, hosts: int | None, found: Findings) -> Keys:
    """Refuse a fabric on which neither would be left."""
    if hosts is not None and hosts < 6:
        found.wrong("incast", f"found {hosts} hosts, wanted 6 or more: three for the ring, three for the incast")
    return keys


def job(keys: Keys, given: PatternInput) -> Job:
    """Program 0 for the ring, 1 for senders of the incast; its receiver runs neither's sends."""
    hosts = given.hosts
    ring = [host for host in range(hosts) if host % 2 == 0]
    after, before, to_first = ([-1] * hosts for _ in range(3))
    for at, host in enumerate(ring):
        after[host] = ring[(at + 1) % len(ring)]
        before[host] = ring[at - 1]
    if keys.incast_bytes:
        for host in range(3, hosts, 2):
            to_first[host] = 1
    send = Send(
        peer=Peer(rule="table", table=tuple(after)),
        size=Size(total_bytes=keys.all_reduce_bytes // len(ring)),
        priority=given.priority,
    )
    step = (send, Receive(peer=Peer(rule="table", table=tuple(before))), Wait())
    incast = Send(
        peer=Peer(rule="table", table=tuple(to_first)),
        size=Size(total_bytes=max(keys.incast_bytes, 1)),
        priority=given.priority,
    )
    return Job(
        name=f"all-reduce on {len(ring)} hosts beside an incast",
        ranks=hosts,
        programs=(
            Program(streams=((Loop(count=2 * (len(ring) - 1), body=step),),)),
            Program(streams=((incast, Wait()),)),
        ),
        rank_program=np.array([host % 2 for host in range(hosts)], np.int32),
        placement=one_per_host(hosts),
    )


PATTERN = Pattern(keys=Keys, resolve=resolve, job=job, source="Patarasuk and Yuan, JPDC 69(2), 2009")
