"""Ends of pipelines that are followed pass by pass: the papers' bubbles, and the count beside the walk."""

from __future__ import annotations

import random

import pytest
from helpers.cases import Saw

from weftwork.workload.training.followed_pipeline import FOLLOWED, FollowedPipeline, PassTimes

CASES = 40


def equal(stages: int, count: int, times: tuple[int, int, int], *, has_mirror: bool) -> FollowedPipeline:
    """Stages that all take as long, and messages that take no time."""
    forward, inputs, weights = times
    taken = PassTimes(forward_ps=forward, backward_ps=inputs + weights, input_ps=inputs, weights_ps=weights)
    return FollowedPipeline(
        schedule="dualpipe" if has_mirror else "zb-h1",
        micro_batches=count,
        times=((taken,) * (1 + has_mirror),) * stages,
        messages_ps=(0,) * stages,
        blocking=1.0,
    )


@pytest.mark.parametrize(("stages", "count"), [(2, 2), (4, 4), (4, 400), (8, 30), (8, 33)])
@pytest.mark.parametrize("times", [(10, 10, 10), (13, 13, 7), (10, 20, 5)])
def test_the_bubble_of_zb_h1_is_that_of_the_paper(stages: int, count: int, times: tuple[int, int, int]) -> None:
    """Qi et al., arXiv:2401.10241, table 2: (p - 1) (T_F + T_B - T_W)."""
    ends = equal(stages, count, times, has_mirror=False).ends_ps()
    forward, inputs, weights = times
    assert max(ends) == count * sum(times) + (stages - 1) * (forward + inputs - weights)


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (4, 400), (8, 34), (8, 100)])
@pytest.mark.parametrize("times", [(10, 10, 10), (13, 13, 7)])
def test_the_bubble_of_dualpipe_is_that_of_the_paper(stages: int, count: int, times: tuple[int, int, int]) -> None:
    """DeepSeek-V3, arXiv:2412.19437, table 2: (p / 2 - 1) (F&B + B - 3 W)."""
    ends = equal(stages, count, times, has_mirror=True).ends_ps()
    forward, inputs, weights = times
    whole = inputs + weights
    assert max(ends) == count * sum(times) + (stages // 2 - 1) * (forward + 2 * whole - 3 * weights)


@pytest.mark.parametrize(("stages", "virtual_stages", "count"), [(2, 2, 4), (4, 3, 8), (4, 5, 40), (8, 2, 64)])
def test_the_bubble_of_interleaved_stages_is_that_of_the_paper(stages: int, virtual_stages: int, count: int) -> None:
    """Narayanan et al., arXiv:2104.04473, section 2.2.2: (p - 1) (t_f + t_b) / v."""
    taken = PassTimes(forward_ps=10, backward_ps=20, input_ps=0, weights_ps=0)
    pipeline = FollowedPipeline(
        schedule="1f1b",
        micro_batches=count,
        times=((taken,) * virtual_stages,) * stages,
        messages_ps=(0,) * stages,
        blocking=0.0,
    )
    assert max(pipeline.ends_ps()) == 30 * (virtual_stages * count + stages - 1)


def drawn(draw: random.Random) -> FollowedPipeline:
    """Stages that differ, with messages, longer than what is followed."""
    has_mirror = draw.random() < 0.5
    stages = draw.choice([2, 4, 6, 8])
    count = FOLLOWED * stages + 2 * draw.randrange(2, 20)
    parts = [
        PassTimes(
            forward_ps=draw.randrange(50, 100),
            backward_ps=draw.randrange(100, 200),
            input_ps=draw.randrange(50, 100),
            weights_ps=draw.randrange(30, 100),
        )
        for _ in range(stages)
    ]
    times = zip(parts, reversed(parts), strict=True) if has_mirror else ((part,) for part in parts)
    return FollowedPipeline(
        schedule="dualpipe" if has_mirror else "zb-h1",
        micro_batches=count,
        times=tuple(times),
        messages_ps=tuple(draw.randrange(20) for _ in range(stages)),
        blocking=draw.choice([0.0, 0.5, 1.0]),
    )


def test_micro_batches_that_are_counted_take_as_long_as_those_that_are_followed(
    saw: Saw, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(16)
    for _ in range(CASES):
        pipeline = drawn(draw)
        counted = pipeline.ends_ps()
        with monkeypatch.context() as all_followed:
            all_followed.setattr("weftwork.workload.training.followed_pipeline.FOLLOWED", 1_000)
            followed = pipeline.ends_ps()
        assert counted == pytest.approx(followed, rel=0.02)
    saw(CASES)
