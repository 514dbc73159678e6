"""Randomness that belongs to an identity: a draw is a hash of who draws and why, never of order.

One more flow or probe changes no other flow's luck. The native engine computes the same bits, in
``native/base/random.hpp``.
Source: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195) over a linear
combination of three words with odd constants.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Stream", "draw", "mix", "pick", "uniform"]

_MASK = (1 << 64) - 1
_K1 = 0x9E3779B97F4A7C15
_K2 = 0xBF58476D1CE4E5B9
_K3 = 0x94D049BB133111EB


class Stream(IntEnum):
    """What a draw is for; two purposes never share a draw."""

    TRAFFIC = 1
    START = 2
    LINK_LOSS = 3
    LINK_CORRUPTION = 4
    ECN_MARK = 5
    PORT_CHOICE = 6
    PATH_CHOICE = 7
    SIZE = 8
    ARRIVAL = 9
    PLACEMENT = 32  # from 32 on no engine draws
    FAILURE = 33


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
    """64 random bits of one identity.

    Parameters
    ----------
    seed : the run's seed
    stream : purpose, a `Stream`
    flow : identity of the flow, 64 bits
    packet : identity within the flow: sequence number, transmission number and kind packed into 56 bits
    place : port or node at which the draw happens
    """
    return mix(flow, packet | (stream << 56), (seed << 32) + place)


def uniform(bits: int) -> float:
    """Map 64 random bits to a float in [0, 1), exactly as the native engine does."""
    return (bits >> 11) * (1.0 / 9007199254740992.0)


def pick(bits: int, count: int) -> int:
    """Map 64 random bits to an integer in [0, count), ``count`` below 2**32."""
    return ((bits >> 32) * count) >> 32
