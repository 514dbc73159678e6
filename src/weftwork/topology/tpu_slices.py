"""Slices of a TPU pod: which cubes serve a slice, with and without optical switches.

A cube is 4x4x4 chips. Through optical switches any healthy cubes make a slice. Without them, cubes are cabled in fixed
positions, so that a slice needs a block of healthy cubes next to each other.
Source: Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2; Zu et al., NSDI 2024, "Resiliency at Scale".
Leaves out: links (`weftwork.topology.optical_circuits`), and how often a slice is available
(`weftwork.topology.slice_availability`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Final

from weftwork.base.grammar import plural
from weftwork.topology.torus_lattice import TorusLattice, shape_text, twist_mistake, twisted

__all__ = [
    "CUBE_CHIPS",
    "CUBE_SIDE",
    "PART_SIDES",
    "Placed",
    "blocks",
    "chips_word",
    "cubes_of",
    "grid_of",
    "is_part",
    "largest_slice",
    "place_slice",
    "slice_lattice",
    "slice_mistake",
    "usual_slices",
]

CUBE_SIDE: Final = 4  # chips; ISCA 2023, section 2.1
CUBE_CHIPS: Final = CUBE_SIDE**3
PART_SIDES: Final = (1, 2, 4)  # cloud.google.com/tpu/docs/v4: slices below a cube are 2x2x1, 2x2x2, 2x2x4 and 2x4x4

Block = tuple[int, int, int]
"""Cubes along each dimension."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """A slice with its cubes.

    Attributes
    ----------
    cubes : numbers in the pod, in the order of the slice: those along x first, then along y, then along z
    rings : by dimension, whether links close it
    """

    cubes: tuple[int, ...]
    rings: tuple[bool, bool, bool]


def is_part(sides: Sequence[int]) -> bool:
    """Whether a slice is a part of one cube, without ring links."""
    return min(sides) < CUBE_SIDE


def cubes_of(sides: Sequence[int]) -> Block:
    """Cubes along each dimension of a slice; a part of a cube takes one."""
    x, y, z = (max(1, side // CUBE_SIDE) for side in sides)
    return x, y, z


def chips_word(sides: Sequence[int]) -> str:
    """A slice in words.

    Examples
    --------
    >>> chips_word((8, 8, 16)), chips_word((2, 2, 1))
    ('8x8x16 (16 cubes)', '2x2x1 (part of a cube)')
    """
    size = "part of a cube" if is_part(sides) else plural(math.prod(cubes_of(sides)), "cube")
    return f"{shape_text(sides)} ({size})"


def slice_mistake(sides: Sequence[int], *, is_twisted: bool) -> tuple[str, tuple[int, ...] | None] | None:
    """Mistake of the sides of a slice with the nearest right sides; None if they are right."""
    if len(sides) != 3:
        return f"found {plural(len(sides), 'side')}, wanted three, such as [8, 8, 16]", None
    whole = all(side % CUBE_SIDE == 0 for side in sides)
    part = all(side in PART_SIDES for side in sides) and math.prod(sides) > 1
    if not (whole or part):
        near = tuple(max(CUBE_SIDE, round(side / CUBE_SIDE) * CUBE_SIDE) for side in sides)
        is_right = not is_twisted or twist_mistake(near) is None
        wanted = "wanted sides that are multiples of 4, or a part of one cube with sides of 1, 2 or 4"
        return f"found {shape_text(sides)}, {wanted}", near if is_right else None
    if is_twisted and (wrong := twist_mistake(sides)) is not None:
        return wrong, None
    return None


def slice_lattice(sides: tuple[int, ...], *, is_twisted: bool, rings: tuple[bool, ...]) -> TorusLattice:
    """Switches and links of a slice."""
    return twisted(sides) if is_twisted else TorusLattice(sides=sides, rings=rings)


@cache
def grid_of(cubes: int) -> Block:
    """Cubes along each dimension of a pod with fixed cables: the most cubic grid, so 4x4x4 for 64 cubes."""
    found = [(a, b, cubes // a // b) for a in range(1, cubes + 1) if cubes % a == 0
             for b in range(a, cubes // a + 1) if (cubes // a) % b == 0 and cubes // a // b >= b]  # fmt: skip
    return min(found, key=lambda grid: grid[2] - grid[0])


@cache
def blocks(cubes: int, block: Block) -> tuple[tuple[int, ...], ...]:
    """All sets of cubes with the shape of a block in a pod with fixed cables, once each.

    A block may be turned, and may go on at the other side of the pod, since the cables of the pod are a torus.
    """
    grid = grid_of(cubes)
    seen: dict[frozenset[int], tuple[int, ...]] = {}
    for turned in dict.fromkeys(permutations(range(3))):
        for found in _turned_blocks(grid, block, turned):
            seen.setdefault(frozenset(found), found)
    return tuple(seen.values())


def _turned_blocks(grid: Block, block: Block, turned: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Blocks whose dimension i lies along dimension ``turned[i]`` of the pod, by their first cubes."""
    if any(block[axis] > grid[turned[axis]] for axis in range(3)):
        return
    for corner in product(*(range(side) for side in reversed(grid))):
        origin = corner[::-1]
        yield tuple(
            _number(grid, origin, turned, (x, y, z))
            for z in range(block[2]) for y in range(block[1]) for x in range(block[0])
        )  # fmt: skip


