"""Switches on a lattice: each is linked to its neighbours along every dimension.

A ring link closes a dimension from its last switch to its first; with a twist it also shifts along other dimensions.
Switch (x, y, z) has the number ``x + X (y + Y z)``, so that consecutive switches are neighbours along x.
Source: Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939 (k-ary n-cubes);
Cámara et al., IEEE TPDS 21(12), 2010, doi:10.1109/TPDS.2010.30 (twisted tori).
Leaves out: hosts, devices and rates (`weftwork.topology.direct_fabric`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Listing, Parts, Whole, row
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric, direct_size, hosts_that_fit

__all__ = [
    "AXES",
    "LONGEST_SIDE",
    "TorusLattice",
    "hosts_per_switch_row",
    "lattice_fabric",
    "lattice_hosts",
    "lattice_size",
    "near_cube",
    "shape_row",
    "shape_text",
    "twist_mistake",
    "twisted",
]

AXES: Final = ("x", "y", "z", "w", "v", "u")
LONGEST_SIDE: Final = 65_536  # chosen: a ring longer than this has more hops than a packet may take


@dataclass(frozen=True, kw_only=True, slots=True)
class TorusLattice:
    """Sides of a lattice, and its ring links.

    Parameters
    ----------
    sides : switches along each dimension
    rings : by dimension, whether a link closes it
    shifts : by dimension, how far its ring link shifts along every dimension; empty: no ring link shifts
    """

    sides: tuple[int, ...]
    rings: tuple[bool, ...]
    shifts: tuple[tuple[int, ...], ...] = ()

    @property
    def switches(self) -> int:
        """Number of switches."""
        return math.prod(self.sides)

    @property
    def axes(self) -> tuple[str, ...]:
        """Words for the dimensions."""
        return AXES[: len(self.sides)]

    @property
    def links(self) -> int:
        """Number of links; a side of one switch has none, and a ring of two switches has two."""
        return sum(
            self.switches if ring else self.switches // side * (side - 1)
            for side, ring in zip(self.sides, self.rings, strict=True)
            if side > 1
        )

    def coordinates(self) -> NDArray[np.int64]:
        """Coordinates of all switches, shape (switches, dimensions)."""
        strides = np.cumprod((1, *self.sides[:-1]))
        found: NDArray[np.int64] = np.arange(self.switches)[:, None] // strides % np.array(self.sides)
        return found

    def numbers(self, coordinates: NDArray[np.integer]) -> NDArray[np.int64]:
        """Numbers of switches at coordinates, shape (switches, dimensions); they count modulo the sides."""
        found: NDArray[np.int64] = coordinates % np.array(self.sides) @ np.cumprod((1, *self.sides[:-1]))
        return found

    def switch_links(self) -> SwitchLinks:
        """Links, dimension by dimension; a link leads from a switch to the next one along its dimension."""
        at = self.coordinates()
        number = np.arange(self.switches)
        starts, ends, dimensions, wraps = [], [], [], []
        for dimension, (side, ring) in enumerate(zip(self.sides, self.rings, strict=True)):
            is_last = at[:, dimension] == side - 1
            kept = np.full(self.switches, ring) | ~is_last if side > 1 else np.zeros(self.switches, np.bool_)
            there = at.copy()
            there[:, dimension] += 1
            if self.shifts:
                there[is_last] += np.array(self.shifts[dimension])
            starts.append(number[kept])
            ends.append(self.numbers(there)[kept])
            dimensions.append(np.full(int(kept.sum()), dimension, np.int8))
            wraps.append(is_last[kept])
        return SwitchLinks(
            a=np.concatenate(starts), b=np.concatenate(ends), dimension=np.concatenate(dimensions),
            wraps=np.concatenate(wraps),
        )  # fmt: skip


def shape_text(sides: Sequence[int]) -> str:
    """Sides in words.

    Examples
    --------
    >>> shape_text((4, 4, 8))
    '4x4x8'
    """
    return "x".join(str(side) for side in sides)


def shape_row(text: str, source: str, default: tuple[int, ...] | None = (4, 4, 4), absent: str | None = None) -> Any:  # noqa: ANN401 - the field of a row
    """The row ``shape`` of a lattice."""
    sides = Listing(item=Whole(low=1, high=LONGEST_SIDE, unit="switches"))
    if absent is not None:
        return row("shape", sides, absent=absent, text=text, source=source)
    return row("shape", sides, default=default, text=text, source=source)


def near_cube(servers: int) -> tuple[int, int, int]:
    """Sides of the three-dimensional torus with the fewest switches for so many servers, then the shortest sides.

    No side is longer than twice that of a cube.

    Examples
    --------
    >>> near_cube(128), near_cube(2_048), near_cube(31)
    ((4, 4, 8), (8, 16, 16), (2, 4, 4))
    """
    sides = [
        (first, second, -(-servers // (first * second)))
        for first in range(1, round(servers ** (1 / 3)) + 2)
        for second in range(first, round((servers / first) ** 0.5) + 2)
    ]
    longest = math.ceil(2 * servers ** (1 / 3))
    near = [one for one in sides if max(one) <= longest]
    one, two, three = sorted(min(near, key=lambda sides: (math.prod(sides), sum(sides))))
    return one, two, three


def hosts_per_switch_row() -> Any:  # noqa: ANN401 - the field of a row
    """The row ``hosts_per_switch`` of a lattice."""
    return row(
        "hosts_per_switch",
        Whole(low=1, high=1_024, unit="servers"),
        default=1,
        text="Servers on every switch, each with all of its NIC ports.",
        source="chosen: an accelerator with its own switch, as in a TPU",
    )


def lattice_hosts(
    lattice: TorusLattice, hosts_per_switch: int, ground: Ground, found: Findings, key: str = "shape"
) -> int | None:
    """Check a lattice against the common keys, and return its hosts.

    Parameters
    ----------
    lattice : switches and links
    hosts_per_switch : servers on each switch
    ground, found : as of the topology's ``resolve``
    key : of the topology that has the sides, to blame
    """
    if len(lattice.sides) > len(AXES):
        text = f"found {plural(len(lattice.sides), 'side')}, wanted 1 to {len(AXES)}: one for each dimension"
        found.wrong(key, text, str(list(lattice.sides[: len(AXES)])))
        return ground.hosts
    if lattice.switches < 2:
        found.wrong(key, f"found {list(lattice.sides)}: one switch has no neighbour; wanted at least two switches")
        return ground.hosts
    each = 1 if ground.server is None else ground.server.nic_ports
    needed = hosts_per_switch * each + most_links_of_a_switch(lattice)
    if ground.radix is not None and ground.radix < needed:
        text = (
            f"found {ground.radix}, but a switch needs {needed}: {plural(hosts_per_switch * each, 'port')} to hosts and"
            f" {plural(most_links_of_a_switch(lattice), 'port')} to neighbours"
        )
        found.wrong("radix", text, str(needed))
    return hosts_that_fit(lattice.switches * hosts_per_switch * each, key, ground, found)


def most_links_of_a_switch(lattice: TorusLattice) -> int:
    """Most links to neighbours of any switch."""
    return sum(
        0 if side == 1 else 2 if ring or side > 2 else 1
        for side, ring in zip(lattice.sides, lattice.rings, strict=True)
    )


def lattice_size(lattice: TorusLattice, parts: Parts, hosts_per_switch: int) -> FabricSize:
    """Size of a lattice before it is built."""
    per_switch = hosts_per_switch * parts.server.nic_ports
    return direct_size(parts, switches=lattice.switches, per_switch=per_switch, links=lattice.links)


def lattice_fabric(lattice: TorusLattice, parts: Parts, hosts_per_switch: int, *, family: str) -> Fabric:
    """Build the fabric of a lattice.

    Parameters
    ----------
    lattice : switches and links
    parts : devices, rates and delays
    hosts_per_switch : servers on each switch
    family : name of the topology

    Raises
    ------
    ConfigError : a switch with fewer ports than links, rates or delays out of range
    """
    return direct_fabric(
        parts,
        name=f"{family} {shape_text(lattice.sides)}",
        family=family,
        dimensions=lattice.axes,
        switches=[("switch", lattice.switches)],
        per_switch=hosts_per_switch * parts.server.nic_ports,
        links=lattice.switch_links(),
        axes=lattice.axes,
        sides=lattice.sides,
        coordinates=lattice.coordinates(),
        is_ordered=True,
    )


def twist_mistake(sides: Sequence[int]) -> str | None:
    """Mistake of sides that no twist fits, in words; None if a twist fits.

    A twist needs short sides K and long sides 2K, at least one of each, in two or three dimensions.
    """
    wanted = "wanted K x K x 2K, K x 2K x 2K or K x 2K, in any order"
    if not 2 <= len(sides) <= 3:
        return f"found {plural(len(sides), 'side')}, {wanted}"
    short = min(sides)
    if short < 2 or {*sides} != {short, 2 * short}:
        return f"found {shape_text(sides)}, {wanted}, so that the twist makes the long sides as short as the others"
    return None


def twisted(sides: tuple[int, ...]) -> TorusLattice:
    """A twisted torus: the ring links of short sides (K) also shift by K along every long side (2K)."""
    short = min(sides)
    shift = tuple(short if side == 2 * short else 0 for side in sides)
    straight = (0,) * len(sides)
    shifts = tuple(shift if side == short else straight for side in sides)
    return TorusLattice(sides=sides, rings=(True,) * len(sides), shifts=shifts)
