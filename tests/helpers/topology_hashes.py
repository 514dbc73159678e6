"""Trees whose switches hash by tier, and the seeds and offsets of their hashes."""

from __future__ import annotations

from weftwork.spec.device import HashFunction
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.hashes import hashed_by_tier


def tree(**changes: object) -> Fabric:
    return fabric_of(topology="fat-tree", tiers=3, radix=4, **changes)


def hashes(fabric: Fabric) -> dict[str, HashFunction]:
    switches, node_device = hashed_by_tier(fabric)
    return {
        name: switches[node_device[node]].hash
        for node, name in enumerate(fabric.node_names)
        if not name.startswith("host")
    }


def seeds_and_offsets(fabric: Fabric) -> dict[str, tuple[int | None, int | None]]:
    return {name: (one.seed, one.offset) for name, one in hashes(fabric).items()}
