"""Random graphs in which every switch has the same number of links, and bounds of their paths.

All draws are by identity (`weftwork.base.random`): a seed and a size always make the same graph.
Source: Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012, sections 3 (construction) and 4 (bound, after Cerf, Cowan,
Mullin and Stanton, 1974); Valadarsky, Shahaf, Dinitz and Schapira, Xpander, CoNEXT 2016, section 3 (lifts).
Leaves out: an equal chance of every such graph, which neither construction claims.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from weftwork.base.random import Stream, draw, draws, pick
from weftwork.topology.connected import connected_parts

__all__ = ["connected_draw", "least_mean_distance", "lifted_graph", "regular_graph"]

Links: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]  # both ends, the lower number first


def least_mean_distance(switches: int, degree: int) -> Fraction:
    """Lowest mean distance of two switches that any graph of this size and degree can have.

    At most r switches are one link away from a switch, r (r - 1) are two links away, and so on.

    Parameters
    ----------
    switches : two or more
    degree : links of each switch, r

    Examples
    --------
    >>> least_mean_distance(50, 7)  # the Hoffman-Singleton graph reaches it
    Fraction(13, 7)
    """
    left, width, total = switches - 1, degree, 0
    for hops in count(1):
        here = min(left, width)
        left, total, width = left - here, total + hops * here, width * (degree - 1)
        if not left or not width:
            break
    return Fraction(total, switches - 1)


def connected_draw(attempt: Callable[[int], Links], switches: int) -> Links:
    """Draw a graph again until all switches are connected.

    Parameters
    ----------
    attempt : draws a graph, from the number of graphs drawn before
    switches : how many
    """
    return next(links for links in map(attempt, count()) if _is_connected(links, switches))


def _is_connected(links: Links, switches: int) -> bool:
    return not connected_parts(*links, switches).any()


def regular_graph(switches: int, degree: int, *, seed: int, attempt: int = 0) -> Links:
    """Draw a graph in which each switch has the same number of links, to different switches.

    Free ports are paired at random. If all switches with free ports are neighbours, a random link (u, v) is broken, and
    its ends are linked to the free ports. The complement of a sparse graph is drawn where a switch is linked to more
    than half of all others.

    Parameters
    ----------
    switches, degree : degree below the number of switches, and the product of both even
    seed : of the draws
    attempt : another one draws another graph
    """
    if 2 * degree > switches - 1:
        sparse = _keys(regular_graph(switches, switches - 1 - degree, seed=seed, attempt=attempt), switches)
        low, high = np.triu_indices(switches, 1)
        kept = ~np.isin(low * switches + high, sparse)
        return low[kept].astype(np.int64), high[kept].astype(np.int64)
    keys = np.empty(0, np.int64)
    free = np.full(switches, degree, np.int64)
    for turn in count():
        stubs = np.repeat(np.arange(switches), free)
        order = np.argsort(draws(seed, Stream.WIRING, np.arange(len(stubs)), turn, attempt), kind="stable")
        pairs = stubs[order].reshape(-1, 2)
        new = np.unique(_keys((pairs[:, 0], pairs[:, 1]), switches)[pairs[:, 0] != pairs[:, 1]])
        new = new[~np.isin(new, keys)]
        keys = np.concatenate([keys, new])
        free -= np.bincount(np.concatenate([new // switches, new % switches]), minlength=switches)
        if not len(new):
            break
    keys = _last_ports(keys, free, seed, attempt)
    keys.sort()
    return keys // switches, keys % switches


def _keys(links: Links, switches: int) -> NDArray[np.int64]:
    """One number for each link."""
    return np.minimum(*links) * switches + np.maximum(*links)


def _last_ports(keys: NDArray[np.int64], free: NDArray[np.int64], seed: int, attempt: int) -> NDArray[np.int64]:
    """Link the last free ports, by breaking links where no two of their switches can be linked.

    A link to break always exists if a switch is linked to at most half of all others: the switches that are neither
    free nor neighbours have more ends of links than all neighbours together can take.

    Parameters
    ----------
    keys : shape (links,), of the links so far
    free : shape (switches,), ports without a link; becomes 0
    seed, attempt : of the draws
    """
    switches = len(free)
    for step in count():
        ends = np.flatnonzero(free)
        if not len(ends):
            break
        bits = draw(seed, Stream.WIRING, step, 0xFFFFFF, attempt)  # no turn of the first pairing has this number
        low, high = (ends[index] for index in np.triu_indices(len(ends), 1))
        new = low * switches + high
        new = new[~np.isin(new, keys)]
        if len(new):
            chosen = new[pick(bits, len(new))]
            keys = np.append(keys, chosen)
            free[[chosen // switches, chosen % switches]] -= 1
            continue
        p = int(ends[np.argmax(free[ends])])
        q = p if free[p] > 1 else int(ends[ends != p][0])
        a, b = keys // switches, keys % switches
        by_p, by_q = (_linked(keys, one, switches) for one in (p, q))
        forward = np.flatnonzero(~by_p[a] & ~by_q[b])
        backward = np.flatnonzero(~by_p[b] & ~by_q[a])
        place = pick(bits, len(forward) + len(backward))
        is_forward = place < len(forward)
        broken = forward[place] if is_forward else backward[place - len(forward)]
        u, v = (a[broken], b[broken]) if is_forward else (b[broken], a[broken])
        ends_of_new = (np.array([p, q], np.int64), np.array([u, v], np.int64))
        keys = np.append(np.delete(keys, broken), _keys(ends_of_new, switches))
        free[p] -= 1
        free[q] -= 1
    return keys


def _linked(keys: NDArray[np.int64], switch: int, switches: int) -> NDArray[np.bool_]:
    """Whether each switch is linked to a switch, or is this switch."""
    found = np.zeros(switches, np.bool_)
    found[switch] = True
    a, b = keys // switches, keys % switches
    found[b[a == switch]] = True
    found[a[b == switch]] = True
    return found


def lifted_graph(degree: int, lifts: Sequence[int], *, seed: int, attempt: int = 0) -> Links:
    """Lift a full mesh of degree + 1 switches, one time after another.

    A lift by l replaces each switch by l copies, and each link by a random matching between the copies of its ends.
    Copy j of switch i has the number ``i l + j``.

    Parameters
    ----------
    degree : links of each switch
    lifts : number of copies in each lift
    seed : of the draws
    attempt : another one draws another graph
    """
    a, b = (end.astype(np.int64) for end in np.triu_indices(degree + 1, 1))
    for turn, copies in enumerate(lifts):
        bits = draws(seed, Stream.WIRING, np.arange(len(a) * copies), turn, attempt)
        partner = np.argsort(bits.reshape(len(a), copies), axis=1, kind="stable")
        a, b = (a[:, None] * copies + np.arange(copies)).ravel(), (b[:, None] * copies + partner).ravel()
    return a, b
