"""A pipeline stage that computes more than the mean of its job.

Of several, the last by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.study.answer.ids import ids_of_stage
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.answer.suspicions._training import job_standing
from weftwork.study.prepare import what_if
from weftwork.study.results.measure import computed_ps

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]

_UNEVEN: Final = 1.02  # chosen: times the work of a mean stage; less costs less than an answer tells


def _stages(records: RunRecords) -> Iterator[Suspect]:
    prepared = records.prepared
    computed = computed_ps(prepared)
    stage, origin = prepared.stage_of_program, prepared.origin_of_program
    for index, job in enumerate(prepared.jobs):
        own = {p: ps for p, ps in computed.items() if prepared.job_of_program[p] == index and origin[p] == p}
        mean = sum(own.values()) / len(own)
        worst = max(own, key=lambda program: own[program])
        if len(own) < 2 or own[worst] <= _UNEVEN * mean:
            continue
        name = f"stage {stage[worst]}"
        can_run = isinstance(prepared.engine_input, FlowInput)
        batches = job.plan.micro_batches
        yield Suspect(
            kind="stage",
            name=name if len(prepared.jobs) == 1 else f"{name} of {job.name}",
            key=f"{prepared.scenario.job_path(index)}.pipeline",
            text=f"computes {100 * (own[worst] / mean - 1):.3g} % more than the mean of {plural(len(own), 'stage')}",
            change=changed(what_if.with_balanced_stages, computed) if can_run else None,
            job=index,
            ids=ids_of_stage(prepared, index, int(stage[worst])),
            bound_share=(own[worst] / mean - 1) * (batches + len(own) - 1) / batches,
            standing=job_standing(prepared),
        )


SUSPICION: Final = Suspicion(
    rank=80,
    key="training.pipeline",
    needs=frozenset({"training"}),
    suspects=_stages,
)
