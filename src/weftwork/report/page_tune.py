"""The page of a tuning: gain, effect of parameters, trials, and origin.

Leaves out: the pages of single runs, which `weftwork report` makes of their folders.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.version import VERSION
from weftwork.report.figures.axes import Tick
from weftwork.report.figures.trials import TrialDot, trial_dots
from weftwork.report.page_elements import PageSection, Tile, notice, paragraphs, render, table, tiles
from weftwork.report.tune_words import (
    gain_words,
    loss_words,
    objective_name,
    parameter_names,
    range_words,
    score_words,
    trial_words,
    tune_verdict,
    tune_warnings,
)
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from weftwork.spec.tuning import TuneParameter, TuneResult, TuneTrial

__all__ = ["tune_page"]

_MOST_ROWS: Final = 1_000  # chosen: a browser scrolls them at once; the file has all


def tune_page(result: TuneResult, folder: str, command: str) -> str:
    """Make the page.

    Parameters
    ----------
    result : of the tuning
    folder : that holds it
    command : that made it, and would go on with it

    Returns
    -------
    HTML, one file
    """
    names = ", ".join(one.name for one in result.scenarios)
    side = "more" if result.is_larger_better else "less"
    what = [
        ("tuning", f"{plural(len(result.parameters), 'parameter')}, {plural(len(result.trials), 'trial')}"),
        ("judged by", f"{objective_name(result)} ({result.objective}), {side} is better"),
    ]
    sections = [_answer(result), _parameters(result), _history(result), _trials(result)]
    return render(names, what, [*sections, _origin(result, folder, command)])


def _answer(result: TuneResult) -> PageSection:
    unit = result.unit or "number"
    shown = []
    if result.gain is not None:
        shown.append(Tile(name="gain", value=_gain(result), note=gain_words(result, result.gain)))
    several = len(result.scenarios) > 1
    for one in result.scenarios:
        if one.before is not None and one.after is not None:
            note = f"before: {amount(one.before, unit)}"
            shown.append(Tile(name=one.name if several else "tuned", value=amount(one.after, unit), note=note))
    content = paragraphs(tune_verdict(result), "answer") + tiles(shown) + notice(tune_warnings(result))
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


def _gain(result: TuneResult) -> str:
    if result.gain is None:
        return "-"
    return amount(result.gain.mean, "share" if result.is_gain_ratio else result.unit or "number")


def _parameters(result: TuneResult) -> PageSection:
    rows = [
        [
            f"<code>{escape(one.key)}</code>",
            escape(one.before),
            f"<b>{escape(one.best)}</b>" if one.best != one.before else escape(one.best),
            escape(typeset(range_words(one))),
            escape(typeset(loss_words(result, one))),
            "" if one.share_of_gain is None else escape(typeset(amount(one.share_of_gain, "share"))),
            escape(typeset(amount(one.share, "share"))),
        ]
        for one in result.parameters
    ]
    head = ("parameter", "before", "best", "searched", "worse if set back", "of the gain", "of the variance")
    charts = "".join(_chart(result, one) for one in result.parameters)
    lead = (
        "Worse if set back: the loss of the objective on the fresh seeds with the old value of this parameter and the"
        " best values of all others. Of the variance: the share that the parameter alone explains among all trials."
    )
    content = table(head, rows, texts=(1, 2, 3)) + f'<div class="two">{charts}</div>'
    return PageSection(id="parameters", short="Parameters", title="The parameters", lead=lead, content=content)


def _known(result: TuneResult) -> list[tuple[TuneTrial, float]]:
    return [(one, one.score) for one in result.trials if one.score is not None]


def _unit(result: TuneResult) -> str:
    return "ratio" if result.is_ratio else result.unit or "number"


def _chart(result: TuneResult, one: TuneParameter) -> str:
    """Scores against the places of one parameter in its range."""
    steps = max(1, len(one.choices) - 1)
    dots = [
        TrialDot(
            at=trial.places[one.key] / (steps if one.choices else 1),
            score=score,
            name=f"trial {trial_words(result, trial)}: {trial.values.get(one.key, one.before)}",
            is_best=trial.number == result.best,
        )
        for trial, score in _known(result)
        if one.key in trial.places
    ]
    if not dots:
        return ""
    ends = [Tick(at=place / steps, text=text) for place, text in enumerate(one.choices)]
    aside = "along its logarithm" if one.is_log else ""
    if not one.choices:
        ends = [Tick(at=0.0, text=one.low), Tick(at=1.0, text=one.high)]
    return trial_dots(one.key, dots, _unit(result), x_ticks=ends, before=_before(result), aside=aside)


def _before(result: TuneResult) -> float:
    return next(score for trial, score in _known(result) if trial.number == 0)


def _history(result: TuneResult) -> PageSection:
    known, last = _known(result), max(1, len(result.trials) - 1)
    dots = [
        TrialDot(
            at=trial.number / last,
            score=score,
            name=f"trial {trial_words(result, trial)}",
            is_best=trial.number == result.best,
        )
        for trial, score in known
    ]
    choose = max if result.is_larger_better else min
    so_far: list[float] = []
    for one in dots:
        so_far.append(choose(so_far[-1], one.score) if so_far else one.score)
    marks = [Tick(at=0.0, text="trial 0"), Tick(at=1.0, text=f"trial {last}")]
    over = " relative to the values of the file" if result.is_ratio else ""
    lead = (
        f"Each dot is a trial: its {objective_name(result)}{over}, over {plural(len(result.seeds), 'seed')}. The best"
        " of many trials is partly the luckiest, so the gain is measured on other seeds."
    )
    chart = trial_dots("", dots, _unit(result), x_ticks=marks, before=_before(result), so_far=so_far)
    return PageSection(id="history", short="Search", title="The search", lead=lead, content=chart)


def _trials(result: TuneResult) -> PageSection:
    sign = -1 if result.is_larger_better else 1
    ordered = sorted(result.trials, key=lambda one: (one.score is None, sign * (one.score or 0.0), one.number))
    cells = []
    for one in ordered[:_MOST_ROWS]:
        made = [
            escape(trial_words(result, one)),
            escape(typeset(score_words(result, one))),
            *(escape(one.values.get(parameter.key, parameter.before)) for parameter in result.parameters),
            escape(f"as trial {one.same_as}" if one.same_as is not None else one.reason or one.status),
        ]
        cells.append([f"<b>{text}</b>" for text in made] if one.number == result.best else made)
    head = ("trial", "score", *parameter_names(result).values(), "status")
    left = len(result.trials) - len(cells)
    lead = f"The {len(cells):,} best; trials.csv has {left:,} more." if left else "All trials, the best first."
    content = table(head, cells, texts=(0, len(head) - 1))
    return PageSection(id="trials", short="Trials", title="The trials", lead=lead, content=content)


def _origin(result: TuneResult, folder: str, command: str) -> PageSection:
    facts = [
        ("folder", folder),
        ("command", command),
        ("Weftwork", VERSION),
        ("runs", f"{result.runs:,}"),
        ("seeds of the search", _range(result.seeds)),
        ("seeds of the finalists", _range(result.finalist_seeds)),
        ("fresh seeds", _range(result.fresh_seeds)),
        *((f"tuned {one.name}", f"{folder}/{one.tuned}, from {one.file}") for one in result.scenarios),
    ]
    content = table(("", ""), [[escape(name), escape(text)] for name, text in facts], texts=(1,))
    lead = "The folder of every run is below runs, finalists or fresh, as weftwork run writes it."
    return PageSection(id="provenance", short="Provenance", title="Where this comes from", lead=lead, content=content)


def _range(seeds: tuple[int, ...]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
