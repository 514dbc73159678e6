"""Circuits of a slice through optical switches, and other circuits between the same cubes.

Optical switch ``16 d + 4 v + u`` takes dimension d at face position (u, v): both the link in + direction and the link
in - direction of every cube, so two ports for each cube. A twist shifts by whole cubes, and needs no other cables.
Source: Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2.2: 48 optical switches of 128 used ports for 64 cubes.
The rule of the ports follows from the counts; Palomar has 136 ports, 8 of them spare.
Leaves out: optics and losses of light.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric_direct import OpticalSwitches
from weftwork.topology.direct_fabric import SwitchLinks
from weftwork.topology.torus_lattice import Lattice
from weftwork.topology.tpu_slices import CUBE_SIDE

__all__ = ["OPTICAL_SWITCHES", "PALOMAR_PORTS", "cube_places", "optical_switches", "through_optical"]

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
