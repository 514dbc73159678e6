"""Numbers that rest after their use.

A peer remembers the queue pair of a closed connection during its TIMEWAIT, and refuses a new connection of the same
number as stale. A number that was freed is therefore drawn again only after many others.
Source: IBTA vol. 1, 12.9.7 (TimeWait) and 12.9.8.3 (stale connections).
Leaves out: the clock: a peer remembers a bounded number of conversations, so that counting is enough.
"""

from __future__ import annotations

from typing import Final

__all__ = ["RestingNumbers"]


class RestingNumbers:
    """The latest freed numbers.

    Parameters
    ----------
    most : numbers that rest; the oldest makes room

    Examples
    --------
    >>> resting = RestingNumbers(2)
    >>> for number in (7, 8, 9):
    ...     resting.add(number)
    >>> 7 in resting, 8 in resting, 9 in resting
    (False, True, True)
    """

    def __init__(self, most: int) -> None:
        self._most: Final = max(0, most)
        self._numbers: Final[dict[int, None]] = {}  # oldest first

    def add(self, number: int) -> None:
        """Let a number rest."""
        self._numbers.pop(number, None)
        self._numbers[number] = None
        while len(self._numbers) > self._most:
            del self._numbers[next(iter(self._numbers))]

    def __contains__(self, number: int) -> bool:
        return number in self._numbers
