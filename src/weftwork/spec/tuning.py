"""Results of a tuning: trials, best values, gains and effects.

Gains are those on fresh seeds; effects are those of each parameter. A trial is one choice of values for the parameters;
it has a run for each scenario and seed.
Leaves out: how trials are chosen and judged (`weftwork.study.tune`), and how they are told (`weftwork.report`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["OtherNumber", "SeedEstimate", "TuneParameter", "TuneResult", "TuneScenario", "TuneTrial"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedEstimate:
    """A mean over seeds with its 95 % interval.

    There is no interval with one seed.

    Attributes
    ----------
    mean, low, high : in the unit of what is estimated
    """

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def is_clear(self) -> bool | None:
        """Whether the interval excludes zero; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneTrial:
    """A choice of values and the results of its runs.

    Attributes
    ----------
    number : of the trial, from 0; trial 0 has the values of the files
    values : text of each parameter; empty in trial 0
    places : where each number lies in its range, from 0 to 1; the number of the choice for words
    status : ``complete``, or how the first run ended that did not; ``refused``, ``failed`` or ``lost`` without a run
    reason : why there is no score; empty where there is one
    same_as : earlier trial with these very values, whose score counts; None where there is none
    score : objective over all scenarios and seeds relative to trial 0 (see `TuneResult.is_ratio`); None without one
    """

    number: int
    values: Mapping[str, str]
    places: Mapping[str, float]
    status: str
    reason: str = ""
    same_as: int | None = None
    score: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneParameter:
    """A parameter, its range, and its effect.

    Attributes
    ----------
    key, text : of the scenario, and its meaning
    before, best : values as texts; `before` is ``not set`` where the scenario leaves the key out
    choices : words to choose from; empty for a number
    low, high : ends of the range; empty for words
    is_log : whether the range is searched by its logarithm
    end : ``low`` or ``high`` where the best value lies at an end of the range that could be wider; else empty
    share : of the variance between trials that the parameter explains alone; None where all are equal
    loss : how much worse the score gets on the fresh seeds where this parameter alone keeps its value from before;
        above 0 is worse; None where that was not run
    share_of_gain : the same as a share of the whole gain; None without a gain
    why : why setting it back could not be judged; empty where it was
    """

    key: str
    text: str
    before: str
    best: str
    choices: tuple[str, ...] = ()
    low: str = ""
    high: str = ""
    is_log: bool = False
    end: Literal["", "low", "high"] = ""
    share: float | None = None
    loss: SeedEstimate | None = None
    share_of_gain: float | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneScenario:
    """A scenario and its objective before and after tuning.

    Both are of the fresh seeds; ``file`` is the scenario that was tuned.
    """

    name: str
    file: str
    tuned: str
    before: float | None
    after: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OtherNumber:
    """Another number of the summary that became clearly worse.

    The change is that on the fresh seeds of a scenario.
    """

    scenario: str
    name: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TuneResult:
    """All results of a tuning.

    Attributes
    ----------
    objective, unit : what is judged by; the unit is empty for an expression
    is_larger_better : whether more of it is better
    is_ratio : whether scores of trials are relative to the values of the files; else in the unit of the objective
    is_gain_ratio : the same of gains and losses, which are of the fresh seeds
    seeds : of the search; ``finalist_seeds`` chose among the finalists, ``fresh_seeds`` measured the gain
    scenarios : one for each file
    parameters : in the order of their keys
    trials : by number
    best : number of the trial that won; 0: no trial was better than the files
    finalists : numbers of the trials that were run again on `finalist_seeds`
    gain : of the best over the files on the fresh seeds, paired by seed; above 0 is better; None where there is none
    why : why there is no gain although a trial won; else empty
    others : numbers that became worse
    unread : parameters that a pattern named and that have no range, with the reason
    runs : how many runs the answer took, kept ones included
    assumed : what the files left open and the numbers depend on
    """

    objective: str
    unit: str
    is_larger_better: bool
    is_ratio: bool
    is_gain_ratio: bool
    seeds: tuple[int, ...]
    finalist_seeds: tuple[int, ...]
    fresh_seeds: tuple[int, ...]
    scenarios: tuple[TuneScenario, ...]
    parameters: tuple[TuneParameter, ...]
    trials: tuple[TuneTrial, ...]
    best: int
    finalists: tuple[int, ...]
    gain: SeedEstimate | None
    why: str
    others: tuple[OtherNumber, ...]
    unread: Mapping[str, str]
    runs: int
    assumed: tuple[str, ...] = ()
