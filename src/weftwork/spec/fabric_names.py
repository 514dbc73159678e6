"""Names of nodes and links, made from numbers on demand.

A million names cost nothing before somebody asks for them.
Leaves out: names of files, which are given and kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["LinkNames", "NodeNames", "pairs_in_order"]

_NUMBERED = re.compile(r"(?P<word>[a-z]+)(?P<number>0|[1-9][0-9]{0,9})")

_BATCH = 1 << 16  # chosen: names are made by so many, so that a million of them need no second copy of the ends


class _Names(Sequence[str]):
    """A sequence of names that is equal to any sequence with the same names."""

    __hash__ = None  # type: ignore[assignment]  # as a list: equal to others that are hashed in their own way

    def _name(self, index: int) -> str:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self._name(each) for each in range(*index.indices(len(self))))
        place, count = int(index), len(self)
        if not -count <= place < count:
            raise IndexError(f"name {place} of {count}")
        return self._name(place % count)

    def __iter__(self) -> Iterator[str]:
        return (self._name(index) for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))


class NodeNames(_Names):
    """Names of nodes, such as ``host0``: words with a count each, in order.

    ``host0``, ``host1`` and so on come before ``leaf0``.

    Examples
    --------
    >>> names = NodeNames([("host", 2), ("leaf", 1)])
    >>> list(names), names.find("leaf0"), names.find("leaf1")
    (['host0', 'host1', 'leaf0'], 2, None)
    """

    def __init__(self, counts: Sequence[tuple[str, int]]) -> None:
        """Words with their number of nodes.

        Each word is used once and has small letters alone.
        """
        self._counts = tuple((word, int(count)) for word, count in counts)
        self._first: dict[str, tuple[int, int]] = {}
        total = 0
        for word, count in self._counts:
            self._first[word] = (total, count)
            total += count
        self._total = total

    def __len__(self) -> int:
        return self._total

    def _name(self, index: int) -> str:
        for word, count in self._counts:
            if index < count:
                return f"{word}{index}"
            index -= count
        raise IndexError(index)

    def __iter__(self) -> Iterator[str]:
        return (f"{word}{index}" for word, count in self._counts for index in range(count))

    def find(self, name: str) -> int | None:
        """Index of a name; None for an unknown name."""
        match = _NUMBERED.fullmatch(name)
        first, count = self._first.get(match["word"], (0, 0)) if match else (0, 0)
        return first + int(match["number"]) if match and int(match["number"]) < count else None


def pairs_in_order(
    a: NDArray[np.integer], b: NDArray[np.integer], nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Links sorted by their pair of nodes.

    Returns
    -------
    the key of each link's pair, and the links ordered by key, parallel ones in their own order
    """
    wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
    key = np.minimum(wide_a, wide_b) * nodes + np.maximum(wide_a, wide_b)
    return key, np.argsort(key, kind="stable")


class LinkNames(_Names):
    """Names of links, such as ``leaf3-spine1``, with the lower tier first.

    Parallel links are ``leaf3-spine1.2``, ``.3`` and so on in their order.

    Examples
    --------
    >>> ends = np.array([0, 0]), np.array([1, 1])
    >>> names = LinkNames(NodeNames([("leaf", 1), ("spine", 1)]), np.array([1, 2]), *ends)
    >>> list(names), names.find("leaf0-spine0.2")
    (['leaf0-spine0', 'leaf0-spine0.2'], 1)
    """

    def __init__(
        self, nodes: NodeNames, tier: NDArray[np.integer], a: NDArray[np.integer], b: NDArray[np.integer]
    ) -> None:
        """Names of links from ``a`` to ``b``, which are node indices.

        ``tier`` is by node.
        """
        self._nodes = nodes
        self._tier, self._a, self._b = tier, a, b

    def __len__(self) -> int:
        return len(self._a)

    @cached_property
    def _ordered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        key, order = pairs_in_order(self._a, self._b, len(self._nodes))
        return key[order], order

    @cached_property
    def _place(self) -> NDArray[np.int32] | None:
        """Place of each link among its parallels; None without parallel links."""
        key, order = self._ordered
        fresh = np.ones(len(key), np.bool_)
        np.not_equal(key[1:], key[:-1], out=fresh[1:])
        if fresh.all():
            return None
        start = np.maximum.accumulate(np.where(fresh, np.arange(len(key)), 0))
        place = np.empty(len(key), np.int32)
        place[order] = np.arange(len(key)) - start
        return place

    def _parallels(self, a: int, b: int) -> NDArray[np.int64]:
        key, order = self._ordered
        wanted = min(a, b) * len(self._nodes) + max(a, b)
        first, last = np.searchsorted(key, [wanted, wanted + 1])
        return order[first:last]

    def _name(self, index: int) -> str:
        place = 0 if self._place is None else int(self._place[index])
        if place:  # named after the first of its parallels
            index = int(self._parallels(int(self._a[index]), int(self._b[index]))[0])
        a, b = int(self._a[index]), int(self._b[index])
        if self._tier[a] > self._tier[b]:
            a, b = b, a
        return f"{self._nodes[a]}-{self._nodes[b]}" + (f".{place + 1}" if place else "")

    def __iter__(self) -> Iterator[str]:
        if self._place is not None:
            yield from super().__iter__()
            return
        swap = self._tier[self._a] > self._tier[self._b]
        low, high = np.where(swap, self._b, self._a), np.where(swap, self._a, self._b)
        for start in range(0, len(low), _BATCH):
            ends = zip(low[start : start + _BATCH].tolist(), high[start : start + _BATCH].tolist(), strict=True)
            yield from (f"{self._nodes[a]}-{self._nodes[b]}" for a, b in ends)

    def find(self, name: str) -> int | None:
        """Index of a name; None for an unknown name."""
        low, _, high = name.partition(".")[0].partition("-")
        a, b = self._nodes.find(low), self._nodes.find(high)
        if a is None or b is None:
            return None
        return next((index for index in self._parallels(a, b).tolist() if self._name(index) == name), None)
