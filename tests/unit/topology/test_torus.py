"""Torus, mesh and twisted torus: closed forms, loads by search, dimension order, and shapes that do not fit.

Loads and distances of twisted tori: a regular torus has a load of max(d) N / 8 on its busiest channel, a twisted one N
times the mean distance over 6, if each switch sends one unit to every switch on shortest paths. The published gains,
1.63 (4x4x8) and 1.31 (4x8x8), are unverified; they are 93 and 94 % of these bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from helpers.lattice_paths import channels, distances, split_loads
from helpers.switch_graph import switch_ends
from helpers.topology_torus import check_order, lattice

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Server
from weftwork.spec.fabric_direct import TO_HOST
from weftwork.topology.build import fabric_of
from weftwork.topology.without import lose


def refusal(**keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        fabric_of(**keys)
    return str(wrong.value)


@pytest.mark.parametrize("topology", ["torus", "mesh", "twisted-torus"])
def test_ports_are_an_involution_and_lead_to_the_neighbour_at_the_next_coordinate(topology: str) -> None:
    fabric = lattice(topology, (4, 4, 8))
    ports, direct = fabric.ports, fabric.direct
    assert direct is not None
    assert np.array_equal(ports.peer[ports.peer], np.arange(len(ports.peer)))
    assert (ports.peer != np.arange(len(ports.peer))).all()
    assert direct.axes == direct.dimensions == ("x", "y", "z")
    assert direct.sides == (4, 4, 8)
    assert direct.is_ordered
    links = fabric.links
    to_host = direct.link_dimension == TO_HOST
    assert np.array_equal(direct.coordinates[links["a"][to_host]], direct.coordinates[links["b"][to_host]])
    step = direct.coordinates[links["b"]] - direct.coordinates[links["a"]]
    inner = ~to_host & ~direct.link_wraps
    assert np.array_equal(np.argmax(step[inner], axis=1), direct.link_dimension[inner])
    assert (step[inner].sum(axis=1) == 1).all()


def test_ring_links_of_short_sides_shift_by_their_length_along_long_sides() -> None:
    shifts = {}
    for shape in ((4, 4, 8), (8, 4, 8)):
        fabric = lattice("twisted-torus", shape)
        assert fabric.direct is not None
        at, links = fabric.direct.coordinates, fabric.links[fabric.direct.link_wraps]
        steps = (at[links["b"]] - at[links["a"]]) % np.array(shape)
        by_dimension = fabric.direct.link_dimension[fabric.direct.link_wraps].tolist()
        shifts[shape] = {(dimension, tuple(step)) for dimension, step in zip(by_dimension, steps.tolist(), strict=True)}
    assert shifts[4, 4, 8] == {(0, (1, 0, 4)), (1, (0, 1, 4)), (2, (0, 0, 1))}
    assert shifts[8, 4, 8] == {(0, (1, 0, 0)), (1, (4, 1, 4)), (2, (0, 0, 1))}


@pytest.mark.parametrize(
    ("shape", "regular", "twisted", "gain", "diameters", "means", "with_itself"),
    [
        ((4, 4, 8), 128, 73.33, 1.745, (8, 6), (4.031, 3.465), (4, 3.4375)),
        ((4, 8, 8), 256, 184, 1.391, (10, 6), (5.020, 4.329), (5, 4.3125)),
        ((8, 8, 16), 2_048, 1_189.33, 1.722, (16, 12), (8.008, 6.976), (8, 6.969)),
        ((8, 16, 16), 4_096, 2_976, 1.376, (20, 12), (10.005, 8.723), (10, 8.719)),
    ],
)
def test_a_twist_lowers_load_diameter_and_mean_distance(
    shape: tuple[int, ...], regular: float, twisted: float, gain: float,
    diameters: tuple[int, int], means: tuple[float, float], with_itself: tuple[float, float],
) -> None:  # fmt: skip
    found = []
    count = math.prod(shape)
    for topology, diameter, mean, itself in zip(("torus", "twisted-torus"), diameters, means, with_itself, strict=True):
        fabric = lattice(topology, shape)
        ways = channels(fabric)
        hops = distances(ways, count, np.arange(1))[0]  # the same from every switch, see the next test
        assert hops.max() == diameter
        assert hops.sum() / (count - 1) == pytest.approx(mean, abs=5e-4)
        assert hops.mean() == pytest.approx(itself, abs=5e-4)
        loads = split_loads(ways, hops)
        # A step is the same translation everywhere. So a channel carries for all sources together as much as all
        # channels of its dimension and direction carry for one source.
        direction = np.repeat([0, 1], len(ways.start) // 2) * len(shape) + ways.dimension
        found.append(np.bincount(direction, loads).max())
    assert found == pytest.approx([regular, twisted], rel=5e-5)
    assert found[0] / found[1] == pytest.approx(gain, abs=5e-4)
    assert found == pytest.approx([max(shape) * count / 8, count * hops.mean() / 6])


@pytest.mark.parametrize(("topology", "load"), [("torus", 128), ("twisted-torus", 73 + 1 / 3)])
def test_the_busiest_channel_by_search_from_all_switches(topology: str, load: float) -> None:
    fabric = lattice(topology, (4, 4, 8))
    ways = channels(fabric)
    hops = distances(ways, 128)
    assert len({tuple(sorted(row.tolist())) for row in hops}) == 1
    total = sum((split_loads(ways, row) for row in hops), np.zeros(len(ways.start)))
    assert total.max() == pytest.approx(load)


def test_the_check_of_dimension_order_sees_a_network_without_it() -> None:
    fabric = lattice("torus", (4, 4))
    lost = np.zeros(len(fabric.links), np.bool_)
    lost[len(fabric.hosts)] = True
    damaged = lose(fabric, lost)
    with pytest.raises(AssertionError):
        check_order(damaged)


def test_sides_of_two_and_of_one_switch() -> None:
    fabric = lattice("torus", (2, 1, 3))
    assert fabric.direct is not None
    pairs = Counter(zip(*(ends.tolist() for ends in switch_ends(fabric)), strict=True))
    assert pairs[0, 1] + pairs[1, 0] == 2
    assert Counter(fabric.direct.link_dimension.tolist()) == {TO_HOST: 6, 0: 6, 2: 6}
    assert len(switch_ends(lattice("mesh", (2, 1, 3)))[0]) == 3 + 4


def test_a_server_has_all_of_its_ports_on_one_switch() -> None:
    server = Server(name="four", gpus=4, nic_ports=4)
    fabric = lattice("torus", (3, 3), node=server, hosts_per_switch=2, hosts=17)
    links = fabric.links[: 17 * 4]
    assert np.array_equal(links["b"] - 17, links["a"] // 2)
    assert Counter(links["b"].tolist()) == {17 + switch: 8 if switch < 8 else 4 for switch in range(9)}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"topology": "torus", "shape": (1, 1)}, "one switch has no neighbour; wanted at least two switches"),
        ({"topology": "torus", "shape": (2,) * 7}, "found 7 sides, wanted 1 to 6"),
        (
            {"topology": "mesh", "shape": (4, 4), "radix": 4},
            "found 4, but a switch needs 5: 1 port to hosts and 4 ports",
        ),
        ({"topology": "torus", "shape": (4, 4), "hosts": 17}, "found 17, wanted at most 16"),
        ({"topology": "twisted-torus", "shape": (4, 4, 4)}, "found 4x4x4, wanted K x K x 2K, K x 2K x 2K or K x 2K"),
        ({"topology": "twisted-torus", "shape": (4, 6, 8)}, "did you mean '[4, 4, 8]'?"),
        ({"topology": "twisted-torus", "shape": (8,)}, "found 1 side, wanted K x K x 2K"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(keys: dict[str, Any], told: str) -> None:
    assert told in refusal(**keys)
