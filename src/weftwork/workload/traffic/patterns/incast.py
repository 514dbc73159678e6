"""Incast: many hosts send to one host at once.

The last step of a partition-aggregate or a badly placed all-to-all does so. The senders are spread evenly over the
other hosts, so that the last link is the only bottleneck of a non-blocking fabric. One more flow may run beside it that
does not touch the congested port: a victim, if it suffers all the same.
Source of the name: Phanishayee et al., FAST 2008; of the victim: Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484,
section 2.2. Leaves out: requests by which the receiver asks for the data.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.spec.job import At, Job, Operation, Peer, Program
from weftwork.spec.plug_in import MAX_HOSTS, Findings, Pattern, PatternInput, TrafficSize, Whole, row
from weftwork.spec.scenario.findings import Collected
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sequence import SizedFlows, messages, refuse, sized, sized_size, sized_words, start_ps

__all__ = ["PATTERN", "incast", "incast_senders"]


class Keys(SizedFlows):
    """The keys of an incast."""

    senders: int | None = row(
        "senders",
        Whole(low=1, high=MAX_HOSTS, unit="hosts"),
        absent="every host but the receiver",
        text="Hosts that send.",
        source="chosen: everybody",
    )
    receiver: int = row(
        "receiver",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        default=0,
        text="Number of the host that receives, counted from 0.",
        source="chosen: the first",
    )
    victim_source: int | None = row(
        "victim_source",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        absent="no victim",
        text="Host from which one more flow of that size runs beside the incast; needs victim_receiver.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section 2.2: the victim flow",
    )
    victim_receiver: int | None = row(
        "victim_receiver",
        Whole(low=0, high=MAX_HOSTS - 1, unit="host number"),
        absent="no victim",
        text="Host to which that flow runs: not the receiver of the incast; needs victim_source.",
        source="Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section 2.2: the victim flow",
    )


def incast_senders(hosts: int, senders: int, receiver: int) -> tuple[int, ...]:
    """Sending hosts: every k-th host after the receiver.

    k is the largest step that fits.

    Examples
    --------
    >>> incast_senders(8, 3, 0)
    (1, 3, 5)
    """
    step = (hosts - 1) // senders
    return tuple(sorted((receiver + 1 + index * step) % hosts for index in range(senders)))


def _judge(found: Findings, *, hosts: int, senders: int, receiver: int, victim: tuple[int | None, int | None]) -> None:
    """Note missing hosts, and a victim inside the incast."""
    last = hosts - 1
    ends = {"receiver": receiver, "victim_source": victim[0], "victim_receiver": victim[1]}
    for key, host in ends.items():
        if host is not None and not 0 <= host <= last:
            found.wrong(key, f"found {host:,}, wanted a host from 0 to {last:,}")
    if senders < 1:
        found.wrong("senders", f"found {senders:,}, wanted at least 1")
    elif senders > last:
        text = f"found {senders:,}, wanted at most {last:,}, the hosts of the fabric without the receiver"
        found.wrong("senders", text)
    if not found.is_sound("senders", *ends):
        return
    source, destination = victim
    if source is not None and source in incast_senders(hosts, senders, receiver):
        text = f"found {source:,}, which sends to the receiver of the incast itself; wanted another host"
        found.wrong("victim_source", text)
    if destination is not None and destination in (receiver, source):
        text = (
            f"found {destination:,}, wanted a host that is neither the receiver of the incast nor the victim's source"
        )
        found.wrong("victim_receiver", text)


def _resolve(keys: Keys, hosts: int | None, found: Findings) -> Keys:
    if (keys.victim_source is None) != (keys.victim_receiver is None):
        given, lacking = ("victim_source", "victim_receiver")[:: 1 if keys.victim_receiver is None else -1]
        found.wrong(given, f"wanted traffic.{lacking} too: a flow has two ends")
    if hosts is None:
        return keys
    senders = hosts - 1 if keys.senders is None else keys.senders
    victim = (keys.victim_source, keys.victim_receiver)
    _judge(found, hosts=hosts, senders=senders, receiver=keys.receiver, victim=victim)
    return keys.model_copy(update={"senders": senders})


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
    found = Collected(section="traffic")
    _judge(found, hosts=hosts, senders=count, receiver=receiver, victim=victim or (None, None))
    refuse(
        found.mistakes,
        hosts=(hosts, 2, None),
        size=(size_bytes, 1, None),
        repeat=(repeat, 1, None),
        queue_pairs=(queue_pairs, 1, 65_536),
        start_jitter=(start_jitter_ps, 0, None),
    )
    chosen = incast_senders(hosts, count, receiver)

    def body(to: int) -> tuple[Operation, ...]:
        peer = Peer(rule="rank", shift=to)
        return messages(peer, size_bytes=size_bytes, repeat=repeat, queue_pairs=queue_pairs, priority=priority)

    rank_program = np.zeros(hosts, np.int32)  # program 0 does nothing
    if start_jitter_ps == 0:
        sending: tuple[Program, ...] = (Program(streams=(body(receiver),)),)
        rank_program[list(chosen)] = 1
    else:
        starts = [At(at_ps=start_ps(seed, host, start_jitter_ps)) for host in chosen]
        sending = tuple(Program(streams=((start, *body(receiver)),)) for start in starts)
        rank_program[list(chosen)] = np.arange(1, count + 1)
    if victim is not None:
        sending = (
            *sending,
            Program(streams=((At(at_ps=start_ps(seed, victim[0], start_jitter_ps)), *body(victim[1])),)),
        )
        rank_program[victim[0]] = len(sending)
    return Job(
        name=f"incast {count}:1" + ("" if victim is None else " beside a victim"),
        ranks=hosts,
        programs=(Program(streams=()), *sending),
        rank_program=rank_program,
        placement=one_per_host(hosts),
    )


def _job(keys: Keys, given: PatternInput) -> Job:
    source, destination = keys.victim_source, keys.victim_receiver
    victim = None if source is None or destination is None else (source, destination)
    return incast(**sized(keys, given), senders=keys.senders, receiver=keys.receiver, victim=victim)


def _size(keys: Keys, given: PatternInput) -> TrafficSize:
    senders = given.hosts - 1 if keys.senders is None else keys.senders
    return sized_size(keys, given, senders + (keys.victim_source is not None))


PATTERN: Final = Pattern(
    keys=Keys,
    job=_job,
    size=_size,
    resolve=_resolve,
    words=lambda keys, job: sized_words(keys, job, with_hosts=False),
    source="Phanishayee et al., FAST 2008; Zhu et al., SIGCOMM 2015, section 2.2",
)
