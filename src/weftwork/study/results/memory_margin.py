"""How near the memory of a training job is to that of its GPUs, beside the errors of measured peaks.

Leaves out: the count itself (`weftwork.workload.parallelism.memory`); which measured rows are near
(`weftwork.study.validation.nearest_peaks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.spec.training import HEADROOM
from weftwork.study.validation.nearest_peaks import PeakQuestion, near_peaks, near_words

if TYPE_CHECKING:
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["memory_caveats", "memory_limit_bytes", "memory_share", "peaks_question"]


def memory_limit_bytes(job: TrainingJob) -> int:
    """Memory of a GPU that a job may use, at most all of it.

    A scenario may permit more than a GPU has (``training.memory``), which makes no GPU larger.
    """
    return min(job.gpu.memory_bytes, job.section.memory_bytes or job.gpu.memory_bytes)


def memory_share(job: TrainingJob) -> float:
    """Predicted memory of the fullest GPU over the memory that it may use."""
    return job.memory.total_bytes / memory_limit_bytes(job)


def peaks_question(job: TrainingJob) -> PeakQuestion:
    """The job as it is compared with measured rows."""
    return PeakQuestion(
        model=job.model,
        plan=job.plan,
        gpu_bytes=job.gpu.memory_bytes,
        software=job.software.name,
        has_flash_attention=job.software.has_flash_attention,
    )


def memory_caveats(prepared: Prepared) -> dict[str, Caveat]:
    """Memory of each training job and how well the nearest measured rows were predicted, by ``job.memory_bytes``."""
    return caveats_by_subject(
        Caveat(subject=f"{job.name}.memory_bytes", kind="approximate", text=_text(job)) for job in prepared.jobs
    )


def _text(job: TrainingJob) -> str:
    limit_bytes, share = memory_limit_bytes(job), memory_share(job)
    text = (
        f"up to {job.memory.total_bytes / 1e9:.3g} GB of memory, {100 * share:.0f} % of the {limit_bytes / 1e9:.3g} GB"
        f" of a GPU; "
        f"{near_words(near_peaks(peaks_question(job)))}"
    )
    if share > 1:
        return f"{text}, and it does not fit unless the prediction is too high"
    return f"{text}, so that it may not fit" if share > 1 - HEADROOM else text
