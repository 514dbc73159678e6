"""Poisson arrivals: flows of random sizes between random pairs of hosts at a given load.

Flows arrive as one Poisson process; each picks its source, its destination and its size by its own number. The load is
the mean payload offered per second, as a share of the rate of all host links. Every flow has a queue pair of its own.
Source: the set-up of Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192, and of most papers since.
Leaves out: pairs that prefer near hosts, arrivals in bursts.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

import numpy as np

from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draw, pick, uniform
from weftwork.spec.job import At, Job, Operation, Peer, Program, Send, Size
from weftwork.spec.plug_in import FileName, Number, Pattern, Record, Whole, row
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.sequence import refuse
from weftwork.workload.traffic.sizes import SizeDistribution, load_sizes, published_sizes

__all__ = ["PATTERN", "poisson"]

_CHANNELS = 65_536  # a flow's identity keeps 16 bits for its channel


def poisson(
    *,
    hosts: int,
    flows: int,
    load: float,
    host_rate_bps: int,
    sizes: SizeDistribution,
    seed: int,
    priority: int = -1,
) -> Job:
    """Make the job.

    Parameters
    ----------
    hosts : at least 2; host i is rank i
    flows : how many arrive
    load : share of ``host_rate_bps`` that the payload takes on average, above 0
    host_rate_bps : of all host links together
    sizes : distribution of the sizes
    seed : decides everything
    priority : of the data, -1 for the transport's

    Raises
    ------
    ConfigError : an argument out of range, or arrivals beyond the range of simulated time
    """
    refuse(hosts=(hosts, 2, None), flows=(flows, 1, None))
    if not 0 < load < math.inf:
        raise ConfigError("traffic", [Mistake(path="traffic.load", text=f"found {load:g}, wanted a number above 0")])
    mean_gap_ps = sizes.mean_bytes * 8 * SECOND_PS / (load * host_rate_bps)
    programs: dict[int, list[Operation]] = {}
    used: Counter[tuple[int, int]] = Counter()
    at_ps = 0.0
    for flow in range(flows):
        at_ps += -math.log(1.0 - uniform(draw(seed, Stream.ARRIVAL, flow, 0, 0))) * mean_gap_ps
        if at_ps >= NEVER_PS:
            end_s = NEVER_PS // SECOND_PS
            text = f"flow {flow} of {flows:,} would arrive after {end_s:,} s; wanted fewer flows or more load"
            raise ConfigError("traffic", [Mistake(path="traffic.flows", text=text)])
        source = pick(draw(seed, Stream.TRAFFIC, flow, 0, 0), hosts)
        destination = (source + 1 + pick(draw(seed, Stream.TRAFFIC, flow, 1, 0), hosts - 1)) % hosts
        size_bytes = sizes.quantile(uniform(draw(seed, Stream.SIZE, flow, 0, 0)))
        channel = used[source, destination] % _CHANNELS
        used[source, destination] += 1
        send = Send(
            peer=Peer(rule="rank", shift=destination),
            size=Size(total_bytes=size_bytes),
            channel=channel,
            priority=priority,
        )
        programs.setdefault(source, []).extend((At(at_ps=round(at_ps)), send))
    classes = np.zeros(hosts, np.int32)  # class 0 does nothing
    senders = sorted(programs)
    classes[senders] = np.arange(1, len(senders) + 1)
    return Job(
        name=f"poisson {sizes.name}",
        ranks=hosts,
        programs=(Program(streams=()), *(Program(streams=(tuple(programs[rank]),)) for rank in senders)),
        rank_class=classes,
        placement=one_per_host(hosts),
    )


class Keys(Record):
    """The keys of Poisson arrivals."""

    flows: int = row(
        "flows",
        Whole(low=1, high=100_000_000, unit="flows"),
        default=10_000,
        text="Flows that arrive.",
        source="chosen: 10 beyond the 99.9th percentile",
    )
    load: float = row(
        "load",
        Number(above=0, high=1),
        default=0.5,
        text="Mean payload offered, as a share of the rate of all host links.",
        source="chosen: the middle of the published sweeps",
    )
    sizes: str = row(
        "sizes",
        FileName(endings=(".csv",), names=published_sizes()),
        default="web-search",
        text="Distribution of flow sizes: a published one, or a file relative to the scenario's folder.",
        source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192: web search",
    )


PATTERN: Final = Pattern(
    keys=Keys,
    job=lambda keys, given: poisson(
        hosts=given.hosts,
        flows=keys.flows,
        load=keys.load,
        host_rate_bps=given.host_rate_bps,
        sizes=load_sizes(keys.sizes),
        seed=given.seed,
        priority=given.priority,
    ),
    words=lambda keys, _: f"{keys.flows:,} flows at a load of {keys.load:g}, sizes of {keys.sizes}",
    source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192",
)
