"""The measured peaks of memory nearest to a plan, with the signed errors of their counts.

A row is comparable if memory is made of the same parts: the same recomputation, number format and kind of MLP, and
scores of attention kept or not (which do not matter under full recomputation). Between comparable rows the distance is
the number of doublings in the model's parameters, in a GPU's parameters, in the tokens of a GPU's pass and in the
memory of the GPU, and one for each of: the degree of ZeRO, the schedule, numbers of gradients, sequence parallelism,
and the program where both are known. A row is near within `NEAR`.
Leaves out: adapters (LoRA) and offloading, of which nobody has published a peak; what a difference is worth: an error
of a near row is that of another plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import log2
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.spec.training import HEADROOM
from weftwork.study.validation.peak_memory import PeakRow, counted_bytes, peak_rows
from weftwork.workload.models.size import parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.training import Model, Parallelism

__all__ = [
    "NEAR",
    "NearPeak",
    "PeakQuestion",
    "distance",
    "fit_words",
    "gb_text",
    "is_comparable",
    "likely_bytes",
    "near_peaks",
    "near_words",
    "peaks_document",
]

NEAR: Final = 4.0  # chosen: errors of two measured rows differ by 3 % up to there, and by 5 % and more beyond (medians)
MOST: Final = 3  # chosen: rows that a sentence still holds
_FAMILIES: Final = {"megatron-2021": "Megatron-LM", "megatron-deepspeed": "Megatron-DeepSpeed"}
_BRIDGE: Final = "megatron-bridge"  # Megatron-LM under recipes


@dataclass(frozen=True, kw_only=True, slots=True)
class PeakQuestion:
    """A plan whose memory was predicted.

    Attributes
    ----------
    model, plan : what trains, and how
    gpu_bytes : memory of a GPU
    software : of the catalogue
    has_flash_attention : whether scores of attention are never kept
    """

    model: Model
    plan: Parallelism
    gpu_bytes: int
    software: str
    has_flash_attention: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class NearPeak:
    """A measured row near a plan, with its distance."""

    row: PeakRow
    distance: float

    @property
    def error(self) -> float:
        """Signed error of the count; of a job that ran out of memory the most that it can be."""
        return self.row.error


def near_peaks(asked: PeakQuestion) -> tuple[NearPeak, ...]:
    """The nearest measured rows, at most `MOST`, the nearest first.

    Empty if no row is near.
    """
    comparable = [NearPeak(row=row, distance=distance(asked, row)) for row in _rows() if is_comparable(asked, row)]
    near = [one for one in comparable if one.distance <= NEAR]
    return tuple(sorted(near, key=lambda one: (one.distance, one.row.name, one.row.peak_bytes))[:MOST])


def likely_bytes(predicted_bytes: int, peaks: Sequence[NearPeak]) -> int | None:
    """Memory of a plan if it is predicted as low as the lowest of the nearest measured rows; never less than predicted.

    None if none of them tells: an allocator reserves more than it needs, and a job that ran out of memory has no peak.
    """
    errors = [one.error for one in peaks if one.row.quantity in {"allocated", "used"}]
    return round(predicted_bytes / (1 + min(0.0, *errors))) if errors else None


def near_words(peaks: Sequence[NearPeak]) -> str:
    """Signed errors of the nearest measured rows in words.

    Examples
    --------
    >>> near_words(())
    'no measured row is near'
    """
    if not peaks:
        return "no measured row is near"
    finished = [one for one in peaks if not one.row.has_exceeded]
    ended = [one for one in peaks if one.row.has_exceeded]
    said = []
    if finished:
        several = plural(len(finished), "nearest measured row was", "nearest measured rows were")
        who = f"the {several.removeprefix('1 ')}"
        said.append(f"{who} predicted {_range([one.error for one in finished])}")
    if ended:
        counts = " and ".join(f"{counted_bytes(one.row) / 1e9:.1f}" for one in ended)
        who = plural(len(ended), "measured job")
        said.append(f"{who} near it ran out of memory where {counts} GB were predicted")
    return ", and ".join(said)


def fit_words(predicted_bytes: int, limit_bytes: int, peaks: Sequence[NearPeak]) -> str:
    """Why a plan may not fit, to stand behind `near_words`; empty if nothing says so."""
    likely = likely_bytes(predicted_bytes, peaks)
    if predicted_bytes > limit_bytes:
        return ", and it does not fit unless the prediction is too high"
    if likely is not None and likely > limit_bytes:
        return f", so that it may take {gb_text(likely)} and not fit"
    return ", so that it may not fit" if predicted_bytes > (1 - HEADROOM) * limit_bytes else ""


def gb_text(size_bytes: float) -> str:
    """Bytes in GB, with three digits, or all of a larger number.

    Examples
    --------
    >>> gb_text(73_910_000_000), gb_text(8_950_400_000_000)
    ('73.9 GB', '8,950 GB')
    """
    size = size_bytes / 1e9
    return f"{size:,.0f} GB" if size >= 999.5 else f"{size:.3g} GB"


def peaks_document(peaks: Sequence[NearPeak]) -> list[dict[str, object]]:
    """Near rows as JSON records, the nearest first."""
    return [
        {
            "row": one.row.name,
            "quantity": one.row.quantity,
            "measured_bytes": one.row.peak_bytes,
            "predicted_bytes": counted_bytes(one.row),
            "error": round(one.error, 4),
            "distance": round(one.distance, 2),
        }
        for one in peaks
    ]


def _range(errors: Sequence[float]) -> str:
    low, high = (_signed(end) for end in (min(errors), max(errors)))
    return low if low == high else f"{low} to {high}"


def _signed(error: float) -> str:
    percent = round(100 * error)
    if percent == 0:
        return "within 0.5 %"
    return f"{abs(percent)} % {'low' if percent < 0 else 'high'}"


@cache
def _rows() -> tuple[PeakRow, ...]:
    return peak_rows()


def is_comparable(asked: PeakQuestion, row: PeakRow) -> bool:
    """Whether memory is made of the same parts."""
    plan, other = asked.plan, row.plan
    keeps_scores = asked.has_flash_attention == row.has_flash_attention or plan.recompute == "full"
    return (
        plan.recompute == other.recompute
        and plan.precision == other.precision
        and (asked.model.experts > 0) == (row.model.experts > 0)
        and keeps_scores
        and not (plan.has_lora or plan.offloaded_layers)
    )


def distance(asked: PeakQuestion, row: PeakRow) -> float:
    """Doublings and other choices between a plan and a comparable row."""
    plan, other = asked.plan, row.plan
    ours, theirs = parameters(asked.model).total, parameters(row.model).total
    doublings = (
        ours / theirs,
        ours / (plan.tensor * plan.pipeline) * (other.tensor * other.pipeline) / theirs,
        plan.tokens / plan.tensor * other.tensor / other.tokens,
        asked.gpu_bytes / row.gpu_bytes,
    )
    family = _family(asked.software)
    choices = (
        plan.zero != other.zero,
        plan.schedule != other.schedule or (plan.virtual_stages > 1) != (other.virtual_stages > 1),
        (plan.gradient_bytes, plan.has_gradient_copy) != (other.gradient_bytes, other.has_gradient_copy),
        _splits_sequences(plan) != _splits_sequences(other),
        family not in {None, row.software},
    )
    return sum(abs(log2(ratio)) for ratio in doublings) + sum(choices)


def _splits_sequences(plan: Parallelism) -> bool:
    return plan.is_sequence_parallel or plan.tensor == 1


def _family(software: str) -> str | None:
    """The family of programs that a software of the catalogue belongs to; None for one that names no program."""
    return "Megatron-LM" if software.startswith(_BRIDGE) else _FAMILIES.get(software)
