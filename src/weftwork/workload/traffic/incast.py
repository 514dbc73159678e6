"""Incast: many hosts send to one at once, as in the last step of a partition-aggregate or a badly placed all-to-all.

The senders are spread evenly over the other hosts, so that the last link is the only bottleneck of a non-blocking
fabric. One more flow may run beside it that does not touch the congested port: a victim, if it suffers all the same.
Source of the name: Phanishayee et al., FAST 2008; of the victim: Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484,
section 2.2. Leaves out: requests by which the receiver asks for the data.
"""

from __future__ import annotations

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.job import At, Job, Operation, Peer, Program
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sequence import messages, refuse, start_ps

__all__ = ["incast", "incast_senders", "victim_mistakes"]


def incast_senders(hosts: int, senders: int, receiver: int) -> tuple[int, ...]:
    """Which hosts send: every k-th one after the receiver, k being the largest step that fits.

    Examples
    --------
    >>> incast_senders(8, 3, 0)
    (1, 3, 5)
    """
    step = (hosts - 1) // senders
    return tuple(sorted((receiver + 1 + index * step) % hosts for index in range(senders)))


def victim_mistakes(victim: tuple[int, int], *, hosts: int, senders: tuple[int, ...], receiver: int) -> list[Mistake]:
    """What is wrong with a victim's two ends, as mistakes of the scenario's keys.

    Parameters
    ----------
    victim : from which host to which
    hosts, senders, receiver : of the incast
    """
    source, destination = victim
    mistakes = [
        Mistake(path=f"traffic.{key}", text=f"found {value:,}, wanted a host from 0 to {hosts - 1:,}")
        for key, value in (("victim_source", source), ("victim_receiver", destination))
        if not 0 <= value < hosts
    ]
    if source in senders:
        text = f"found {source:,}, which sends to the receiver of the incast itself; wanted another host"
        mistakes.append(Mistake(path="traffic.victim_source", text=text))
    if destination in (receiver, source):
        text = (
            f"found {destination:,}, wanted a host that is neither the receiver of the incast nor the victim's source"
        )
        mistakes.append(Mistake(path="traffic.victim_receiver", text=text))
    return mistakes


def incast(  # noqa: PLR0913 - the parameters of a pattern, all by name
    *,
    hosts: int,
    size_bytes: int,
    seed: int,
    senders: int | None = None,
    receiver: int = 0,
    victim: tuple[int, int] | None = None,
    repeat: int = 1,
    start_jitter_ps: int = 0,
    queue_pairs: int = 1,
    priority: int = -1,
) -> Job:
    """Make the job.

    Parameters
    ----------
    hosts : of the fabric, at least 2; host i is rank i
    size_bytes : of each message
    seed : decides the starts
    senders : how many hosts send; by default all but the receiver
    receiver : number of the host that receives
    victim : from which host to which one more flow of that size runs; the first is no sender and the second not the
        receiver
    repeat : messages of each flow, one after the other
    start_jitter_ps : each flow starts at a random instant up to that
    queue_pairs : of each flow, used in turn by message
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range
    """
    count = hosts - 1 if senders is None else senders
    refuse(
        hosts=(hosts, 2, None),
        senders=(count, 1, hosts - 1),
        receiver=(receiver, 0, hosts - 1),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    chosen = incast_senders(hosts, count, receiver)
    mistakes = victim_mistakes(victim, hosts=hosts, senders=chosen, receiver=receiver) if victim is not None else []
    if mistakes:
        raise ConfigError("traffic", mistakes)

    def body(to: int) -> tuple[Operation, ...]:
        peer = Peer(rule="rank", shift=to)
        return messages(peer, size_bytes=size_bytes, repeat=repeat, queue_pairs=queue_pairs, priority=priority)

    classes = np.zeros(hosts, np.int32)  # class 0 does nothing
    if start_jitter_ps == 0:
        sending: tuple[Program, ...] = (Program(streams=(body(receiver),)),)
        classes[list(chosen)] = 1
    else:
        starts = [At(at_ps=start_ps(seed, host, start_jitter_ps)) for host in chosen]
        sending = tuple(Program(streams=((start, *body(receiver)),)) for start in starts)
        classes[list(chosen)] = np.arange(1, count + 1)
    if victim is not None:
        sending = (
            *sending,
            Program(streams=((At(at_ps=start_ps(seed, victim[0], start_jitter_ps)), *body(victim[1])),)),
        )
        classes[victim[0]] = len(sending)
    return Job(
        name=f"incast {count}:1" + ("" if victim is None else " beside a victim"),
        ranks=hosts,
        programs=(Program(streams=()), *sending),
        rank_class=classes,
        placement=one_per_host(hosts),
    )
