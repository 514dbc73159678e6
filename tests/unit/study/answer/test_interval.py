"""The interval of a time: the nearest group of measurements, its quartiles, and what is said where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.seed_answers import answer

from weftwork.data.scored import ScoredError, scored_errors
from weftwork.spec.answer import Culprit, Interval
from weftwork.study.answer import interval as interval_module
from weftwork.study.answer.interval import LEAST_ROWS, MeasuredSpread, spread_of
from weftwork.study.answer.of_seeds import answer_of_seeds
from weftwork.study.prepare.likeness import DENSE, EXPERTS, Likeness, family

LIKE = Likeness(gpu="h100", kind=DENSE, gpus=64, precision="fp8", software="megatron-bridge-26.06")
ROW = ScoredError(
    set="any", gpu="h100", precision="fp8", software="megatron-bridge", kind=DENSE, gpus=64, size_bytes=0, error=0.0
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> list[ScoredError]:
    """Rows in place of the package's."""
    rows: list[ScoredError] = []
    monkeypatch.setattr(interval_module, "scored_errors", lambda: rows)
    spread_of.cache_clear()
    yield rows
    spread_of.cache_clear()


def errors(*values: float, **other: object) -> list[ScoredError]:
    return [replace(ROW, error=value, **other) for value in values]


def test_the_interval_is_what_the_time_would_be_with_the_quartiles_of_the_errors(table: list[ScoredError]) -> None:
    table += errors(-0.5, -0.2, 0.0, 0.25, 1.0)
    spread = spread_of(LIKE)
    assert spread.rows == 5
    found = spread.of(2.0)
    assert (found.low, found.high) == pytest.approx((2.0 / 1.25, 2.0 / 0.8))
    assert (
        found.basis
        == "quartiles of the errors at 5 published times of dense models on h100 in fp8 by megatron-bridge, 64 GPUs"
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"gpus": 1024}, "1,024 GPUs; none is of the same scale"),
        ({"software": "plain"}, "by plain, 64 GPUs; none is of the same software"),
        ({"precision": "bf16"}, "in bf16 by megatron-bridge, 64 GPUs; none is of the same precision"),
        ({"precision": "bf16", "software": "plain", "gpus": 2}, "none is of the same precision, scale and software"),
    ],
)
def test_a_group_that_differs_says_in_what(table: list[ScoredError], other: dict[str, object], words: str) -> None:
    table += errors(*([0.1] * LEAST_ROWS), **other)
    assert spread_of(LIKE).basis.endswith(words)


def test_rows_that_are_alike_go_before_rows_that_are_not(table: list[ScoredError]) -> None:
    table += errors(*([0.5] * 50), gpus=65_536)
    table += errors(*([0.5] * 5), gpus=1_024)
    table += errors(*([1.0] * 50), precision="bf16")
    table += errors(*([0.25] * LEAST_ROWS))
    assert (spread_of(LIKE).low, spread_of(LIKE).rows) == (0.8, LEAST_ROWS)
    del table[-1]
    spread_of.cache_clear()
    assert spread_of(LIKE).rows == 5 + LEAST_ROWS - 1  # of a scale 16 times as large, of the same precision
    del table[50:55]
    spread_of.cache_clear()
    assert spread_of(LIKE).rows == 50 + LEAST_ROWS - 1  # of any scale


@pytest.mark.parametrize("other", [{"gpu": "h200"}, {"kind": EXPERTS}])
def test_another_gpu_and_another_kind_are_never_like_it(table: list[ScoredError], other: dict[str, object]) -> None:
    table += errors(*([0.1] * 99), **other)
    spread = spread_of(LIKE)
    assert (spread.low, spread.high, spread.rows) == (None, None, 0)
    assert spread.basis == "no measurement like this: the scorecard has no published time of dense models on h100"
    assert spread.of(2.0) == Interval(basis=spread.basis, rows=0)


def test_few_rows_give_no_quartiles_and_are_counted(table: list[ScoredError]) -> None:
    table += errors(*([0.1] * (LEAST_ROWS - 1)))
    spread = spread_of(LIKE)
    assert (spread.low, spread.rows) == (None, LEAST_ROWS - 1)
    assert "has 3 published times of dense models on h100, and quartiles take 4" in spread.basis


def test_a_row_of_the_scorecard_is_in_the_group_nearest_to_it() -> None:
    """Half of the errors of each group lie within its quartiles, and they are of the GPU and the kind."""
    inside = []
    for row in scored_errors():
        like = Likeness(
            gpu=row.gpu, kind=row.kind, gpus=row.gpus, precision=row.precision, software=row.software,
            size_bytes=row.size_bytes,
        )  # fmt: skip
        spread = spread_of(like)
        if spread.low is None or spread.high is None:
            assert spread.rows < LEAST_ROWS
            continue
        assert 0 < spread.low <= spread.high
        assert f"of {row.kind} on {row.gpu}" in spread.basis
        inside.append(spread.low <= 1 / (1 + row.error) <= spread.high)
    assert 0.4 < np.mean(inside) < 0.65


def test_the_table_has_measured_times_of_every_kind_and_sane_errors() -> None:
    kinds = {row.kind for row in scored_errors()}
    assert {DENSE, EXPERTS, "LoRA", "all-reduces in one server", "all-gathers between servers"} <= kinds
    assert all(-0.9 < row.error < 3 for row in scored_errors())


def test_a_family_is_a_software_without_its_release() -> None:
    assert (family("megatron-bridge-26.06"), family("megatron-2021"), family("plain")) == (
        "megatron-bridge", "megatron-2021", "plain",
    )  # fmt: skip


def test_the_interval_of_several_seeds_is_the_mean_of_theirs() -> None:
    nobody = Culprit(
        kind="none", name="nothing", key=None, text="", cost_s=None, cost_share=None, how="recorded", of="the run"
    )
    spread = MeasuredSpread(low=0.5, high=2.0, basis="some", rows=9)
    each = [answer(nobody, seconds=seconds) for seconds in (1.0, 3.0)]
    each = [replace(one, took=replace(one.took, interval=spread.of(one.took.seconds or 0.0))) for one in each]
    assert answer_of_seeds(each, {}).took.interval == Interval(low=1.0, high=4.0, basis="some", rows=9)
    each[0] = replace(each[0], took=replace(each[0].took, seconds=None, interval=None))
    assert answer_of_seeds(each, {}).took.interval is None
