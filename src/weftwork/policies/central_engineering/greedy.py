"""Greedy placement: each demand in turn takes the path whose most loaded link stays least loaded.

The largest demands come first. Of equal paths the one with the least load over all its links is taken, then one by
chance. In a folded Clos this is the min-max choice of the spine.
Source: arXiv:2503.05324 (unverified: of its two-layer max-min greedy, its 2-approximation and about 10 ms for 64 ToRs
and 32 spines a summary was read, not the paper). Leaves out: moving a demand that has its path, so that the order
decides.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.base.random import Stream, draws
from weftwork.spec.plug_in import NoKeys, PathProblem, PathScheme, Planned

__all__ = ["SCHEME"]


def _place(_: NoKeys, problem: PathProblem) -> Planned:
    rows, capacity = problem.padded()
    load = np.zeros(len(capacity))
    chosen = np.empty(len(problem.demand_bps), np.int64)
    for pair in np.argsort(-problem.demand_bps, kind="stable").tolist():
        paths = problem.candidates(pair)
        own, demand = rows[paths.start : paths.stop], problem.demand_bps[pair]
        share = (load[own] + demand) / capacity[own]
        chance = draws(problem.seed, Stream.PLANNED_PATH, np.arange(paths.start, paths.stop), pair, 0)
        path = paths[int(np.lexsort((chance, share.sum(axis=1), share.max(axis=1)))[0])]
        chosen[pair] = path
        load[rows[path]] += demand
    return Planned(chosen=chosen)


SCHEME: Final = PathScheme(place=_place, source="unverified: arXiv:2503.05324, by a summary")
