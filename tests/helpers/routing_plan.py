"""Small networks of every kind that plans of routing are made for."""

from __future__ import annotations

from typing import Any

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of

NETWORKS: dict[str, dict[str, Any]] = {
    "leaf-spine": {"leaves": 3, "spines": 2, "hosts_per_leaf": 1},
    "dragonfly": {"radix": 7, "groups": 4},
    "torus": {"shape": (4, 3)},
    "mesh": {"shape": (4, 3)},
    "twisted-torus": {"shape": (2, 4)},
    "hyperx": {"sides": (3, 3), "hosts_per_router": 1},
    "slim-fly": {"q": 5},
}


def network(name: str) -> Fabric:
    return fabric_of(topology=name, link_rate_bps=100_000_000_000, **NETWORKS[name])
