"""Which measured peaks of memory are near a plan, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weftwork.spec.training import HEADROOM, Parallelism
from weftwork.study.validation.nearest_peaks import (
    NearPeak,
    PeakQuestion,
    distance,
    fit_words,
    is_comparable,
    likely_bytes,
    near_peaks,
    near_words,
)
from weftwork.study.validation.peak_memory import PeakRow, counted_bytes, peak_rows
from weftwork.workload.models.catalogue import model

ROWS = peak_rows()
GB = 10**9


def asked(row: PeakRow, software: str = "plain", **plan: object) -> PeakQuestion:
    """The plan of a measured row as somebody would ask for it."""
    return PeakQuestion(
        model=row.model,
        plan=row.plan.model_copy(update=plan),
        gpu_bytes=row.gpu_bytes,
        software=software,
        has_flash_attention=row.has_flash_attention,
    )


def bloom(place: str, tensor: int, pipeline: int, micro_batch: int) -> PeakRow:
    return next(
        row
        for row in ROWS
        if row.source == "bloom" and place in row.name and row.plan.tensor == tensor
        and row.plan.pipeline == pipeline and row.plan.micro_batch == micro_batch
    )  # fmt: skip


def peak(quantity: str, predicted: float, measured: int) -> NearPeak:
    """A row near a plan, whose count is ``predicted`` of what was measured."""
    row = replace(bloom("GBS", 4, 12, 2), quantity=quantity)  # type: ignore[arg-type]
    return NearPeak(row=replace(row, peak_bytes=measured or round(counted_bytes(row) / predicted)), distance=0.0)


def test_a_row_is_nearest_to_itself() -> None:
    for row in ROWS[::25]:
        question = asked(row)
        assert is_comparable(question, row)
        assert distance(question, row) == 0
        assert near_peaks(question)[0].distance == 0


def test_the_distance_counts_doublings_and_other_choices() -> None:
    row = bloom("GBS", 4, 12, 2)
    assert distance(asked(row, micro_batch=4), row) == 1
    assert distance(asked(row, zero=0), row) == 1
    assert distance(asked(row, pipeline=24), row) == 1  # half the parameters on a GPU
    assert distance(replace(asked(row), gpu_bytes=2 * row.gpu_bytes), row) == 1
    assert distance(asked(row, has_gradient_copy=True), row) == 1
    assert distance(asked(row, "megatron-bridge-26.06"), row) == 1  # another program
    assert distance(asked(row, "megatron-deepspeed"), row) == 0
    assert distance(asked(row, tensor=8, zero=3), row) == 3  # parameters, tokens, ZeRO


@pytest.mark.parametrize(
    "change", [{"recompute": "none"}, {"precision": "fp8"}, {"has_lora": True}, {"offloaded_layers": 1}]
)
def test_where_memory_is_made_of_other_parts_no_row_is_near(change: dict[str, object]) -> None:
    question = asked(bloom("GBS", 4, 12, 2), **change)
    assert not any(is_comparable(question, row) for row in ROWS if row.source == "bloom")


def test_that_nothing_is_near_is_said() -> None:
    plan = Parallelism(tensor=4, data=8, global_batch=64, sequence=8192, recompute="selective")
    question = PeakQuestion(
        model=model("llama-3-8b"), plan=plan, gpu_bytes=80 * GB, software="plain", has_flash_attention=True
    )
    assert near_peaks(question) == ()
    assert near_words(()) == "no measured row is near"
    assert likely_bytes(50 * GB, ()) is None


def test_signed_errors_are_told_with_their_sign() -> None:
    low, high = peak("used", 0.88, 0), peak("allocated", 1.04, 0)
    assert near_words([low]) == "the nearest measured row was predicted 12 % low"
    assert near_words([low, high]) == "the 2 nearest measured rows were predicted 12 % low to 4 % high"
    ended = peak("exceeded", 1.0, 80 * GB)
    assert near_words([low, ended]) == (
        "the nearest measured row was predicted 12 % low, and 1 measured job near it ran out of memory where 39.1 GB"
        " were predicted"
    )


def test_a_prediction_is_corrected_by_the_lowest_row_alone() -> None:
    low, high = peak("used", 0.8, 0), peak("allocated", 1.1, 0)
    assert likely_bytes(40 * GB, [low, high]) == pytest.approx(50 * GB, rel=1e-3)
    assert likely_bytes(40 * GB, [high]) == 40 * GB  # never less than predicted
    assert likely_bytes(40 * GB, [peak("reserved", 0.6, 0), peak("exceeded", 1.0, 80 * GB)]) is None


@pytest.mark.parametrize("used", [0.5, 0.89, 0.91, 1.0, 1.01])
def test_beyond_the_headroom_it_is_always_said_that_a_plan_may_not_fit(used: float) -> None:
    """With the worst of rows, with the best of them, and with none."""
    size = round(used * 80 * GB)
    for peaks in ((), (peak("allocated", 1.1, 0),), (peak("used", 0.99, 0),)):
        assert bool(fit_words(size, 80 * GB, peaks)) == (used > 1 - HEADROOM)


def test_rows_that_were_low_warn_before_the_headroom_is_used() -> None:
    """The plan that BLOOM's developers could not run, and a smaller one that only looks as if it fits."""
    peaks = (peak("used", 0.8, 0),)
    assert fit_words(70 * GB, 80 * GB, peaks) == ", so that it may take 87.5 GB and not fit"
    assert fit_words(60 * GB, 80 * GB, peaks) == ""


def test_the_plan_that_ran_out_of_memory_at_bloom_is_near_itself_and_warns() -> None:
    row = next(one for one in ROWS if one.has_exceeded and one.plan.tensor == 2 and one.plan.micro_batch == 1)
    peaks = near_peaks(asked(row, "megatron-deepspeed"))
    assert peaks[0].row.has_exceeded
    assert "ran out of memory where 81.3" in near_words(peaks)
    assert "not fit" in fit_words(counted_bytes(row), row.gpu_bytes, peaks)
