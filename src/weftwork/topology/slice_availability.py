"""How many slices of a TPU pod run, and how often a slice is available, with and without optical switches.

With optical switches, a slice of n of C cubes is available if at most C - n cubes are down. Without them, it needs a
healthy block in the fixed positions of the pod. Cubes fail independently of each other.
Source: Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2.3, for the question; the formulas follow from the counts.
Leaves out: optical switches and links that fail, and repair times.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from weftwork.base.random import Stream, draws, uniforms
from weftwork.topology.torus_lattice import twist_mistake
from weftwork.topology.tpu_slices import Block, blocks, cubes_of, is_part, usual_slices

__all__ = ["MOST_EXACT_CUBES", "SAMPLES", "Probability", "SliceRow", "available_in_blocks", "most_blocks", "slice_rows"]

MOST_EXACT_CUBES: Final = 16  # chosen: 65,536 sets of cubes that are up take a moment
SAMPLES: Final = 20_000  # chosen: the standard error of a share is then at most 0.4 %
_MOST_NODES: Final = 2_000  # chosen: of a search for the most blocks, which nearly always ends at its first node
_OPTIMAL: Final = 0  # scipy.optimize.milp, `status`


@dataclass(frozen=True, kw_only=True, slots=True)
class Probability:
    """A probability, with its standard error; 0: it is exact."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SliceRow:
    """One shape of slices in a pod.

    Attributes
    ----------
    sides : in chips
    cubes : of a slice
    can_twist : whether it can be a twisted torus
    optical_count, fixed_count : slices of this shape that run at once with the failed cubes; fixed: without optical
        switches
    is_fixed_count_exact : False: a search for more blocks was cut short, so that the count is a lower bound
    optical_available, fixed_available : probability that one slice can run, if cubes fail at random
    optical_goodput, fixed_goodput : mean share of the pod's chips that run slices of this shape; fixed: the pod is cut
        into as many blocks as it has, and each runs if all of its cubes are up
    """

    sides: tuple[int, int, int]
    cubes: int
    can_twist: bool
    optical_count: int
    fixed_count: int
    is_fixed_count_exact: bool
    optical_available: float
    fixed_available: Probability
    optical_goodput: float
    fixed_goodput: float


def slice_rows(
    *, cubes: int, failed: Collection[int], up: float, own: tuple[int, ...] | None = None, seed: int = 0
) -> list[SliceRow]:
    """Rows of all shapes with sides of 4, 8, 16 and so on, and of one more shape.

    Parameters
    ----------
    cubes : of the pod
    failed : numbers of cubes that are down now
    up : probability that a cube is up
    own : sides of the further shape; None: there is none
    seed : of the estimate without optical switches
    """
    shapes = usual_slices(cubes)
    if own is not None and not is_part(own):
        x, y, z = sorted(own)
        shapes = (
            shapes if (x, y, z) in shapes else sorted([*shapes, (x, y, z)], key=lambda one: (math.prod(one), one[2]))
        )
    return [_row(sides, cubes, frozenset(failed), up, seed) for sides in shapes]


def _row(sides: tuple[int, int, int], cubes: int, failed: frozenset[int], up: float, seed: int) -> SliceRow:
    block = cubes_of(sides)
    size = math.prod(block)
    fixed, is_exact = most_blocks(cubes, block, failed)
    whole, _ = most_blocks(cubes, block, frozenset())
    running = [_exactly(cubes, count, up) for count in range(cubes + 1)]
    return SliceRow(
        sides=sides,
        cubes=size,
        can_twist=twist_mistake(sides) is None,
        optical_count=(cubes - len(failed)) // size,
        fixed_count=fixed,
        is_fixed_count_exact=is_exact,
        optical_available=math.fsum(running[size:]),
        fixed_available=available_in_blocks(cubes, block, up, seed=seed),
        optical_goodput=math.fsum(share * (count // size) for count, share in enumerate(running)) * size / cubes,
        fixed_goodput=whole * size / cubes * up**size,
    )


def _exactly(cubes: int, count: int, up: float) -> float:
    """Probability that exactly so many cubes are up."""
    return math.comb(cubes, count) * up**count * (1 - up) ** (cubes - count)


@cache
def most_blocks(cubes: int, block: Block, failed: frozenset[int]) -> tuple[int, bool]:
    """Most blocks of healthy cubes that do not overlap, in a pod with fixed cables.

    Returns
    -------
    the number, and whether more are impossible
    """
    healthy = [one for one in blocks(cubes, block) if not failed & {*one}]
    size = math.prod(block)
    if not healthy or size == 1:
        return len(healthy), True
    from scipy.optimize import Bounds, LinearConstraint, milp  # a third of a second, which only this table waits for

    uses = np.zeros((cubes, len(healthy)))
    for place, one in enumerate(healthy):
        uses[list(one), place] = 1
    found = milp(
        -np.ones(len(healthy)), constraints=LinearConstraint(uses, ub=np.ones(cubes)), bounds=Bounds(0, 1),
        integrality=np.ones(len(healthy)), options={"node_limit": _MOST_NODES},
    )  # fmt: skip
    count = 0 if found.x is None else round(float(found.x.sum()))
    return max(count, 1), found.status == _OPTIMAL


def available_in_blocks(cubes: int, block: Block, up: float, *, seed: int = 0) -> Probability:
    """Probability that a pod with fixed cables has a healthy block.

    Exact for a pod of up to `MOST_EXACT_CUBES` cubes, and for a block that is the whole pod; else the share of
    `SAMPLES` draws.

    Parameters
    ----------
    cubes : of the pod
    block : cubes along each dimension
    up : probability that a cube is up
    seed : of the draws
    """
    every = blocks(cubes, block)
    if not every:
        return Probability(value=0.0)
    if len(every) == 1:
        return Probability(value=up ** len(every[0]))
    uses = np.zeros((len(every), cubes), np.float32)
    for place, one in enumerate(every):
        uses[place, list(one)] = 1
    if cubes <= MOST_EXACT_CUBES:
        number = np.arange(1 << cubes)
        is_up = (number[:, None] >> np.arange(cubes) & 1).astype(np.bool_)
        weight = up ** is_up.sum(axis=1) * (1 - up) ** (~is_up).sum(axis=1)
        return Probability(value=float(weight[_has_block(is_up, uses)].sum()))
    identity = np.arange(SAMPLES * cubes)
    is_up = (uniforms(draws(seed, Stream.FAILURE, identity, 0, 0)) < up).reshape(SAMPLES, cubes)
    share = float(_has_block(is_up, uses).mean())
    return Probability(value=share, error=max(1 / SAMPLES, math.sqrt(share * (1 - share) / SAMPLES)))


def _has_block(
    is_up: np.ndarray[tuple[int, int], np.dtype[np.bool_]], uses: np.ndarray[tuple[int, int], np.dtype[np.float32]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a block is up in each state, shape (states,)."""
    down = (~is_up).astype(np.float32)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (down @ uses.T == 0).any(axis=1)
    return found
