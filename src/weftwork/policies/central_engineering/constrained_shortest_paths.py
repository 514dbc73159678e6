"""Constrained shortest paths: each demand takes the shortest path with room.

Demands are placed one after the other. Demands are placed one after the other. Demands come by priority, the highest
first, then by size, the largest first. A path with too little room is left out. Of the others the shortest is taken, of
these the one whose tightest link has most room. Where no path has room, the one with the least overload is taken, and
counted.
Source: unverified: constraint-based routing as RFC 2702 (section 5) and RFC 3209 describe it for MPLS tunnels.
Leaves out: moving a demand that has its path (preemption), so that the order decides; attributes of links (colours).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.base.random import Stream, draws
from weftwork.spec.plug_in import NoKeys, PathProblem, PathScheme, Planned

__all__ = ["SCHEME"]

ROUNDING: Final = 1e-9  # chosen: sums of 64-bit numbers; a demand that fills a link to the bit has room


def _place(_: NoKeys, problem: PathProblem) -> Planned:
    rows, capacity = problem.padded()
    hops = np.diff(problem.link_ptr)
    load = np.zeros(len(capacity))
    chosen = np.empty(len(problem.demand_bps), np.int64)
    overloaded = 0
    for pair in np.lexsort((-problem.demand_bps, -problem.priority)).tolist():
        paths = problem.candidates(pair)
        own, demand = rows[paths.start : paths.stop], problem.demand_bps[pair]
        room = (capacity - load)[own].min(axis=1)
        fits = room >= demand * (1 - ROUNDING)
        chance = draws(problem.seed, Stream.PLANNED_PATH, np.arange(paths.start, paths.stop), pair, 0)
        if fits.any():
            order = np.lexsort((chance, -room, hops[paths.start : paths.stop], ~fits))
        else:
            overloaded += 1
            overload = ((load[own] + demand) / capacity[own]).max(axis=1)
            order = np.lexsort((chance, hops[paths.start : paths.stop], overload))
        path = paths[int(order[0])]
        chosen[pair] = path
        load[rows[path]] += demand
    return Planned(chosen=chosen, overloaded=overloaded)


SCHEME: Final = PathScheme(place=_place, source="unverified: RFC 2702, section 5, and RFC 3209")
