"""The best plans for a scenario.

All plans are counted by closed forms, and the best of them run on the flow engine.

A plan's closed form takes each collective alone on its links, so that it is seldom above what the flow engine finds
(docs/howto/plan.md has by how much). Plans go to the engine in the order of their closed forms until the next
one is above the best by `MARGIN`, and ten at least. A run of the engine is the run of `weftwork run`.
The best of these are run with their ranks placed by rail and over pods in turn, too.
Leaves out: plans that `weftwork.study.plan.space` leaves out; packets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import assumed_texts
from weftwork.base.errors import ConfigError, EngineError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.spec.training import HEADROOM
from weftwork.study.plan.counting import Counted, CountedPlans, count_plans, joined
from weftwork.study.plan.space import SEARCHED, PossiblePlan, Space, parts
from weftwork.study.plan.trainers import fixed_mistakes
from weftwork.study.pool.pool import workers_for
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.prepare.prepare import located, prepare
from weftwork.study.prepare.training import assumed_sequence, training_setting
from weftwork.study.record.road import execute, results
from weftwork.study.results.memory_margin import peaks_question
from weftwork.study.validation.nearest_peaks import near_peaks
from weftwork.topology.build import fabric_of_section
from weftwork.workload.parallelism.memory import fullest_stage
from weftwork.workload.parallelism.mending import mended_by
from weftwork.workload.training.closed_form import IterationTime

if TYPE_CHECKING:
    from weftwork.spec.answer import Interval
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.result import Quantity
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.training import Model, Parallelism
    from weftwork.study.plan.space import Degrees
    from weftwork.study.plan.trainers import Trainer
    from weftwork.study.pool.side_by_side import Workers
    from weftwork.study.prepare.training import TrainingSetting
    from weftwork.study.validation.nearest_peaks import NearPeak
    from weftwork.workload.parallelism.memory import Memory

    Told = Callable[[str, int, int], None]

__all__ = ["Counted", "Known", "Ranked", "Search", "search", "section_with", "with_plan"]

MARGIN: Final = 0.03  # chosen: closed forms were at most 2.8 % above the flow engine, in all plans that were looked at
BEST: Final = 10
PLACED: Final = 3  # chosen: plans whose ranks are placed in other ways too
COUNTED_SHARE: Final = 0.6  # chosen: of the time that a search may take; the rest is for runs of the flow engine
FEW_WAYS: Final = 60  # chosen: to spread the GPUs; with fewer, counting takes less time than starting workers
_COUNTING_BYTES: Final = 300_000_000  # chosen: the closed forms of half a million plans, and the program
MOST_RUNS: Final = 60  # chosen: of the flow engine; plans that are left although they may be as good are counted
# Wall time of a run whose ranks fold over that of its preparation, measured on plans for 64 to 4,096 GPUs: 1.8 to 3.2
_RUN_OF_PREPARATION: Final = 2.5
# Of one step of one rank where none fold, measured on nemotron-h-56b for 4,096 GPUs: 9.1 million steps in 24 to 47 s
_STEP_S: Final = 4e-6
MOST_CLOUD: Final = 2_000  # chosen: dots that a figure still tells apart; more would make its page slow


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranked:
    """A plan with its run on the flow engine.

    Attributes
    ----------
    candidate, time : the plan, and its closed form
    iteration_ps : of the flow engine
    numbers : of the run's summary
    limited_by : of the run's answer: what most of the time goes to
    words : the plan as people write it
    about : what ran, in words, with what the run assumes
    near_peaks : measured peaks of memory nearest to the plan
    interval : of the time, by measurements of times like it
    """

    candidate: PossiblePlan
    time: IterationTime
    iteration_ps: int
    numbers: Mapping[str, Quantity]
    limited_by: str
    words: str
    about: Mapping[str, str]
    near_peaks: tuple[NearPeak, ...] = ()
    interval: Interval | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """The result of a search.

    Attributes
    ----------
    scenario : that asked
    fixed : keys of ``training`` that were not searched
    best : of the plans that the flow engine has run, the fastest first
    counted : of how many plans there is a closed form
    pruned : plans left out, by the key that stood in the way
    unsure : plans whose closed form is within the margin of the best and which the engine has not run
    waiting : the fastest plans by closed forms that did not run, where fewer than ten ran
    front : by closed forms: plans that no plan beats in time and in memory, the fastest first
    cloud : by closed forms: counted plans at even steps of their order by time, at most `MOST_CLOUD`
    gpu_bytes : memory of a GPU: what the scenario permits, by default all that it has
    headroom : share of it that all plans leave free
    trainer : that can run all of the plans; None: any
    limit_bytes : memory that a plan may use, the rest of it
    left_ways : ways to spread the GPUs of which only a few plans were counted, for lack of time
    closed_s, flow_s : of wall time, for closed forms and for runs; their sum is the time of the search
    within_s : wall time that was asked for; None: no limit
    model : that trains
    own : the plan that the user has, where it was asked for and can be; it is among ``best``
    own_mistakes : why it cannot be
    assumed : what the scenario and its files leave open, and times depend on
    """

    scenario: Scenario
    fixed: tuple[str, ...]
    best: tuple[Ranked, ...]
    counted: int
    pruned: Mapping[str, int]
    unsure: int
    waiting: tuple[Counted, ...]
    front: tuple[Counted, ...]
    cloud: tuple[Counted, ...]
    gpu_bytes: int
    headroom: float
    limit_bytes: int
    trainer: Trainer | None
    left_ways: int
    closed_s: float
    flow_s: float
    model: Model
    within_s: float | None = None
    own: Ranked | None = None
    own_mistakes: tuple[Mistake, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def winner(self) -> Scenario:
        """The scenario with the keys of the best plan."""
        return with_plan(self.scenario, self.best[0].candidate.keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What a search knows so far, for whoever watches or stops it.

    Attributes
    ----------
    parts : plans that are counted
    ran : plans that the flow engine has run
    told : called with what is done (``looking``, ``counting``: ways to spread the GPUs; ``running``: plans;
        ``placing``: other placements of the best), how much of it, and of how many
    passes_limit : called before a run that is always made and may pass ``within_s``, with the seconds of that run
        where ranks that are alike run as one and where none are, and the seconds that were left for it
    """

    parts: list[CountedPlans] = field(default_factory=list)
    ran: list[Ranked] = field(default_factory=list)
    told: Told = field(default=lambda _what, _done, _of: None)
    passes_limit: Callable[[float, float, float], None] = field(default=lambda _least_s, _most_s, _left_s: None)

    def fastest(self, most: int = BEST) -> list[Counted]:
        """The fastest plans by closed forms."""
        if not self.parts:
            return []
        plans = joined(self.parts)
        return [plans.counted(place) for place in range(min(most, len(plans)))]


