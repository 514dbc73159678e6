"""Dragonflies by their keys, and their counts of hosts, routers and links."""

from __future__ import annotations

from typing import Any

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of

RATE = {"link_rate_bps": 200_000_000_000}


def dragonfly(**keys: Any) -> Fabric:
    return fabric_of(topology="dragonfly", **RATE, **keys)


def counts(fabric: Fabric) -> tuple[int, int, int, int]:
    """Hosts, routers, local and global links."""
    assert fabric.direct is not None
    assert fabric.direct.dimensions == ("local", "global")
    of = fabric.direct.link_dimension
    hosts = len(fabric.hosts)
    return hosts, len(fabric.node_names) - hosts, int((of == 0).sum()), int((of == 1).sum())
