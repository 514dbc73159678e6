"""The planner: ten successive commits cover every case, a touched file is always there, and budgets hold."""

from __future__ import annotations

import random

import pytest
from planner.budgets import budgets
from planner.machine import MOST, slowness
from planner.plan import TURNS, WIDE, Case, planned, turn_of_stranger
from planner.prices import Prices, read_prices

BUDGET_S = 15.0


def cases_of(seed: int, count: int = 200) -> list[Case]:
    """Cases with prices between a hundredth of a second and some seconds, dealt out to turns as prices.py does it."""
    draw = random.Random(seed)
    prices_s = {f"tests/deep/test_{draw.randrange(30)}.py::test_{n}": 0.01 + draw.random() ** 4 for n in range(count)}
    return list(Prices(measured={}, files={}, cases={}).with_cases("truth", prices_s).cases["truth"])


@pytest.mark.parametrize("seed", range(20))
def test_any_ten_successive_commits_cover_every_case(seed: int) -> None:
    cases = cases_of(seed)
    names = {case.name for case in cases}
    for first in (0, 3, 10_333):
        runs = [planned(cases, budget_s=BUDGET_S, place=first + step) for step in range(TURNS)]
        assert set().union(*(plan.chosen for plan in runs)) == names
        assert any(plan.left_out for plan in runs)  # no plan is the whole list


def test_any_ten_successive_commits_cover_a_case_that_has_no_price_yet() -> None:
    names = [f"tests/deep/test_new.py::test_{number}" for number in range(100)]
    for first in range(3):
        assert {turn_of_stranger(name) for name in names} == {(first + step) % TURNS for step in range(TURNS)}


@pytest.mark.parametrize("step", [step.name for step in budgets() if step.work_s])
def test_ten_successive_commits_cover_every_case_of_every_step_within_its_budget(step: str) -> None:
    cases = read_prices().cases[step]
    work_s = next(each.work_s for each in budgets() if each.name == step)
    assert cases
    runs = [planned(cases, budget_s=work_s, place=place) for place in range(TURNS)]
    assert set().union(*(plan.chosen for plan in runs)) == {case.name for case in cases}
    assert [plan.price_s for plan in runs if plan.price_s > work_s] == []


@pytest.mark.parametrize("step", [step.name for step in budgets() if step.work_s])
def test_a_change_of_everything_stays_within_the_budget(step: str) -> None:
    """The turn is always run, and of each touched file one case as long as one and a half budgets last."""
    cases = read_prices().cases[step]
    work_s = next(each.work_s for each in budgets() if each.name == step)
    distances = {case.file: 1 for case in cases}
    for place in range(TURNS):
        plan = planned(cases, budget_s=work_s, place=place, distances=distances)
        assert {case.name for case in cases if case.turn == place % TURNS} <= set(plan.chosen)
        assert plan.price_s <= WIDE * work_s
        assert plan.touched_left_out == len(plan.left_out)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_change_touches_is_always_chosen(seed: int) -> None:
    """All touched cases where they fit; of each touched file one in any case, however small the budget is."""
    cases = cases_of(seed)
    touched = {cases[seed].file: 0, cases[-1].file: 2}
    for place in range(TURNS):
        plan = planned(cases, budget_s=BUDGET_S, place=place, distances=touched)
        assert {case.name for case in cases if case.file in touched} <= set(plan.chosen)
        assert plan.touched_left_out == 0
        narrow = planned(cases, budget_s=8.0, place=place, distances=touched)
        assert touched.keys() <= {name.partition("::")[0] for name in narrow.chosen}


def test_an_example_that_changed_is_run_before_all_others() -> None:
    names = [
        "test_examples.py::test_it[two_jobs]",
        "test_examples.py::test_it[slow_gpu]",
        "test_digests.py::test_it[examples/two_jobs/a.yaml]",
    ]
    cases = [Case(name=name, file=name.partition("::")[0], price_s=50.0, turn=5) for name in names]
    plan = planned(cases, budget_s=70.0, place=0, examples=frozenset({"two_jobs"}))
    assert set(plan.chosen) == {names[0], names[2]}
    assert plan.touched == 2


def test_what_is_nearest_to_the_change_comes_first() -> None:
    near, far = (Case(name=f"{n}.py::t", file=f"{n}.py", price_s=1.0, turn=5) for n in ("near", "far"))
    more = [Case(name=f"{n}.py::{k}", file=f"{n}.py", price_s=2.0, turn=5) for n in ("far", "near") for k in range(3)]
    plan = planned([near, far, *more], budget_s=6.0, place=0, distances={"near.py": 0, "far.py": 3})
    assert plan.chosen == ("near.py::t", "far.py::t", "near.py::0", "near.py::1")
    assert plan.touched_left_out == 4


def test_a_plan_says_all_that_it_leaves_out() -> None:
    cases = cases_of(1)
    plan = planned(cases, budget_s=5.0, place=4)
    assert sorted([*plan.chosen, *plan.left_out]) == sorted(case.name for case in cases)
    assert plan.price_s == pytest.approx(sum(case.price_s for case in cases if case.name in plan.chosen))


def test_a_case_keeps_its_turn_when_prices_change_and_others_come() -> None:
    prices = Prices(measured={}, files={}, cases={})
    before = prices.with_cases("truth", {f"a.py::{n}": float(n) for n in range(30)})
    after = before.with_cases("truth", {f"a.py::{n}": float(40 - n) for n in range(40)})
    turns = {case.name: case.turn for case in after.cases["truth"]}
    assert {case.name: turns[case.name] for case in before.cases["truth"]} == {
        case.name: case.turn for case in before.cases["truth"]
    }
    assert len(turns) == 40


def test_turns_share_the_work() -> None:
    work_s = [0.0] * TURNS
    for case in cases_of(7, count=2_000):
        work_s[case.turn] += case.price_s
    assert max(work_s) < 1.1 * min(work_s)


def test_a_slow_machine_shortens_what_comes_beyond_the_turn_and_never_the_turn() -> None:
    cases = read_prices().cases["properties"]
    work_s = next(each.work_s for each in budgets() if each.name == "properties")
    for place in range(TURNS):
        turn = {case.name: case.price_s for case in cases if case.turn == place}
        for slow in (1, 2, 5, 1_000):
            plan = planned(cases, budget_s=work_s / slow, place=place)
            assert turn.keys() <= set(plan.chosen)
            assert plan.price_s <= max(sum(turn.values()), work_s / slow)
        assert turn.keys() == set(plan.chosen)  # with next to no budget


def test_a_machine_is_never_taken_for_faster_than_that_of_the_budgets() -> None:
    assert 1.0 <= slowness(times=1) <= MOST
