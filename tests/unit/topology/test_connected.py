"""Connected parts of a network, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weftwork.topology.connected import connected_parts


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_random_graphs_are_those_of_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 200))
    a, b = random.integers(0, nodes, (2, int(random.integers(0, nodes + 20))))
    graph = coo_array((np.ones(len(a), np.int8), (a, b)), shape=(nodes, nodes))
    assert connected_parts(a, b, nodes).tolist() == connected_components(graph, directed=False)[1].tolist()


def test_a_ring_in_any_order_is_one_part() -> None:
    nodes = np.random.default_rng(1).permutation(1_000)
    assert not connected_parts(nodes, np.roll(nodes, 1), 1_000).any()


def test_a_node_without_a_link_is_a_part() -> None:
    assert connected_parts(np.array([3]), np.array([1]), 4).tolist() == [0, 1, 2, 1]
