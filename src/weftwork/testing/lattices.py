"""Boxes of a torus for calls that are tried on symbols.

Leaves out: axes that are open, which change paths and not programs.
"""

from __future__ import annotations

from weftwork.workload.collectives.lattice import Axis, Lattice

__all__ = ["torus_box", "torus_of"]


def torus_of(*sides: int) -> Lattice:
    """A torus with these sides."""
    return Lattice(axes=tuple(Axis(name=f"axis {number}", size=side) for number, side in enumerate(sides)))


def torus_box(ranks: int) -> Lattice:
    """A torus with a side for each prime factor of a number of ranks; pairs of twos are sides of four.

    Examples
    --------
    >>> torus_box(12).sides, torus_box(16).sides, torus_box(8).sides
    ((4, 3), (4, 4), (4, 2))
    """
    sides: list[int] = []
    left, factor = ranks, 2
    while left > 1:
        if left % factor:
            factor += 1
            continue
        side = 4 if factor == 2 and left % 4 == 0 else factor
        sides.append(side)
        left //= side
    return torus_of(*sides)
