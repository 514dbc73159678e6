"""Torus: switches on a lattice whose every dimension is closed to a ring.

With sides X, Y and Z, switch (x, y, z) is linked to its two neighbours along each dimension. A side of two switches
has two parallel links, a side of one switch none. The link from the last switch of a ring to its first is the dateline.
Source: Dally and Seitz, IEEE Transactions on Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939.
Leaves out: links of different rates by dimension, and folded cabling, which only changes lengths.
"""

from __future__ import annotations

from typing import Any, Final

from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import DesignSpace, FabricSize, Findings, Ground, Parts, Record, ServersAndSwitch, Topology
from weftwork.topology.direct_limits import lattice_limits
from weftwork.topology.torus_lattice import (
    TorusLattice,
    hosts_per_switch_row,
    lattice_fabric,
    lattice_hosts,
    lattice_size,
    near_cube,
    shape_row,
)

__all__ = ["TOPOLOGY"]

SIDES: Final = (4, 4, 4)  # chosen: the cube of a rack of TPU v4
SOURCE: Final = "Dally and Seitz, IEEE Trans. Computers C-36(5), 1987, doi:10.1109/TC.1987.1676939"


class Keys(Record):
    """The keys of a torus."""

    shape: tuple[int, ...] | None = shape_row(
        "Switches along each of one to six dimensions, such as [4, 4, 8]; each side of the torus is a ring.",
        SOURCE,
        default=None,
        absent="the three sides nearest to a cube that hold the hosts; 4 x 4 x 4 where nobody says how many there are",
    )
    hosts_per_switch: int = hosts_per_switch_row()


def _lattice(keys: Keys) -> TorusLattice:
    sides = keys.shape or SIDES
    return TorusLattice(sides=sides, rings=(True,) * len(sides))


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if keys.shape is None:
        hosts = ground.hosts
        sides = SIDES if hosts is None else near_cube(max(2, -(-hosts // keys.hosts_per_switch)))
        keys = keys.model_copy(update={"shape": sides})
    return keys, lattice_hosts(_lattice(keys), keys.hosts_per_switch, ground, found)


def _size(keys: Keys, parts: Parts) -> FabricSize:
    return lattice_size(_lattice(keys), parts, keys.hosts_per_switch)


def _build(keys: Keys, parts: Parts) -> Fabric:
    return lattice_fabric(_lattice(keys), parts, keys.hosts_per_switch, family="torus")


def _shape_for(asked: ServersAndSwitch) -> dict[str, Any] | None:
    """One server on each switch of a torus of three nearly equal sides."""
    if asked.radix is None:
        return None
    return {"shape": list(near_cube(asked.servers)), "hosts_per_switch": 1} if asked.ports + 6 <= asked.radix else None


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=lattice_limits,
    design=DesignSpace(shape=_shape_for, usual={"routing": "minimal"}, order=13),
    source=SOURCE,
)
