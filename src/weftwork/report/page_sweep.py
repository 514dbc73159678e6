"""The page of a sweep: verdict, results by key, all points, and origin.

Leaves out: the pages of single runs, which `weftwork report` makes of their folders.
"""

from __future__ import annotations

import shlex
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.version import VERSION
from weftwork.report.figures.levels import Level, LevelDot, levels
from weftwork.report.page_elements import PageSection, Tile, notice, paragraphs, render, table, tiles
from weftwork.report.sweep_words import against_best, best_first, cell, objective_words, point_words, sweep_verdict
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from weftwork.spec.sweep import SweepResult, SweepRow

__all__ = ["PAGE", "sweep_page"]

PAGE: Final = "page.html"
_MOST_ROWS: Final = 1_000  # chosen: a browser scrolls them at once; the files have all
_MOST_COMPARED: Final = 40  # chosen: runs that a comparison still shows beside each other
_MOST_LEVELS: Final = 40  # chosen: more values beside each other are no longer told apart


def sweep_page(result: SweepResult, folder: str, command: str) -> str:
    """Make the page.

    Parameters
    ----------
    result : of the sweep
    folder : that holds it
    command : that made it, and would go on with it

    Returns
    -------
    HTML, one file
    """
    sections = [_answer(result), *_keys(result), _points(result), _origin(result, folder, command)]
    what = [
        ("sweep", f"{plural(len(result.rows), 'point')} of {', '.join(result.keys)}; {_seeds(result)}"),
        ("judged by", _judged_by(result)),
    ]
    return render(result.name, what, sections)


def _seeds(result: SweepResult) -> str:
    return "one seed" if result.seeds == 1 else f"{plural(result.seeds, 'seed')} each"


def _judged_by(result: SweepResult) -> str:
    if not result.objective:
        return "nothing: no run has a number to compare"
    side = "larger" if result.is_larger_better else "smaller"
    return f"{objective_words(result)}, {side} is better"


def _answer(result: SweepResult) -> PageSection:
    rows = {row.place: row for row in result.rows}
    shown = [
        Tile(
            name=f"{name}, {verdict.group}" if verdict.group else name,
            value=amount(rows[place].objective, result.unit),
            note=point_words(result, rows[place]),
        )
        for verdict in result.verdicts
        for name, place in (("best", verdict.best), ("next", verdict.second), ("worst", verdict.worst))
        if place is not None and (name != "worst" or place != verdict.second)
    ]
    failed = [f"{point_words(result, row)}: {row.status}. {row.reason}" for row in result.rows if row.reason]
    more = [f"and {plural(len(failed) - 5, 'more point')} without a result"] if len(failed) > 5 else []
    content = paragraphs(sweep_verdict(result), "answer") + tiles(shown) + notice([*failed[:5], *more])
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


def _keys(result: SweepResult) -> list[PageSection]:
    """A chart for each key: values along the axis, points over them."""
    charts = []
    values = result.relative()
    for effect in result.effects:
        texts = {level.text for level in effect.levels}
        if not 0 < len(texts) <= _MOST_LEVELS or any(row.values[effect.key] not in texts for row in _known(result)):
            continue  # drawn at random: the thirds are in the table below
        found = [
            Level(
                text=level.text,
                mean=level.mean,
                dots=tuple(
                    _dot(result, row, values[row.place])
                    for row in _known(result)
                    if row.values[effect.key] == level.text
                ),
            )
            for level in effect.levels
        ]
        told = "" if effect.share is None else f"{amount(effect.share, 'share')} of the variance between points"
        charts.append(levels(effect.key, found, result.effect_unit, aside=told))
    rows = [
        [
            f"<code>{escape(effect.key)}</code>",
            escape(level.text),
            f"{level.points:,}",
            escape(typeset(amount(level.mean, result.effect_unit))),
            escape(typeset(amount(effect.share, "share"))),
        ]
        for effect in result.effects
        for level in effect.levels
    ]
    if not rows:
        return []
    over = f" over the mean of its {_leaf(result.within)}" if result.within else ""
    head = ("key", "value", "points", f"mean {objective_words(result)}{over}", "of the variance")
    how = "mean over the seeds with its 95 % interval" if result.seeds > 1 else "with one seed"
    line = f" A line joins the means of a {_leaf(result.within)}." if result.within else ""
    lead = f"Each dot is a point: {objective_words(result)}{over}, {how}.{line}"
    content = f'<div class="two">{"".join(charts)}</div>' + table(head, rows, texts=(1,))
    return [PageSection(id="keys", short="Keys", title="Each result against each key", lead=lead, content=content)]


