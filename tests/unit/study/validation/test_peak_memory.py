"""What Weftwork counts of a GPU's memory, beside peaks that others measured, and every plan that others ran."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import HEADROOM, Parallelism
from weftwork.study.validation.peak_memory import PeakRow, counted_bytes, peak_rows
from weftwork.workload.models.catalogue import model
from weftwork.workload.parallelism.refuse import refuse

ROWS = peak_rows()


WANTED = 0.10  # median of absolute errors


# Sources by what they print: the median of absolute errors, and the least and the greatest error, as found; each may
# become smaller. What an allocator has reserved is more than what it has given away, by what cannot be known here.
SOURCES = {
    "zero-bubble": (35, 0.032, -0.096, 0.062),
    "megatron-pr-482": (4, 0.075, -0.084, 0.0),
    "megatron-tests": (7, 0.0125, -0.064, 0.0),
    "torchtitan": (11, 0.29, -0.43, 0.0),
    "bloom": (42, 0.155, -0.21, 0.03),
}


def of(source: str) -> list[PeakRow]:
    return [row for row in ROWS if row.source == source and not row.has_exceeded]


@pytest.mark.parametrize("source", SOURCES)
def test_errors_of_a_source_are_what_the_documents_say(source: str) -> None:
    rows, median, low, high = SOURCES[source]
    errors = [row.error for row in of(source)]
    assert len(errors) == rows
    assert np.median(np.abs(errors)) <= median
    assert low <= min(errors)
    assert max(errors) <= high


def test_every_source_is_listed() -> None:
    assert {row.source for row in ROWS} == set(SOURCES)


def test_the_median_of_all_measured_peaks_is_within_a_tenth() -> None:
    assert np.median([abs(row.error) for row in ROWS if not row.has_exceeded]) <= WANTED


@pytest.mark.parametrize("source", ["zero-bubble", "megatron-pr-482", "megatron-tests"])
def test_the_median_of_what_programs_give_away_is_within_a_tenth(source: str) -> None:
    assert {row.quantity for row in of(source)} == {"allocated"}
    assert np.median([abs(row.error) for row in of(source)]) <= WANTED


def test_no_measured_peak_of_what_was_given_away_is_missed_by_more_than_a_tenth() -> None:
    assert max(abs(row.error) for row in ROWS if row.quantity == "allocated") <= WANTED


def test_more_micro_batches_and_split_backward_passes_need_more_as_measured() -> None:
    """Within a table of one source the counted order of the plans of a model is the measured one."""
    pairs = [
        (one, other)
        for one in of("zero-bubble")
        for other in of("zero-bubble")
        if one.model.name == other.model.name and one.peak_bytes > 1.05 * other.peak_bytes
    ]
    kept = sum(counted_bytes(one) > counted_bytes(other) for one, other in pairs)
    assert kept / len(pairs) >= 0.97


def test_jobs_that_ran_out_of_memory_are_beyond_the_headroom() -> None:
    """All but one: BLOOM's 206 billion parameters, whose neighbour of 203 billion ran with 67 of 80 GB."""
    ended = [row for row in ROWS if row.has_exceeded]
    within = [row.name for row in ended if counted_bytes(row) <= (1 - HEADROOM) * row.gpu_bytes]
    assert len(ended) == 6
    assert within == ["bloom, Rebalancing layers: bloom-82x14336-128, 1f1b, TP 4 PP 12 DP 8 micro batch 2"]


def test_gradients_in_two_formats_explain_the_peaks_of_deepspeed_in_bf16() -> None:
    """With the copy the rows in BF16 err as those in FP16 do; without it by 12 % more."""
    rows = [row for row in of("bloom") if "Rebalancing" in row.name]
    others = [row.error for row in of("bloom") if "Rebalancing" not in row.name]
    alone = [
        counted_bytes(replace(row, plan=row.plan.model_copy(update={"has_gradient_copy": False}))) / row.peak_bytes - 1
        for row in rows
    ]
    assert abs(np.median([row.error for row in rows]) - np.median(others)) < 0.02
    assert np.median(alone) < np.median(others) - 0.1


@pytest.mark.parametrize("data", [64, 128])
def test_llama_3_405b_fits_its_8192_and_16384_gpus(data: int) -> None:
    """Table 4 of arXiv:2407.21783 (8,192 tokens, 16 M a batch): whole activations, first and last stage shorter."""
    plan = Parallelism(
        tensor=8, pipeline=16, data=data, global_batch=2048, sequence=8192, zero=2, virtual_stages=8,
        has_balanced_ends=True, gradient_bytes=4,
    )  # fmt: skip
    refuse(model("llama-3-405b"), plan, gpus=128 * data, gpu=gpu("h100"))
