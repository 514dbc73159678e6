"""An exchange of experts that little computing hides.

The exchange is exposed where no other micro batch computes beside it. Overlap is off in Megatron-LM unless it is asked
for, and on in recipes that are tuned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._training import job_index, job_standing, with_job

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]

TUNED_OVERLAP: Final = 0.9  # the declared prior of recipes that hide the exchange (docs/models/parallel-plans.md)


def _little_overlap(records: RunRecords) -> Iterator[Suspect]:
    prepared, scenario = records.prepared, records.prepared.scenario
    for index, job in enumerate(prepared.jobs):
        path, section = prepared.scenario.job_path(index), scenario.trainings[index]
        if job.plan.expert * job.plan.expert_tensor == 1:
            continue
        beside = job.plan.overlap.expert
        if beside < TUNED_OVERLAP:
            usual = "" if scenario.is_set(f"{path}.overlap.expert") else " by default"
            overlap = section.overlap.model_copy(update={"expert": TUNED_OVERLAP})
            yield Suspect(
                kind="setting",
                name="an exchange of experts with little overlap",
                key=f"{path}.overlap.expert",
                text=f"hides at most {100 * beside:g} % of its time behind computation{usual}; tuned recipes hide"
                f" {100 * TUNED_OVERLAP:g} %",
                change=with_job(index, overlap=overlap),
                job=job_index(prepared, index),
                standing=job_standing(prepared),
            )


SUSPICION: Final = Suspicion(
    rank=90, key="training.overlap.expert", needs=frozenset({"training"}), suspects=_little_overlap
)
