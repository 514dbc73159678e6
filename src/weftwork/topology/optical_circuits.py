"""Circuits of a slice through optical switches, and other circuits between the same cubes.

Optical switch ``16 d + 4 v + u`` takes dimension d at face position (u, v): both the link in + direction and the link
in - direction of every cube, so two ports for each cube. A twist shifts by whole cubes, and needs no other cables.
Source: Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2.2: 48 optical switches of 128 used ports for 64 cubes.
The rule of the ports follows from the counts; Palomar has 136 ports, 8 of them spare.
Leaves out: optics and losses of light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_direct import DirectNetwork, OpticalSwitches
from weftwork.topology.assemble import default_link_names
from weftwork.topology.direct_fabric import SwitchLinks
from weftwork.topology.torus_lattice import Lattice
from weftwork.topology.tpu_slices import CUBE_SIDE

__all__ = [
    "OPTICAL_SWITCHES",
    "PALOMAR_PORTS",
    "cube_places",
    "first_wiring",
    "optical_switches",
    "through_optical",
    "with_wirings",
]

FACE: Final = CUBE_SIDE**2  # links of a face of a cube
OPTICAL_SWITCHES: Final = 3 * FACE
PALOMAR_PORTS: Final = 136  # Jouppi et al., ISCA 2023, section 2.2


def cube_places(lattice: Lattice) -> NDArray[np.int64]:
    """Place of each chip's cube in a slice, shape (switches,): along x first, then along y, then along z."""
    at = lattice.coordinates() // CUBE_SIDE
    sides = np.maximum(1, np.array(lattice.sides) // CUBE_SIDE)
    found: NDArray[np.int64] = at @ np.cumprod([1, *sides[:-1]])
    return found


def through_optical(lattice: Lattice, links: SwitchLinks) -> NDArray[np.int32]:
    """Optical switch of each link of a slice, -1 for a link inside a cube.

    Parameters
    ----------
    lattice : chips of the slice
    links : of the lattice; each leads from a chip in + direction of its dimension
    """
    at = lattice.coordinates()[links.a] % CUBE_SIDE
    dimension = links.dimension.astype(np.int64)
    row = np.arange(len(dimension))
    u = at[row, np.where(dimension == 0, 1, 0)]  # the other two dimensions, in order
    v = at[row, np.where(dimension == 2, 1, 2)]
    leaves_cube = at[row, dimension] == CUBE_SIDE - 1
    return np.where(leaves_cube, FACE * dimension + CUBE_SIDE * v + u, -1).astype(np.int32)


def optical_switches(link_switch: NDArray[np.int32], ports: int) -> OpticalSwitches:
    """The 48 optical switches of a pod.

    Parameters
    ----------
    link_switch : shape (links,), optical switch of each link, -1 for none
    ports : of each optical switch
    """
    names = tuple(f"ocs{number}" for number in range(OPTICAL_SWITCHES))
    return OpticalSwitches(names=names, model="palomar", ports=ports, link_switch=link_switch)


def with_wirings(fabric: Fabric, wirings: Sequence[Lattice]) -> tuple[Fabric, list[NDArray[np.bool_]]]:
    """Add the circuits of later wirings of a slice.

    A circuit that closes a ring in one wiring and does not in another counts as two links, since its virtual channels
    differ. Coordinates stay those of the first wiring.

    Parameters
    ----------
    fabric : a slice behind optical switches
    wirings : slices of as many cubes, in the order of time

    Returns
    -------
    the fabric with links that have no circuit at the start, behind all others; and for the first wiring and each later
    one, which links it has, shape (links,)
    """
    direct, optical = fabric.direct, None if fabric.direct is None else fabric.direct.optical
    if direct is None or optical is None:
        raise ValueError("a fabric without optical switches has no circuits")
    hosts = len(fabric.hosts)
    links, through = fabric.links, optical.link_switch
    own = np.flatnonzero(through >= 0)
    known: dict[tuple[int, int, int, bool], int] = {}
    by_fibre: dict[tuple[int, int], int] = {}  # by the chip at the + end and the dimension
    for link in own.tolist():
        a, b, dimension = int(links["a"][link]), int(links["b"][link]), int(direct.link_dimension[link])
        known[a, b, dimension, bool(direct.link_wraps[link])] = link
        by_fibre[a, dimension] = link
    count = len(links)
    copied: list[int] = []  # links whose rate and delay a new circuit has
    rows: list[tuple[int, int, int, bool, int]] = []
    lit = [np.arange(count)]
    copper = np.flatnonzero(through < 0)
    for lattice in wirings:
        made = lattice.switch_links()
        of = through_optical(lattice, made)
        number = hosts + _first_numbers(direct, lattice)
        wraps = np.zeros(len(of), np.bool_) if made.wraps is None else made.wraps
        here = []
        for place in np.flatnonzero(of >= 0).tolist():
            a, b, dimension = int(number[made.a[place]]), int(number[made.b[place]]), int(made.dimension[place])
            key = (a, b, dimension, bool(wraps[place]))
            if key not in known:
                known[key] = count + len(rows)
                copied.append(by_fibre[a, dimension])
                rows.append((*key, int(of[place])))
            here.append(known[key])
        lit.append(np.concatenate([copper, np.array(here, np.int64)]))
    masks = [np.isin(np.arange(count + len(rows)), numbers) for numbers in lit]
    if not rows:
        return fabric, masks
    added = links[copied].copy()
    first, second, dimensions, wrapping, switches = zip(*rows, strict=True)
    added["a"], added["b"] = first, second
    every = np.concatenate([links, added])
    direct = replace(
        direct,
        link_dimension=np.append(direct.link_dimension, np.array(dimensions, np.int8)),
        link_wraps=np.append(direct.link_wraps, np.array(wrapping, np.bool_)),
        optical=replace(
            optical, link_switch=np.append(through, np.array(switches, np.int32)), link_lit=masks[0].copy()
        ),
    )
    names = default_link_names(fabric.node_names, fabric.node_tier, every)
    return replace(fabric, links=every, link_names=names, direct=direct), masks


def first_wiring(fabric: Fabric) -> Fabric:
    """The fabric without links that have no circuit at the start."""
    direct, optical = fabric.direct, None if fabric.direct is None else fabric.direct.optical
    if direct is None or optical is None or optical.link_lit is None:
        return fabric
    kept = optical.link_lit
    links = fabric.links[kept]
    direct = direct.without(kept)
    direct = replace(direct, optical=replace(optical.without(kept), link_lit=None))
    names = default_link_names(fabric.node_names, fabric.node_tier, links)
    return replace(fabric, links=links, link_names=names, direct=direct)


def _first_numbers(direct: DirectNetwork, lattice: Lattice) -> NDArray[np.int64]:
    """Numbers in the first wiring of the chips of another wiring of the same cubes, shape (switches,)."""
    first = Lattice(sides=direct.sides, rings=(True,) * len(direct.sides))
    place = cube_places(lattice)
    cubes = Lattice(sides=tuple(side // CUBE_SIDE for side in direct.sides), rings=first.rings)
    return first.numbers(CUBE_SIDE * cubes.coordinates()[place] + lattice.coordinates() % CUBE_SIDE)
