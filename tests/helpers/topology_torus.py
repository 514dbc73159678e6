"""Tori and meshes by their sides, their switches, and the order of their dimensions."""

from __future__ import annotations

from typing import Any

from helpers.lattice_paths import channels, distances, lowest_dimensions

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of


def lattice(topology: str, shape: tuple[int, ...], **keys: Any) -> Fabric:
    return fabric_of(topology=topology, shape=shape, **keys)


def switches_of(fabric: Fabric) -> int:
    return len(fabric.node_names) - len(fabric.hosts)


def check_order(fabric: Fabric) -> None:
    """Going on by the lowest dimension of all shortest paths never comes back to a lower one."""
    ways = channels(fabric)
    for hops in distances(ways, switches_of(fabric)):
        _, never_falls = lowest_dimensions(ways, hops)
        assert never_falls.all()
