"""Counting of plans: their order, the front, and what is known before all of them are counted."""

from __future__ import annotations

import time
from math import inf
from pathlib import Path

import pytest
from helpers.plan_questions import searched_tree

from weftwork.study.plan.counting import CountedPlans, Counting, count_plans
from weftwork.study.plan.space import parts
from weftwork.study.pool.side_by_side import Workers

QUESTION = {  # with some thousand plans
    "schema": 3,
    "fabric": {"topology": "rail-optimized", "gpus": 64, "node": "dgx-b200", "switch": "tomahawk-5"},
    "training": {"model": "qwen3.5-397b-a17b", "global_batch": 512, "micro_batch": 2},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Counting, list[str]]:
    """All plans, and what was heard meanwhile."""
    found, _, heard = counting(tmp_path_factory.mktemp("counting"))
    return found, heard


def counting(folder: Path, until_s: float = inf) -> tuple[Counting, list[CountedPlans], list[str]]:
    asked = searched_tree(QUESTION, frozenset({"micro_batch"}), folder)
    assert asked is not None
    kept: list[CountedPlans] = []
    heard: list[str] = []
    found = count_plans(
        asked.space, asked.setting, parts(asked.space), Workers(count=1),
        told=lambda what, done, of: heard.append(f"{what} {done == of}"), until_s=until_s, kept=kept,
    )  # fmt: skip
    return found, kept, heard


def test_plans_are_in_the_order_of_time_and_memory_and_each_is_there_once(whole: tuple[Counting, list[str]]) -> None:
    found, _ = whole
    plans = [found.plans.counted(place) for place in range(len(found.plans))]
    assert len(plans) > 200
    order = [(one.time.total_ps, one.candidate.memory_bytes) for one in plans]
    assert order == sorted(order)
    names = {
        (one.time.total_ps, *(v for k, v in one.candidate.keys.items() if k not in {"order", "balanced_ends"}))
        for one in plans
    }
    assert len(names) == len(plans)


def test_no_plan_beats_the_front(whole: tuple[Counting, list[str]]) -> None:
    found, _ = whole
    plans = [found.plans.counted(place) for place in range(len(found.plans))]
    front = found.plans.front()
    assert front[0] == plans[0]
    assert front[-1].candidate.memory_bytes == min(one.candidate.memory_bytes for one in plans)
    for one in plans:
        assert any(
            kept.time.total_ps <= one.time.total_ps and kept.candidate.memory_bytes <= one.candidate.memory_bytes
            for kept in front
        )


def test_all_ways_are_looked_at_first_and_promising_ones_are_counted_next(
    whole: tuple[Counting, list[str]], tmp_path: Path
) -> None:
    every, heard = whole
    assert heard.index("looking True") < heard.index("counting False")
    assert every.left_ways == 0
    short, kept, _ = counting(tmp_path, until_s=time.monotonic())
    assert 0 < short.left_ways < short.ways == every.ways
    assert len(short.plans) < len(every.plans)
    best_ps = min(int(one.times.total_ps.min()) for one in kept if len(one))
    assert short.plans.counted(0).time.total_ps == best_ps
    # one part of twelve, of the way that looked best, and the few plans of all others
    assert best_ps <= 1.05 * every.plans.counted(0).time.total_ps


def test_plans_that_are_looked_at_are_among_those_that_are_counted(
    whole: tuple[Counting, list[str]], tmp_path: Path
) -> None:
    short, _, _ = counting(tmp_path, until_s=time.monotonic())
    every = {tuple(row) for row in whole[0].plans.feasible.plans.values.tolist()}
    few = [tuple(row) for row in short.plans.feasible.plans.values.tolist()]
    assert sum(row in every for row in few) >= 0.9 * len(few)  # others are left as equal to one that is there


@pytest.mark.parametrize("is_late", [False, True])
def test_the_answer_does_not_wait_for_more_than_the_first_after_its_time(is_late: bool) -> None:  # noqa: FBT001
    until_s = time.monotonic() if is_late else inf
    assert list(Workers(count=1).answers(str, [1, 2, 3], until_s=until_s)) == (["1"] if is_late else ["1", "2", "3"])
