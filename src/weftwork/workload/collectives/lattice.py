"""A box of GPUs on the coordinates of a torus or mesh.

Rank r has the coordinate ``r // stride % size`` on an axis; the first axis has stride 1. Axes have two places or more.
Source: none; the terms are those of `weftwork.spec.fabric_direct`.
Leaves out: twisted tori, whose rings along an axis do not close; how a fabric becomes a lattice (`fabric_lattice`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

__all__ = ["Axis", "Lattice", "axis_loads"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """One axis of a lattice.

    Attributes
    ----------
    name : for people, such as ``x``
    size : GPUs along the axis, at least two
    is_closed : whether links close a ring along it
    links : parallel links between neighbours; two on a ring of two
    """

    name: str
    size: int
    is_closed: bool = True
    links: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Lattice:
    """The axes of a box of GPUs, the one that changes fastest first."""

    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        """Number of GPUs."""
        return prod(axis.size for axis in self.axes)

    @property
    def sides(self) -> tuple[int, ...]:
        """GPUs along each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def words(self) -> str:
        """Sides for people, such as ``4x4x8``."""
        return "x".join(map(str, self.sides))

    def stride(self, axis: int) -> int:
        """Distance in ranks between neighbours along an axis."""
        return prod(self.sides[:axis])

    def coordinate(self, rank: int, axis: int) -> int:
        """Coordinate of a rank on an axis."""
        return rank // self.stride(axis) % self.axes[axis].size

    def moved(self, rank: int, axis: int, to: int) -> int:
        """Rank with another coordinate on one axis."""
        return rank + (to - self.coordinate(rank, axis)) * self.stride(axis)


@cache
def axis_loads(axis: Axis, moves: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Messages on the busiest link of an axis, and the longest path.

    Every place sends one message for each move; paths are shortest, and equal ones go up.

    Parameters
    ----------
    axis : whose links
    moves : each a pair of distances, of places with an even coordinate and of those with an odd one

    Returns
    -------
    messages that cross the busiest link in one direction, and links of the longest path

    Examples
    --------
    >>> axis_loads(Axis(name="x", size=8), ((3, -3), (-3, 3)))
    (3, 3)
    """
    size = axis.size
    up, down, longest = [0] * size, [0] * size, 0
    for move in moves:
        for place in range(size):
            to = (place + move[place % 2]) % size
            ahead = to - place
            if axis.is_closed and abs(ahead) * 2 > size:
                ahead -= size if ahead > 0 else -size
            for step in range(abs(ahead)):
                (up if ahead > 0 else down)[(place + step if ahead > 0 else place - step) % size] += 1
            longest = max(longest, abs(ahead))
    return -(-max(*up, *down) // axis.links), longest
