"""Virtual channels, routes and refusals of each name of routing, by topology."""

from __future__ import annotations

import pytest
from helpers.findings import judged, sound
from helpers.routing_plan import NETWORKS, network

from weftwork.topology.routing_plan import has_groups, planned_routing

CHANNELS: dict[str, dict[str, int]] = {
    "leaf-spine": {"minimal": 1, "k-shortest": 2},  # a valley over the second spine
    "dragonfly": {"minimal": 2, "valiant": 3, "ugal": 3, "par": 4},
    "torus": {"minimal": 3, "dimension-order": 2, "valiant": 4, "ugal": 4},  # minimal: the diameter, 2 + 1
    "mesh": {"minimal": 5, "dimension-order": 1, "valiant": 2, "ugal": 2},
    "twisted-torus": {"dimension-order": 2, "valiant": 4},
    "hyperx": {"minimal": 2, "dimension-order": 1, "valiant": 2, "ugal": 2},
    "slim-fly": {"minimal": 2, "valiant": 4, "ugal": 4},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_channels_by_topology(name: str) -> None:
    fabric = network(name)
    found = {routing: sound(planned_routing, fabric, routing) for routing in CHANNELS[name]}
    assert {routing: plan.channels for routing, plan in found.items()} == CHANNELS[name]
    for routing in ("shortest", "up-down"):
        assert judged(planned_routing, fabric, routing)[0].channels == 1


def test_schemes_follow_the_network() -> None:
    scheme = {
        (name, routing): sound(planned_routing, network(name), routing).routing.scheme
        for name, routing in (
            ("dragonfly", "minimal"), ("torus", "dimension-order"), ("mesh", "valiant"), ("slim-fly", "minimal"),
            ("leaf-spine", "minimal"),
        )
    }  # fmt: skip
    assert list(scheme.values()) == ["global-hops", "dateline", "turns", "hops", "one"]


def test_detours_go_by_groups_where_there_are_groups() -> None:
    of_dragonfly = sound(planned_routing, network("dragonfly"), "valiant").routing
    of_torus = sound(planned_routing, network("torus"), "valiant").routing
    assert (of_dragonfly.detour, of_dragonfly.detour_by_group, of_dragonfly.fewest_global_hops) == (
        "always",
        True,
        True,
    )
    assert (of_torus.detour, of_torus.detour_by_group, of_torus.dimension_order) == ("always", False, True)
    assert sound(planned_routing, network("dragonfly"), "minimal").routing.detour == "never"
    assert sound(planned_routing, network("torus"), "ugal").routing.detour == "adaptive"


def test_only_networks_of_groups_have_groups() -> None:
    assert {name for name in NETWORKS if has_groups(network(name))} == {"dragonfly"}


@pytest.mark.parametrize(
    ("name", "routing", "text", "fix"),
    [
        ("dragonfly", "dimension-order", "has no dimensions to go through", "minimal"),
        ("slim-fly", "dimension-order", "has no dimensions to go through", "minimal"),
        ("leaf-spine", "dimension-order", "has no dimensions to go through", "minimal"),
        ("torus", "par", "has no groups", "ugal"),
        ("leaf-spine", "par", "has no groups", "ugal"),
    ],
)
def test_a_network_that_cannot_have_a_routing_is_refused(name: str, routing: str, text: str, fix: str) -> None:
    plan, mistakes = judged(planned_routing, network(name), routing)
    assert [(one.path, one.fix) for one in mistakes] == [("fabric.routing", fix)]
    assert text in mistakes[0].text
    assert (plan.channels, plan.routing.scheme) == (1, "one")
