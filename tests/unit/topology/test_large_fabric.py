"""A fabric of 131,072 GPUs is built, placed and routed as a small one; what is too large is refused with a reason."""

from __future__ import annotations

from functools import cache

import pytest

from weftwork.base.errors import ConfigError
from weftwork.base.random import Stream, draw
from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_names import LinkNames, NodeNames
from weftwork.topology.build import fabric_of
from weftwork.workload import placement

GPUS = 131_072


@cache
def large() -> Fabric:
    return fabric_of(topology="rail-optimized", gpus=GPUS, node="dgx-h100", switch="tomahawk-5", tiers=3)


def test_names_are_made_when_somebody_asks() -> None:
    fabric = large()
    assert isinstance(fabric.node_names, NodeNames)
    assert isinstance(fabric.link_names, LinkNames)
    assert fabric.gpus == GPUS
    assert fabric.node("host16383") == 16_383
    assert fabric.link_names[fabric.link("leaf2047-spine2047")] == "leaf2047-spine2047"


def test_a_random_placement_is_the_order_of_the_draws() -> None:
    fabric = fabric_of(topology="fat-tree", tiers=2, radix=8, node={"gpus": 4, "nic_ports": 4})
    placed = placement.random(fabric, fabric.gpus, seed=11)
    keys = [draw(11, Stream.PLACEMENT, index, 0, 0) for index in range(fabric.gpus)]
    assert placed.gpu is not None
    assert (placed.host * 4 + placed.gpu).tolist() == sorted(range(fabric.gpus), key=keys.__getitem__)


def test_more_servers_than_three_tiers_join_are_refused_with_what_would_do() -> None:
    with pytest.raises(ConfigError, match=r"256 blocks, wanted at most 128.*join 65,536 servers.*topology: rail-only"):
        fabric_of(topology="rail-optimized", gpus=2**20, node="dgx-h100", switch="tomahawk-5")
