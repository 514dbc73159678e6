"""Balanced uplinks: each flow takes the uplink of its leaf with the fewest flows, whatever lies behind. A scheme.

What any rule can reach that sees one leaf only, for `planned_paths`.
Source: chosen: the local optimum per flow. Leaves out: links that lead down, where flows of several leaves meet.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.base.random import Stream, draws
from weftwork.spec.plug_in import NoKeys, PathProblem, PathScheme, Planned

__all__ = ["SCHEME"]


def _place(_: NoKeys, problem: PathProblem) -> Planned:
    load = np.zeros(len(problem.capacity_bps))
    chosen = np.empty(len(problem.demand_bps), np.int64)
    for pair, demand in enumerate(problem.demand_bps.tolist()):
        paths = problem.candidates(pair)
        uplink = problem.link[problem.link_ptr[paths.start : paths.stop]]
        chance = draws(problem.seed, Stream.PLANNED_PATH, np.arange(paths.start, paths.stop), pair, 0)
        best = int(np.lexsort((chance, load[uplink] / problem.capacity_bps[uplink]))[0])
        chosen[pair] = paths[best]
        load[uplink[best]] += demand
    return Planned(chosen=chosen)


SCHEME: Final = PathScheme(place=_place, source="chosen: what a leaf can see")
