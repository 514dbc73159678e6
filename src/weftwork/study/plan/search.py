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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.caveat import assumed_texts
from weftwork.base.errors import ConfigError, EngineError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.training import HEADROOM
from weftwork.study.plan.order import Counted, PlanOrder
from weftwork.study.plan.space import SEARCHED, PossiblePlan, Space, candidates, parts
from weftwork.study.pool.pool import workers_for
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.prepare.prepare import located, prepare
from weftwork.study.prepare.training import assumed_sequence, training_setting
from weftwork.study.results.memory_margin import peaks_question
from weftwork.study.results.results import results
from weftwork.study.run.execute import execute
from weftwork.study.validation.nearest_peaks import near_peaks
from weftwork.topology.build import fabric_of_section
from weftwork.workload.parallelism.mending import mended_by
from weftwork.workload.training.closed_form import IterationTime

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.result import Quantity
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.training import Model, Parallelism
    from weftwork.study.plan.space import Degrees
    from weftwork.study.pool.side_by_side import Workers
    from weftwork.study.prepare.training import TrainingSetting
    from weftwork.study.validation.nearest_peaks import NearPeak
    from weftwork.workload.parallelism.memory import Memory

    Told = Callable[[str, int, int], None]

__all__ = ["Counted", "Ranked", "Search", "search", "section_with", "with_plan"]

