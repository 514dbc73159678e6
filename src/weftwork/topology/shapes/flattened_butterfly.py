"""Flattened butterfly: the routers of each row of a k-ary n-fly as one router.

A router has k ports to hosts. The k^(n-1) routers are a lattice of n - 1 dimensions with sides of k, each line
completely linked, so that it is a HyperX with as many hosts on a router as routers in a line.
Source: Kim, Dally and Abts, Flattened Butterfly, ISCA 2007.
Leaves out: sides that differ, and several links between two routers (`hyperx` has both).
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Parts, Record, Topology, Whole, row
from weftwork.topology.direct_fabric import direct_size, resolved_shape, sound_shape
from weftwork.topology.direct_limits import hyperx_limits
from weftwork.topology.lattice import RouterLattice, lattice_fabric

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Kim, Dally and Abts, Flattened Butterfly, ISCA 2007"


class Keys(Record):
    """The keys of a flattened butterfly."""

    ary: int | None = row(
        "ary",
        Whole(low=2, high=1_024, unit="routers"),
        absent="the smallest that has places for the hosts; without hosts, the largest that the ports allow",
        text="Routers of a line, and ports of a router that lead to hosts (k of the k-ary n-fly).",
        source=SOURCE,
    )
    stages: int = row(
        "stages",
        Whole(low=2, high=16, unit="stages"),
        default=3,
        text="Stages of the butterfly that is flattened (n); the network has one dimension fewer.",
        source="chosen: two dimensions, as the larger examples of the paper",
    )


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> RouterLattice | None:
    """Counts of the shape, given or derived; see `weftwork.topology.shapes.hyperx`."""
    k = keys.ary
    if k is None and endpoints is not None:
        k = 2
        while k**keys.stages < endpoints:
            k += 1
    elif k is None and ports:
        k = (ports - 1) // keys.stages + 1
        if k == 1:
            text = (
                f"found {plural(ports, 'port')}, wanted at least {keys.stages + 1} for {plural(keys.stages, 'stage')}"
            )
            found.wrong(blamed, text)
            return None
    if k is None:
        found.wrong("ary", "missing: give ary, or radix, or hosts")
        return None
    sides = (k,) * (keys.stages - 1)
    shape = RouterLattice(sides=sides, cables=(1,) * len(sides), hosts_per_router=k)
    shape.judge_ports(ports, found, blamed)
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="ary",
        is_given=keys.ary is not None or ground.hosts is not None,
        filled=lambda shape: {"ary": shape.hosts_per_router},
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    return direct_size(parts, switches=shape.routers, per_switch=shape.hosts_per_router, links=shape.links)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    name = f"flattened butterfly, {shape.hosts_per_router}-ary {keys.stages}-fly"
    return lattice_fabric(shape, parts, name=name, family="flattened-butterfly")


TOPOLOGY: Final = Topology(keys=Keys, resolve=_resolve, build=_build, size=_size, limits=hyperx_limits, source=SOURCE)
