"""Copies of a token for each of its experts, also where several of them are on one server.

Software that joins copies sends one to a server. This is off in Megatron-LM unless it is asked for, and on in recipes
that are tuned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.study.answer.suspect import Suspect
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._training import job_index, job_standing, with_job

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _copies(records: RunRecords) -> Iterator[Suspect]:
    prepared, scenario = records.prepared, records.prepared.scenario
    for index, job in enumerate(prepared.jobs):
        path, section = prepared.scenario.job_path(index), scenario.trainings[index]
        if job.plan.expert * job.plan.expert_tensor == 1:
            continue
        if not job.software.has_deduplicated_experts and job.plan.expert > 1:
            fields = {**section.software.fields, "has_deduplicated_experts": True}
            yield Suspect(
                kind="setting",
                name="repeated copies of tokens",
                key=f"{path}.software.deduplicated_experts",
                text="cross the network: a token is sent to each of its experts, even if several of them are on one"
                " server; with true, as in DeepEP and HybridEP, one copy goes to a server",
                change=with_job(index, software=section.software.model_copy(update={"fields": fields})),
                job=job_index(prepared, index),
                standing=job_standing(prepared),
            )


SUSPICION: Final = Suspicion(
    rank=90, key="training.software.deduplicated_experts", needs=frozenset({"training"}), suspects=_copies
)
