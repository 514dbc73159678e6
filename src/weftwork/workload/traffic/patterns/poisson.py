"""Poisson arrivals: flows of random size between random hosts.

The load is given. Flows arrive as one Poisson process; each picks its source, its destination and its size by its own
number. The load is the mean payload offered per second, as a share of the rate of all host links. Every flow has a
queue pair of its own.
Source: the set-up of Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192, and of most papers since.
Leaves out: pairs that prefer near hosts, arrivals in bursts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.job import Job, Program
from weftwork.spec.plug_in import FileName, Number, Pattern, Record, TrafficSize, Whole, row
from weftwork.workload.placement import one_per_host
from weftwork.workload.traffic.arrivals import arriving
from weftwork.workload.traffic.sequence import refuse
from weftwork.workload.traffic.sizes import SizeDistribution, load_sizes, published_sizes

__all__ = ["PATTERN", "poisson"]


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
    found = arriving(hosts=hosts, flows=flows, load=load, host_rate_bps=host_rate_bps, sizes=sizes, seed=seed)
    sent = found.posted(np.arange(hosts, dtype=np.int64), priority)
    rank_program = np.zeros(hosts, np.int32)  # program 0 does nothing
    rank_program[list(sent)] = np.arange(1, len(sent) + 1)
    return Job(
        name=f"poisson {sizes.name}",
        ranks=hosts,
        programs=(Program(streams=()), *(Program(streams=((one,),)) for one in sent.values())),
        rank_program=rank_program,
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
    size=lambda keys, _: TrafficSize(
        messages=keys.flows,
        queue_pairs=keys.flows,
        payload_bytes=round(keys.flows * load_sizes(keys.sizes).mean_bytes),
    ),
    words=lambda keys, _: f"{plural(keys.flows, 'flow')} at a load of {keys.load:g}, sizes of {Path(keys.sizes).name}",
    source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192",
)