def _number(grid: Block, origin: Sequence[int], turned: Sequence[int], step: Sequence[int]) -> int:
    at = list(origin)
    for axis in range(3):
        at[turned[axis]] += step[axis]
    x, y, z = (place % side for place, side in zip(at, grid, strict=True))
    return x + grid[0] * (y + grid[1] * z)


def place_slice(sides: Sequence[int], *, cubes: int, failed: Collection[int], has_optical: bool) -> Placed | None:
    """Choose the cubes of a slice.

    With optical switches, the healthy cubes with the lowest numbers serve. Without them it is the first healthy block,
    and a dimension is closed only if the block spans the pod along it.

    Parameters
    ----------
    sides : of the slice in chips, right by `slice_mistake`
    cubes : of the pod
    failed : numbers of cubes
    has_optical : whether the pod has optical switches

    Returns
    -------
    None if the slice does not fit
    """
    healthy = [cube for cube in range(cubes) if cube not in failed]
    block = cubes_of(sides)
    needed = math.prod(block)
    if needed > len(healthy):
        return None
    if is_part(sides):
        return Placed(cubes=(healthy[0],), rings=(False, False, False))
    if has_optical:
        return Placed(cubes=tuple(healthy[:needed]), rings=(True, True, True))
    grid = grid_of(cubes)
    for turned in permutations(range(3)):
        for found in _turned_blocks(grid, block, turned):
            if not any(cube in failed for cube in found):
                x, y, z = (block[axis] == grid[turned[axis]] for axis in range(3))
                return Placed(cubes=found, rings=(x, y, z))
    return None


def largest_slice(
    *, cubes: int, failed: Collection[int], has_optical: bool, most: int | None = None
) -> tuple[int, int, int] | None:
    """Largest slice that fits, the most cubic one of equal slices.

    Parameters
    ----------
    cubes, failed, has_optical : as of `place_slice`
    most : cubes of the slice at most; None: any number

    Returns
    -------
    sides in chips; None if no cube is healthy
    """
    left = cubes - len({*failed})
    limit = left if most is None else min(most, left)
    for size in range(limit, 0, -1):
        for grid in sorted(_boxes(size), key=lambda box: box[2] - box[0]):
            x, y, z = (CUBE_SIDE * side for side in grid)
            if place_slice((x, y, z), cubes=cubes, failed=failed, has_optical=has_optical) is not None:
                return x, y, z
    return None


def _boxes(size: int) -> list[Block]:
    """All ascending blocks of so many cubes."""
    return [(a, b, size // a // b) for a in range(1, size + 1) if size % a == 0
            for b in range(a, size // a + 1) if (size // a) % b == 0 and size // a // b >= b]  # fmt: skip


def usual_slices(cubes: int) -> list[tuple[int, int, int]]:
    """Slices with sides of 4, 8, 16 and so on that a pod has cubes for, by size and the most cubic first."""
    powers = [2**power for power in range(cubes.bit_length())]
    found = [(a, b, c) for a in powers for b in powers if b >= a for c in powers if c >= b and a * b * c <= cubes]
    found.sort(key=lambda block: (math.prod(block), block[2]))
    return [(CUBE_SIDE * a, CUBE_SIDE * b, CUBE_SIDE * c) for a, b, c in found]
