"""Run what is left of a design, packed and as a scheduler places ranks, and judge it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.hardware import catalogue
from weftwork.spec.study_ends import STUDY_ENDS, StudyEndName
from weftwork.study.answer.interval import OF_CLOSED_FORMS
from weftwork.study.design.judge import ChosenCandidate, chosen, last_of, near_best
from weftwork.study.design.kinds import NamedKind, best_of_kinds, dead_leaves
from weftwork.study.design.runs import CandidateRuns, PlacedRun, Ran, placed_key
from weftwork.study.design.thinnest import closed_times
from weftwork.study.design.worth import ClusterMoney, cluster_money
from weftwork.study.pool.pool import workers_for
from weftwork.study.pool.side_by_side import worker_processes

if TYPE_CHECKING:
    from weftwork.hardware.price_rows import PriceBook
    from weftwork.study.design.built import Built
    from weftwork.study.design.prune import Pruned
    from weftwork.study.design.question import DesignJob, DesignQuestion

__all__ = ["JudgedRuns", "RunTools", "judged_runs"]

_LOSS_BYTES: Final = 1_000_000_000  # chosen: two runs of a job on a fabric of ten thousand GPUs


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedRuns:
    """Candidates with their times, and what was chosen; fields as of `weftwork.study.design.search.Design`."""

    ran: Sequence[Ran]
    end: StudyEndName
    number: str
    kept: int
    money: ClusterMoney | None
    choice: ChosenCandidate
    kinds: Sequence[NamedKind]
    placed_key: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTools:
    """The folder of the runs, processes, progress and prices."""

    runs: Path
    workers: int | None
    told: Callable[[str, int, int], None]
    book: PriceBook


def judged_runs(
    question: DesignQuestion, job: DesignJob, left: Sequence[Built], pruned: Sequence[Pruned], work: RunTools
) -> JudgedRuns:
    """Run the kept candidates, or count them by closed forms, and judge them.

    Raises
    ------
    ConfigError : closed forms alone of a job that is no training
    """
    server = catalogue.node(job.node).server
    money = cluster_money(work.book, job.node, job.gpus, server.gpus)
    if money is not None and question.gpu_hour_usd is not None:
        money = money.at_gpu_hour(question.gpu_hour_usd)
    named = tuple((question.only or {}).get("topology", ()))
    closed = closed_times(job.scenario, left)
    if question.closed_only:
        if not closed:
            text = "closed forms exist only for training; leave --closed-forms out"
            raise ConfigError("design", [Mistake(path="design", text=text)])
        ran = [
            Ran(built=one, time_ps=times[1], closed_ps=times, interval=OF_CLOSED_FORMS)
            for one, times in zip(left, closed, strict=True)
        ]
        choice = chosen(ran, (), money, question.criterion)
        kinds = best_of_kinds(named, ran, pruned, money, choice.criterion)
        return JudgedRuns(ran=ran, end="done", number="iteration_ps", kept=0, money=money, choice=choice, kinds=kinds)
    runs = CandidateRuns(
        file=question.file, settings=job.settings, runs=work.runs, user_code=question.user_code, workers=work.workers,
        told=work.told,
    )  # fmt: skip
    ran = runs.packed(left, closed)
    first = chosen(ran, (), money, question.criterion)
    if question.on_first is not None and first.name is not None:
        question.on_first({one.name: one for one in ran}[first.name])
    key, last = placed_key(job.scenario), []
    kinds = best_of_kinds(named, ran, pruned, money, first.criterion)
    if key and STUDY_ENDS[runs.end].is_done:
        of_kinds = {kind.name for kind in kinds}
        last = last_of(ran, money, first.criterion)
        last += [one for one in ran if one.name in of_kinds - {each.name for each in last}]
        ran = _with_placed(ran, runs.placed(last, key, seeds=0))
        near = near_best([one for one in ran if one.placed], money, first.criterion)
        ran = _with_placed(ran, runs.placed(near, key, seeds=1))
    choice = chosen(ran, [one.name for one in last], money, question.criterion)
    kinds = best_of_kinds(named, ran, pruned, money, choice.criterion)
    if named and STUDY_ENDS[runs.end].is_done:
        kinds = _with_dead_leaves(question, job, ran, kinds, work)
    return JudgedRuns(
        ran=ran, end=runs.end, number=runs.number, kept=runs.kept, money=money, choice=choice, kinds=kinds,
        placed_key=key,
    )  # fmt: skip


def _with_placed(ran: Sequence[Ran], placed: Mapping[str, Sequence[PlacedRun]]) -> list[Ran]:
    return [replace(one, placed=(*one.placed, *placed.get(one.name, ()))) for one in ran]


def _with_dead_leaves(
    question: DesignQuestion, job: DesignJob, ran: Sequence[Ran], kinds: Sequence[NamedKind], work: RunTools
) -> list[NamedKind]:
    """Named topologies with what a dead leaf costs the best candidate of each."""
    of_kinds = {kind.name for kind in kinds}
    asked = [one for one in ran if one.name in of_kinds]
    count = workers_for(len(asked), _LOSS_BYTES) if work.workers is None else work.workers
    with worker_processes(count) as processes:
        leaves = dead_leaves(
            asked, question.file, job.settings, user_code=question.user_code, processes=processes, told=work.told
        )
    return [replace(kind, dead_leaf=leaves.get(kind.name or "")) for kind in kinds]
