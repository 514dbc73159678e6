"""Random regular graphs and lifts: degrees, determinism, connection, and the bound of the mean distance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from weftwork.topology.random_graphs import connected_draw, least_mean_distance, lifted_graph, regular_graph

seeds = st.integers(0, 2**32 - 1)


def graph_of(a: np.ndarray, b: np.ndarray, switches: int) -> coo_array:
    return coo_array((np.ones(len(a)), (a, b)), shape=(switches, switches))


@given(switches=st.integers(2, 40), seed=seeds, data=st.data())
def test_every_switch_has_its_links_to_different_switches(switches: int, seed: int, data: st.DataObject) -> None:
    degree = data.draw(st.integers(1, switches - 1).filter(lambda r: switches * r % 2 == 0))
    a, b = regular_graph(switches, degree, seed=seed)
    assert (a < b).all()
    assert len(np.unique(a * switches + b)) == len(a) == switches * degree // 2
    assert (np.bincount(np.concatenate([a, b]), minlength=switches) == degree).all()
    again = regular_graph(switches, degree, seed=seed)
    assert (a.tolist(), b.tolist()) == (again[0].tolist(), again[1].tolist())


def test_seed_and_attempt_draw_different_graphs() -> None:
    graphs = {
        tuple(np.stack(regular_graph(40, 5, seed=seed, attempt=attempt)).ravel().tolist())
        for seed in range(10)
        for attempt in range(10)
    }
    assert len(graphs) == 100


@given(degree=st.integers(1, 7), lifts=st.lists(st.integers(1, 4), max_size=3), seed=seeds)
def test_a_lift_joins_every_two_groups_one_to_one(degree: int, lifts: list[int], seed: int) -> None:
    a, b = lifted_graph(degree, lifts, seed=seed)
    each = int(np.prod(lifts, dtype=np.int64))
    assert len(a) == (degree + 1) * degree // 2 * each
    for low in range(degree + 1):
        for high in range(low + 1, degree + 1):
            of_pair = (a // each == low) & (b // each == high)
            assert sorted(a[of_pair] % each) == sorted(b[of_pair] % each) == list(range(each))
    levels = np.cumprod([1, *reversed(lifts)])  # after two lifts by 2, copies of a link join copies of both its ends
    for width in levels.tolist():
        coarse = np.unique(np.stack([a // width, b // width]), axis=1)
        assert len(coarse.T) == len(a) // width


@given(switches=st.integers(4, 40), seed=seeds, data=st.data())
def test_no_graph_has_a_lower_mean_distance(switches: int, seed: int, data: st.DataObject) -> None:
    degree = data.draw(st.integers(3, switches - 1).filter(lambda r: switches * r % 2 == 0))
    links = connected_draw(lambda attempt: regular_graph(switches, degree, seed=seed, attempt=attempt), switches)
    distance = shortest_path(graph_of(*links, switches).tocsr(), directed=False, unweighted=True)
    assert distance.sum() / (switches * (switches - 1)) >= float(least_mean_distance(switches, degree)) - 1e-9


@pytest.mark.parametrize(
    ("switches", "degree", "mean"),
    [
        (10, 3, Fraction(3 + 2 * 6, 9)),  # the Petersen graph
        (50, 7, Fraction(7 + 2 * 42, 49)),  # the Hoffman-Singleton graph
        (6, 5, Fraction(1)),  # a full mesh
        (7, 2, Fraction(2 * (1 + 2 + 3), 6)),  # a ring
        (14, 3, Fraction(3 + 2 * 6 + 3 * 4, 13)),  # the Heawood graph
    ],
)
def test_graphs_that_reach_the_bound(switches: int, degree: int, mean: Fraction) -> None:
    assert least_mean_distance(switches, degree) == mean
