"""HyperX: a lattice of routers, each line of every dimension completely linked.

A router of an L-dimensional lattice has K_i links to each of the S_i - 1 other routers of its line in dimension i, and
T ports to hosts. One dimension is a full mesh, sides of 2 are a hypercube, and T = S is a flattened butterfly.
Source: Ahn, Binkert, Davis, McLaren and Schreiber, HyperX, SC 2009.
Leaves out: lines that lack a router, and the paper's search for the cheapest shape with unequal sides.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import (
    DesignSpace,
    FabricSize,
    Findings,
    Ground,
    Listing,
    Parts,
    Record,
    ServersAndSwitch,
    Topology,
    Whole,
    row,
)
from weftwork.topology.direct_fabric import direct_size, resolved_shape, sound_shape
from weftwork.topology.direct_limits import hyperx_limits
from weftwork.topology.lattice import RouterLattice, lattice_fabric

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Ahn, Binkert, Davis, McLaren and Schreiber, HyperX, SC 2009"
MOST_DIMENSIONS: Final = 16  # chosen: a hypercube of 65,536 routers
MOST_ROUTERS: Final = 2**24  # chosen: more than any fabric that fits into memory


class Keys(Record):
    """The keys of a HyperX."""

    sides: tuple[int, ...] | None = row(
        "sides",
        Listing(item=Whole(low=2, high=4_096, unit="routers")),
        absent="the fewest routers for the hosts: equal sides, none below hosts_per_router",
        text="Routers of a line, by dimension (S), such as [8, 8].",
        source=SOURCE,
    )
    links_per_dimension: tuple[int, ...] | None = row(
        "links_per_dimension",
        Listing(item=Whole(low=1, high=1_024, unit="links")),
        absent="one link in every dimension",
        text="Parallel links between two routers of a line, by dimension (K).",
        source=SOURCE,
    )
    hosts_per_router: int | None = row(
        "hosts_per_router",
        Whole(low=1, high=1_024, unit="ports"),
        absent="with sides, as many as the ports and a relative bisection of 1/2 allow; else as the hosts need",
        text="Ports of a router that lead to hosts (T); a server with four NIC ports takes four of them.",
        source=SOURCE,
    )


def _fewest_routers(ports: int, endpoints: int, per_router: int | None) -> RouterLattice | None:
    """Regular lattice of the fewest routers whose relative bisection is 1/2 or more; None where the ports allow none.

    Parameters
    ----------
    ports : of a switch
    endpoints : NIC ports of the hosts
    per_router : places for NIC ports on each router; None: as many as follow
    """
    best: RouterLattice | None = None
    for dimensions in range(1, MOST_DIMENSIONS + 1):
        for side in range(2, (ports - 1) // dimensions + 2):
            places = -(-endpoints // side**dimensions) if per_router is None else per_router
            is_enough = places * side**dimensions >= endpoints and places <= min(side, ports - dimensions * (side - 1))
            if is_enough:
                found = RouterLattice(sides=(side,) * dimensions, cables=(1,) * dimensions, hosts_per_router=places)
                if best is None or found.routers < best.routers:
                    best = found
                break
    return best


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> RouterLattice | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    if keys.sides is None:
        if not ports or endpoints is None:
            found.wrong("sides", "missing: give sides, such as [8, 8], or hosts and radix")
            return None
        if keys.links_per_dimension is not None:
            found.wrong("links_per_dimension", "found without sides; give them together")
            return None
        shape = _fewest_routers(ports, endpoints, keys.hosts_per_router)
        if shape is None:
            text = (
                f"found {plural(ports, 'port')}, too few for {plural(endpoints, 'NIC port')} at a relative bisection "
            )
            found.wrong(blamed, text + "of 1/2; give sides for a lower relative bisection, or larger switches")
        return shape
    if len(keys.sides) > MOST_DIMENSIONS:
        found.wrong("sides", f"found {plural(len(keys.sides), 'dimension')}, wanted at most {MOST_DIMENSIONS}")
        return None
    cables = keys.links_per_dimension or (1,) * len(keys.sides)
    if len(cables) != len(keys.sides):
        text = f"found {plural(len(cables), 'number')}, wanted {len(keys.sides)}, one for each side"
        found.wrong("links_per_dimension", text)
        return None
    bare = RouterLattice(sides=keys.sides, cables=cables, hosts_per_router=0)
    if bare.routers > MOST_ROUTERS:
        found.wrong("sides", f"makes {plural(bare.routers, 'router')}, wanted at most {MOST_ROUTERS:,}")
        return None
    places = keys.hosts_per_router
    if places is None:
        places = min(cable * side for cable, side in zip(cables, keys.sides, strict=True))
        places = max(1, min(places, ports - bare.degree) if ports else places)
    shape = RouterLattice(sides=keys.sides, cables=cables, hosts_per_router=places)
    shape.judge_ports(ports, found, blamed)
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="sides",
        is_given=keys.sides is not None and keys.hosts_per_router is not None,
        filled=lambda shape: {
            "sides": shape.sides, "links_per_dimension": shape.cables, "hosts_per_router": shape.hosts_per_router,
        },
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    return direct_size(parts, switches=shape.routers, per_switch=shape.hosts_per_router, links=shape.links)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    name = f"hyperx, {' x '.join(str(side) for side in shape.sides)} routers"
    return lattice_fabric(shape, parts, name=name, family="hyperx")


def _shape_for(asked: ServersAndSwitch) -> dict[str, int] | None:
    """Choose no key: the fewest routers follow from the servers. One switch is no network."""
    return {} if asked.radix is not None and asked.servers * asked.ports > asked.radix else None


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=hyperx_limits,
    design=DesignSpace(shape=_shape_for, usual={"routing": "minimal"}, order=11),
    source=SOURCE,
)
