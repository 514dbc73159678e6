"""The front of several costs, its knee, and why each loser loses.

A point is on the front where no other is at most as bad in everything and better in something. The knee is the point
of the front that lies farthest below the straight line from its cheapest to its fastest point, both axes scaled to
their span (Satopaa, Albrecht, Irwin and Raghavan, ICDCSW 2011, doi:10.1109/ICDCSW.2011.20, for a curve of two numbers).
Leaves out: what a second of an iteration is worth, which the user knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["beaten_by", "front", "knee"]


def front(points: Mapping[str, Sequence[float]]) -> list[str]:
    """Names of the points on the front, sorted by their first cost.

    Parameters
    ----------
    points : costs by name, each to be small

    Examples
    --------
    >>> front({"a": (1, 5), "b": (2, 5), "c": (3, 1)})
    ['a', 'c']
    """
    kept = [name for name in points if not any(_beats(points[other], points[name]) for other in points)]
    first: dict[tuple[float, ...], str] = {}
    for name in kept:  # equal points are one
        first.setdefault(tuple(points[name]), name)
    return sorted(first.values(), key=lambda name: (*points[name], name))


def beaten_by(point: Sequence[float], better: Mapping[str, Sequence[float]]) -> str | None:
    """The point that beats another by the largest sum of relative savings.

    None if no point beats it.
    """
    found = {
        name: sum(1 - mine / its if its else 0.0 for mine, its in zip(costs, point, strict=True))
        for name, costs in better.items()
        if _beats(costs, point) or tuple(costs) == tuple(point)
    }
    return max(found, key=lambda name: (found[name], name)) if found else None


def knee(points: Mapping[str, tuple[float, float]]) -> str | None:
    """The knee of a front of two costs; None for an empty front.

    Examples
    --------
    >>> knee({"cheap": (1, 10), "knee": (2, 3), "fast": (10, 2)})
    'knee'
    """
    if not points:
        return None
    names = sorted(points, key=lambda name: points[name])
    (low_x, high_y), (high_x, low_y) = points[names[0]], points[names[-1]]
    if high_x == low_x or high_y == low_y:
        return names[0]

    def below(name: str) -> float:
        x, y = points[name]
        return 1 - (x - low_x) / (high_x - low_x) - (y - low_y) / (high_y - low_y)

    return max(names, key=lambda name: (below(name), -points[name][0]))


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(mine <= its for mine, its in zip(one, other, strict=True)) and tuple(one) != tuple(other)
