"""Virtual channels, routes and refusals of each name of routing, by topology."""

from __future__ import annotations

from typing import Any

from weftwork.policies.routings import ROUTINGS
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.routing_plan import planned_routing

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


def test_k_shortest_has_a_channel_for_each_hop_of_its_longest_path() -> None:
    fabric = network("slim-fly")
    one, many = (planned_routing(fabric, "k-shortest", paths=paths)[0] for paths in (1, 8))
    assert (one.routing.paths, many.routing.paths) == (1, 8)
    assert one.channels == 2  # the diameter
    assert many.channels > 2
    assert planned_routing(fabric, "k-shortest")[0] == many


def test_every_name_has_a_plan_or_a_refusal_on_every_network() -> None:
    for name in NETWORKS:
        for routing in ROUTINGS:
            plan, mistakes = planned_routing(network(name), routing)
            assert plan.channels >= 1
            assert (plan.channels == 1) or not mistakes
