"""Valleys: routes that go down in a tree of switches and up again.

PFC does not allow them without a further class. A route without a valley climbs from tier to tier and then descends
(up*/down*). Buffers of such routes never wait for each other in a circle, so that one lossless class is enough. After a
loss the shortest routes left may have a valley.
Source: Schroeder et al., Autonet, IEEE JSAC 9(8), 1991, doi:10.1109/49.105178 (up*/down*); Hu et al., Tagger, CoNEXT
2017, doi:10.1145/3143361.3143382, sections 3 and 4 (valleys after failures, a class for each turn).
Leaves out: fabrics that link switches of one tier, where up and down say nothing; which class carries what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.routing import MOST_WORDS

__all__ = [
    "Valleys",
    "climbs_once",
    "is_tiered",
    "leaves_below",
    "leaves_left",
    "legal_pairs",
    "same_tier_link",
    "valleys",
]

WORD = 64  # leaves in a word of the search
Bits = NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Valleys:
    """Pairs of leaves, by the routes that join them.

    Leaves are switches at which hosts are attached.

    Attributes
    ----------
    leaves : that have a link to a host left
    sample : of them, those whose pairs were looked at, evenly spaced; all of them in all but the largest fabrics
    pairs_joined : unordered pairs that some path joins
    pairs_legal : of these, pairs that a path without a valley joins, however long it is
    pairs_bent : pairs with a valley on some of their shortest routes, which engines use
    pairs_only_bent : pairs with a valley on all of their shortest routes
    example : switches of one shortest route with a valley, in order; empty where there is none
    """

    leaves: int
    sample: int
    pairs_joined: int
    pairs_legal: int
    pairs_bent: int
    pairs_only_bent: int
    example: tuple[str, ...]


def is_tiered(fabric: Fabric) -> bool:
    """Whether all links between switches join two tiers.

    Each hop then goes either up or down.
    """
    return same_tier_link(fabric) is None


def same_tier_link(fabric: Fabric) -> int | None:
    """The first link between two switches of one tier."""
    a, b = fabric.links["a"], fabric.links["b"]
    between = (fabric.node_kind[a] != HOST) & (fabric.node_kind[b] != HOST)
    found = np.flatnonzero(between & (fabric.node_tier[a] == fabric.node_tier[b]))
    return int(found[0]) if len(found) else None


def leaves_left(fabric: Fabric, link_up: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Switches with a link to a host that is up, ascending."""
    a, b = fabric.links["a"][link_up], fabric.links["b"][link_up]
    is_host = fabric.node_kind == HOST
    ends = np.concatenate([a[is_host[b]], b[is_host[a]]])
    return np.unique(ends[~is_host[ends]]).astype(np.int64)


