"""The verdict of a sweep: winner, margin, noise, and main key.

Noise is judged as `weftwork compare` judges it: a difference is clear where the 95 % intervals over seeds do not touch.
That is stricter than Welch's test, which keeps a sweep of many points from naming a winner by chance too often. What
each key did is its main effect: the means of its values over all points, and the share of the variance between points
that they explain (eta squared; Fisher, Statistical Methods for Research Workers, 1925).
Leaves out: interactions of keys; where points are no full grid, the effect of a key that goes with another one's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.endings import ENDINGS
from weftwork.spec.numbers import HEADLINES, is_larger_better
from weftwork.spec.sweep import SAME, KeyEffect, KeyLevel, SweepResult, SweepRow, SweepVerdict
from weftwork.study.results.seeds import is_difference_clear

__all__ = ["judged", "main_effect", "objective_of"]

_THIRDS: Final = ("lowest third", "middle third", "highest third")


def objective_of(numbers: Mapping[str, Mapping[str, object]], by: str | None) -> str | None:
    """The number that judges points.

    It is the requested one, or the first headline of a run.

    Raises
    ------
    ConfigError : the run has no number of that name
    """
    if by is None:
        return next((name for name in HEADLINES if name in numbers), None)
    if by not in numbers:
        text = f"the runs have no number '{by}'; they have {', '.join(numbers)}"
        raise ConfigError("command line", [Mistake(path="--by", text=text, fix=nearest(by, numbers))])
    return by


def judged(
    rows: Sequence[SweepRow],
    *,
    name: str,
    seeds: int,
    by: str | None = None,
    within: str | None = None,
    drawn: frozenset[str] = frozenset(),
) -> SweepResult:
    """Judge the rows of a sweep.

    Parameters
    ----------
    rows : by place, with numbers and without an objective
    name : of the scenario
    seeds : runs of each point
    by : number that decides; None for the headline
    within : key whose values are no choice; points are judged among those that share one; None: among all
    drawn : keys of which each point drew a number of its own

    Raises
    ------
    ConfigError : no run has the number that was asked for
    """
    first: Mapping[str, Mapping[str, object]] = next((row.numbers for row in rows if row.numbers), {})
    objective = objective_of(first, by) if first else None
    unit = "" if objective is None else str(first[objective]["unit"])
    larger = objective is not None and is_larger_better(objective)
    found = tuple(rows) if objective is None else tuple(_with_objective(row, objective) for row in rows)
    groups = [""] if within is None else list(dict.fromkeys(row.values[within] for row in rows))
    verdicts = [
        replace(
            _verdict(
                [row for row in found if within is None or row.values[within] == group],
                objective or "",
                is_larger_better=larger,
            ),
            group=group,
        )
        for group in groups
    ]
    result = SweepResult(
        name=name, objective=objective or "", unit=unit, is_larger_better=larger, seeds=seeds, rows=found, effects=(),
        verdicts=tuple(verdicts), within=within or "",
    )  # fmt: skip
    if objective is None:
        return result
    values = result.relative()
    known = [(row, values[row.place]) for row in found if row.place in values]
    keys = [key for key in result.keys if key != within]
    effects = [
        main_effect(key, [(row.values[key], value) for row, value in known], is_drawn=key in drawn) for key in keys
    ]
    return replace(result, effects=tuple(sorted(effects, key=lambda one: -(one.share or 0.0))))


def _with_objective(row: SweepRow, objective: str) -> SweepRow:
    """A row with its objective, if each of its runs has one.

    A headline counts only for a finished run.
    """
    number = row.numbers.get(objective)
    ending = ENDINGS.get(row.status)  # None where a run is missing
    is_ended = ending is not None and ending.is_as_asked and (ending.is_whole or objective not in HEADLINES)
    if number is None or number["value"] is None or not is_ended or len(row.runs) < row.wanted:
        return row
    if row.wanted > 1 and number["seeds"] < row.wanted:
        return row
    return replace(row, objective=float(number["value"]), low=number.get("low"), high=number.get("high"))


def _verdict(rows: Sequence[SweepRow], objective: str, *, is_larger_better: bool) -> SweepVerdict:
    known = [(row.objective, row) for row in rows if row.objective is not None]
    known.sort(key=lambda one: (-one[0] if is_larger_better else one[0], one[1].place))
    if not known:
        return SweepVerdict()
    value, best = known[0]
    if len(known) == 1:
        return SweepVerdict(best=best.place)
    others = [one for one in known[1:] if abs(one[0] - value) >= SAME * abs(value)] or known[1:]
    (second_value, second), (worst_value, worst) = others[0], others[-1]
    is_clear = is_difference_clear(
        best.numbers[objective], second.numbers[objective], are_paired=True, rivals=len(known) - 1
    )
    return SweepVerdict(
        best=best.place,
        second=second.place,
        worst=worst.place,
        gain_on_second=abs(value / second_value - 1) if second_value else None,
        gain_on_worst=abs(value / worst_value - 1) if worst_value else None,
        is_clear=is_clear,
    )


def main_effect(key: str, known: Sequence[tuple[str, float]], *, is_drawn: bool) -> KeyEffect:
    """Effect of a key: means of its values, and variance share.

    Parameters
    ----------
    key : of the scenario
    known : of each point the text of its value, and its result
    is_drawn : each point drew a number of its own, so that thirds of the points stand for values
    """
    groups: dict[str, list[float]] = {}
    if is_drawn and len({text for text, _ in known}) > len(_THIRDS):
        ordered = sorted(known, key=lambda one: float(one[0]))
        for place, (_, value) in enumerate(ordered):
            groups.setdefault(_THIRDS[place * len(_THIRDS) // len(ordered)], []).append(value)
    else:
        for text, value in known:
            groups.setdefault(text, []).append(value)
    levels = tuple(KeyLevel(text=text, points=len(values), mean=fmean(values)) for text, values in groups.items())
    values = [value for _, value in known]
    mean = fmean(values) if values else 0.0
    whole = math.fsum((value - mean) ** 2 for value in values)
    between = math.fsum(level.points * (level.mean - mean) ** 2 for level in levels)
    return KeyEffect(key=key, levels=levels, share=min(1.0, between / whole) if whole > 0 else None)
