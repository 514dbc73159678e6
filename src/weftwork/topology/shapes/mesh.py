"""Mesh: switches on a lattice, linked to their neighbours, without rings.

With sides X, Y and Z, switch (x, y, z) is linked to its neighbours along each dimension; switches at a face have one
link fewer. It is a torus without the links that close its rings.
Source: Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939.
Leaves out: links of different rates by dimension.
"""

from __future__ import annotations

from typing import Final

from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Parts, Record, Topology
from weftwork.topology.direct_limits import lattice_limits
from weftwork.topology.torus_lattice import (
    TorusLattice,
    hosts_per_switch_row,
    lattice_fabric,
    lattice_hosts,
    lattice_size,
    shape_row,
)

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Dally and Seitz, IEEE Trans. Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939"


class Keys(Record):
    """The keys of a mesh."""

    shape: tuple[int, ...] = shape_row(
        "Switches along each of one to six dimensions, such as [4, 4, 8]; no side of the mesh is a ring.", SOURCE
    )
    hosts_per_switch: int = hosts_per_switch_row()


def _lattice(keys: Keys) -> TorusLattice:
    return TorusLattice(sides=keys.shape, rings=(False,) * len(keys.shape))


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return keys, lattice_hosts(_lattice(keys), keys.hosts_per_switch, ground, found)


def _size(keys: Keys, parts: Parts) -> FabricSize:
    return lattice_size(_lattice(keys), parts, keys.hosts_per_switch)


def _build(keys: Keys, parts: Parts) -> Fabric:
    return lattice_fabric(_lattice(keys), parts, keys.hosts_per_switch, family="mesh")


TOPOLOGY: Final = Topology(keys=Keys, resolve=_resolve, build=_build, size=_size, limits=lattice_limits, source=SOURCE)
