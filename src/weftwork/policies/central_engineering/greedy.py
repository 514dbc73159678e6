"""Greedy placement: each demand takes the path with the least peak load.

Demands are placed one after the other. The peak load of a path is that of its most loaded link. The largest demands
come first. Of equal paths the one with the least load over all its links is taken, then one by chance. In a folded Clos
this is the min-max choice of the spine.
Source: arXiv:2503.05324 (unverified: of its two-layer max-min greedy, its 2-approximation and about 10 ms for 64 ToRs
and 32 spines a summary was read, not the paper). Leaves out: moving a demand that has its path, so that the order
decides.
"""

from __future__ import annotations

from typing import Final

from weftwork.policies.least_loaded_paths import least_loaded_paths
from weftwork.spec.plug_in import NoKeys, PathProblem, PathScheme, Planned

__all__ = ["SCHEME"]


def _place(_: NoKeys, problem: PathProblem) -> Planned:
    return Planned(chosen=least_loaded_paths(problem))


SCHEME: Final = PathScheme(place=_place, source="unverified: arXiv:2503.05324, by a summary")
