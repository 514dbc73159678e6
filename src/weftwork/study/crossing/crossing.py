"""Cross congestion controls with load balancers.

Two rounds of runs in a pool lead to a folder and a verdict.

The first round runs every control with ECMP and with spraying, and every balancer with DCQCN, NSCC and Swift; the
second one what is missing of the best three controls with the best three balancers. The folder keeps every run, so that
the same call goes on where it was ended.
Leaves out: a cluster; `weftwork.study.sweep` has one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.version import VERSION
from weftwork.policies.load import policy_names
from weftwork.spec.crossing import BASE, PRICES, Contender, CrossingCell, CrossingResult, Setting
from weftwork.spec.scenario.choices import SCHEMES
from weftwork.spec.scenario.policies import QUEUE_PAIR_PRESETS
from weftwork.spec.study_ends import STUDY_ENDS, StudyEndName
from weftwork.store.crossings import crossing_folder, write_crossing
from weftwork.store.runs import Run, new_folder
from weftwork.study.crossing.contenders import (
    CONTROLS_WITH_ALL,
    PLAIN,
    Balancer,
    balancers_of,
    contender_of,
    first_round,
    transport_keys,
)  # fmt: skip
from weftwork.study.crossing.judge import best_policies, judged_cells, standings_of, three_best
from weftwork.study.crossing.settings import HOSTS, overrides_of, scenario_file, settings_of
from weftwork.study.pool.pool import PoolProgress, run_pool, workers_for
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.interrupts import interrupts
from weftwork.study.record.point import PoolPoint, memory_of, points_of
from weftwork.study.record.point_run import run_point

if TYPE_CHECKING:
    from weftwork.study.pool.work import PoolOutcome

__all__ = ["ALL", "SEEDS", "CrossingRun", "CrossingStart", "run_crossing"]

SEEDS: Final = 5  # chosen: the quantile of Student's t is 2.8, and the whole still ends in under two hours on two cores
ALL: Final = "all"  # in a list of names: those of the catalogue
_ROUND: Final = 1_000_000  # places of a round's runs in the pool, which name their folders


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossingStart:
    """A round before it starts: name, numbers, and parallel runs."""

    round: int
    contenders: int
    settings: int
    runs: int
    workers: int
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class CrossingRun:
    """A finished crossing.

    Attributes
    ----------
    folder : of the crossing
    result : what came of it; None where it was ended before its end
    end : ``done``; ``interrupted``; ``full``: the disk had no room
    whole, wanted, kept : runs that are there, that were asked for so far, and that were there before
    """

    folder: Path
    result: CrossingResult | None
    end: StudyEndName
    whole: int
    wanted: int
    kept: int


@dataclass(kw_only=True, slots=True)
class _Study:
    """State that the rounds share."""

    settings: tuple[Setting, ...]
    seeds: range
    controls: Mapping[str, str]  # label -> name or file
    contenders: list[Contender] = field(default_factory=list)
    points: dict[tuple[int, int], list[PoolPoint]] = field(default_factory=dict)  # by contender and setting
    refused: dict[tuple[int, int], str] = field(default_factory=dict)
    outcomes: dict[int, PoolOutcome] = field(default_factory=dict)  # by place
    memory_bytes: int = 0


def run_crossing(  # noqa: PLR0913 - what can be asked of it, all by name
    *,
    out: str | Path | None = None,
    controls: Sequence[str] = (),
    path_selections: Sequence[str] = (),
    port_selections: Sequence[str] = (),
    workloads: Sequence[str] = (),
    seeds: int = SEEDS,
    is_all: bool = False,
    workers: int | None = None,
    user_code: bool = True,
    on_start: Callable[[CrossingStart], None] | None = None,
    on_progress: Callable[[PoolProgress], None] | None = None,
) -> CrossingRun:
    """Do the missing runs of a crossing, and judge it.

    The first Ctrl-C ends the call; runs that are whole are kept, and the same call with the same folder goes on.

    Parameters
    ----------
    out : folder of the crossing, new or with this same crossing; by default ``runs/crossing-<time>``
    controls : names of congestion controls or Python files of the user's own; ``all`` stands for the catalogue, and
        none for ``all``. DCQCN with ECMP takes part always, since all are measured against it
    path_selections, port_selections : the same for balancers at the NIC and at the switch; where one of the two is
        given, the other has none, no paths are planned, and each connection has one queue pair
    workloads : names; by default all of them
    seeds : runs of each cell
    is_all : every control with every balancer
    workers : runs side by side; by default a core for each, as far as memory holds them
    user_code : False refuses Python files of the user's own
    on_start, on_progress : told what a round is about to do, and how far it is

    Raises
    ------
    ConfigError : with all mistakes, or where the folder cannot be written
    CodeError : a Python file of the user's own is wrong
    """
    if seeds < 1:
        raise ConfigError("command line", [Mistake(path="--seeds", text=f"found {seeds}, wanted at least one")])
    began_s = time.monotonic()
    named = _names("congestion_control", controls or (ALL,))
    nothing_given = not path_selections and not port_selections
    balancers = balancers_of(
        _names("path_selection", (ALL,) if nothing_given else path_selections),
        _names("port_selection", (ALL,) if nothing_given else port_selections),
        tuple(SCHEMES) if nothing_given else (),
        tuple(QUEUE_PAIR_PRESETS) if nothing_given else (),
    )
    settings = settings_of(tuple(workloads))
    if not user_code:
        _refuse_files(settings[0], {"congestion_control": controls, "path_selection": path_selections,
                                    "port_selection": port_selections})  # fmt: skip
    study = _Study(
        settings=settings,
        seeds=range(1, 1 + seeds),
        controls={
            Path(name).stem if name.endswith(".py") else name: name for name in (BASE[0], *CONTROLS_WITH_ALL, *named)
        },
    )
    pairs = first_round(named, balancers, is_all=is_all)
    for control, balancer, origin in pairs:
        _add(study, control, balancer, origin, round_=0)
    folder = new_folder("crossing") if out is None else Path(out)
    end: StudyEndName = "done"
    with crossing_folder(folder, _document(study, is_all=is_all)) as runs, interrupts() as interrupt:
        interrupt.keep(is_raised=True)
        count = _workers(study, workers)
        try:
            end = _run(study, runs, folder, count, 0, on_start, on_progress)
            if STUDY_ENDS[end].is_done and not is_all:
                chosen = _second_round(study, runs, balancers)
                for control, balancer in chosen:
                    _add(study, control, balancer, "crossing", round_=1)
                if chosen:
                    end = _run(study, runs, folder, count, 1, on_start, on_progress)
        except KeyboardInterrupt:
            end = "interrupted"
        result = None
        if STUDY_ENDS[end].is_done:
            result = _result(study, runs, count, time.monotonic() - began_s)
            write_crossing(folder, result)
    whole = [one for one in study.outcomes.values() if one.has_folder]
    return CrossingRun(
        folder=folder,
        result=result,
        end=end,
        whole=len(whole),
        wanted=sum(map(len, study.points.values())),
        kept=sum(one.is_kept for one in whole),
    )


def _refuse_files(setting: Setting, given: Mapping[str, Sequence[str]]) -> None:
    """Refuse a user's Python file with the message of all commands."""
    for kind, names in given.items():
        for name in names:
            if name.endswith(".py"):
                read_scenario(scenario_file(setting), {f"transport.{kind}": name}, user_code=False)


