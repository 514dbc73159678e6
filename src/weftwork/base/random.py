"""Randomness by identity: a draw hashes who draws and why.

The order of draws never matters. One more flow or probe changes no other flow's luck. The native engine computes the
same bits, in ``native/base/random.hpp``.
Source: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195) over a linear
combination of three words with odd constants.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stream", "draw", "draws", "mix", "pick", "picks", "uniform", "uniforms"]

_MASK = (1 << 64) - 1
_K1 = 0x9E3779B97F4A7C15
_K2 = 0xBF58476D1CE4E5B9
_K3 = 0x94D049BB133111EB


class Stream(IntEnum):
    """Purpose of a draw; two purposes never share a draw."""

    TRAFFIC = 1
    START = 2
    LINK_LOSS = 3
    LINK_CORRUPTION = 4
    ECN_MARK = 5
    PORT_CHOICE = 6
    PATH_CHOICE = 7
    SIZE = 8
    ARRIVAL = 9
    QUEUE_PAIR = 10
    PATH_LOAD = 11
    PLACEMENT = 32  # from 32 on no engine draws
    FAILURE = 33
    SWEEP = 34
    PLANNED_PATH = 35
    LOST_PART = 36
    WIRING = 37


def mix(a: int, b: int, c: int) -> int:
    """Hash three 64-bit words into one.

    Examples
    --------
    >>> hex(mix(1, 2, 3))
    '0xba2c3f7c48f06983'
    """
    x = (a * _K1 + b * _K2 + c * _K3) & _MASK
    x ^= x >> 30
    x = (x * _K2) & _MASK
    x ^= x >> 27
    x = (x * _K3) & _MASK
    return x ^ (x >> 31)


def draw(seed: int, stream: int, flow: int, packet: int, place: int) -> int:
    """Draw 64 random bits for one identity.

    Parameters
    ----------
    seed : the run's seed
    stream : purpose, a `Stream`
    flow : identity of the flow, 64 bits
    packet : identity within the flow: sequence number, transmission number and kind packed into 56 bits
    place : port or node at which the draw happens
    """
    return mix(flow, packet | (stream << 56), (seed << 32) + place)


def draws(seed: int, stream: int, flows: NDArray[np.integer], packet: int, place: int) -> NDArray[np.uint64]:
    """`draw` for many flows at once, with the same bits.

    Parameters
    ----------
    flows : any shape, identities of the flows
    seed, stream, packet, place : as `draw`

    Examples
    --------
    >>> draws(1, Stream.PLACEMENT, np.array([5]), 0, 0).tolist() == [draw(1, Stream.PLACEMENT, 5, 0, 0)]
    True
    """
    rest = ((packet | (stream << 56)) * _K2 + ((seed << 32) + place) * _K3) & _MASK
    x = flows.astype(np.uint64) * np.uint64(_K1) + np.uint64(rest)  # wraps, as the masks of `mix` do
    x ^= x >> np.uint64(30)
    x *= np.uint64(_K2)
    x ^= x >> np.uint64(27)
    x *= np.uint64(_K3)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


def uniform(bits: int) -> float:
    """Map 64 random bits to a float in [0, 1).

    The native engine does exactly the same.
    """
    return (bits >> 11) * (1.0 / 9007199254740992.0)


def pick(bits: int, count: int) -> int:
    """Map 64 random bits to an integer in [0, count), ``count`` below 2**32."""
    return ((bits >> 32) * count) >> 32


def uniforms(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """`uniform` for many draws at once, with the same bits."""
    return (bits >> np.uint64(11)).astype(np.float64) * (1.0 / 9007199254740992.0)


def picks(bits: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """`pick` for many draws at once.

    Examples
    --------
    >>> picks(draws(1, Stream.TRAFFIC, np.array([5]), 0, 0), 7).tolist() == [pick(draw(1, Stream.TRAFFIC, 5, 0, 0), 7)]
    True
    """
    return ((bits >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)).astype(np.int64)