def leaves_below(fabric: Fabric, lost: NDArray[np.bool_], leaves: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leaves that could climb by one of the lost links.

    In a tree without valleys, no other pair of leaves has got a valley.

    Parameters
    ----------
    fabric : of tiers
    lost : shape (links,)
    leaves : switches, ascending

    Returns
    -------
    their places among the leaves, ascending
    """
    a, b, tier = fabric.links["a"], fabric.links["b"], fabric.node_tier
    low, high = np.where(tier[a] < tier[b], a, b), np.where(tier[a] < tier[b], b, a)
    reached = np.zeros(len(tier), np.bool_)
    reached[low[lost & (fabric.node_kind[low] != HOST)]] = True
    while not reached[low[reached[high]]].all():
        reached[low[reached[high]]] = True
    return np.flatnonzero(reached[leaves]).astype(np.int64)


def valleys(
    fabric: Fabric, link_up: NDArray[np.bool_], leaves: NDArray[np.int64], sources: NDArray[np.int64] | None = None
) -> Valleys | None:
    """Find pairs of leaves whose routes have valleys.

    Parameters
    ----------
    fabric : whose switches
    link_up : shape (links,)
    leaves : switches whose pairs are looked at, as of `leaves_left`
    sources : places of some leaves, whose pairs with all of them are looked at alone; None: all

    Returns
    -------
    None where switches of one tier are linked
    """
    if not is_tiered(fabric):
        return None
    search = _LevelSearch(fabric, link_up)
    asked = np.arange(len(leaves)) if sources is None else sources
    sample = min(len(asked), search.most_sources)
    columns = asked[np.arange(sample) * len(asked) // max(sample, 1)]
    source = leaves[columns]
    legal = search.start(source)
    seen, bent, straight = legal.copy(), np.zeros_like(legal), legal.copy()
    for risen, fallen, turned in search.levels(source):
        legal |= risen | fallen
        straight |= (risen | fallen) & ~seen  # a shortest route without a valley ends here
        bent |= turned  # and one with a valley
        seen |= risen | fallen | turned
    rows = search.row[leaves]
    counts = [_pairs(bits[rows], columns) for bits in (seen, legal, bent, bent & ~straight)]
    return Valleys(
        leaves=len(leaves),
        sample=sample,
        pairs_joined=counts[0],
        pairs_legal=counts[1],
        pairs_bent=counts[2],
        pairs_only_bent=counts[3],
        example=_example(fabric, search, leaves, source, (bent & ~straight if counts[3] else bent)[rows]),
    )


def climbs_once(fabric: Fabric) -> bool:
    """Whether every shortest route goes up and then down, as in a tree.

    False where the leaves are too many for one search.
    """
    leaves = leaves_left(fabric, fabric.links_at_start)
    told = valleys(fabric, fabric.links_at_start, leaves)
    return told is not None and told.sample == told.leaves and told.pairs_bent == 0


def legal_pairs(fabric: Fabric, link_up: NDArray[np.bool_], leaves: NDArray[np.int64]) -> int | None:
    """Unordered pairs of leaves joined by paths without a valley.

    It is `Valleys.pairs_legal`, and nothing else.

    Returns
    -------
    None where switches of one tier are linked, or the leaves are too many for one search
    """
    if not is_tiered(fabric):
        return None
    search = _LevelSearch(fabric, link_up)
    if len(leaves) > search.most_sources:
        return None
    legal = search.start(leaves)
    for risen, fallen, _ in search.levels(leaves, has_valleys=False):
        legal |= risen | fallen
    return _pairs(legal[search.row[leaves]], np.arange(len(leaves)))


class _LevelSearch:
    """A search by levels from all leaves at once, with one bit each.

    It has three phases: up, then down, then anything.
    """

    def __init__(self, fabric: Fabric, link_up: NDArray[np.bool_]) -> None:
        ports, is_switch = fabric.ports, fabric.node_kind != HOST
        peer = ports.node[ports.peer]
        usable = link_up[ports.link] & is_switch[ports.node] & is_switch[peer]
        below = fabric.node_tier[peer] < fabric.node_tier[ports.node]
        self.row = np.cumsum(is_switch) - 1  # of a switch; rows of hosts mean nothing
        self.switches = np.flatnonzero(is_switch)
        self._below, self._above = (
            _Neighbours(self.row[ports.node[kept]], self.row[peer[kept]]) for kept in (usable & below, usable & ~below)
        )
        self.most_sources = max(1, MOST_WORDS // max(1, int(usable.sum()))) * WORD

    def start(self, source: NDArray[np.int64]) -> Bits:
        """Each leaf at itself; shape (switches, words)."""
        bits = np.zeros((len(self.switches), -(-len(source) // WORD)), np.uint64)
        number = np.arange(len(source))
        bits[self.row[source], number // WORD] = np.uint64(1) << (number % WORD).astype(np.uint64)
        return bits

    def levels(self, source: NDArray[np.int64], *, has_valleys: bool = True) -> Iterator[tuple[Bits, Bits, Bits]]:
        """Reached leaves of each switch, for 1 hop, 2 hops and so on.

        The parts are upwards, up and down, and by a valley. Paths with a valley are followed only as long as they are
        shortest ones.
        """
        risen = self.start(source)
        fallen, turned = np.zeros_like(risen), np.zeros_like(risen)
        seen_risen, seen_fallen, seen = risen.copy(), fallen.copy(), risen.copy()
        while risen.any() or fallen.any() or turned.any():
            up = self._below.gather(risen)
            down = self._above.gather(risen | fallen)
            if has_valleys:
                turned = (self._below.gather(fallen | turned) | self._above.gather(turned)) & ~seen
            risen, fallen = up & ~seen_risen, down & ~seen_fallen
            seen_risen |= risen
            seen_fallen |= fallen
            seen |= risen | fallen | turned
            yield risen, fallen, turned

    def steps_to(self, row: int, phase: int) -> list[tuple[NDArray[np.int64], tuple[int, ...]]]:
        """Predecessors of a switch in a phase, as rows and phases.

        Phases are 0: up, 1: down, 2: a valley.
        """
        below, above = self._below.of(row), self._above.of(row)
        ways: list[list[tuple[NDArray[np.int64], tuple[int, ...]]]]
        ways = [[(below, (0,))], [(above, (0, 1))], [(below, (1, 2)), (above, (2,))]]
        return ways[phase]


class _Neighbours:
    """Switches on one side of each switch, by rows."""

    def __init__(self, row: NDArray[np.int64], peer: NDArray[np.int64]) -> None:
        self._peer = peer  # ports are sorted by node
        self._owners, self._starts = np.unique(row, return_index=True)

    def gather(self, bits: Bits) -> Bits:
        """Union of all sets of each switch's neighbours."""
        found = np.zeros_like(bits)
        if len(self._owners):
            found[self._owners] = np.bitwise_or.reduceat(bits[self._peer], self._starts, axis=0)
        return found

    def of(self, row: int) -> NDArray[np.int64]:
        """Rows of the neighbours of one switch."""
        place = int(np.searchsorted(self._owners, row))
        if place == len(self._owners) or self._owners[place] != row:
            return self._peer[:0]
        end = self._starts[place + 1] if place + 1 < len(self._starts) else len(self._peer)
        return self._peer[self._starts[place] : end]


def _pairs(bits: Bits, columns: NDArray[np.int64]) -> int:
    """Unordered pairs of different leaves in a matrix of bits.

    The shape is (leaves, words); ``columns`` are the sources.
    """
    each = np.bitwise_count(bits).sum(axis=1).astype(np.int64)
    number = np.arange(len(columns))
    itself = bits[columns, number // WORD] >> (number % WORD).astype(np.uint64) & np.uint64(1)
    twice = int(each[columns].sum()) - int(itself.sum())  # between two sources, seen from both
    return int(each.sum()) - int(each[columns].sum()) + twice // 2


def _example(
    fabric: Fabric, search: _LevelSearch, leaves: NDArray[np.int64], source: NDArray[np.int64], bits: Bits
) -> tuple[str, ...]:
    """One shortest route with a valley, traced back from its end."""
    found = np.argwhere(bits)
    if not len(found):
        return ()
    leaf, word = found[0].tolist()
    bit = int(bits[leaf, word])
    first = word * WORD + (bit & -bit).bit_length() - 1
    start = source[first : first + 1]
    nobody = np.zeros((len(search.switches), 1), np.uint64)
    levels = [(search.start(start), nobody, nobody)]
    row, phase = int(search.row[leaves[leaf]]), 2
    for level in search.levels(start):
        levels.append(level)
        if level[2][row].any():
            break
    path = [row]
    for before in reversed(levels[:-1]):
        row, phase = next(
            (int(near), earlier)
            for rows, phases in search.steps_to(row, phase)
            for near in rows
            for earlier in phases
            if before[earlier][near].any()
        )
        path.append(row)
    return tuple(fabric.node_names[search.switches[row]] for row in reversed(path))
