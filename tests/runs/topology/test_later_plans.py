"""Pins with several plans: queue pairs share a way only where all their paths are the same."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.errors import ConfigError
from weftwork.spec.routing import Pin, Routing
from weftwork.topology.layers import layers_of, pinned_numbers

# two hosts at each of two leaves (4, 5) below two spines (6, 7)
FABRIC = wired([(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)], hosts=4)
UP = np.ones(8, np.bool_)


def way(spine: int) -> tuple[int, ...]:
    """From the first leaf by a spine to the second one."""
    ports = FABRIC.ports
    pairs = list(zip(ports.node.tolist(), ports.node[ports.peer].tolist(), strict=True))
    return pairs.index((4, spine)), pairs.index((spine, 5))


def pin(host: int, *spines: int) -> Pin:
    first, *later = (way(spine) for spine in spines)
    nic = [int(FABRIC.ports.base[node]) for node in (host, host + 2)]
    pair = (host, host + 2, -1)
    return Pin(sources=(nic[0],), destinations=(nic[1],), ports=first, later=tuple(later), queue_pairs=(pair,))


def test_ways_are_shared_by_equal_paths_under_all_plans() -> None:
    assert pinned_numbers(FABRIC, Routing(pins=(pin(0, 6, 7), pin(1, 6, 7)), plan_at_ps=(1,))) == [0, 0]
    assert pinned_numbers(FABRIC, Routing(pins=(pin(0, 6, 7), pin(1, 6, 6)), plan_at_ps=(1,))) == [0, 1]


def test_each_plan_has_its_own_paths() -> None:
    routing = Routing(pins=(pin(0, 6, 7), pin(1, 6, 6)), plan_at_ps=(1,))
    for plan, spines in enumerate(((6, 6), (7, 6))):
        layers = layers_of(FABRIC, UP, routing, plan)
        assert layers is not None
        taken = [int(layers.next_port[layers.layer_of[0, 1, number], 4, 1]) for number in (0, 1)]
        assert taken == [way(spine)[0] for spine in spines]


@pytest.mark.parametrize(
    "routing",
    [Routing(pins=(pin(0, 6),), plan_at_ps=(1,)), Routing(pins=(pin(0, 6, 7, 6),), plan_at_ps=(2, 1))],
)
def test_plans_and_instants_belong_together(routing: Routing) -> None:
    job = sends(4, [Message(source=0, destination=2, size_bytes=1)])
    with pytest.raises(ConfigError, match="one for each of"):
        packet_input_of(FABRIC, job, routing=routing)
