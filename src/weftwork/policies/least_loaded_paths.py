"""Least loaded paths: each demand takes the path with the least peak load.

Demands are placed one after the other. The peak load of a path is that of its most loaded link. The largest demands
come first. Of equal paths the one with the least load over all its links is taken, then one by chance. Source and
limits: `weftwork.policies.central_engineering.greedy`, which is this; `placement` begins with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.random import Stream, draws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.engineering import PathProblem

__all__ = ["least_loaded_paths"]


def least_loaded_paths(problem: PathProblem) -> NDArray[np.int64]:
    """Choose a path for each pair.

    Returns
    -------
    shape (pairs,), paths
    """
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
    return chosen
