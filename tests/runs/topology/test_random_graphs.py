"""Random regular graphs and lifts: degrees, determinism, connection, and the bound of the mean distance."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from weftwork.topology.random_graphs import connected_draw, lifted_graph, regular_graph


def graph_of(a: np.ndarray, b: np.ndarray, switches: int) -> coo_array:
    return coo_array((np.ones(len(a)), (a, b)), shape=(switches, switches))


def test_all_links_of_a_small_graph_are_about_as_frequent() -> None:
    """Each of the 45 links of 10 switches with 4 links is in 4/9 of the graphs; the tolerance is 5 deviations."""
    found = np.zeros((10, 10))
    draws = 900
    for seed in range(draws):
        a, b = regular_graph(10, 4, seed=seed)
        found[a, b] += 1
    share = found[np.triu_indices(10, 1)] / draws
    assert abs(share - 4 / 9).max() < 5 * (4 / 9 * 5 / 9 / draws) ** 0.5


def test_a_graph_in_two_parts_is_drawn_again() -> None:
    """Among 8 switches with 3 links, some graphs are two full meshes of 4."""
    apart = 0
    for seed in range(200):
        first = regular_graph(8, 3, seed=seed)
        if connected_components(graph_of(*first, 8))[0] == 1:
            continue
        apart += 1
        links = connected_draw(lambda attempt, seed=seed: regular_graph(8, 3, seed=seed, attempt=attempt), 8)
        assert connected_components(graph_of(*links, 8))[0] == 1
    assert apart


def test_lifts_are_random() -> None:
    graphs = {tuple(lifted_graph(4, [3], seed=seed)[1].tolist()) for seed in range(50)}
    assert len(graphs) == 50
    partners = np.array([lifted_graph(1, [4], seed=seed)[1] - 4 for seed in range(2_000)])
    counts = np.array([np.bincount(column, minlength=4) for column in partners.T])
    assert abs(counts / 2_000 - 1 / 4).max() < 5 * (3 / 16 / 2_000) ** 0.5
