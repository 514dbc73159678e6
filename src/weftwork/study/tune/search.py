"""Tune a scenario.

Search on some seeds, choose among finalists on others, and measure the gain on fresh ones.

Trial 0 has the values of the files. Trials are asked for in batches of `BATCH`, whatever the number of workers. The
best trial of a search is partly the luckiest (the winner's curse), so the gain is never taken from the seeds that
chose. `FINALISTS` trials are run again on seeds of their own. The best of them, the values of the files, and the best
with one parameter set back at a time are run on fresh ones. The same call with the same folder repeats the search from
the run folders, and goes on where they end.
Leaves out: which values a sampler proposes (`weftwork.study.tune.sampler`); words and pages (`weftwork.report`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.version import VERSION
from weftwork.spec.study_ends import StudyEndName
from weftwork.spec.tuning import TuneTrial
from weftwork.store.runs import new_folder
from weftwork.store.sweeps import sweep_folder
from weftwork.study.pool.pool import lasting_workers, workers_for
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.record.interrupts import interrupts
from weftwork.study.record.point import memory_of, points_of
from weftwork.study.record.run import MAX_SEED
from weftwork.study.tune.judged import Confirmed, judged
from weftwork.study.tune.keys import keys_of
from weftwork.study.tune.objective import NoValueError, Objective, objective_from
from weftwork.study.tune.parameters import TuneSpace, space_of
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.sampler import TreeSampler, refuse_without_optuna
from weftwork.study.tune.scores import Scale, scale_of
from weftwork.study.tune.trials import Asked, DiskFullError, Runs, Tried, means_of, objectives_of
from weftwork.study.tune.tuned_file import tuned_files

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.tuning import TuneResult
    from weftwork.study.pool.pool import Outcomes
    from weftwork.study.tune.sampler import Sampler

__all__ = ["BATCH", "TuneProgress", "TuneRun", "TuneStart", "run_tune"]

BATCH: Final = 8  # chosen: keeps eight cores busy with one seed; a larger one tells the sampler less between asks
FINALISTS: Final = 3  # chosen: one more costs as many runs as a trial, and the best of the search is seldom fourth


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneStart:
    """A tuning before it starts: its numbers, and its parallel runs."""

    parameters: int
    trials: int
    runs: int
    workers: int
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneProgress:
    """Progress of a tuning.

    Attributes
    ----------
    phase : ``search``, ``finalists`` or ``fresh``
    trials, wanted : trials of the search that have ended, of how many
    best : change of the score from the values of the files to the best so far; None where nothing is better yet
    left_s : seconds until the end, at the pace of this call so far; None before its first run
    """

    phase: Literal["search", "finalists", "fresh"]
    trials: int
    wanted: int
    best: float | None
    left_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneRun:
    """A finished tuning.

    Attributes
    ----------
    folder : of the tuning
    result : what came of it; None where it was ended before its end
    tuned : of each file the text of the scenario with the best values
    end : ``done``; ``interrupted``; ``full``: the disk had no room
    runs, kept, repeated : runs that there are, that were there before, and that began again since a worker had died
    trials : of the search that have ended
    """

    folder: Path
    result: TuneResult | None
    tuned: Mapping[str, str]
    end: StudyEndName
    runs: int
    kept: int
    repeated: int
    trials: int


def run_tune(
    question: TuneQuestion,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    sampler: Callable[[TuneSpace], Sampler] | None = None,
    outcomes: Outcomes | None = None,
    on_start: Callable[[TuneStart], None] | None = None,
    on_progress: Callable[[TuneProgress], None] | None = None,
) -> TuneRun:
    """Search the parameters for the best objective, and measure the gain.

    The first Ctrl-C ends it; runs that are whole are kept, and the same call with the same folder goes on.

    Parameters
    ----------
    question : what is asked
    out : folder of the tuning, new or with this same tuning; by default ``runs/<name>-tune-<time>``
    workers : runs side by side; by default a core for each, as far as memory holds them
    sampler : makes what proposes values; by default Optuna's TPE
    outcomes : who runs the points of a pool; by default processes of this machine
    on_start, on_progress : told what is about to be done, and how far it is

    Raises
    ------
    ConfigError : with all mistakes of files, parameters and objective; Optuna is missing; the folder cannot be written
    CodeError : a Python file of the user's own is wrong
    """
    overrides = {"sweep": "null", **(question.settings or {})}
    scenarios = [read_scenario(file, overrides, user_code=question.user_code) for file in question.files]
    space = _space(question, scenarios)
    _refuse_counts(question, scenarios)
    if sampler is None:
        refuse_without_optuna()
    proposes = (sampler or TreeSampler)(space)
    folder = new_folder(f"{scenarios[0].name}-tune") if out is None else Path(out)
    wanted = _runs_at_most(question, space)
    side_by_side = workers or workers_for(wanted, max(memory_of(one) for one in scenarios))
    with (
        sweep_folder(folder, _document(question, scenarios, overrides, space, proposes.label), "tune") as runs_folder,
        interrupts() as interrupt,
        _workers(outcomes) as pool,
    ):
        if on_start is not None:
            on_start(
                TuneStart(
                    parameters=len(space.keys), trials=question.trials, runs=wanted, workers=side_by_side, folder=folder
                )
            )
        firsts = [one.engine.seed for one in scenarios]
        runs = Runs(
            files=question.files, firsts=firsts, overrides=overrides, workers=side_by_side, outcomes=pool,
            user_code=question.user_code,
        )  # fmt: skip
        search = _TuneSearch(question, space, proposes, runs, folder, _told(on_progress, wanted))
        interrupt.keep(is_raised=True)
        end: StudyEndName = "done"
        result: TuneResult | None = None
        try:
            result = search.result(runs_folder, scenarios)
        except KeyboardInterrupt:
            end = "interrupted"
        except DiskFullError:
            end = "full"
        tuned = {} if result is None else tuned_files(result, question, overrides)
    return TuneRun(
        folder=folder, result=result, tuned=tuned, end=end, runs=runs.ended, kept=runs.kept, repeated=runs.repeated,
        trials=len(search.trials),
    )  # fmt: skip


def _workers(outcomes: Outcomes | None) -> AbstractContextManager[Outcomes]:
    return lasting_workers() if outcomes is None else nullcontext(outcomes)


def _space(question: TuneQuestion, scenarios: Sequence[Scenario]) -> TuneSpace:
    """Parameters of the first scenario, which all others must have."""
    space = space_of(keys_of(scenarios[0]), question.parameters)
    mistakes = [
        Mistake(
            path=f"--parameter {one.key}",
            text=f"is not a key of {other.source}, but all files must have the parameters",
        )
        for other in scenarios[1:]
        for one in space.keys
        if one.key not in keys_of(other)
    ]
    if mistakes:
        raise ConfigError("command line", mistakes)
    return space


def _refuse_counts(question: TuneQuestion, scenarios: Sequence[Scenario]) -> None:
    counts = (("--trials", question.trials, 2), ("--seeds", question.seeds, 1), ("--fresh", question.fresh, 1))
    mistakes = [
        Mistake(path=name, text=f"found {count}, wanted {least} or more")
        for name, count, least in counts
        if count < least
    ]
    last = 2 * question.seeds + question.fresh
    mistakes += [
        Mistake(path="--seeds", text=f"found {last} seeds from {one.engine.seed} on, wanted none above {MAX_SEED}")
        for one in scenarios
        if one.engine.seed + last > MAX_SEED
    ]
    if mistakes:
        raise ConfigError("command line", mistakes)


def _runs_at_most(question: TuneQuestion, space: TuneSpace) -> int:
    search = question.trials * question.seeds
    confirmed = (FINALISTS + 1) * question.seeds + (2 + len(space.keys)) * question.fresh
    return len(question.files) * (search + confirmed)


def _document(
    question: TuneQuestion, scenarios: Sequence[Scenario], overrides: Mapping[str, str], space: TuneSpace, label: str
) -> dict[str, object]:
    """The written description of the tuning.

    More trials or another objective continue in the same folder.
    """
    points = [
        points_of(0, scenario, file, overrides, seeds=range(1), user_code=question.user_code)[0]
        for scenario, file in zip(scenarios, question.files, strict=True)
    ]
    ranges = [[one.key, one.low, one.high, one.is_log, list(one.choices), one.floor] for one in space.keys]
    text = json.dumps([VERSION, label, [one.digest for one in points], ranges, question.seeds, BATCH])
    return {
        "weftwork": VERSION,
        "sampler": label,
        "names": [one.name for one in scenarios],
        "digest": sha256(text.encode()).hexdigest(),
        "parameters": list(question.parameters),
        "seeds": question.seeds,
    }


def _told(on_progress: Callable[[TuneProgress], None] | None, wanted: int) -> Callable[..., None]:
    """Return a function that converts counts to progress with the time left."""
    began_s = time.monotonic()

    def tell(search: _TuneSearch, ended: int, kept: int) -> None:
        if on_progress is None:
            return
        here = ended - kept
        left_s = (time.monotonic() - began_s) / here * max(0, wanted - ended) if here else None
        on_progress(
            TuneProgress(
                phase=search.phase, trials=len(search.trials), wanted=search.question.trials, best=search.best_change,
                left_s=left_s,
            )
        )  # fmt: skip

    return tell


class _TuneSearch:
    """The state of a tuning: its trials, and the basis of their scores."""

    def __init__(
        self,
        question: TuneQuestion,
        space: TuneSpace,
        sampler: Sampler,
        runs: Runs,
        folder: Path,
        tell: Callable[..., None],
    ) -> None:
        self.question, self.space, self.sampler, self.runs, self.folder = question, space, sampler, runs, folder
        self.phase: Literal["search", "finalists", "fresh"] = "search"
        self.trials: list[TuneTrial] = []
        self.objective: Objective | None = None
        self.means: list[dict[str, float | None]] = []
        self.assumed: tuple[str, ...] = ()
        self.scale = Scale(units=(1.0,), is_ratio=False)
        runs.on_end = lambda ended, kept: tell(self, ended, kept)

    @property
    def sign(self) -> float:
        """1 if less is better, -1 if more is better."""
        return -1.0 if self.objective is not None and self.objective.is_larger_better else 1.0

    @property
    def best_change(self) -> float | None:
        """Change of the score from trial 0 to the best, or None."""
        known = [one.score for one in self.trials if one.score is not None]
        if not known or not known[0] or not self.scale.is_ratio:
            return None
        best = min(known, key=lambda score: self.sign * score)
        return best / known[0] - 1 if best != known[0] else None

    def result(self, runs_folder: Path, scenarios: Sequence[Scenario]) -> TuneResult:
        """Search, choose, confirm and judge."""
        first = self._first(runs_folder)
        self._search(runs_folder, first)
        result = judged(
            question=self.question, space=self.space, objective=first, scale=self.scale, trials=self.trials,
            confirmed=self._confirmed(first), scenarios=scenarios, runs=self.runs.ended,
        )  # fmt: skip
        return replace(result, assumed=self.assumed)

    def _first(self, runs_folder: Path) -> Objective:
        """Run trial 0, which determines the objective and the scale."""
        question = self.question
        (tried,) = self.runs.run([Asked(number=0, settings={})], runs_folder, first_seed=0, seeds=question.seeds)
        if not tried.numbers:
            raise _no_first(question, tried.reason)
        objective = objective_from(question.objective, tried.numbers[0][0], maximises=question.maximises)
        self.objective = objective
        self.means = means_of(tried)
        self.assumed = tried.assumed
        try:
            values = objectives_of(tried, objective, self.means)
        except NoValueError as wrong:
            raise _no_first(question, str(wrong)) from wrong
        self.scale = scale_of(values, [str(file) for file in question.files])
        score = self.scale.score([fmean(of_file) for of_file in values])
        places = self.space.places_before()
        if places is not None:
            self.sampler.add(places, self.sign * score)
        self.trials.append(TuneTrial(number=0, values={}, places=places or {}, status=tried.status, score=score))
        return objective

    def _search(self, runs_folder: Path, objective: Objective) -> None:
        """Ask for batches, run new trials, and report all in order."""
        while len(self.trials) < self.question.trials:
            count = min(BATCH, self.question.trials - len(self.trials))
            asked = [self.sampler.ask() for _ in range(count)]
            settings = [self.space.settings(places) for _, places in asked]
            seen = {tuple(one.values.items()): one.number for one in reversed(self.trials)}
            seen[tuple((one.key, one.known.before) for one in self.space.keys)] = 0
            first = len(self.trials)
            same: list[int | None] = []
            new: dict[int, Asked] = {}
            for number, values in enumerate(settings, first):
                same.append(seen.get(tuple(values.items())))
                if same[-1] is None:
                    seen[tuple(values.items())] = number
                    new[number] = Asked(number=number, settings=values)
            tried = self.runs.run(list(new.values()), runs_folder, first_seed=0, seeds=self.question.seeds)
            found = dict(zip(new, tried, strict=True))
            for number, (_, places), values, earlier in zip(
                range(first, first + count), asked, settings, same, strict=True
            ):
                one = found.get(number)
                if one is None:
                    self.trials.append(self._again(number, places, values, earlier or 0))
                else:
                    self.trials.append(self._judge(number, places, values, one, objective))
            for (token, _), trial in zip(asked, self.trials[first:], strict=True):
                self.sampler.tell(token, None if trial.score is None else self.sign * trial.score)

    def _judge(
        self, number: int, places: Mapping[str, float], values: Mapping[str, str], tried: Tried, objective: Objective
    ) -> TuneTrial:
        score, reason = None, tried.reason
        try:
            found = objectives_of(tried, objective, self.means)
            score = self.scale.score([fmean(of_file) for of_file in found])
        except NoValueError as wrong:
            reason = str(wrong)
        return TuneTrial(
            number=number, values=values, places=dict(places), status=tried.status, reason=reason, score=score
        )

    def _again(self, number: int, places: Mapping[str, float], values: Mapping[str, str], earlier: int) -> TuneTrial:
        """A trial with the values of an earlier one, without a second run."""
        known = self.trials[earlier]
        return TuneTrial(
            number=number, values=values, places=dict(places), status=known.status, reason=known.reason,
            same_as=earlier, score=known.score,
        )  # fmt: skip

    def _confirmed(self, objective: Objective) -> Confirmed:
        """Choose among the finalists, then run the best and its neighbours.

        Finalists have their own seeds; the best runs on fresh seeds.
        """
        question = self.question
        finalists = self._finalists()
        chosen = 0
        if finalists:
            self.phase = "finalists"
            asked = [Asked(number=0, settings={})]
            asked += [Asked(number=one.number, settings=one.values) for one in finalists]
            tried = self.runs.run(asked, self.folder / "finalists", first_seed=question.seeds, seeds=question.seeds)
            if not tried[0].numbers:
                raise _no_first(question, tried[0].reason)
            chosen = self._chosen([one.number for one in asked], tried, objective)
        if chosen == 0:
            return Confirmed(best=0, finalists=tuple(one.number for one in finalists), tried=(), without={})
        self.phase = "fresh"
        best = self.trials[chosen].values
        before = {one.key: one.known.before for one in self.space.keys}
        changed = [key for key, text in best.items() if text != before[key]]
        asked = [Asked(number=0, settings={}), Asked(number=1, settings=best)]
        asked += [
            Asked(number=place, settings={other: text for other, text in best.items() if other != key})
            for place, key in enumerate(changed, 2)
        ]
        tried = self.runs.run(asked, self.folder / "fresh", first_seed=2 * question.seeds, seeds=question.fresh)
        if not tried[0].numbers:
            raise _no_first(question, tried[0].reason)
        return Confirmed(
            best=chosen,
            finalists=tuple(one.number for one in finalists),
            tried=(tried[0], tried[1]),
            without=dict(zip(changed, tried[2:], strict=True)),
        )

    def _finalists(self) -> list[TuneTrial]:
        """Trials with a better score than the files' values, the best first.

        Trials with the values of an earlier one are left out.
        """
        least = self.trials[0].score
        known = [
            (self.sign * one.score, one)
            for one in self.trials[1:]
            if one.score is not None and one.same_as is None and least is not None
            if self.sign * one.score < self.sign * least
        ]
        return [one for _, one in sorted(known, key=lambda pair: (pair[0], pair[1].number))[:FINALISTS]]

    def _chosen(self, numbers: Sequence[int], tried: Sequence[Tried], objective: Objective) -> int:
        """Number of the best trial on the finalists' seeds.

        0 if the files' values are best.
        """
        means = means_of(tried[0])
        scores: dict[int, float] = {}
        for number, one in zip(numbers, tried, strict=True):
            try:
                values = objectives_of(one, objective, means)
            except NoValueError:
                continue
            scores[number] = self.sign * fmean(self.scale.scores(values))
        return min(scores, key=lambda number: (scores[number], number), default=0)


def _no_first(question: TuneQuestion, reason: str) -> ConfigError:
    text = f"the runs with the values of the file give no objective: {reason}"
    return ConfigError(str(question.files[0]), [Mistake(path="trial 0", text=text)])