def section_with(scenario: Scenario, keys: Mapping[str, Any]) -> TrainingSection:
    """The section ``training`` of a scenario with keys set.

    Raises
    ------
    ConfigError : no such section
    """
    return _section(scenario).model_copy(update=dict(keys))


def with_plan(scenario: Scenario, keys: Mapping[str, Any]) -> Scenario:
    """Set keys of ``training``, for a complete run of the flow engine.

    Parameters
    ----------
    scenario : with a section ``training``
    keys : of the section, resolved
    """
    section = section_with(scenario, keys)
    engine = scenario.engine.model_copy(update={"fidelity": "flow", "until_ps": None})
    return scenario.model_copy(update={"training": section, "engine": engine})


def search(
    scenario: Scenario,
    *,
    fixed: frozenset[str] = frozenset(),
    workers: int | None = None,
    own: Scenario | None = None,
    headroom: float = HEADROOM,
    within_s: float | None = None,
    trainer: Trainer | None = None,
    known: Known | None = None,
) -> Search:
    """Search for the fastest plans.

    Parameters
    ----------
    scenario : with a section ``training``, whose keys in ``fixed`` stay
    fixed : keys of ``training`` that the user has given
    workers : processes that count and run side by side; by default as many as there are cores and memory holds. What
        is found does not depend on it
    own : with a plan that the user has, which runs too: the best is never slower than this plan, as far as it fits
    headroom : share of the memory of a GPU that a plan has to leave free, from 0 to below 1
    within_s : wall time after which nothing more is counted or run, but for one plan; None: until all is done
    trainer : that has to run the plans, also those with keys of the user; None: any
    known : gets what is known as it comes, and hears of it

    Raises
    ------
    ConfigError : no section ``training``, or no plan that can be; with how many failed for which key
    EngineError : a run of the flow engine did not end
    """
    section = _section(scenario)
    fabric = fabric_of_section(scenario.fabric, directory=Path(scenario.source).parent)
    try:
        setting = training_setting(scenario, fabric, section)
    except ConfigError as error:
        raise located(scenario, error) from error
    space = Space(
        section=section,
        model=setting.model,
        gpu=setting.gpu,
        gpus=section.gpus or fabric.gpus,
        domain_gpus=setting.cluster.domain_gpus,
        has_flash_attention=setting.software.has_flash_attention,
        fixed=fixed & frozenset(SEARCHED),
        headroom=headroom,
        trainer=trainer,
    )
    if trainer is not None:
        given = space.fixed | (type(section).model_fields.keys() - frozenset(SEARCHED))
        if mistakes := fixed_mistakes(trainer, section, setting.model, given):
            raise located(scenario, ConfigError("training", mistakes))
    state = known or Known()
    told = state.told
    begin_s = time.monotonic()
    until_s = inf if within_s is None else begin_s + within_s
    spread = parts(space)
    with worker_processes(_wanted(spread) if workers is None else min(workers, MOST_RUNS)) as processes:
        counting = count_plans(
            space, setting, spread, processes,
            told=told,
            until_s=begin_s + COUNTED_SHARE * (until_s - begin_s),
            kept=state.parts,
        )  # fmt: skip
        plans = counting.plans
        if not len(plans):
            raise located(scenario, _no_plan(space))
        counted_s = time.monotonic()
        if within_s is not None:
            _warn_of_limit(scenario, plans, state, until_s=until_s, has_own=own is not None)
        best, unsure, at_once = _run_best(scenario, plans, processes, told=told, until_s=until_s, kept=state.ran)
        waiting = tuple(plans.counted(place) for place in range(len(best), min(BEST, len(plans))))
        each_s = (time.monotonic() - counted_s) * min(at_once, len(best)) / len(best)
        if "placement" not in fixed and time.monotonic() + each_s < until_s:
            best += _placed(scenario, fabric, best[:PLACED], processes, at_once, told, until_s)
    of_own = Findings(source=scenario.source)
    mine = None if own is None else _own(own, setting, space, best, of_own)
    if mine is not None and mine not in best:
        best.append(mine)
    return Search(
        scenario=scenario,
        fixed=tuple(key for key in (*SEARCHED, "placement") if key in fixed),
        best=tuple(sorted(best, key=lambda one: one.iteration_ps)),
        counted=len(plans),
        pruned=dict(space.pruned.most_common()),
        unsure=unsure,
        waiting=waiting,
        front=tuple(plans.front()),
        cloud=tuple(plans.counted(place) for place in range(0, len(plans), -(-len(plans) // MOST_CLOUD))),
        gpu_bytes=space.gpu_bytes,
        headroom=headroom,
        trainer=trainer,
        limit_bytes=space.limit_bytes,
        left_ways=counting.left_ways,
        closed_s=counted_s - begin_s,
        flow_s=time.monotonic() - counted_s,
        model=setting.model,
        within_s=within_s,
        own=mine,
        own_mistakes=tuple(of_own.mistakes),
        assumed=assumed_texts([*fabric.caveats.values(), *assumed_sequence(section, setting.model).values()]),
    )


def _section(scenario: Scenario) -> TrainingSection:
    if not scenario.workload_kind.is_single_job:
        text = "is missing: a plan is for one training job; plan the jobs of a section `jobs` one at a time"
        raise ConfigError(scenario.source, [Mistake(path="training", text=text)])
    return scenario.training_section


def _no_plan(space: Space) -> ConfigError:
    """Why no plan is feasible, the most frequent reason first, and what can mend it.

    The mistakes name the given keys that stood in the way, before the number of GPUs.
    """
    told = ", ".join(f"{count:,} for {key}" for key, count in space.pruned.most_common()) or "there was no plan to try"
    of_trainer = "" if space.trainer is None else f" for {space.trainer.title}"
    text = f"no plan for {plural(space.gpus, 'GPU')} is feasible{of_trainer}; plans failed: {told}"
    if space.smallest is not None:
        plan, _ = space.smallest
        memory = fullest_stage(space.model, plan, has_flash_attention=space.has_flash_attention)
        text += f"; {_smallest_words(space, plan, memory)}"
    if space.fixed:
        text += f"; these keys are fixed by the scenario: {', '.join(sorted(space.fixed))}"
    mistakes = [
        Mistake(
            path=f"training.{key}",
            text=f"found {getattr(space.section, key)}: {exclusion.text} ({exclusion.source})",
        )
        for reason, exclusion in ({} if space.trainer is None else space.trainer.reasons).items()
        if reason in space.pruned
        for key in exclusion.keys
        if key in space.fixed
    ]
    culprit = next((key for key, _ in space.pruned.most_common() if key in space.fixed), None)
    path = "training" if culprit is None else f"training.{culprit}"
    return ConfigError("training", [*mistakes, Mistake(path=path, text=text)])


def _over_headroom(memory: Memory, space: Space) -> Mistake:
    """Why a plan that fits a GPU is not compared."""
    text = (
        f"needs {memory.total_bytes / 1e9:.1f} of {space.gpu_bytes / 1e9:.1f} GB, wanted at most"
        f" {space.limit_bytes / 1e9:.1f} GB, which a headroom of {100 * space.headroom:g} % leaves;"
        " --headroom 0 compares it"
    )
    return Mistake(path="training.memory", text=text)


def _smallest_words(space: Space, plan: Parallelism, memory: Memory) -> str:
    """The plan that needs least of those that need too much, and what can mend it."""
    degrees = ", ".join(f"{key} {getattr(plan, key)}" for key in ("tensor", "context", "pipeline", "data", "zero"))
    needs = (
        f"the least memory of these is {memory.total_bytes / 1e9:.1f} GB ({degrees}, recompute {plan.recompute}: "
        f"{memory.text}), wanted at most {space.limit_bytes / 1e9:.1f} GB"
    )
    if space.headroom:
        needs += f": {space.gpu_bytes / 1e9:.1f} GB less a headroom of {100 * space.headroom:g} %"
    if memory.total_bytes <= space.gpu_bytes:
        least = floor(100 * (1 - memory.total_bytes / space.gpu_bytes))
        needs += f" (it fits with --headroom {least}%)"
    return f"{needs}; {mended_by(space.limits, plan, memory, fixed=space.fixed)}"


def _wanted(spread: Sequence[Sequence[Degrees]]) -> int:
    """Worker processes for a search: one for each core.

    Only this process if starting others would take longer than the search.
    """
    ways = sum(len(part) for part in spread)
    return workers_for(len(spread), _COUNTING_BYTES) if ways >= FEW_WAYS else 1


def _run_best(
    scenario: Scenario, plans: CountedPlans, processes: Workers, *, told: Told, until_s: float, kept: list[Ranked]
) -> tuple[list[Ranked], int, int]:
    """Run plans on the flow engine until no other can be faster, or time is over.

    ``kept`` gets each that ran, for whoever stops the search.

    Returns
    -------
    the plans that ran, the fastest first; how many may be as good and did not; how many memory holds side by side
    """
    first = [plans.counted(place) for place in range(min(MOST_RUNS, len(plans)))]
    asked = [(with_plan(scenario, one.candidate.keys), one) for one in first]
    at_once = _fitting(asked, processes)
    told("running", 0, len(asked))
    best: list[Ranked] = []
    unsure = 0
    for ranked in processes.answers(_run, asked, at_once=at_once, until_s=until_s):
        best.append(ranked)
        kept.append(ranked)
        told("running", len(best), len(asked))
        limit_ps = (1 + MARGIN) * min(one.iteration_ps for one in best)
        unsure = int((plans.times.total_ps[len(best) :] <= limit_ps).sum())
        if (len(best) >= BEST and not unsure) or time.monotonic() > until_s:
            break
    return sorted(best, key=lambda one: one.iteration_ps), unsure, at_once


def _warn_of_limit(scenario: Scenario, plans: CountedPlans, state: Known, *, until_s: float, has_own: bool) -> None:
    """Say before the first run that it may pass the limit, and between what its time lies.

    The plan with the shortest closed form gives both ends: from its preparation, and from the steps of all its ranks.
    Which ranks are alike shows only when the run has begun.
    """
    begin_s = time.monotonic()
    prepared = prepare(with_plan(scenario, plans.counted(0).candidate.keys))
    now_s = time.monotonic()
    runs = 1 + has_own
    least_s = _RUN_OF_PREPARATION * (now_s - begin_s) * runs
    steps = prepared.estimate.work / len(prepared.job.programs) * prepared.job.ranks
    most_s = max(least_s, _STEP_S * steps * runs)
    if now_s + most_s > until_s:
        state.passes_limit(least_s, most_s, max(until_s - now_s, 0.0))


def _fitting(asked: Sequence[tuple[Scenario, Counted]], processes: Workers) -> int:
    """Number of parallel runs: the processes that memory can hold.

    The largest of the first runs gives the memory of a run.
    """
    if processes.count < 2:
        return 1
    largest = max(prepare(scenario).estimate.memory_bytes for scenario, _ in asked[: processes.count])
    return workers_for(processes.count, largest)


def _placed(  # their plans take as much memory as those that ran before
    scenario: Scenario,
    fabric: Fabric,
    best: Sequence[Ranked],
    processes: Workers,
    at_once: int,
    told: Told,
    until_s: float,
) -> list[Ranked]:
    """Run plans with the other rank orders that a scheduler offers.

    The result is the plans that are faster.
    """
    has_pods = fabric.node_pod is not None
    others = [name for name in ("packed", "rails", "pods") if name != _section(scenario).placement]
    asked = []
    for ranked in best:
        for name in others if has_pods else [one for one in others if one != "pods"]:
            keys = {**ranked.candidate.keys, "placement": name}
            placed = replace(ranked.candidate, keys=keys)
            asked.append((with_plan(scenario, keys), Counted(candidate=placed, time=ranked.time)))
    usual_ps = [ranked.iteration_ps for ranked in best for _ in range(len(asked) // len(best))]
    found = []
    for done, ranked in enumerate(processes.answers(_run, asked, at_once=at_once, until_s=until_s)):
        told("placing", done + 1, len(asked))
        if ranked.iteration_ps < usual_ps[done]:
            found.append(ranked)
    return found


def _own(
    scenario: Scenario, setting: TrainingSetting, space: Space, best: Sequence[Ranked], findings: Findings
) -> Ranked | None:
    """Run the plan of the scenario itself, unless it is among the best; None where it is infeasible."""
    section = _section(scenario)
    keys = {key: getattr(section, key) for key in (*SEARCHED, "placement")}
    try:
        (job,) = prepare(with_plan(scenario, keys)).jobs
    except ConfigError as error:
        findings.include(error.mistakes)
        return None
    if job.memory.total_bytes > space.limit_bytes:
        findings.include([_over_headroom(job.memory, space)])
        return None
    keys["data"] = job.plan.data
    for ranked in best:
        if ranked.candidate.keys == keys:
            return ranked
    candidate = PossiblePlan(keys=keys, plan=job.plan, memory_bytes=job.memory.total_bytes)
    counted = Counted(candidate=candidate, time=setting.closed_forms().iteration(job.plan, follows=True))
    return _run((with_plan(scenario, keys), counted))


def _run(asked: tuple[Scenario, Counted]) -> Ranked:
    scenario, one = asked
    prepared = prepare(scenario)
    found = results(prepared, execute(replace(prepared, series=None), what_if="none"))
    iteration_ps = found.summary["iteration_ps"].value
    if iteration_ps is None:
        raise EngineError(f"the run of {prepared.jobs[0].words} did not end")
    return Ranked(
        candidate=one.candidate,
        time=one.time,
        iteration_ps=int(iteration_ps),
        numbers=found.summary,
        limited_by=found.answer.limited_by.name,
        words=prepared.jobs[0].words,
        about=found.about,
        near_peaks=near_peaks(peaks_question(prepared.jobs[0])),
        interval=found.answer.took.interval,
    )
