"""Lanes of the algorithms on a lattice: orders of axes, directions, partners.

Programs (`algorithms.bucket`, `algorithms.swing`) and closed forms (`lattice_time`) have them from here.
Source: Jain and Sabharwal, ICS 2010, charm.cs.uiuc.edu/papers/10-42; De Sensi et al., NSDI 2024, arXiv:2401.09356.
Leaves out: the streams of programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from weftwork.workload.collectives.lattice import Lattice

__all__ = ["BucketLane", "SwingLane", "bucket_lanes", "swing_distance", "swing_lanes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BucketLane:
    """Axes of a reduce-scatter, first to last, and the direction of its rings."""

    order: tuple[int, ...]
    direction: int


def bucket_lanes(lattice: Lattice, rings: str) -> list[BucketLane]:
    """Lanes of a bucket algorithm.

    Parameters
    ----------
    lattice : of the GPUs
    rings : ``all`` for a lane of each first axis and direction, ``both`` for one of each direction, ``one``
    """
    axes = len(lattice.axes)
    firsts = range(axes) if rings == "all" else range(1)
    directions = (1,) if rings == "one" else (1, -1)
    return [
        BucketLane(order=tuple((first + step) % axes for step in range(axes)), direction=direction)
        for first in firsts
        for direction in directions
    ]


def swing_distance(step: int) -> int:
    """Distance to the partner on an axis, rho(s) = (1 - (-2)^(s + 1)) / 3.

    Examples
    --------
    >>> [swing_distance(step) for step in range(6)]
    [1, -1, 3, -5, 11, -21]
    """
    power: int = (-2) ** (step + 1)
    return (1 - power) // 3


@dataclass(frozen=True, kw_only=True)
class SwingLane:
    """Steps of a lane of Swing.

    Attributes
    ----------
    lattice : of the GPUs, sides of powers of two
    steps : axis of each step, and number of the step on that axis
    direction : -1 where coordinates are mirrored
    """

    lattice: Lattice
    steps: tuple[tuple[int, int], ...]
    direction: int

    def move(self, step: int) -> tuple[int, int]:
        """Distance from an even and from an odd coordinate to the partner's."""
        distance = self.direction * swing_distance(self.steps[step][1])
        return distance, -distance

    def partners(self, step: int) -> tuple[int, ...]:
        """Partner of each rank in a step."""
        axis, move = self.steps[step][0], self.move(step)
        size = self.lattice.axes[axis].size
        found = []
        for rank in range(self.lattice.size):
            own = self.lattice.coordinate(rank, axis)
            found.append(self.lattice.moved(rank, axis, (own + move[own % 2]) % size))
        return tuple(found)

    def labels(self) -> tuple[int, ...]:
        """Label of each rank: partners of step t differ in bit t, and may differ in bits above.

        The data that two partners of step t share are those of the ranks whose labels have the same bits below t. On an
        axis of 2^k places, all distances from step s on are congruent to 1/3 modulo 2^(s + 1). So x / 2 of the even
        places and (x - 1/3) / 2 of the odd ones have the bits of the first k - 1 steps, and being odd is the last.
        """
        bits = [_axis_bits(axis.size) for axis in self.lattice.axes]
        found = []
        for rank in range(self.lattice.size):
            label = 0
            for number, (axis, step) in enumerate(self.steps):
                place = self.direction * self.lattice.coordinate(rank, axis) % self.lattice.axes[axis].size
                label |= (bits[axis][place] >> step & 1) << number
            found.append(label)
        return tuple(found)


@cache
def _axis_bits(size: int) -> tuple[int, ...]:
    """Label of each place of an axis of a power of two."""
    third = pow(3, -1, size)
    return tuple((place - place % 2 * third) % size // 2 | place % 2 * (size // 2) for place in range(size))


def swing_lanes(lattice: Lattice) -> list[SwingLane]:
    """A lane for each first axis and direction; an axis that is through is passed over.

    Parameters
    ----------
    lattice : sides of powers of two
    """
    axes = len(lattice.axes)
    found = []
    for first in range(axes):
        left = [(axis.size - 1).bit_length() for axis in lattice.axes]
        steps, axis = [], first
        while any(left):
            if left[axis]:
                steps.append((axis, (lattice.axes[axis].size - 1).bit_length() - left[axis]))
                left[axis] -= 1
            axis = (axis + 1) % axes
        found += [SwingLane(lattice=lattice, steps=tuple(steps), direction=direction) for direction in (1, -1)]
    return found
