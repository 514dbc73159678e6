"""Poisson arrivals: flows of random sizes between random pairs of hosts at a given load.

Flows arrive as one Poisson process; each picks its source, its destination and its size by its own number. The load is
the mean payload offered per second, as a share of the rate of all host links. Every flow has a queue pair of its own.
Source: the set-up of Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192, and of most papers since.
Leaves out: pairs that prefer near hosts, arrivals in bursts.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draws, picks, uniforms
from weftwork.spec.job import Arrivals, Job, Program
from weftwork.spec.plug_in import FileName, Number, Pattern, Record, TrafficSize, Whole, row
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
    flow = np.arange(flows, dtype=np.int64)
    exact_ps = _arrivals_ps(flow, seed, mean_gap_ps)
    late = int(np.searchsorted(exact_ps, NEVER_PS))
    if late < flows:
        text = (
            f"flow {late:,} of {flows:,} would arrive after {NEVER_PS // SECOND_PS:,} s, the end of simulated time;"
            " wanted fewer flows or more load"
        )
        raise ConfigError("traffic", [Mistake(path="traffic.flows", text=text)])
    source = picks(draws(seed, Stream.TRAFFIC, flow, 0, 0), hosts)
    destination = (source + 1 + picks(draws(seed, Stream.TRAFFIC, flow, 1, 0), hosts - 1)) % hosts
    size_bytes = sizes.quantiles(uniforms(draws(seed, Stream.SIZE, flow, 0, 0)))
    channel = _place_in_group(source * hosts + destination) % _CHANNELS
    at_ps = np.rint(exact_ps).astype(np.int64)
    order = np.argsort(source, kind="stable")
    senders, starts = np.unique(source[order], return_index=True)
    rank_program = np.zeros(hosts, np.int32)  # program 0 does nothing
    rank_program[senders] = np.arange(1, len(senders) + 1)
    sent = [
        Arrivals(
            at_ps=at_ps[own],
            peer=destination[own],
            size_bytes=size_bytes[own],
            channel=channel[own],
            priority=priority,
        )
        for own in np.split(order, starts[1:])
    ]
    return Job(
        name=f"poisson {sizes.name}",
        ranks=hosts,
        programs=(Program(streams=()), *(Program(streams=((one,),)) for one in sent)),
        rank_program=rank_program,
        placement=one_per_host(hosts),
    )


def _arrivals_ps(flow: NDArray[np.int64], seed: int, mean_gap_ps: float) -> NDArray[np.float64]:
    """When each flow arrives. The logarithm is the C library's: NumPy's differs by processor in the last bit."""
    left = 1.0 - uniforms(draws(seed, Stream.ARRIVAL, flow, 0, 0))
    logarithm = np.fromiter(map(math.log, left.tolist()), np.float64, len(flow))
    with np.errstate(over="ignore"):  # infinitely late is late
        return np.cumsum(-logarithm * mean_gap_ps)


def _place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of the same group there are before each."""
    order = np.argsort(group, kind="stable")
    _, first, count = np.unique(group[order], return_index=True, return_counts=True)
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, count)
    return place


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
    words=lambda keys, _: f"{keys.flows:,} flows at a load of {keys.load:g}, sizes of {keys.sizes}",
    source="Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192",
)