def _known(result: SweepResult) -> list[SweepRow]:
    values = result.relative()
    return [row for row in result.rows if row.place in values]


def _dot(result: SweepResult, row: SweepRow, value: float) -> LevelDot:
    is_several = result.seeds > 1
    scale = value / row.objective if row.objective else 1.0
    return LevelDot(
        value=value,
        low=row.low * scale if is_several and row.low is not None else None,
        high=row.high * scale if is_several and row.high is not None else None,
        is_best=row.place in result.bests.values(),
        group=result.group(row),
    )


def _points(result: SweepResult) -> PageSection:
    ordered = best_first(result)
    cells = []
    for row in ordered[:_MOST_ROWS]:
        is_best = row.place in result.bests.values()
        made = [
            *(escape(row.values[key]) for key in result.keys),
            escape(typeset(cell(result, row))),
            escape(typeset(against_best(result, row))),
            escape(row.status),
            f"<small>{escape(_runs(row))}</small>",
        ]
        cells.append([f"<b>{text}</b>" for text in made] if is_best else made)
    head = (*result.keys, objective_words(result) or "result", "against the best", "status", "runs")
    left = len(result.rows) - len(cells)
    lead = f"The {len(cells):,} best; table.csv has {left:,} more." if left else "All points, the best first."
    return PageSection(
        id="points", short="Points", title="The points", lead=lead, content=table(head, cells, texts=(len(head) - 1,))
    )


def _runs(row: SweepRow) -> str:
    """The folders of a point.

    For several seeds, the first and the last, which are numbered consecutively.
    """
    return row.runs[0] if len(row.runs) == 1 else " to ".join(row.runs[:: max(1, len(row.runs) - 1)])


def _origin(result: SweepResult, folder: str, command: str) -> PageSection:
    name = _name(folder)
    facts = [
        ("folder", escape(name)),
        ("command", f"<code>{escape(_without_folders(command))}</code>"),
        ("Weftwork", escape(VERSION)),
        ("judged by", f"{escape(_judged_by(result))} <small>{escape(result.objective)}</small>"),
    ]
    if _can_compare_prices(result):
        compare = f"weftwork compare {shlex.quote(name)}/runs/[0-9]*/"
        facts.append(("prices", f"<code>{escape(compare)}</code> compares the prices of the fabrics too"))
    content = table(("", ""), facts, texts=(1,))
    lead = (
        "The folder of every run is below runs, as weftwork run writes it; table.csv and table.parquet have every"
        " number, and command.txt has the command with all folders."
    )
    return PageSection(id="provenance", short="Provenance", title="Where this comes from", lead=lead, content=content)


def _name(path: str) -> str:
    """The last part of an absolute path; other paths as they are."""
    return PurePath(path).name if PurePath(path).is_absolute() else path


def _without_folders(command: str) -> str:
    """A command with names in place of absolute paths, since a page goes to other people."""
    return shlex.join(_name(word) for word in shlex.split(command))


def _leaf(key: str) -> str:
    """The last part of a key as words."""
    return key.rpartition(".")[2].replace("_", " ")


def _can_compare_prices(result: SweepResult) -> bool:
    """Whether a comparison of the runs would have a row for each point, and several fabrics."""
    values: dict[str, set[str]] = {}
    for row in result.rows:
        for key, text in row.values.items():
            values.setdefault(key, set()).add(text)
    has_fabrics = any(key.startswith("fabric.") and len(texts) > 1 for key, texts in values.items())
    runs = sum(len(row.runs) for row in result.rows)
    return has_fabrics and result.seeds == 1 and 1 < runs <= _MOST_COMPARED
