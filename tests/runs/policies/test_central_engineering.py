"""Schemes of central engineering: hand-made cases, and laws over generated ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.spec.engineering import PathProblem, Planned
from weftwork.spec.scenario.choices import SCHEMES

GBPS = 10**9


def problem(
    demands_gbps: list[float],
    relations: list[int],
    paths: list[list[list[int]]],
    capacities_gbps: list[float],
    priorities: list[int] | None = None,
    seed: int = 1,
) -> PathProblem:
    """Paths of each relation as lists of links."""
    every = [path for of_relation in paths for path in of_relation]
    return PathProblem(
        demand_bps=np.array(demands_gbps, np.float64) * GBPS,
        priority=np.array(priorities or [0] * len(demands_gbps), np.int64),
        relation=np.array(relations, np.int64),
        path_ptr=np.cumsum([0, *map(len, paths)]),
        link_ptr=np.cumsum([0, *map(len, every)]),
        link=np.array([link for path in every for link in path], np.int64),
        capacity_bps=np.array(capacities_gbps, np.float64) * GBPS,
        seed=seed,
    )


def leaf_spine(leaves: int, spines: int, flows: list[tuple[int, int]], **others: Any) -> PathProblem:
    """Flows of 100 Gb/s on links of 100 Gb/s between leaves; link a * spines + s goes up, the others down."""
    relations = sorted(set(flows))
    paths = [[[a * spines + s, (leaves + b) * spines + s] for s in range(spines)] for a, b in relations]
    capacities = [100.0] * (2 * leaves * spines)
    return problem([100.0] * len(flows), [relations.index(flow) for flow in flows], paths, capacities, **others)


def placed(name: str, asked: PathProblem, **keys: Any) -> Planned:
    scheme = SCHEMES[name]
    return scheme.place(scheme.options(**keys), asked)


def busiest(asked: PathProblem, planned: Planned) -> float:
    return float(asked.shares(planned.chosen).max())


TWO_PATHS = [[[0], [1, 2]]]  # a short one by link 0, a long one by links 1 and 2


def test_the_shortest_path_with_room_is_taken() -> None:
    asked = problem([60, 30, 30], [0, 0, 0], TWO_PATHS, [100, 100, 100])
    planned = placed("constrained-shortest-paths", asked)
    assert planned.chosen.tolist() == [0, 0, 1]  # 60 + 30 fill it; the last one has no room there
    assert planned.overloaded == 0


def test_priority_goes_before_size() -> None:
    asked = problem([60, 50], [0, 0], TWO_PATHS, [100, 100, 100], priorities=[0, 5])
    assert placed("constrained-shortest-paths", asked).chosen.tolist() == [1, 0]
    asked = problem([50, 60], [0, 0], TWO_PATHS, [100, 100, 100])
    assert placed("constrained-shortest-paths", asked).chosen.tolist() == [1, 0]


def test_of_equally_short_paths_the_one_with_most_room_is_taken() -> None:
    asked = problem([40, 30, 20], [0, 1, 2], [[[0]], [[0], [1]], [[0], [1]]], [100, 70])
    assert placed("constrained-shortest-paths", asked).chosen.tolist() == [
        0,
        2,
        3,
    ]  # rooms of 60 and 70, then of 60 and 40


def test_what_fits_nowhere_takes_the_least_overload_and_is_counted() -> None:
    asked = problem([120, 90], [0, 0], TWO_PATHS, [100, 50, 200])
    planned = placed("constrained-shortest-paths", asked)
    assert planned.chosen.tolist() == [0, 1]  # 1.2 of the first against 2.4; then 1.8 of the second against 2.1
    assert planned.overloaded == 2


def test_greedy_takes_the_path_whose_most_loaded_link_is_least_loaded() -> None:
    asked = problem([60, 50, 40], [0, 0, 0], TWO_PATHS, [100, 100, 100])
    assert placed("greedy", asked).chosen.tolist() == [0, 1, 1]  # 60 | 50, then 1.0 against 0.9


def test_greedy_ends_above_the_optimum_and_placement_does_not() -> None:
    """Three flows each of which may take either of two links, but for one: the large ones come first and block it."""
    asked = problem([60, 50, 50], [0, 0, 1], [[[0], [1]], [[0]]], [100, 100])
    greedy, best = placed("greedy", asked), placed("placement", asked)
    assert busiest(asked, greedy) == pytest.approx(1.1) or greedy.chosen[0] == 1
    assert busiest(asked, best) == pytest.approx(1.0)
    assert best.bound == pytest.approx(1.0)


def test_the_bound_counts_a_demand_that_no_link_splits() -> None:
    asked = problem([90], [0], [[[0], [1]]], [100, 100])
    planned = placed("placement", asked)
    assert (busiest(asked, planned), planned.bound) == (pytest.approx(0.9), pytest.approx(0.9))


def test_wider_links_take_more() -> None:
    asked = problem([50] * 5, [0] * 5, [[[0], [1]]], [400, 100])
    for name in ("greedy", "placement"):
        chosen = placed(name, asked).chosen
        assert (chosen == 0).sum() == 4


@pytest.mark.parametrize("limit", [{"node_limit": 1}, {"time_limit_ps": 10**9}])
def test_a_limit_is_told_and_the_paths_are_whole(limit: dict[str, int]) -> None:
    rng = np.random.default_rng(7)
    flows = [(int(a), int(b)) for a, b in rng.integers(0, 6, (150, 2)) if a != b]
    asked = leaf_spine(6, 5, flows)
    asked.demand_bps[:] *= rng.uniform(0.01, 1, len(flows))
    planned = placed("placement", asked, gap=0, **limit)
    assert planned.limit.startswith("node_limit" if "node_limit" in limit else "time_limit")
    assert planned.depends_on_machine is ("time_limit_ps" in limit)
    assert planned.bound is not None
    assert busiest(asked, planned) >= planned.bound - 1e-9


@pytest.mark.parametrize("name", SCHEMES)
def test_equal_arguments_have_equal_answers_and_another_seed_may_not(name: str) -> None:
    flows = [(a, b) for a, b in product(range(4), repeat=2) if a != b]
    one, again = (placed(name, leaf_spine(4, 4, flows)).chosen.tolist() for _ in range(2))
    assert one == again
    seeds = {tuple(placed(name, leaf_spine(4, 4, flows, seed=seed)).chosen.tolist()) for seed in range(8)}
    assert len(seeds) > 1


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=25, deadline=None)
@given(
    flows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda f: f[0] != f[1]), min_size=1),
    spines=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_laws(name: str, flows: list[tuple[int, int]], spines: int, seed: int) -> None:
    asked = leaf_spine(4, spines, flows, seed=seed)
    planned = placed(name, asked)
    relations = asked.relation
    assert (planned.chosen // spines == relations).all()  # each took one of its own paths
    assert asked.shares(planned.chosen).sum() == pytest.approx(2 * len(flows))  # nothing lost, two links each
    fullest = max(sum(a == leaf for a, _ in flows) for leaf in range(4))
    fullest = max(fullest, *(sum(b == leaf for _, b in flows) for leaf in range(4)))
    least = -(-fullest // spines)  # edges of a leaf, evenly over spines; Kőnig: a bipartite colouring reaches it
    assert busiest(asked, planned) >= least
    if name == "placement":
        assert busiest(asked, planned) == least
        assert planned.bound is not None
        assert planned.bound <= least + 1e-9
    if name == "greedy":
        assert busiest(asked, planned) <= 2 * least + 1
    if name == "constrained-shortest-paths" and planned.overloaded == 0:
        assert busiest(asked, planned) <= 1 + 1e-9
