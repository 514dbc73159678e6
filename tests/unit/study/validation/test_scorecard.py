"""Statistics of the scorecard against hand-made points, and that a tolerance is judged as computed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.study.validation.scorecard import Excluded, PlanRank, Point, Score, rank_of_best
from weftwork.study.validation.scorecard_page import rank_line


def point(measured: float, predicted: float, *, naive: float = 1.0, plans: str = "", name: str = "row") -> Point:
    return Point(name=name, measured_s=measured, predicted_s=predicted, naive_s=naive, plan_set=plans)


def score(*points: Point, tolerance: float | None = 0.10, **more: Any) -> Score:
    return Score(
        key="k", title="t", role="blind", calibrated_on="nothing", source="s", naive="n", tolerance=tolerance,
        points=points, **more,
    )  # fmt: skip


def test_errors_are_predicted_over_measured() -> None:
    found = score(point(2, 3, name="high"), point(4, 3, name="low"), point(1, 1, name="exact"))
    assert found.errors == (0.5, -0.25, 0.0)
    assert found.mape == pytest.approx(0.25)
    assert found.median == pytest.approx(0.25)
    assert found.bias == pytest.approx(0.0)
    assert found.worst.name == "high"


@pytest.mark.parametrize(("predicted", "reached"), [(1.1000001, False), (1.0999999, True), (0.8999999, False)])
def test_a_tolerance_is_judged_as_computed_and_not_as_printed(predicted: float, *, reached: bool) -> None:
    found = score(point(1, predicted))
    assert f"{100 * found.mape:.1f}" == "10.0"
    assert found.is_reached is reached


def test_a_set_without_a_tolerance_is_not_judged() -> None:
    assert score(point(1, 9), tolerance=None).is_reached is None


def test_the_naive_rule_wins_where_it_is_nearer() -> None:
    assert not score(point(1, 1.2, naive=1.1)).beats_naive
    assert score(point(1, 1.05, naive=1.1)).beats_naive


def test_the_rank_correlation_is_spearmans() -> None:
    assert score(point(1, 10), point(2, 20), point(3, 21)).rank_correlation == pytest.approx(1.0)
    assert score(point(1, 3), point(2, 2), point(3, 1)).rank_correlation == pytest.approx(-1.0)
    assert score(point(1, 3), point(2, 2)).rank_correlation is None
    assert score(point(1, 2), point(1, 3), point(1, 4)).rank_correlation is None


def test_the_measured_best_plan_is_ranked_by_its_prediction() -> None:
    plans = [point(1.0, 5, plans="a"), point(1.1, 4, plans="a"), point(2.0, 6, plans="a")]
    found = rank_of_best("a", plans)
    assert (found.rank, found.plans) == (2, 3)
    assert found.loss == pytest.approx(0.1)


def test_a_model_that_says_the_same_to_all_plans_ranks_the_best_one_last() -> None:
    assert rank_of_best("a", [point(1, 1), point(2, 1), point(3, 1)]).rank == 3


def test_jobs_with_one_plan_have_no_rank() -> None:
    found = score(point(1, 1, plans="a"), point(1, 1, plans="b"), point(2, 2, plans="b"), point(1, 1))
    assert [(rank.plan_set, rank.plans) for rank in found.plan_ranks()] == [("b", 2)]


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=20))
def test_mape_lies_between_nothing_and_the_worst(pairs: list[tuple[float, float]]) -> None:
    found = score(*(point(measured, predicted) for measured, predicted in pairs))
    assert 0 <= found.median <= abs(found.worst.error) + 1e-12
    assert 0 <= found.mape <= abs(found.worst.error) + 1e-12


def test_what_is_left_out_has_a_reason() -> None:
    found = score(point(1, 1), excluded=(Excluded(name="row", reason="why"),))
    assert found.excluded[0].reason == "why"
    assert len(found.points) == 1


def test_a_set_of_many_jobs_tells_how_often_the_best_plan_is_first_and_among_three() -> None:
    ranks = [PlanRank(plan_set="job", plans=5, rank=rank, loss=0.02) for rank in (1, 1, 2, 3, 4, 5)]
    said = (
        "For 6 jobs with several plans, the plan measured fastest is Weftwork's first in 2 and among its first three"
        " in 4"
    )
    assert rank_line(ranks) == f"{said}; on average, Weftwork's first plan was 2.0 % slower than the fastest plan."