def _names(kind: str, given: Sequence[str]) -> tuple[str, ...]:
    """Names of a list without repetitions, with ``all`` for the catalogue.

    A file is named by its whole path.
    """
    found: list[str] = []
    for name in given:
        if name == ALL:
            found += policy_names(kind)
        else:
            found.append(str(Path(name).resolve()) if name.endswith(".py") else name)
    return tuple(dict.fromkeys(found))


def _add(study: _Study, control: str, balancer: Balancer, origin: str, *, round_: int) -> None:
    """Read the scenarios of a contender.

    A contender that a setting refuses has no points there.
    """
    contender = contender_of(control, balancer, origin)
    place = len(study.contenders)
    study.contenders.append(contender)
    for number, setting in enumerate(study.settings):
        file = scenario_file(setting)
        overrides = {**overrides_of(setting), **transport_keys(contender, control)}
        first = round_ * _ROUND + (place * len(study.settings) + number) * len(study.seeds)
        try:
            scenario = read_scenario(file, overrides)
            study.memory_bytes = max(study.memory_bytes, memory_of(scenario))
        except ConfigError as error:
            study.refused[place, number] = "; ".join(f"{one.path}: {one.text}" for one in error.mistakes)
            continue
        study.points[place, number] = points_of(first, scenario, file, overrides, seeds=study.seeds)


def _document(study: _Study, *, is_all: bool) -> dict[str, Any]:
    """The written description of the crossing.

    Its digest depends on every run of the first round.
    """
    digests = {f"{place}-{number}": [p.digest for p in points] for (place, number), points in study.points.items()}
    named = [one.name for one in study.contenders]
    text = json.dumps([VERSION, named, digests, sorted(map(str, study.refused)), is_all])
    return {
        "weftwork": VERSION,
        "digest": sha256(text.encode()).hexdigest(),
        "contenders": named,
        "settings": [one.name for one in study.settings],
        "seeds": len(study.seeds),
        "all": is_all,
    }


