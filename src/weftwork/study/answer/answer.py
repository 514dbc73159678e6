"""The answer of a run: its time, its limit, and its culprit.

The rules stand in `docs/models/answer.md`. Leaves out: which worlds were simulated for it
(`weftwork.study.answer.worlds`), and who stopped a run that did not end (`weftwork.study.answer.unfinished`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.spec.answer import REACTIONS, Answer, Culprit, Limit, Took
from weftwork.spec.numbers import NUMBERS, TIME_GROUPS
from weftwork.study.answer.evidence import evidence_of
from weftwork.study.answer.interval import run_interval
from weftwork.study.answer.time_parts import LEAST_PART, parts_of
from weftwork.study.answer.unfinished import who_stopped
from weftwork.study.answer.verdict import nothing_sent, verdict_without_culprit
from weftwork.study.answer.victims import worst_victim
from weftwork.study.results.measure import computed_ps, demand_ps, taken_ps
from weftwork.study.run.ending import is_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from weftwork.spec.answer import How
    from weftwork.spec.result import Quantity
    from weftwork.study.answer.asking import AskedExecution
    from weftwork.study.answer.suspect import Standing, Suspect
    from weftwork.study.answer.worlds import World
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["answer_of", "limit_of_time"]

LEAST_SHARE: Final = 0.01  # chosen: of what a run took; who costs less is nobody's culprit
_STRETCHED: Final = 2  # chosen: times the length of a fault; more is not its own doing
# Of two suspects whose costs are near, the one with the lower number is to blame
_RANKS: Final[Mapping[Standing, int]] = {"wrong": 0, "built": 1, "reaction": 2}
_OF_A_HOST: Final = ("nic", "server")  # kinds of suspects that can be the root of pauses at a host
_COMMAND: Final = "weftwork run FILE --what-if all"


def answer_of(
    prepared: Prepared, execution: AskedExecution, *, summary: Mapping[str, Quantity], tables: Mapping[str, pa.Table]
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
    seconds = None if taken is None else max(taken) / SECOND_PS
    took = Took(what=what, seconds=seconds, number=number, interval=run_interval(prepared, seconds, summary))
    limited_by = _limit(summary, tables)
    if taken is None:
        is_empty = is_done(prepared, execution)  # nothing was sent, so that nothing has a time
        stopped_by = nothing_sent() if is_empty else who_stopped(prepared, execution, tables)
        return Answer(took=took, limited_by=limited_by, culprit=stopped_by)
    evidence = evidence_of(prepared, execution, summary)
    singles = sorted(_tried(prepared, execution, taken), key=_by_cost)
    joints = _joints(prepared, execution, taken)
    recorded = list(parts_of(prepared, execution, taken, summary=summary, tables=tables))
    simulated = [one for one in singles if one.kind == "part" and one.how == "simulated"]
    parts = sorted((one for one in (*simulated, *recorded) if (one.cost_share or 0.0) >= LEAST_PART), key=_by_cost)
    culprit = _cause(execution, singles, joints, worst_victim(prepared, tables))
    if parts and (culprit is None or not _explains(culprit, parts[0], execution.suspects)):
        culprit = parts[0]
    if culprit is None:
        has_untried = any(one.how == "bound" and (one.cost_share or 0.0) >= LEAST_SHARE for one in singles)
        culprit = verdict_without_culprit(evidence, has_untried=has_untried)
    every = sorted((*singles, *(joint for _, joint in joints), *recorded), key=_by_cost)
    others = tuple(one for one in every if (one.name, one.of) != (culprit.name, culprit.of))
    return Answer(took=took, limited_by=limited_by, culprit=culprit, others=others, evidence=evidence)


def _by_cost(suspect: Culprit) -> float:
    return -(suspect.cost_share or 0.0)


def _cause(
    execution: AskedExecution,
    singles: Sequence[Culprit],
    joints: Sequence[tuple[World, Culprit]],
    victim: Culprit | None,
) -> Culprit | None:
    """The suspect that was at work, with a cost that was simulated or recorded; a bound is no cost."""
    able = [one for one in singles if one.kind != "part"]  # a part is what remains where nobody is to blame
    guilty = [one for one in able if one.how == "simulated" and (one.cost_share or 0.0) >= LEAST_SHARE]
    culprit = _most_guilty(guilty, execution.suspects) if guilty else None
    culprit = _joined(culprit, singles, joints)
    if victim is not None and (culprit is None or (victim.cost_share or 0.0) > (culprit.cost_share or 0.0)):
        # where the scenario names the root of the pauses, it is the suspect that was tried
        at_root = [suspect for suspect in guilty if _is_at(suspect, victim)]
        culprit = replace(at_root[0], text=f"{at_root[0].text}; it {victim.text}") if at_root else victim
    return culprit


def _is_at(suspect: Culprit, root: Culprit) -> bool:
    """Whether a suspect is the link, or is or has the NIC, that is the root of pauses."""
    if suspect.ids is None or root.ids is None:
        return False
    if root.kind == "link":
        return suspect.kind == "link" and set(suspect.ids.ports) == set(root.ids.ports)
    return suspect.kind in _OF_A_HOST and suspect.ids.nodes == root.ids.nodes


def _joined(
    culprit: Culprit | None, singles: Sequence[Culprit], joints: Sequence[tuple[World, Culprit]]
) -> Culprit | None:
    """The culprit in the light of what several suspects cost together.

    A reaction that costs little where its cause is mended yields to the cause. Suspects that cost nothing alone and
    something together are to blame together.
    """
    named = {one.name: one for one in singles}
    for world, joint in joints:
        suspects = (world.suspect, *world.others)
        members = [named[suspect.name] for suspect in suspects if suspect is not None and suspect.name in named]
        if joint.cost_s is None or len(members) < len(suspects):
            continue
        if culprit is None and (joint.cost_share or 0.0) >= LEAST_SHARE:
            return replace(joint, text=f"{joint.text}; each of them alone costs less than {100 * LEAST_SHARE:g} %")
        reaction = members[-1]
        is_fault = members[0].is_listed  # whose rule is `_most_guilty`
        is_named = culprit is not None and culprit.name in {one.name for one in members}
        if is_fault or not is_named or reaction.key not in REACTIONS:
            continue
        cause, together = members[0], f"{_cost(joint)} together"
        left_s = joint.cost_s - (cause.cost_s or 0.0)  # of the reaction, where the cause is mended
        if (reaction.cost_share or 0.0) >= LEAST_SHARE and left_s < (reaction.cost_s or 0.0) / _STRETCHED:
            text = f"{cause.text}; {reaction.name}, which answers to it, costs {_cost(reaction)} alone and {together}"
            return replace(cause, text=text)
    return culprit


def _cost(suspect: Culprit) -> str:
    return f"{100 * max(0.0, suspect.cost_share or 0.0):.3g} %"


def _explains(cause: Culprit, part: Culprit, suspects: Sequence[Suspect]) -> bool:
    """Whether a cause says more than the part of the time that went to most.

    What is wrong in this run does if it matters at all; what is built or set like that if it explains half of the part.
    """
    share = cause.cost_share or 0.0
    return share >= (part.cost_share or 0.0) / _STRETCHED or (_rank(cause, suspects) == 0 and share >= LEAST_PART)


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
        other = next((one for one in near if one.key in REACTIONS), None)
        return first if other is None else replace(other, text=f"{other.text}, after {first.name} {first.text}")
    rank = partial(_rank, suspects=suspects)
    graver = [one for one in near if rank(one) < rank(first) and not is_stretched(one)]
    return min(graver, key=rank) if graver else first


def _rank(culprit: Culprit, suspects: Sequence[Suspect]) -> int:
    """Rank of a culprit by the standing of its suspect; what is no suspect, such as a root of pauses, is wrong."""
    standings = {(suspect.key, suspect.name): suspect.standing for suspect in suspects}
    return _RANKS[standings.get((culprit.key, culprit.name)) or "wrong"]


def _what(prepared: Prepared) -> tuple[str, str]:
    """Name of the time of a run, and its number in the summary."""
    name = prepared.scenario.workload_kind.headline
    return NUMBERS[name].what, name


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


def _tried(prepared: Prepared, execution: AskedExecution, taken: Sequence[int]) -> list[Culprit]:
    """All suspects with their costs.

    A simulated suspect has its measured cost, any other at most a bound.
    """
    again = {
        world.suspect.label: (other, ran)
        for world, other, ran in execution.worlds
        if world.suspect is not None and not world.others
    }
    found = []
    for suspect in execution.suspects:
        if suspect.label in again:
            without = taken_ps(*again[suspect.label])
            if without is not None:
                found.append(_simulated(suspect, prepared, taken, without))
                continue
        found.append(_bounded(suspect, prepared, execution, taken))
    return found


def _joints(prepared: Prepared, execution: AskedExecution, taken: Sequence[int]) -> list[tuple[World, Culprit]]:
    """Worlds without several suspects that ended, each with what the suspects cost together."""
    costs = []
    for world, other, ran in execution.worlds:
        without = taken_ps(other, ran) if world.others else None
        if without is None or world.suspect is None:
            continue
        members = tuple(suspect.name for suspect in (world.suspect, *world.others))
        joint = _simulated(world.suspect, prepared, taken, without)
        joint = replace(joint, name=" and ".join(members), members=members, key=None, text="are tried together",
                        start_s=None, end_s=None, file=None, ids=None)  # fmt: skip
        costs.append((world, joint))
    return costs


def _simulated(suspect: Suspect, prepared: Prepared, taken: Sequence[int], without: Sequence[int]) -> Culprit:
    """A suspect with the saving of the job that saves most without it."""
    jobs = range(len(taken)) if suspect.job is None else (suspect.job,)
    worst = max(jobs, key=lambda job: (taken[job] - without[job]) / max(1, taken[job]))
    cost_ps = taken[worst] - without[worst]
    found = _culprit(suspect, how="simulated", of=_whose(prepared, worst))
    return replace(found, cost_s=cost_ps / SECOND_PS, cost_share=cost_ps / max(1, taken[worst]))


def _bounded(suspect: Suspect, prepared: Prepared, execution: AskedExecution, taken: Sequence[int]) -> Culprit:
    """A suspect with an upper bound of its cost."""
    worst = suspect.job or 0
    share = suspect.bound_share
    if share is None:
        share = 1 - _least_ps(prepared, execution, worst) / max(1, taken[worst])
    share = min(max(share, 0.0), 1.0)
    found = _culprit(suspect, how="bound", of=_whose(prepared, worst))
    command = None if suspect.change is None else _COMMAND
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
        file=suspect.file,
        ids=suspect.ids,
    )


def _whose(prepared: Prepared, job: int) -> str:
    return prepared.jobs[job].name if len(prepared.jobs) > 1 else "the run"


def _least_ps(prepared: Prepared, execution: AskedExecution, job: int) -> float:
    """Lower bound of the run's time, whoever is to blame.

    The bound is the computing of a job, or the traffic of the busiest NIC port.
    """
    if prepared.scenario.workload_kind.is_training:
        own = np.flatnonzero(prepared.job_of_program == job).tolist()
        computed = computed_ps(prepared)
        return max(computed[program] for program in own) / prepared.jobs[job].section.iterations
    if prepared.volume is None:
        return 0.0
    return demand_ps(prepared, execution) / prepared.scenario.repeats
