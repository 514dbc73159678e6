"""Dragonflies, HyperX and flattened butterflies have no circle of waiting buffers with the published virtual channels.

Sources: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19 (dragonfly); sst-elements, hyperx.cc (HyperX).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.findings import sound

from weftwork.topology.build import fabric_of
from weftwork.topology.channel_dependencies import dependency_cycle
from weftwork.topology.routing_plan import planned_routing

BY_GROUP = {"minimal": 2, "valiant": 3, "ugal": 3, "par": 4}
NETWORKS: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({"topology": "dragonfly", "radix": 7}, BY_GROUP),
    ({"topology": "dragonfly", "radix": 7, "groups": 4, "arrangement": "circulant"}, BY_GROUP),
    ({"topology": "dragonfly-plus", "radix": 6, "groups": 4}, BY_GROUP),
    ({"topology": "hyperx", "sides": [2, 3, 2]}, {"dimension-order": 1, "minimal": 3, "valiant": 2, "ugal": 2}),
    ({"topology": "flattened-butterfly", "ary": 3}, {"dimension-order": 1, "minimal": 2, "valiant": 2, "ugal": 2}),
]


@pytest.mark.parametrize(("keys", "name", "channels"), [(k, name, n) for k, of in NETWORKS for name, n in of.items()])
def test_routing_has_no_circle_with_the_published_channels(keys: dict[str, Any], name: str, channels: int) -> None:
    fabric = fabric_of(link_rate_bps=100_000_000_000, **keys)
    plan = sound(planned_routing, fabric, name)
    assert plan.channels == channels
    up = np.ones(len(fabric.links), np.bool_)
    assert not dependency_cycle(fabric, up, plan.routing, plan.channels, rethinks=name == "par")


@pytest.mark.parametrize(
    ("keys", "has_circle"),
    [
        (NETWORKS[0][0], True),
        (NETWORKS[2][0], False),
        (NETWORKS[3][0], True),
        ({"topology": "hyperx", "sides": [5]}, False),
    ],
)
def test_shortest_paths_on_one_channel(keys: dict[str, Any], *, has_circle: bool) -> None:
    """A full mesh has paths of one link, and those of a dragonfly+ go up, over and down."""
    fabric = fabric_of(link_rate_bps=100_000_000_000, **keys)
    plan = sound(planned_routing, fabric, "shortest")
    assert plan.channels == 1
    found = dependency_cycle(fabric, np.ones(len(fabric.links), np.bool_), plan.routing, 1)
    assert bool(found) == has_circle
