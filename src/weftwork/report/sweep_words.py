"""A sweep in words: who won, by how much, whether that is more than noise, and which key matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.report.words import amount, change, label, plural, sentence
from weftwork.spec.sweep import SAME

if TYPE_CHECKING:
    from weftwork.spec.sweep import SweepResult, SweepRow

__all__ = ["against_best", "cell", "objective_words", "point_words", "sweep_verdict"]

_HEADLINES: Final = {  # what these numbers are called where points are judged by them
    "iteration_ps": "time of an iteration",
    "collective_duration_ps": "time of the collective",
    "completion_ps": "completion time",
}


def point_words(result: SweepResult, row: SweepRow) -> str:
    """A point by the keys that differ, without their sections where that is clear.

    Examples
    --------
    ``oversubscription 2, congestion_control dcqcn``
    """
    leaves = [key.rpartition(".")[2] for key in result.keys]
    names = [leaf if leaves.count(leaf) == 1 else key for key, leaf in zip(result.keys, leaves, strict=True)]
    return ", ".join(f"{name} {row.values[key]}" for name, key in zip(names, result.keys, strict=True)) or row.name


def objective_words(result: SweepResult) -> str:
    """What points are judged by, in words."""
    return _HEADLINES.get(result.objective, label(result.objective))


def cell(result: SweepResult, row: SweepRow) -> str:
    """The objective of a point, with half of its interval; a dash where it has none."""
    text = amount(row.objective, result.unit)
    if row.objective is None or row.low is None or row.high is None or result.seeds == 1:
        return text
    return f"{text} ({amount(row.low, result.unit)} to {amount(row.high, result.unit)})"


def against_best(result: SweepResult, row: SweepRow) -> str:
    """How far a point is from the best, as a change of the objective; ``best`` for the best itself."""
    if row.place == result.verdict.best:
        return "best"
    best = next((one.objective for one in result.rows if one.place == result.verdict.best), None)
    return change(row.objective / best - 1) if best and row.objective is not None else ""


def sweep_verdict(result: SweepResult) -> list[str]:
    """The verdict in sentences, the most important first."""
    verdict = result.verdict
    rows = {row.place: row for row in result.rows}
    if verdict.best is None:
        return ["No point can be judged: no run finished with a number to compare.", *_failures(result)]
    best = rows[verdict.best]
    what = objective_words(result)
    said = [f"{sentence(point_words(result, best))} is best: {what} {amount(best.objective, result.unit)}."]
    if verdict.second is None or verdict.worst is None:
        return [*said, "No other point can be judged.", *_failures(result)]
    second, worst = rows[verdict.second], rows[verdict.worst]
    if verdict.gain_on_worst is not None and verdict.gain_on_worst < SAME:
        said = [f"All points are equal: {what} {amount(best.objective, result.unit)}."]
        return [*said, *_failures(result)]
    if equals := _equals(result, best):
        others = point_words(result, equals[0]) if len(equals) == 1 else f"{len(equals):,} other points"
        said[0] = (
            f"{sentence(point_words(result, best))} and {others} are equal and best: {what}"
            f" {amount(best.objective, result.unit)}."
        )
    if second.place != worst.place:
        gain = _gain(result, verdict.gain_on_second)
        said.append(f"{gain} than the next, {_told(result, second)}{_noise(verdict.is_clear)}.")
    noise = _noise(verdict.is_clear) if second.place == worst.place else ""
    said.append(f"{_gain(result, verdict.gain_on_worst)} than the worst, {_told(result, worst)}{noise}.")
    if result.seeds == 1:
        said.append("One seed: no statement on noise; --seeds 5 makes one.")
    return [*said, *_effects(result), *_failures(result)]


def _equals(result: SweepResult, best: SweepRow) -> list[SweepRow]:
    """Points that equal the best."""
    if best.objective is None:
        return []
    least = SAME * abs(best.objective)
    return [
        row
        for row in result.rows
        if row.place != best.place and row.objective is not None and abs(row.objective - best.objective) < least
    ]


def _told(result: SweepResult, row: SweepRow) -> str:
    return f"{point_words(result, row)} ({amount(row.objective, result.unit)})"


def _gain(result: SweepResult, gain: float | None) -> str:
    side = "more" if result.is_larger_better else "less"
    return f"{sentence(side)}" if gain is None else f"{amount(gain, 'share')} {side}"


def _noise(is_clear: bool | None) -> str:  # noqa: FBT001 - a mark of the verdict
    if is_clear is None:
        return ""
    return (
        "; the 95 % intervals over seeds do not touch, so this is more than noise"
        if is_clear
        else "; the 95 % intervals over seeds overlap, so this may be noise"
    )


def _effects(result: SweepResult) -> list[str]:
    effects = [one for one in result.effects if one.share is not None and len(one.levels) > 1]
    if len(effects) < 2:
        return []
    first = effects[0]
    means = sorted((level.mean, level.text) for level in first.levels)
    low, high = means[0], means[-1]
    told = (
        f"{first.key} matters most: the means of its values go from {amount(low[0], result.unit)} ({low[1]}) to"
        f" {amount(high[0], result.unit)} ({high[1]}), {amount(first.share, 'share')} of the variance between points."
    )
    return [told]


def _failures(result: SweepResult) -> list[str]:
    failed = [row for row in result.rows if row.status not in {"complete", "stopped"}]
    if not failed:
        return []
    counts: dict[str, int] = {}
    for row in failed:
        counts[row.status] = counts.get(row.status, 0) + 1
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return [f"{plural(len(failed), 'point has', 'points have')} no result to judge: {told}."]
