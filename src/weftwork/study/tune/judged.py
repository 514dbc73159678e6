"""The verdict of a tuning from its trials and fresh runs.

It has the gain with its interval, the effect of each parameter, and the costs.

Two measures of a parameter: what the objective loses on the fresh seeds where the best values hold and this parameter
alone keeps the value of the file, and the share of the variance between trials that it explains alone (as sweeps do).
The first is what a user who changes as little as possible wants to know; the second also sees parameters that matter
elsewhere in the range, but a search looks longest where results are good, which bends it.
Leaves out: interactions, but for those around the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from weftwork.spec.numbers import is_larger_better, numbers_shown
from weftwork.spec.tuning import OtherNumber, SeedEstimate, TuneParameter, TuneResult, TuneScenario, TuneTrial
from weftwork.study.sweep.verdict import main_effect
from weftwork.study.tune.keys import NOT_SET
from weftwork.study.tune.objective import NoValueError, Objective
from weftwork.study.tune.scores import Scale, estimate_of, scale_of
from weftwork.study.tune.trials import Tried, means_of, objectives_of

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.tune.parameters import TunedKey, TuneSpace
    from weftwork.study.tune.question import TuneQuestion

__all__ = ["Confirmed", "judged"]

WORSE: Final = 0.01  # chosen: a change of another number by less than that is no warning


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmed:
    """Runs on fresh seeds.

    Attributes
    ----------
    best : number of the trial that won; 0: the values of the files
    finalists : numbers of the trials that it was chosen among
    tried : with the values of the files, and with the best; empty where the files won
    without : key to the best values with this key set back, of every key that the best changes
    """

    best: int
    finalists: tuple[int, ...]
    tried: tuple[Tried, ...]
    without: Mapping[str, Tried]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Fresh:
    """Scores of the fresh runs, less is better.

    It also has the objectives before and after for each scenario.
    """

    scale: Scale
    before: tuple[float, ...]
    after: tuple[float, ...]
    unit: float
    objectives: tuple[tuple[float, float], ...]

    @property
    def gain(self) -> SeedEstimate:
        """The gain of the best values."""
        return self.worse(self.before)

    def worse(self, scores: Sequence[float]) -> SeedEstimate:
        """Losses of scores against the best, paired by seed."""
        return estimate_of([(one - best) / self.unit for one, best in zip(scores, self.after, strict=True)])


def judged(
    *,
    question: TuneQuestion,
    space: TuneSpace,
    objective: Objective,
    scale: Scale,
    trials: Sequence[TuneTrial],
    confirmed: Confirmed,
    scenarios: Sequence[Scenario],
    runs: int,
) -> TuneResult:
    """Judge a tuning.

    Parameters
    ----------
    question, space, objective : of the tuning
    scale : of the scores of its trials
    trials : by number
    confirmed : runs of the finalists on fresh seeds
    scenarios : as the files have them
    runs : how many there were

    Raises
    ------
    ConfigError : the values of several files have an objective of 0 or less on the fresh seeds
    """
    sign = -1.0 if objective.is_larger_better else 1.0
    fresh, why = None, ""
    if confirmed.tried:
        try:
            fresh = _fresh(confirmed.tried, objective, question, sign)
        except NoValueError as wrong:
            why = str(wrong)
    return TuneResult(
        objective=objective.text,
        unit=objective.unit,
        is_larger_better=objective.is_larger_better,
        is_ratio=scale.is_ratio,
        is_gain_ratio=scale.is_ratio if fresh is None else fresh.scale.is_ratio,
        seeds=_seeds(scenarios[0], 0, question.seeds),
        finalist_seeds=_seeds(scenarios[0], question.seeds, question.seeds),
        fresh_seeds=_seeds(scenarios[0], 2 * question.seeds, question.fresh),
        scenarios=_scenarios(scenarios, question, fresh),
        parameters=tuple(
            _parameter(one, trials, confirmed, fresh, objective=objective, sign=sign) for one in space.keys
        ),
        trials=tuple(trials),
        best=confirmed.best,
        finalists=confirmed.finalists,
        gain=None if fresh is None else fresh.gain,
        why=why,
        others=() if fresh is None else tuple(_others(confirmed.tried, scenarios, objective)),
        unread=space.unread,
        runs=runs,
    )


def _seeds(scenario: Scenario, first: int, count: int) -> tuple[int, ...]:
    begin = scenario.engine.seed + first
    return tuple(range(begin, begin + count))


def _fresh(tried: Sequence[Tried], objective: Objective, question: TuneQuestion, sign: float) -> _Fresh:
    """Score the fresh runs; NoValueError if one has no objective."""
    means = means_of(tried[0])
    before, after = (objectives_of(one, objective, means) for one in tried)
    scale = scale_of(before, [str(file) for file in question.files])
    scores = scale.scores(before)
    return _Fresh(
        scale=scale,
        before=tuple(sign * score for score in scores),
        after=tuple(sign * score for score in scale.scores(after)),
        unit=fmean(scores) if scale.is_ratio else 1.0,
        objectives=tuple((fmean(one), fmean(other)) for one, other in zip(before, after, strict=True)),
    )


def _scenarios(scenarios: Sequence[Scenario], question: TuneQuestion, fresh: _Fresh | None) -> tuple[TuneScenario, ...]:
    several = len(scenarios) > 1
    return tuple(
        TuneScenario(
            name=one.name,
            file=str(file),
            tuned=f"tuned-{place}.yaml" if several else "tuned.yaml",
            before=None if fresh is None else fresh.objectives[place - 1][0],
            after=None if fresh is None else fresh.objectives[place - 1][1],
        )
        for place, (one, file) in enumerate(zip(scenarios, question.files, strict=True), 1)
    )


def _parameter(
    one: TunedKey,
    trials: Sequence[TuneTrial],
    confirmed: Confirmed,
    fresh: _Fresh | None,
    *,
    objective: Objective,
    sign: float,
) -> TuneParameter:
    known = one.known
    before = known.before
    if before == NOT_SET and known.now is not None:
        before = f"{NOT_SET} ({known.write(known.now)})"
    best = trials[confirmed.best].values.get(one.key, before)
    drawn = [
        (_label(one, trial), trial.score) for trial in trials if trial.score is not None and one.key in trial.places
    ]
    effect = main_effect(one.key, drawn, is_drawn=not one.choices)
    loss, share_of_gain, why = None, None, ""
    if fresh is not None and one.key in confirmed.without:
        try:
            values = objectives_of(confirmed.without[one.key], objective, means_of(confirmed.tried[0]))
            loss = fresh.worse([sign * score for score in fresh.scale.scores(values)])
            share_of_gain = loss.mean / fresh.gain.mean if fresh.gain.mean > 0 else None
        except NoValueError as wrong:
            why = str(wrong)
    return TuneParameter(
        key=one.key,
        text=known.text,
        before=before,
        best=best,
        choices=one.choices,
        low="" if one.choices else known.write(one.low),
        high="" if one.choices else known.write(one.high),
        is_log=one.is_log,
        end=one.end(best) if best != before else "",
        share=effect.share,
        loss=loss,
        share_of_gain=share_of_gain,
        why=why,
    )


def _label(one: TunedKey, trial: TuneTrial) -> str:
    """A place as a number, or the chosen word."""
    place = trial.places[one.key]
    return one.choices[int(place)] if one.choices else repr(float(place))


def _others(tried: Sequence[Tried], scenarios: Sequence[Scenario], objective: Objective) -> list[OtherNumber]:
    """Numbers that are clearly worse with the best values than before."""
    found = []
    for scenario, before, after in zip(scenarios, tried[0].numbers, tried[1].numbers, strict=True):
        for name in (number.name for number in numbers_shown("watched")):  # that somebody pays for
            if name in objective.names or any(_value(one, name) is None for one in (*before, *after)):
                continue
            unit = str(before[0][name]["unit"])
            sign = -1.0 if is_larger_better(name) else 1.0
            pairs = [
                (float(_value(one, name) or 0.0), float(_value(other, name) or 0.0))
                for one, other in zip(before, after, strict=True)
            ]
            old, new = (fmean(each) for each in zip(*pairs, strict=True))
            worse = estimate_of([sign * (second - first) for first, second in pairs])
            if worse.mean > WORSE * abs(old) and worse.is_clear is not False:
                found.append(OtherNumber(scenario=scenario.name, name=name, unit=unit, before=old, after=new))
    return found


def _value(numbers: Mapping[str, Mapping[str, Any]], name: str) -> float | None:
    found: float | None = numbers.get(name, {}).get("value")
    return found
