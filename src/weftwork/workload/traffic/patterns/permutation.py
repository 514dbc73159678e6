"""Permutation: every host sends to one host and receives from one host.

The pairs are one cycle through a shuffle of all hosts, so that nobody sends to itself. It is the worst case of many
papers, since a fabric without oversubscription could carry it at line rate and hashing cannot.
Leaves out: permutations that avoid a host's own leaf.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.random import Stream, draw
from weftwork.spec.job import Job, Peer
from weftwork.spec.plug_in import Pattern
from weftwork.workload.traffic.sequence import (
    SizedFlows,
    messages,
    one_flow_each,
    refuse,
    sized,
    sized_size,
    sized_words,
)

__all__ = ["PATTERN", "permutation", "permutation_peers"]


def permutation_peers(hosts: int, seed: int) -> tuple[int, ...]:
    """Destination of each host.

    Examples
    --------
    >>> permutation_peers(4, 1)
    (1, 2, 3, 0)
    """
    order = sorted(range(hosts), key=lambda host: draw(seed, Stream.TRAFFIC, host, 0, 0))
    peers = [0] * hosts
    for place, host in enumerate(order):
        peers[host] = order[(place + 1) % hosts]
    return tuple(peers)


def permutation(
    *,
    hosts: int,
    size_bytes: int,
    seed: int,
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
    seed : decides the pairs and the starts
    repeat : messages of each flow, one after the other
    start_jitter_ps : each flow starts at a random instant up to that
    queue_pairs : of each flow, used in turn by message
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range
    """
    refuse(
        hosts=(hosts, 2, None),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    peer = Peer(rule="table", table=permutation_peers(hosts, seed))
    body = messages(peer, size_bytes=size_bytes, repeat=repeat, queue_pairs=queue_pairs, priority=priority)
    return one_flow_each("permutation", body, hosts=hosts, seed=seed, start_jitter_ps=start_jitter_ps)


PATTERN: Final = Pattern(
    keys=SizedFlows,
    words=sized_words,
    job=lambda keys, given: permutation(**sized(keys, given)),
    size=lambda keys, given: sized_size(keys, given, given.hosts),
    source="chosen: the usual worst case of fabrics without oversubscription",
)
