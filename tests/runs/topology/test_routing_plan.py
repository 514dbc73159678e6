"""Virtual channels, routes and refusals of each name of routing, by topology."""

from __future__ import annotations

from helpers.findings import judged, sound
from helpers.routing_plan import NETWORKS, network

from weftwork.spec.routings import ROUTINGS
from weftwork.topology.routing_plan import planned_routing


def test_k_shortest_has_a_channel_for_each_hop_of_its_longest_path() -> None:
    fabric = network("slim-fly")
    one, many = (sound(planned_routing, fabric, "k-shortest", paths=paths) for paths in (1, 8))
    assert (one.routing.paths, many.routing.paths) == (1, 8)
    assert one.channels == 2  # the diameter
    assert many.channels > 2
    assert sound(planned_routing, fabric, "k-shortest") == many


def test_every_name_has_a_plan_or_a_refusal_on_every_network() -> None:
    for name in NETWORKS:
        for routing in ROUTINGS:
            plan, mistakes = judged(planned_routing, network(name), routing)
            assert plan.channels >= 1
            assert (plan.channels == 1) or not mistakes
