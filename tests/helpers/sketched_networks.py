"""Small direct networks with dimensions, coordinates and optical switches, made by `direct_fabric`.

Leaves out: what the generators of `weftwork.topology.shapes` check.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_direct import OpticalSwitches
from weftwork.spec.plug_in import Parts
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric

__all__ = ["PARTS", "cubes", "random_graph", "torus"]

PARTS = Parts(
    hosts=None, ports=0, server=Server(), rails=0, switch=Switch(), nic=Nic(), host_rate_bps=400_000_000_000,
    fabric_rate_bps=400_000_000_000, host_delay_ps=10_000, fabric_delay_ps=25_000, loss=0.0, corruption=0.0, caveats={},
)  # fmt: skip
WORDS = ("x", "y", "z")


def torus(*sides: int, per_switch: int = 1, parts: Parts = PARTS) -> Fabric:
    """A torus of one to three dimensions, each side 3 or more."""
    a, b, dimension, wraps, at = _rings(sides)
    words = WORDS[: len(sides)]
    return direct_fabric(
        parts, name=f"torus {'x'.join(map(str, sides))}", family="torus", dimensions=words,
        switches=[("switch", prod(sides))], per_switch=per_switch,
        links=SwitchLinks(a=a, b=b, dimension=dimension, wraps=wraps), axes=words, sides=sides, coordinates=at,
        is_ordered=True,
    )  # fmt: skip


def cubes(count: int, *, side: int = 2, parts: Parts = PARTS) -> Fabric:
    """A torus of ``count`` cubes along z, whose links between cubes go through one optical switch per face position."""
    sides = (side, side, side * count)
    a, b, dimension, wraps, at = _rings(sides)
    cube = at[:, 2] // side
    crosses = (cube[a] != cube[b]) | wraps
    u, v = (at[a, (dimension + step) % 3] % side for step in (1, 2))
    position = u * side + v
    through = np.where(crosses, dimension * side * side + position, -1).astype(np.int32)
    optical = OpticalSwitches(
        names=tuple(f"ocs{index}" for index in range(3 * side * side)), model="palomar", ports=136, link_switch=through
    )
    return direct_fabric(
        parts, name=f"pod of {count} cubes", family="tpu-pod", dimensions=WORDS, switches=[("switch", prod(sides))],
        per_switch=1, links=SwitchLinks(a=a, b=b, dimension=dimension, wraps=wraps), axes=WORDS, sides=sides,
        coordinates=at, is_ordered=True, group=cube, optical=optical,
    )  # fmt: skip


def random_graph(switches: int, degree: int, *, seed: int = 1, per_switch: int = 2, parts: Parts = PARTS) -> Fabric:
    """A ring and random matchings: joined, of ``degree`` links at most on a switch."""
    draw = np.random.default_rng(seed)
    ring = np.arange(switches)
    pairs = {tuple(sorted((int(one), int(other)))) for one, other in zip(ring, np.roll(ring, -1), strict=True)}
    for _ in range(degree - 2):
        order = draw.permutation(switches)
        pairs |= {tuple(sorted((int(one), int(other)))) for one, other in order[: switches // 2 * 2].reshape(-1, 2)}
    a, b = np.array(sorted(pairs)).T
    return direct_fabric(
        replace(parts), name=f"random graph of {switches} switches", family="jellyfish", dimensions=("any",),
        switches=[("switch", switches)], per_switch=per_switch,
        links=SwitchLinks(a=a, b=b, dimension=np.zeros(len(a), np.int8)),
    )  # fmt: skip


def _rings(sides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends, dimension and wrap of every link, and coordinates; x runs fastest."""
    number = np.arange(prod(sides))
    at = np.stack(np.unravel_index(number, sides[::-1])[::-1], axis=1)
    ends, dimensions, wraps = [], [], []
    for axis, side in enumerate(sides):
        stride = prod(sides[:axis])
        step = np.where(at[:, axis] == side - 1, 1 - side, 1) * stride
        ends.append(np.stack([number, number + step]))
        dimensions.append(np.full(len(number), axis, np.int8))
        wraps.append(at[:, axis] == side - 1)
    a, b = np.concatenate(ends, axis=1)
    return a, b, np.concatenate(dimensions), np.concatenate(wraps), at
