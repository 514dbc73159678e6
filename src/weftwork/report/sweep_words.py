"""A sweep in words: winner, margin, noise, and the key that matters most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.report.training_answer import may_not_fit
from weftwork.report.words import amount, assumptions, change, interval_words, label, sentence
from weftwork.spec.endings import ENDINGS_AS_ASKED
from weftwork.spec.numbers import headline_noun
from weftwork.spec.sweep import SAME
from weftwork.spec.verdicts import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weftwork.spec.sweep import SweepResult, SweepRow, SweepVerdict

__all__ = [
    "against_best", "best_first", "cell", "objective_words", "point_words", "sweep_verdict",
]  # fmt: skip


def point_words(result: SweepResult, row: SweepRow) -> str:
    """A point by the keys that differ.

    Sections are left out where the key alone is clear, and so is the key of its group.

    Examples
    --------
    ``oversubscription 2, congestion control dcqcn``
    """
    keys = [key for key in result.keys if key != result.within] or list(result.keys)
    leaves = [key.rpartition(".")[2] for key in keys]
    names = [leaf if leaves.count(leaf) == 1 else key for key, leaf in zip(keys, leaves, strict=True)]
    return (
        ", ".join(f"{name.replace('_', ' ')} {row.values[key]}" for name, key in zip(names, keys, strict=True))
        or row.name
    )


def objective_words(result: SweepResult) -> str:
    """The objective of a sweep in words."""
    return headline_noun(result.objective) or label(result.objective)


def cell(result: SweepResult, row: SweepRow) -> str:
    """The objective of a point with its interval.

    A dash if it has none.
    """
    text = amount(row.objective, result.unit)
    if row.objective is None or row.low is None or row.high is None or result.seeds == 1:
        return text
    between = interval_words(row.low, row.high, result.unit, beside=row.objective)
    return f"{text} ({between or 'the same for each seed'})"


def against_best(result: SweepResult, row: SweepRow) -> str:
    """Change of a point's objective against the best of its group.

    ``best`` for the best point itself.
    """
    place = result.bests.get(result.group(row))
    if row.place == place:
        return "best"
    best = next((one.objective for one in result.rows if one.place == place), None)
    return change(row.objective / best - 1) if best and row.objective is not None else ""


def best_first(result: SweepResult) -> list[SweepRow]:
    """Points by group, the best first.

    Points without an objective come last.
    """
    groups = {verdict.group: number for number, verdict in enumerate(result.verdicts)}
    sign = -1 if result.is_larger_better else 1

    def place(row: SweepRow) -> tuple[int, bool, float, int]:
        return groups[result.group(row)], row.objective is None, sign * (row.objective or 0.0), row.place

    return sorted(result.rows, key=place)


def sweep_verdict(result: SweepResult) -> list[str]:
    """The verdict in sentences, the most important first."""
    said = [text for verdict in result.verdicts for text in _verdict(result, verdict)]
    if result.seeds == 1 and any(verdict.second is not None for verdict in result.verdicts):
        said.append("With one seed the noise is unknown; --seeds 5 measures it.")
    assumed = assumptions(text for row in result.rows for text in row.assumed)
    return [*said, *_memory(result), *_effects(result), *_failures(result), *assumed]


def _verdict(result: SweepResult, verdict: SweepVerdict) -> list[str]:
    """The winner of a group, in two or three sentences.

    A group has one text, so that it is read as one.
    """
    if verdict.group:
        told = " ".join(_sentences(result, verdict))
        key = result.within.rpartition(".")[2].replace("_", " ")
        return [f"{sentence(key)} {verdict.group}: {told}"]
    return _sentences(result, verdict)


def _sentences(result: SweepResult, verdict: SweepVerdict) -> list[str]:
    rows = {row.place: row for row in result.rows if result.group(row) == verdict.group}
    if verdict.best is None:
        return ["No point can be judged: no run finished with a number to compare."]
    best = rows[verdict.best]
    what = objective_words(result)
    said = [f"{sentence(point_words(result, best))} is best: {what} {amount(best.objective, result.unit)}."]
    if verdict.second is None or verdict.worst is None:
        return [*said, "No other point can be judged."]
    second, worst = rows[verdict.second], rows[verdict.worst]
    if verdict.gain_on_worst is not None and verdict.gain_on_worst < SAME:
        return [verdict_text("sweep.all-equal", objective=f"{what} {amount(best.objective, result.unit)}")]
    if equals := _equals(rows.values(), best):
        others = point_words(result, equals[0]) if len(equals) == 1 else plural(len(equals), "other point")
        said[0] = (
            f"{sentence(point_words(result, best))} and {others} are equal and best: {what}"
            f" {amount(best.objective, result.unit)}."
        )
    noise = _noise(verdict.is_clear)
    if second.place != worst.place:
        said.append(f"{_gain(result, verdict.gain_on_second)} than the next, {_told(result, second)}{noise}.")
        noise = ""
    said.append(f"{_gain(result, verdict.gain_on_worst)} than the worst, {_told(result, worst)}{noise}.")
    return said


def _equals(rows: Iterable[SweepRow], best: SweepRow) -> list[SweepRow]:
    """Points that equal the best."""
    if best.objective is None:
        return []
    least = SAME * abs(best.objective)
    return [
        row
        for row in rows
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
        "; seed by seed the 95 % interval of the difference excludes zero, so this is more than noise"
        if is_clear
        else "; seed by seed the 95 % interval of the difference includes zero, so this may be noise"
    )


def _effects(result: SweepResult) -> list[str]:
    effects = [one for one in result.effects if one.share is not None and len(one.levels) > 1]
    if len(effects) < 2:
        return []
    first = effects[0]
    means = sorted((level.mean, level.text) for level in first.levels)
    low, high = means[0], means[-1]
    unit = result.effect_unit
    of = " relative to the mean of their group" if result.within else ""
    told = (
        f"{first.key} matters most: the means of its values{of} go from {amount(low[0], unit)} ({low[1]}) to"
        f" {amount(high[0], unit)} ({high[1]}), {amount(first.share, 'share')} of the variance between points."
    )
    return [told]


def _memory(result: SweepResult) -> list[str]:
    """Points whose training may not fit into the memory of a GPU, the best ones by name."""
    full = [row for row in result.rows if may_not_fit(row.numbers)]
    if not full:
        return []
    best = {verdict.best for verdict in result.verdicts}
    named = [
        f"{point_words(result, row)} ({amount(row.numbers['memory_share']['value'], 'share')} of it)"
        for row in full
        if row.place in best
    ]
    who = f", among them the best, {', '.join(named)}" if named else ""
    return [f"{sentence(plural(len(full), 'point'))} may not fit into the memory of a GPU{who}; each run says why."]


def _failures(result: SweepResult) -> list[str]:
    failed = [row for row in result.rows if row.status not in ENDINGS_AS_ASKED]
    if not failed:
        return []
    counts: dict[str, int] = {}
    for row in failed:
        counts[row.status] = counts.get(row.status, 0) + 1
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    return [f"{plural(len(failed), 'point has', 'points have')} no result to judge: {told}."]
