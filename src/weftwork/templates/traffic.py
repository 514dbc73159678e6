"""Checkpoint: every worker writes its state to the storage hosts, stripe by stripe.

A traffic pattern turns the keys of a scenario into a job: what each host sends to which. docs/howto/own-traffic.md
explains every part.

    weftwork run traffic.yaml    simulates twelve workers that write to four storage hosts
    weftwork test traffic.py     makes the job on several fabrics and checks that every message arrives

Source: striping over storage servers as in Lustre (Schwan, Linux Symposium 2003), one stripe after another.
Leaves out: reads, acknowledgements of the file system, and the speed of disks.
"""

from __future__ import annotations

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.job import Job, Operation, Peer, Program, Send, Size, Wait
from weftwork.spec.plug_in import MAX_HOSTS, SIZE, Findings, Measure, Pattern, PatternInput, Record, Whole, row
from weftwork.workload.placement import one_per_host


class Keys(Record):
    """Keys of ``traffic`` besides ``pattern``."""

    storage: int | None = row(
        "storage",
        Whole(low=1, high=MAX_HOSTS, unit="hosts"),
        absent="a quarter of the hosts, at least one",
        text="Storage hosts: the last ones of the fabric.",
        source="chosen: each serves three workers",
    )
    stripes: int = row(
        "stripes",
        Whole(low=1, high=1_000, unit="stripes"),
        default=4,
        text="Stripes that a worker writes, to one storage host after another.",
        source="chosen: one for each storage host of a small fabric",
    )
    size_bytes: int = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="1MiB",
        text="Bytes of each stripe.",
        source="chosen: 256 full packets",
    )


def storage_hosts(keys: Keys, hosts: int) -> int:
    """Return the number of storage hosts."""
    return max(1, hosts // 4) if keys.storage is None else keys.storage


def resolve(keys: Keys, hosts: int | None, found: Findings) -> Keys:
    """Check the keys.

    ``hosts`` is None if only the built fabric knows it.
    """
    if hosts is None:
        return keys
    storage = storage_hosts(keys, hosts)
    if storage >= hosts:
        found.wrong(
            "storage", f"found {storage:,}, wanted fewer than the {plural(hosts, 'host')}, so that a worker is left"
        )
    return keys.model_copy(update={"storage": storage})


def job(keys: Keys, given: PatternInput) -> Job:
    """Make the programs.

    Worker w writes stripe s to storage host (w + s) mod storage; storage hosts send nothing.
    """
    storage = storage_hosts(keys, given.hosts)
    workers = given.hosts - storage
    writes: list[Operation] = []
    for stripe in range(keys.stripes):
        # The table has the receiver of each host; -1 leaves the operation out.
        to = [workers + (worker + stripe) % storage for worker in range(workers)] + [-1] * storage
        channel = stripe % given.queue_pairs
        send = Send(
            peer=Peer(rule="table", table=tuple(to)),
            size=Size(total_bytes=keys.size_bytes),
            channel=channel,
            priority=given.priority,
        )
        writes += [send, Wait()]  # Wait: the next stripe starts when this one is acknowledged
    return Job(
        name=f"checkpoint to {plural(storage, 'storage host')}",
        ranks=given.hosts,
        programs=(Program(streams=(tuple(writes),)),),
        rank_program=np.zeros(given.hosts, np.int32),  # all hosts run program 0
        placement=one_per_host(given.hosts),
    )


PATTERN = Pattern(keys=Keys, resolve=resolve, job=job, source="Schwan, Lustre, Linux Symposium 2003")