def _workers(study: _Study, workers: int | None) -> int:
    wanted = sum(map(len, study.points.values()))
    return max(1, workers_for(wanted, study.memory_bytes) if workers is None else workers)


def _run(
    study: _Study,
    runs: Path,
    folder: Path,
    workers: int,
    round_: int,
    on_start: Callable[[CrossingStart], None] | None,
    on_progress: Callable[[PoolProgress], None] | None,
) -> StudyEndName:
    """Run the points of a round.

    Points with a common job are consecutive, so that a worker builds it once.
    """
    asked = [
        (number, point.seed, point)
        for (_, number), points in study.points.items()
        for point in points
        if point.place not in study.outcomes
    ]
    ordered = [point for _, _, point in sorted(asked, key=lambda one: (one[0], one[1], one[2].place))]
    if on_start is not None:
        contenders = {place for (place, _), points in study.points.items() if points[0] in ordered}
        start = CrossingStart(
            round=round_ + 1, contenders=len(contenders), settings=len(study.settings), runs=len(ordered),
            workers=min(workers, max(1, len(ordered))), folder=folder,
        )  # fmt: skip
        on_start(start)
    for outcome in run_pool(ordered, runs, task=run_point, workers=workers, on_progress=on_progress):
        if outcome.is_disk_full:
            return "full"
        study.outcomes[outcome.point] = outcome
    return "done"


def _second_round(study: _Study, runs: Path, balancers: Sequence[Balancer]) -> list[tuple[str, Balancer]]:
    """The missing pairs of the best controls and the best balancers."""
    base = _base(study)
    cells = judged_cells(_cells(study, runs), study.settings, base)
    standings = standings_of(cells, len(study.settings), base)
    best_controls, best_balancers = best_policies(standings, study.contenders)
    there = {(one.control, one.balancer) for one in study.contenders}
    by_name = {one.name: one for one in (*balancers, *balancers_of(PLAIN, ()))}
    return [
        (study.controls[control], by_name[name])
        for control in best_controls
        for name in best_balancers
        if (control, name) not in there
    ]


def _base(study: _Study) -> int:
    return next(place for place, one in enumerate(study.contenders) if (one.control, one.balancer) == BASE)


def _cells(study: _Study, runs: Path) -> list[CrossingCell]:
    return [
        _cell(study, runs, place, number)
        for place in range(len(study.contenders))
        for number in range(len(study.settings))
    ]


def _cell(study: _Study, runs: Path, place: int, number: int) -> CrossingCell:
    """The cell of a contender in a setting, from its runs."""
    points = study.points.get((place, number), [])
    reason = study.refused.get((place, number), "")
    values: list[float] = []
    prices: dict[str, list[float]] = {name: [] for name in PRICES}
    for point in points:
        outcome = study.outcomes.get(point.place)
        if outcome is None or not outcome.has_folder:
            reason = "missing" if outcome is None else f"{outcome.end}: {outcome.reason}"
            break
        run = Run(runs / point.folder)
        value = run.value(study.settings[number].objective) if run.is_complete else None
        if value is None:
            reason = f"{run.status} at {run.value('simulated_ps') or 0:.3g} ps, before all was delivered"
            break
        values.append(float(value))
        for name in PRICES:
            prices[name].append(float(run.value(name) or 0))
    is_whole = bool(points) and len(values) == len(points)
    return CrossingCell(
        contender=place,
        setting=number,
        values=tuple(values) if is_whole else (),
        reason="" if is_whole else reason,
        runs=tuple(f"{runs.name}/{point.folder}" for point in points),
        prices={name: fmean(found) for name, found in prices.items()} if is_whole else {},
    )


def _result(study: _Study, runs: Path, workers: int, elapsed_s: float) -> CrossingResult:
    base = _base(study)
    cells = judged_cells(_cells(study, runs), study.settings, base)
    standings = standings_of(cells, len(study.settings), base)
    crossed = three_best(standings, study.contenders, *best_policies(standings, study.contenders))
    folders = [runs / point.folder for points in study.points.values() for point in points]
    times = [float(Run(one).provenance["wall_s"]) for one in folders if one.is_dir()]
    return CrossingResult(
        seeds=len(study.seeds), hosts=HOSTS, settings=study.settings, contenders=tuple(study.contenders), cells=cells,
        base=base, standings=standings, crossed=crossed, runs=len(times), run_s=sum(times), workers=workers,
        elapsed_s=elapsed_s,
    )  # fmt: skip
