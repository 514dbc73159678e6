"""Torus, mesh and twisted torus: closed forms, loads by search, dimension order, and shapes that do not fit.

Loads and distances of twisted tori: a regular torus has a load of max(d) N / 8 on its busiest channel, a twisted one N
times the mean distance over 6, if each switch sends one unit to every switch on shortest paths. The published gains,
1.63 (4x4x8) and 1.31 (4x8x8), are unverified; they are 93 and 94 % of these bounds.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers.cases import case_count
from helpers.switch_graph import degrees, diameter_and_mean
from helpers.topology_torus import check_order, lattice, switches_of
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.topology import FabricSize
from weftwork.study.prepare.prepare import known_names
from weftwork.topology.build import fabric_of_section, fabric_size

SHAPES = (
    st.lists(st.integers(1, 6), min_size=1, max_size=6).map(tuple).filter(lambda shape: 2 <= math.prod(shape) <= 96)
)


TWISTABLE = st.builds(
    lambda short, longs, places: tuple(short * (1 + (place in longs)) for place in range(places)),
    st.integers(2, 4),
    st.sampled_from([{0}, {1}, {1, 2}, {0, 2}, {2}]),
    st.just(3),
)


@settings(max_examples=case_count(plain=30, deep=300))
@given(shape=SHAPES)
def test_a_torus_has_the_counts_of_its_closed_forms(shape: tuple[int, ...]) -> None:
    fabric = lattice("torus", shape)
    count, dimensions = math.prod(shape), sum(side > 1 for side in shape)
    assert (len(fabric.hosts), switches_of(fabric)) == (count, count)
    assert len(fabric.links) - count == dimensions * count
    assert set(degrees(fabric).tolist()) == {2 * dimensions}
    diameter, mean = diameter_and_mean(fabric)
    assert diameter == sum(side // 2 for side in shape)
    with_itself = sum((side // 2) * ((side + 1) // 2) / side for side in shape)  # side / 4 for an even side
    assert mean == pytest.approx(with_itself * count / (count - 1))
    assert fabric.direct is not None
    assert int(fabric.direct.link_wraps.sum()) == sum(count // side for side in shape if side > 1)


@settings(max_examples=case_count(plain=30, deep=300))
@given(shape=SHAPES)
def test_a_mesh_is_a_torus_without_its_ring_links(shape: tuple[int, ...]) -> None:
    mesh, torus = lattice("mesh", shape), lattice("torus", shape)
    assert torus.direct is not None
    assert mesh.direct is not None
    assert not mesh.direct.link_wraps.any()
    kept = ~torus.direct.link_wraps
    assert np.array_equal(mesh.links, torus.links[kept])
    assert np.array_equal(mesh.direct.link_dimension, torus.direct.link_dimension[kept])
    assert diameter_and_mean(mesh)[0] == sum(side - 1 for side in shape)


@settings(max_examples=case_count(plain=25, deep=250))
@given(shape=SHAPES, topology=st.sampled_from(["torus", "mesh"]))
def test_shortest_paths_take_the_dimensions_one_after_the_other(shape: tuple[int, ...], topology: str) -> None:
    check_order(lattice(topology, shape))


@settings(max_examples=case_count(plain=12, deep=60), deadline=None)
@given(shape=TWISTABLE)
def test_a_twist_keeps_the_order_of_dimensions(shape: tuple[int, ...]) -> None:
    check_order(lattice("twisted-torus", shape))


@pytest.mark.parametrize(
    ("topology", "section"),
    [
        ("torus", "shape: [4, 2, 3]"),
        ("mesh", "shape: [4, 2, 3], hosts_per_switch: 2, node: {gpus: 4, nic_ports: 2}"),
        ("twisted-torus", "shape: [2, 4], hosts: 3"),
    ],
)
def test_the_size_of_a_lattice_is_told_before_it_is_built(topology: str, section: str) -> None:
    document = f"{{schema: 3, fabric: {{topology: {topology}, {section}}}, traffic: {{pattern: incast}}}}"
    read = loads(document, known=known_names(), nodes=nodes()).fabric
    fabric = fabric_of_section(read, directory=Path.cwd())
    hosts = len(fabric.hosts)
    leaves = len(np.unique(fabric.links["b"][fabric.links["a"] < hosts]))
    wanted = FabricSize(hosts=hosts, switches=switches_of(fabric), links=len(fabric.links), leaves=leaves)
    assert fabric_size(read) == wanted
