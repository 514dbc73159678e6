"""Two jobs on the groups of a dragonfly: one sends group to group, one sends at random.

Host 0, 2, 4 and so on belong to the first job, and each sends to the host with its place in the next group. The other
hosts belong to the second job, and send along one random cycle.
Source: the adversarial traffic of Kim et al., ISCA 2008, section 4. Leaves out: computation between messages.
"""

import numpy as np

from weftwork.base.random import Stream, draw
from weftwork.spec.job import Job, Peer, Program
from weftwork.spec.plug_in import MAX_HOSTS, SIZE, Findings, Measure, Pattern, PatternInput, Record, Text, Whole, row
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sequence import messages

JOBS = ("both", "shift", "random")


class Keys(Record):
    """The keys of the two jobs."""

    group: int = row(
        "group",
        Whole(low=2, high=MAX_HOSTS, unit="hosts"),
        default=8,
        text="Hosts of a group of the dragonfly, an even number.",
        source="chosen: four routers of two hosts",
    )
    size_bytes: int = row(
        "size",
        Measure(quantity=SIZE, low=1),
        default="2MiB",
        text="Bytes that each host sends.",
        source="chosen: 512 full packets",
    )
    jobs: str = row(
        "jobs",
        Text(longest=20),
        default="both",
        text="Which jobs run: both, shift or random.",
        source="chosen: the question is what they cost each other",
    )


def resolve(keys: Keys, hosts: int | None, found: Findings) -> Keys:
    """Refuse odd groups, hosts outside whole groups, and unknown jobs."""
    if keys.group % 2:
        found.wrong("group", f"found {keys.group:,}, wanted an even number: each job has half of the hosts")
    elif hosts is not None and (hosts % keys.group or hosts < 2 * keys.group):
        found.wrong("group", f"found {keys.group:,}, but {hosts:,} hosts are not two or more groups of that size")
    if keys.jobs not in JOBS:
        found.wrong("jobs", f"found '{keys.jobs}', wanted {', '.join(JOBS[:-1])} or {JOBS[-1]}")
    return keys


def receivers(hosts: int, group: int, seed: int) -> tuple[int, ...]:
    """Receiver of each host."""
    cycle = sorted(range(1, hosts, 2), key=lambda host: draw(seed, Stream.TRAFFIC, host, 0, 0))
    follows = dict(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    return tuple(follows.get(host, (host + group) % hosts) for host in range(hosts))


def job(keys: Keys, given: PatternInput) -> Job:
    """One program for hosts that send, and an empty one for the others."""
    peer = Peer(rule="table", table=receivers(given.hosts, keys.group, given.seed))
    body = messages(peer, size_bytes=keys.size_bytes, repeat=1, queue_pairs=given.queue_pairs, priority=given.priority)
    is_random = np.arange(given.hosts) % 2 == 1
    idle = {"both": np.zeros(given.hosts, bool), "shift": is_random, "random": ~is_random}[keys.jobs]
    return Job(
        name=f"two jobs ({keys.jobs})",
        ranks=given.hosts,
        programs=(Program(streams=(body,)), Program(streams=()))[: 1 + int(idle.any())],
        rank_program=idle.astype(np.int32),
        placement=one_per_host(given.hosts),
    )


PATTERN = Pattern(keys=Keys, resolve=resolve, job=job, source="Kim et al., ISCA 2008, section 4")
