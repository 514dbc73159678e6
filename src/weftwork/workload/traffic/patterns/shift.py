"""Shift: every host sends to the host a fixed distance further on.

With the hosts of a group as the distance it is the worst case of a dragonfly: all of a group send to the next one, over
the one link that joins them. With half of a ring's hosts it is that of a torus (tornado traffic).
Source: Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2; in a dragonfly Kim et
al., ISCA 2008, doi:10.1109/ISCA.2008.19, section 4.
Leaves out: shifts along one axis of a torus alone.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.job import Group, Job, Peer
from weftwork.spec.plug_in import Pattern, Whole, row
from weftwork.workload.traffic.sequence import (
    SizedFlows,
    messages,
    one_flow_each,
    refuse,
    sized,
    sized_size,
    sized_words,
)

__all__ = ["PATTERN", "Keys", "shift"]


class Keys(SizedFlows):
    """The keys of a shift."""

    distance: int = row(
        "distance",
        Whole(low=1, high=1_000_000_000, unit="hosts"),
        default=1,
        text="Host i sends to host i + distance, counted round all hosts.",
        source="chosen: the next host",
    )


def shift(
    *,
    hosts: int,
    size_bytes: int,
    seed: int,
    distance: int = 1,
    repeat: int = 1,
    start_jitter_ps: int = 0,
    queue_pairs: int = 1,
    priority: int = -1,
) -> Job:
    """Make the job.

    Parameters
    ----------
    hosts : at least 2; host i is rank i
    size_bytes : of each message
    seed : decides the starts
    distance : from sender to receiver, in hosts; no multiple of ``hosts``
    repeat : messages of each flow, one after the other
    start_jitter_ps : each flow starts at a random instant up to that
    queue_pairs : of each flow, used in turn by message
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range
    """
    wrong = []
    if hosts >= 2 and distance % hosts == 0:
        text = f"found {distance:,}, a multiple of the {plural(hosts, 'host')}, so that all would send to themselves"
        wrong.append(Mistake(path="traffic.distance", text=text))
    refuse(
        wrong,
        hosts=(hosts, 2, None),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    peer = Peer(rule="shift", group=Group(size=hosts), shift=distance % hosts)
    body = messages(peer, size_bytes=size_bytes, repeat=repeat, queue_pairs=queue_pairs, priority=priority)
    return one_flow_each("shift", body, hosts=hosts, seed=seed, start_jitter_ps=start_jitter_ps)


PATTERN: Final = Pattern(
    keys=Keys,
    words=lambda keys, job: f"{sized_words(keys, job)}, {keys.distance:,} further on",
    job=lambda keys, given: shift(**sized(keys, given), distance=keys.distance),
    size=lambda keys, given: sized_size(keys, given, given.hosts),
    source="Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 3.2",
)
