"""The answer of a run: its time, its limit, and its culprit.

The rules stand in `docs/models/answer.md`. Leaves out: which worlds were simulated for it
(`weftwork.study.answer.worlds`), and who stopped a run that did not end (`weftwork.study.answer.unfinished`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.answer import TIME_GROUPS, Answer, Culprit, Limit, Took
from weftwork.study.answer.measure import computed_ps, demand_ps, taken_ps
from weftwork.study.answer.unfinished import who_stopped
from weftwork.study.answer.victims import worst_victim
from weftwork.study.results.ending import is_done

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weftwork.spec.answer import How
    from weftwork.spec.result import Quantity
    from weftwork.study.answer.suspect import Suspect
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["answer_of", "limit_of_time"]

LEAST_SHARE: Final = 0.01  # chosen: of what a run took; who costs less is nobody's culprit
_STRETCHED: Final = 2  # chosen: times the length of a fault; more is not its own doing
_OF_THIS_RUN: Final = ("faults", "stragglers", "jobs", "fabric")
_BUILT: Final = ("fabric.oversubscription", "fabric.switch.buffer")
_ANSWERS: Final = ("transport.timeout", "transport.congestion_control")  # keys of what answers to others
_COMMAND: Final = "weftwork run FILE --what-if all"


def answer_of(
    prepared: Prepared, execution: Execution, *, summary: Mapping[str, Quantity], tables: Mapping[str, pa.Table]
) -> Answer:
    """Find the answer of a run.

    Parameters
    ----------
    prepared : what was run
    execution : of it, its suspects, and the worlds beside it
    summary, tables : of the run
    """
    taken = taken_ps(prepared, execution)
    what, number = _what(prepared)
    took = Took(what=what, seconds=None if taken is None else max(taken) / SECOND_PS, number=number)
    limited_by = _limit(summary, tables)
    if taken is None:
        is_empty = is_done(prepared, execution)  # nothing was sent, so that nothing has a time
        stopped_by = _nobody() if is_empty else who_stopped(prepared, execution, tables)
        return Answer(took=took, limited_by=limited_by, culprit=stopped_by)
    found = sorted(_tried(prepared, execution, taken), key=lambda one: -(one.cost_share or 0.0))
    victim = worst_victim(prepared, execution)
    guilty = [one for one in found if one.how == "simulated" and (one.cost_share or 0.0) >= LEAST_SHARE]
    bounds = [one for one in found if one.how == "bound" and (one.cost_share or 0.0) >= LEAST_SHARE]
    culprit = _most_guilty(guilty, execution.suspects) if guilty else None
    if victim is not None and (culprit is None or (victim.cost_share or 0.0) > (culprit.cost_share or 0.0)):
        # where the scenario names the root of the pauses, it is the suspect that was tried
        at_root = [one for one in guilty if one.name.partition("/")[0] == victim.name]
        culprit = replace(at_root[0], text=f"{at_root[0].text}; it {victim.text}") if at_root else victim
    if culprit is None and bounds:
        culprit = bounds[0]
    culprit = culprit or _nobody()
    others = tuple(one for one in found if (one.name, one.of) != (culprit.name, culprit.of))
    return Answer(took=took, limited_by=limited_by, culprit=culprit, others=others)


def _most_guilty(guilty: Sequence[Culprit], suspects: Sequence[Suspect]) -> Culprit:
    """The most expensive suspect, or the suspect that made it so expensive.

    A fault that is over holds nobody up any longer: where it cost more than twice the time that it lasted, who made it
    last is to blame. What is built or set for all runs yields to what is wrong in this one, and a timeout or a
    congestion control, which answer to what others did, yields to both, where that cost at least half as much.
    """
    lasts_ps = {(one.key, one.name): one.lasts_ps for one in suspects}

    def is_stretched(one: Culprit) -> bool:
        lasts = lasts_ps.get((one.key, one.name))
        return lasts is not None and (one.cost_s or 0.0) * SECOND_PS > _STRETCHED * lasts

    first, *rest = guilty
    near = [one for one in rest if (one.cost_s or 0.0) >= (first.cost_s or 0.0) / _STRETCHED]
    if is_stretched(first):
        other = next((one for one in near if one.key in _ANSWERS), None)
        return first if other is None else replace(other, text=f"{other.text}, after {first.name} {first.text}")
    graver = [one for one in near if _rank(one) < _rank(first) and not is_stretched(one)]
    return min(graver, key=_rank) if graver else first


def _rank(one: Culprit) -> int:
    """Rank of a suspect.

    0: wrong in this run; 1: built or set like that; 2: a reaction to others.
    """
    if one.key in _ANSWERS:
        return 2
    return 0 if one.key is None or (one.key.partition(".")[0] in _OF_THIS_RUN and one.key not in _BUILT) else 1


def _what(prepared: Prepared) -> tuple[str, str]:
    """Name of the time of a run, and its number in the summary."""
    if prepared.jobs:
        return "an iteration", "iteration_ps"
    if prepared.scenario.collective is not None:
        return "the collective", "collective_duration_ps"
    return "all messages", "completion_ps"


def _limit(summary: Mapping[str, Quantity], tables: Mapping[str, pa.Table]) -> Limit:
    """The group with most of the time, or the busiest port."""
    found = limit_of_time({name: number.value for name, number in summary.items()})
    if found is not None:
        return found
    links = tables["links"]
    use = links["utilisation"].to_numpy()
    if not len(use) or not use.max():
        return Limit(name="", share=None, number="busiest_link")
    return Limit(name=links["name"][int(use.argmax())].as_py(), share=float(use.max()), number="busiest_link")


def limit_of_time(numbers: Mapping[str, float | None]) -> Limit | None:
    """The group of time with the largest share of an iteration.

    None without training, or if nothing is known of the iteration.

    Parameters
    ----------
    numbers : values of a summary, by name
    """
    shares = {name: float(numbers.get(name) or 0.0) for name in TIME_GROUPS}
    name = max(shares, key=lambda one: shares[one])
    return Limit(name=TIME_GROUPS[name], share=shares[name], number=name) if shares[name] else None


def _tried(prepared: Prepared, execution: Execution, taken: Sequence[int]) -> list[Culprit]:
    """All suspects with their costs.

    A simulated suspect has its measured cost, any other at most a bound.
    """
    again = {world.suspect.label: (other, ran) for world, other, ran in execution.worlds if world.suspect is not None}
    found = []
    for suspect in execution.suspects:
        if suspect.label in again:
            without = taken_ps(*again[suspect.label])
            if without is not None:
                found.append(_simulated(suspect, prepared, taken, without))
                continue
        found.append(_bounded(suspect, prepared, execution, taken))
    return found


def _simulated(suspect: Suspect, prepared: Prepared, taken: Sequence[int], without: Sequence[int]) -> Culprit:
    """A suspect with the saving of the job that saves most without it."""
    jobs = range(len(taken)) if suspect.job is None else (suspect.job,)
    worst = max(jobs, key=lambda job: (taken[job] - without[job]) / max(1, taken[job]))
    cost_ps = taken[worst] - without[worst]
    found = _culprit(suspect, how="simulated", of=_whose(prepared, worst))
    return replace(found, cost_s=cost_ps / SECOND_PS, cost_share=cost_ps / max(1, taken[worst]))


def _bounded(suspect: Suspect, prepared: Prepared, execution: Execution, taken: Sequence[int]) -> Culprit:
    """A suspect with an upper bound of its cost."""
    worst = suspect.job or 0
    share = suspect.bound_share
    if share is None:
        share = 1 - _least_ps(prepared, execution, worst) / max(1, taken[worst])
    share = min(max(share, 0.0), 1.0)
    found = _culprit(suspect, how="bound", of=_whose(prepared, worst))
    command = None if suspect.make is None else _COMMAND
    return replace(found, cost_s=share * taken[worst] / SECOND_PS, cost_share=share, command=command)


def _culprit(suspect: Suspect, *, how: How, of: str) -> Culprit:
    """A suspect as a culprit of the answer, without its cost."""
    return Culprit(
        kind=suspect.kind,
        name=suspect.name,
        key=suspect.key,
        text=suspect.text,
        cost_s=None,
        cost_share=None,
        how=how,
        of=of,
        start_s=None if suspect.start_ps is None else suspect.start_ps / SECOND_PS,
        end_s=None if suspect.end_ps is None else suspect.end_ps / SECOND_PS,
    )


def _whose(prepared: Prepared, job: int) -> str:
    return prepared.jobs[job].name if len(prepared.jobs) > 1 else "the run"


def _least_ps(prepared: Prepared, execution: Execution, job: int) -> float:
    """Lower bound of the run's time, whoever is to blame.

    The bound is the computing of a job, or the traffic of the busiest NIC port.
    """
    if prepared.jobs:
        own = np.flatnonzero(prepared.job_of_program == job).tolist()
        computed = computed_ps(prepared)
        return max(computed[program] for program in own) / prepared.jobs[job].section.iterations
    if prepared.volume is None:
        return 0.0
    collective = prepared.scenario.collective
    return demand_ps(prepared, execution) / (1 if collective is None else collective.repeat)


def _nobody() -> Culprit:
    return Culprit(
        kind="none",
        name="nothing",
        key=None,
        text="its own size alone limits it",
        cost_s=0.0,
        cost_share=0.0,
        how="recorded",
        of="the run",
    )
