"""A set of PSNs, stored as ranges.

A long READ has millions of PSNs and few gaps.
Source: own.
Leaves out: wrapping; these PSNs count on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["PsnRanges"]


class PsnRanges:
    """A set of integers as half-open ranges.

    Invariant: ranges are in order, are not empty and do not touch.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, psn: int) -> bool:
        place = bisect_right(self._starts, psn)
        return place > 0 and psn < self._ends[place - 1]

    def first(self) -> tuple[int, int]:
        """Lowest range; the set must not be empty."""
        return self._starts[0], self._ends[0]

    def around(self, psn: int) -> tuple[int, int]:
        """Range that contains a PSN of the set."""
        place = bisect_right(self._starts, psn) - 1
        return self._starts[place], self._ends[place]

    def add(self, start: int, end: int) -> None:
        """Add a range; an empty range changes nothing."""
        if start >= end:
            return
        low, high = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if low < high:
            start, end = min(start, self._starts[low]), max(end, self._ends[high - 1])
        self._starts[low:high], self._ends[low:high] = [start], [end]

    def discard(self, start: int, end: int) -> None:
        """Remove a range, present or not."""
        if start >= end:
            return
        low, high = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if low >= high:
            return
        rest = [(self._starts[low], start), (end, self._ends[high - 1])]
        rest = [(left, right) for left, right in rest if left < right]
        self._starts[low:high], self._ends[low:high] = [left for left, _ in rest], [right for _, right in rest]

    def gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """Ranges between ``start`` and ``end`` that are not in the set, in order."""
        found = []
        for place in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            if start < self._starts[place]:
                found.append((start, self._starts[place]))
            start = self._ends[place]
        if start < end:
            found.append((start, end))
        return found

    def clear(self) -> None:
        """Remove all ranges."""
        self._starts.clear()
        self._ends.clear()
