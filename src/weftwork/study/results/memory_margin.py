"""How near the memory of a training job is to that of its GPUs, beside the errors of measured peaks.

Leaves out: the count itself (`weftwork.workload.parallelism.memory`); which measured rows are near
(`weftwork.study.validation.nearest_peaks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.study.validation.nearest_peaks import (
    PeakQuestion,
    fit_words,
    gb_text,
    likely_bytes,
    near_peaks,
    near_words,
)

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["memory_caveats", "memory_limit_bytes", "memory_numbers", "peaks_question"]


def memory_limit_bytes(job: TrainingJob) -> int:
    """Memory of a GPU that a job may use, at most all of it.

    A scenario may permit more than a GPU has (``training.memory``), which makes no GPU larger.
    """
    return min(job.gpu.memory_bytes, job.section.memory_bytes or job.gpu.memory_bytes)


def peaks_question(job: TrainingJob) -> PeakQuestion:
    """The job as it is compared with measured rows."""
    return PeakQuestion(
        model=job.model,
        plan=job.plan,
        gpu_bytes=job.gpu.memory_bytes,
        software=job.software.name,
        has_flash_attention=job.software.has_flash_attention,
    )


def memory_numbers(job: TrainingJob) -> dict[str, float | None]:
    """Columns of the table `jobs` about memory."""
    total_bytes = job.memory.total_bytes
    return {
        "memory_bytes": total_bytes,
        "memory_share": total_bytes / memory_limit_bytes(job),
        "memory_likely_share": None
        if (likely := likely_bytes(total_bytes, near_peaks(peaks_question(job)))) is None
        else likely / memory_limit_bytes(job),
    }


def memory_caveats(prepared: Prepared) -> dict[str, Caveat]:
    """Memory of each training job and how well the nearest measured rows were predicted, by ``job.memory_bytes``."""
    return caveats_by_subject(
        Caveat(subject=f"{job.name}.memory_bytes", kind="approximate", text=_text(job)) for job in prepared.jobs
    )


def _text(job: TrainingJob) -> str:
    total_bytes, limit_bytes = job.memory.total_bytes, memory_limit_bytes(job)
    share = f"{100 * total_bytes / limit_bytes:,.0f} %"
    peaks = near_peaks(peaks_question(job))
    return (
        f"up to {gb_text(total_bytes)} of memory, {share} of its {gb_text(limit_bytes)}; "
        f"{near_words(peaks)}{fit_words(total_bytes, limit_bytes, peaks)}"
    )
