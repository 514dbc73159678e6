"""Flows of a Poisson process among random pairs of hosts.

It draws the pair, the instant and the size of each flow.
Source: the set-up of Alizadeh et al., SIGCOMM 2010, doi:10.1145/1851182.1851192.
Leaves out: pairs that prefer near hosts, arrivals in bursts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draws, picks, uniforms
from weftwork.spec.job import Arrivals
from weftwork.workload.traffic.sizes import SizeDistribution

__all__ = ["Arriving", "arriving"]

_CHANNELS = 65_536  # a flow's identity keeps 16 bits for its channel


@dataclass(frozen=True, kw_only=True, slots=True)
class Arriving:
    """Flows in the order of their arrival.

    Attributes
    ----------
    source, destination : shape (flows,), places among the hosts that take part
    size_bytes, at_ps : shape (flows,)
    channel : shape (flows,), how many flows of the same pair came before
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    at_ps: NDArray[np.int64]
    channel: NDArray[np.int64]

    def posted(self, ranks: NDArray[np.int64], priority: int) -> dict[int, Arrivals]:
        """Messages posted by each rank; idle ranks are left out.

        Parameters
        ----------
        ranks : shape (hosts that take part,), by place
        priority : of the data, -1 for the transport's
        """
        order = np.argsort(self.source, kind="stable")
        senders, starts = np.unique(self.source[order], return_index=True)
        return {
            int(ranks[sender]): Arrivals(
                at_ps=self.at_ps[own],
                peer=ranks[self.destination[own]],
                size_bytes=self.size_bytes[own],
                channel=self.channel[own],
                priority=priority,
            )
            for sender, own in zip(senders.tolist(), np.split(order, starts[1:]), strict=True)
        }


def arriving(
    *, hosts: int, flows: int, load: float, host_rate_bps: int, sizes: SizeDistribution, seed: int
) -> Arriving:
    """Draw the flows.

    Parameters
    ----------
    hosts : that take part, at least 2
    flows : how many arrive
    load : share of ``host_rate_bps`` that the payload takes on average, above 0
    host_rate_bps : of all these hosts' links together
    sizes : distribution of the sizes
    seed : decides everything

    Raises
    ------
    ConfigError : the load is out of range, or arrivals are beyond the range of simulated time
    """
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
    return Arriving(
        source=source,
        destination=destination,
        size_bytes=sizes.quantiles(uniforms(draws(seed, Stream.SIZE, flow, 0, 0))),
        at_ps=np.rint(exact_ps).astype(np.int64),
        channel=_place_in_group(source * hosts + destination) % _CHANNELS,
    )


def _arrivals_ps(flow: NDArray[np.int64], seed: int, mean_gap_ps: float) -> NDArray[np.float64]:
    """Arrival instants of the flows.

    The logarithm is the C library's: NumPy's differs by processor in the last bit.
    """
    left = 1.0 - uniforms(draws(seed, Stream.ARRIVAL, flow, 0, 0))
    logarithm = np.fromiter(map(math.log, left.tolist()), np.float64, len(flow))
    with np.errstate(over="ignore"):  # infinitely late is late
        return np.cumsum(-logarithm * mean_gap_ps)


def _place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of earlier members of the same group, for each member."""
    order = np.argsort(group, kind="stable")
    _, first, count = np.unique(group[order], return_index=True, return_counts=True)
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(first, count)
    return place
