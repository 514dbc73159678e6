"""Upper bound of an iteration on a GPU with unmeasured matrix products.

A GPU may have two figures for eight bits: what its matrix products are taken to reach, and what they reach at least
(hardware/gpus.toml). The run has the first; its time with the second follows by the ratio of closed forms.
Leaves out: scenarios with a calibration, whose efficiency of products stands in the place of both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from weftwork.spec.numbers import quantities
from weftwork.spec.result import Quantity
from weftwork.study.prepare.training import training_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.spec.training import Gpu, Parallelism
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["unmeasured_summary"]

_EIGHT_BITS: Final = frozenset({"fp8", "mxfp8"})


def unmeasured_summary(prepared: Prepared, summary: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The longest plausible iteration of each job with an unmeasured rate.

    Empty without such a job.

    Parameters
    ----------
    prepared : what was run
    summary : its numbers, with the time
    """
    found: dict[str, Quantity] = {}
    if prepared.scenario.calibration is not None:
        return found
    for place, job in enumerate(prepared.jobs):
        lead = f"{job.name}." if place else ""
        time = summary.get(f"{lead}iteration_ps")
        if time is None or not _is_unmeasured(job.gpu, job.plan):
            continue
        path = prepared.scenario.job_path(place)
        setting = training_setting(prepared.scenario, prepared.fabric, job.section, path)
        slow = replace(setting, gpu=_slowest(setting.gpu))
        usual_ps, slow_ps = (one.closed_forms().iteration(job.plan, follows=True).total_ps for one in (setting, slow))
        value = None if time.value is None else round(time.value * slow_ps / usual_ps)
        found |= quantities("iteration_unmeasured_ps", value, lead=lead)
    return found


def _is_unmeasured(gpu: Gpu, plan: Parallelism) -> bool:
    return plan.precision in _EIGHT_BITS and gpu.achieved_fp8_low_share < gpu.achieved_fp8_share


def _slowest(gpu: Gpu) -> Gpu:
    return gpu.model_copy(update={"achieved_fp8_share": gpu.achieved_fp8_low_share})