MARGIN: Final = 0.03  # chosen: closed forms were at most 2.8 % above the flow engine, in all plans that were looked at
BEST: Final = 10
PLACED: Final = 3  # chosen: plans whose ranks are placed in other ways too
FEW_WAYS: Final = 60  # chosen: to spread the GPUs; with fewer, counting takes less time than starting workers
_COUNTING_BYTES: Final = 300_000_000  # chosen: the closed forms of half a million plans, and the program
MOST_RUNS: Final = 60  # chosen: of the flow engine; plans that are left although they may be as good are counted
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
    """

    candidate: PossiblePlan
    time: IterationTime
    iteration_ps: int
    numbers: Mapping[str, Quantity]
    limited_by: str
    words: str
    about: Mapping[str, str]
    near_peaks: tuple[NearPeak, ...] = ()


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
    front : by closed forms: plans that no plan beats in time and in memory, the fastest first
    cloud : by closed forms: counted plans at even steps of their order by time, at most `MOST_CLOUD`
    gpu_bytes : memory of a GPU: what the scenario permits, by default all that it has
    headroom : share of it that all plans leave free
    limit_bytes : memory that a plan may use, the rest of it
    closed_s, flow_s : of wall time
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
    front: tuple[Counted, ...]
    cloud: tuple[Counted, ...]
    gpu_bytes: int
    headroom: float
    limit_bytes: int
    closed_s: float
    flow_s: float
    model: Model
    own: Ranked | None = None
    own_mistakes: tuple[Mistake, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def winner(self) -> Scenario:
        """The scenario with the keys of the best plan."""
        return with_plan(self.scenario, self.best[0].candidate.keys)


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
    has_own: bool = False,
    headroom: float = HEADROOM,
    progress: Told | None = None,
) -> Search:
    """Search for the fastest plans.

    Parameters
    ----------
    scenario : with a section ``training``, whose keys in ``fixed`` stay
    fixed : keys of ``training`` that the user has given
    workers : processes that count and run side by side; by default as many as there are cores and memory holds. What
        is found does not depend on it
    has_own : whether the section holds a plan that the user has, which the best are compared with; it runs too
    headroom : share of the memory of a GPU that a plan has to leave free, from 0 to below 1
    progress : called with what is done (``counting``: ways to spread the GPUs; ``running``: plans), how much of it,
        and of how many

    Raises
    ------
    ConfigError : no section ``training``, or no plan that can be; with how many failed for which key
    EngineError : a run of the flow engine did not end
    """
    told = progress or (lambda _what, _done, _of: None)
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
    )
    begin_s = time.perf_counter()
    spread = parts(space)
    with worker_processes(_wanted(spread) if workers is None else min(workers, MOST_RUNS)) as processes:
        counted = _count(space, setting, spread, processes, told)
        if not counted:
            raise located(scenario, _no_plan(space))
        counted = _distinct(sorted(counted, key=lambda one: (one.time.total_ps, one.candidate.memory_bytes)))
        counted_s = time.perf_counter()
        order = PlanOrder(counted, setting.closed_forms())
        best, unsure, at_once = _run_best(scenario, order, processes, told)
        if "placement" not in fixed:
            best += _placed(scenario, fabric, best[:PLACED], processes, at_once, told)
    own, mistakes = _own(scenario, setting, space, best) if has_own else (None, ())
    if own is not None and own not in best:
        best.append(own)
    return Search(
        scenario=scenario,
        fixed=tuple(key for key in (*SEARCHED, "placement") if key in fixed),
        best=tuple(sorted(best, key=lambda one: one.iteration_ps)),
        counted=len(counted),
        pruned=dict(space.pruned.most_common()),
        unsure=unsure,
        front=tuple(order.front()),
        cloud=tuple(counted[:: -(-len(counted) // MOST_CLOUD)]),
        gpu_bytes=space.gpu_bytes,
        headroom=headroom,
        limit_bytes=space.limit_bytes,
        closed_s=counted_s - begin_s,
        flow_s=time.perf_counter() - counted_s,
        model=setting.model,
        own=own,
        own_mistakes=mistakes,
        assumed=assumed_texts([*fabric.caveats.values(), *assumed_sequence(section, setting.model).values()]),
    )


def _section(scenario: Scenario) -> TrainingSection:
    if scenario.training is None:
        text = "is missing: a plan is for one training job; plan the jobs of a section `jobs` one at a time"
        raise ConfigError(scenario.source, [Mistake(path="training", text=text)])
    return scenario.training


def _no_plan(space: Space) -> ConfigError:
    """Why no plan is feasible, the most frequent reason first, and what can mend it."""
    told = ", ".join(f"{count:,} for {key}" for key, count in space.pruned.most_common()) or "there was no plan to try"
    text = f"no plan for {plural(space.gpus, 'GPU')} is feasible; plans failed: {told}"
    if space.smallest is not None:
        text += f"; {_smallest_words(space, *space.smallest)}"
    if space.fixed:
        text += f"; these keys are fixed by the scenario: {', '.join(sorted(space.fixed))}"
    return ConfigError("training", [Mistake(path="training", text=text)])


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


def _distinct(counted: list[Counted]) -> list[Counted]:
    """One of each group of similar plans.

    Plans of a group differ only in rank order or ends, and have equal time and memory.
    """
    found: dict[tuple[Any, ...], Counted] = {}
    for one in counted:
        keys = tuple(
            value for key, value in sorted(one.candidate.keys.items()) if key not in {"order", "balanced_ends"}
        )
        found.setdefault((one.time.total_ps, one.candidate.memory_bytes, *keys), one)
    return list(found.values())


def _wanted(spread: Sequence[Sequence[Degrees]]) -> int:
    """Worker processes for a search: one for each core.

    Only this process if starting others would take longer than the search.
    """
    ways = sum(len(part) for part in spread)
    return workers_for(len(spread), _COUNTING_BYTES) if ways >= FEW_WAYS else 1


def _count(
    space: Space, setting: TrainingSetting, spread: Sequence[list[Degrees]], processes: Workers, told: Told
) -> list[Counted]:
    """Count all plans by closed forms.

    Infeasible plans are counted in ``space.pruned``.
    """
    asked = [_Part(space=space, setting=setting, spread=part) for part in spread]
    ways, done = sum(len(part) for part in spread), 0
    found: list[Counted] = []
    for part, (counted, pruned, smallest) in zip(spread, processes.answers(_counted_part, asked), strict=True):
        found += counted
        space.pruned.update(pruned)
        if smallest is not None:
            space.too_large(*smallest)
        done += len(part)
        told("counting", done, ways)
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """The plans that one worker counts at a time."""

    space: Space
    setting: TrainingSetting
    spread: list[Degrees]


def _counted_part(part: _Part) -> tuple[list[Counted], Counter[str], tuple[Parallelism, Memory] | None]:
    space = replace(part.space, pruned=Counter(), smallest=None)
    closed = part.setting.closed_forms()
    counted = [Counted(candidate=one, time=closed.iteration(one.plan)) for one in candidates(space, part.spread)]
    return counted, space.pruned, space.smallest


def _run_best(scenario: Scenario, order: PlanOrder, processes: Workers, told: Told) -> tuple[list[Ranked], int, int]:
    """Run plans on the flow engine until no other can be faster.

    Returns
    -------
    the plans that ran, the fastest first; how many may be as good and did not; how many memory holds side by side
    """
    plans = order.by_time()
    first = list(islice(plans, MOST_RUNS))
    asked = [(with_plan(scenario, one.candidate.keys), one) for one in first]
    at_once = _fitting(asked, processes)
    told("running", 0, len(asked))
    best: list[Ranked] = []
    unsure = 0
    for ranked in processes.answers(_run, asked, at_once=at_once):
        best.append(ranked)
        told("running", len(best), len(asked))
        limit_ps = (1 + MARGIN) * min(one.iteration_ps for one in best)
        if len(best) == len(asked):
            unsure = sum(1 for _ in _within(plans, limit_ps))
        elif len(best) >= BEST and first[len(best)].time.total_ps > limit_ps:
            break
    return sorted(best, key=lambda one: one.iteration_ps), unsure, at_once


def _fitting(asked: Sequence[tuple[Scenario, Counted]], processes: Workers) -> int:
    """Number of parallel runs: the processes that memory can hold.

    The largest of the first runs gives the memory of a run.
    """
    if processes.count < 2:
        return 1
    largest = max(prepare(scenario).estimate.memory_bytes for scenario, _ in asked[: processes.count])
    return workers_for(processes.count, largest)


def _within(plans: Iterator[Counted], limit_ps: float) -> Iterator[Counted]:
    """The next plans in order, up to a time."""
    return takewhile(lambda one: one.time.total_ps <= limit_ps, plans)


def _placed(  # their plans take as much memory as those that ran before
    scenario: Scenario, fabric: Fabric, best: Sequence[Ranked], processes: Workers, at_once: int, told: Told
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
    for done, ranked in enumerate(processes.answers(_run, asked, at_once=at_once)):
        told("placing", done + 1, len(asked))
        if ranked.iteration_ps < usual_ps[done]:
            found.append(ranked)
    return found


def _own(
    scenario: Scenario, setting: TrainingSetting, space: Space, best: Sequence[Ranked]
) -> tuple[Ranked | None, tuple[Mistake, ...]]:
    """Run the plan of the scenario itself, unless it is among the best.

    An infeasible plan gives its mistakes.
    """
    section = _section(scenario)
    keys = {key: getattr(section, key) for key in (*SEARCHED, "placement")}
    try:
        (job,) = prepare(with_plan(scenario, keys)).jobs
    except ConfigError as error:
        return None, error.mistakes
    if job.memory.total_bytes > space.limit_bytes:
        return None, (_over_headroom(job.memory, space),)
    keys["data"] = job.plan.data
    for ranked in best:
        if ranked.candidate.keys == keys:
            return ranked, ()
    candidate = PossiblePlan(keys=keys, plan=job.plan, memory_bytes=job.memory.total_bytes)
    counted = Counted(candidate=candidate, time=setting.closed_forms().iteration(job.plan, follows=True))
    return _run((with_plan(scenario, keys), counted)), ()


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
    )
