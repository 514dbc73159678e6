"""Notebook views of a run, a scenario and a sweep.

They are a few lines of HTML without links, files and scripts.

Text and lines have the colour of the notebook around them, so that light and dark both read; only bars have a colour of
their own, with enough contrast on either. Every text is escaped here.
Leaves out: the page of a run (`weftwork.report.page`), which `weftwork.report` writes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import yaml

from weftwork.base.grammar import plural
from weftwork.report.comparison_words import comparison_verdict
from weftwork.report.sweep_words import best_first, cell, objective_words, sweep_verdict
from weftwork.report.tables import busiest_links
from weftwork.report.three_lines import labelled_lines
from weftwork.report.words import amount, change, typeset
from weftwork.spec.numbers import TIME_GROUPS, numbers_shown
from weftwork.spec.scenario.written import dump

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.comparison import RunComparison
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.sweep import SweepResult
    from weftwork.store.runs import Run

__all__ = ["bars", "block", "comparison_html", "facts", "run_html", "scenario_html", "sweep_html"]

_MOST_NUMBERS: Final = 8  # chosen: the height of the three lines; `run.summary` has all
_MOST_BARS: Final = 5  # chosen: as `weftwork run` prints of the busiest links
_MOST_POINTS: Final = 10  # chosen: a screen
_BAR: Final = "#0f86c4"  # chosen: 4.0:1 on white and on #111, between the two blues of `figures.colours`
_STYLE: Final = (
    ".weftwork{line-height:1.45;max-width:60rem}"
    ".weftwork p{margin:.2em 0}"
    ".weftwork dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.4em 0;align-items:baseline}"
    ".weftwork dt{opacity:.75;font-weight:normal}.weftwork dd{margin:0;overflow-wrap:anywhere}"
    ".weftwork .numbers{display:flex;flex-wrap:wrap;gap:.3em 1.6em;margin:.5em 0}"
    ".weftwork .numbers span{opacity:.75;display:block;font-size:.85em}"
    ".weftwork .bars{display:grid;grid-template-columns:max-content minmax(4rem,20rem) max-content;gap:.15em .8em;"
    "align-items:center;margin:.5em 0}"
    f".weftwork .bars i{{background:{_BAR};height:.8em;display:block}}"
    ".weftwork .table-wrapper{overflow-x:auto;margin:.5em 0}"
    ".weftwork pre{overflow:auto;max-height:24rem}"
    ".weftwork table{border-collapse:collapse}"
    ".weftwork th,.weftwork td{padding:.15em .8em .15em 0;text-align:left}"
    ".weftwork td{border-top:1px solid rgba(128,128,128,.35)}"
    ".weftwork .soft{opacity:.75}"
)


def block(title: str, kind: str, parts: Sequence[str]) -> str:
    """One thing in a notebook: its name, what it is, and HTML below.

    Parameters
    ----------
    title, kind : texts
    parts : HTML
    """
    head = f'<p><b>{escape(title)}</b> <span class="soft">{escape(kind)}</span></p>'
    return f'<div class="weftwork"><style>{_STYLE}</style>{head}{"".join(parts)}</div>'


def facts(known: Sequence[tuple[str, str]]) -> str:
    """Names and texts in rows; rows without a text are left out."""
    made = "".join(f"<dt>{escape(name)}</dt><dd>{escape(typeset(text))}</dd>" for name, text in known if text)
    return f"<dl>{made}</dl>" if made else ""


def bars(shares: Sequence[tuple[str, float]]) -> str:
    """Shares of a whole as bars with names and numbers."""
    made = "".join(
        f'<span>{escape(name)}</span><i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i>'
        f"<span>{escape(amount(share, 'share'))}</span>"
        for name, share in shares
    )
    return f'<div class="bars">{made}</div>' if made else ""


def run_html(run: Run) -> str:
    """A run in a notebook.

    It has the three lines, the key numbers, and parts of its time or its busiest links.

    Parameters
    ----------
    run : of one seed or several
    """
    about = run.about
    lines = labelled_lines(run)
    what = facts([(name, about.get(name, "")) for name in ("workload", "fabric", "transport")])
    seeds = f", {plural(len(run.seeds), 'seed')}" if run.seeds else ""
    where = f'<p class="soft">{escape(str(run.path))}</p>'
    parts = [facts(lines), _numbers(run), _shares(run), what, where]
    return block(about.get("name", "run"), f"run, {run.status}{seeds}", parts)


def _numbers(run: Run) -> str:
    """The key numbers of a run.

    Several seeds have means with intervals.
    """
    made: list[str] = []
    for tile in numbers_shown("tile"):
        number = run.summary.get(tile.name)
        if number is None or number["value"] is None or len(made) == _MOST_NUMBERS:
            continue
        told = amount(number["value"], number["unit"])
        if number.get("low") is not None:
            told += f" ({amount(number['low'], number['unit'])} to {amount(number['high'], number['unit'])})"
        made.append(f"<div><span>{escape(tile.noun)}</span>{escape(typeset(told))}</div>")
    return f'<div class="numbers">{"".join(made)}</div>' if made else ""


def _shares(run: Run) -> str:
    numbers = run.summary
    spent = [(words, float(numbers[name]["value"] or 0)) for name, words in TIME_GROUPS.items() if name in numbers]
    if spent:
        return bars([(words, share) for words, share in spent if share > 0])
    if "links" not in run.tables:
        return ""
    rows = busiest_links(run, _MOST_BARS)
    return bars([(row["name"], row["utilisation"]) for row in rows])


def scenario_html(scenario: Scenario) -> str:
    """A scenario in a notebook.

    It has a description, and each section as YAML, folded.

    Parameters
    ----------
    scenario : that was read
    """
    sections = yaml.safe_load(dump(scenario))
    plain = [(name, str(value)) for name, value in sections.items() if not isinstance(value, dict | list)]
    folded = "".join(
        f"<details><summary>{escape(name)}</summary><pre>"
        f"{escape(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))}</pre></details>"
        for name, value in sections.items()
        if isinstance(value, dict | list)
    )
    known = [("from", scenario.source), *plain, *(("note", note) for note in scenario.notes)]
    return block(scenario.name, "scenario, resolved", [facts(known), folded])


def comparison_html(found: RunComparison) -> str:
    """A comparison in a notebook.

    It has the verdict, a row for each run, and the different keys.

    Parameters
    ----------
    found : by `weftwork.compare`
    """
    verdict = "".join(f"<p>{escape(typeset(text))}</p>" for text in comparison_verdict(found))
    rows = [
        (run.label, amount(run.value_ps, "ps"), "" if run.change is None else change(run.change), run.culprit)
        for run in found.runs
    ]
    keys = [(one.key, *(value or "" for value in one.values)) for one in found.differences]
    names = [run.label for run in found.runs]
    parts = [verdict, _table(("run", "time", "change", "to blame"), rows), _table(("scenario", *names), keys)]
    return block(plural(len(found.runs), "run"), "compared", parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts that scrolls if wide; empty without rows."""
    if not rows:
        return ""
    made = "".join("<tr>" + "".join(f"<td>{escape(typeset(text))}</td>" for text in row) + "</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="table-wrapper"><table><thead><tr>{names}</tr></thead><tbody>{made}</tbody></table></div>'


def sweep_html(result: SweepResult) -> str:
    """A sweep in a notebook: the verdict, and its points, the best first.

    Parameters
    ----------
    result : of a sweep, or of its folder
    """
    verdict = "".join(f"<p>{escape(typeset(text))}</p>" for text in sweep_verdict(result))
    rows = best_first(result)
    cells = [[*(row.values[key] for key in result.keys), cell(result, row)] for row in rows[:_MOST_POINTS]]
    table = _table((*result.keys, objective_words(result)), cells)
    left = len(rows) - len(cells)
    more = f'<p class="soft">and {plural(left, "point")} more</p>' if left else ""
    return block(result.name, f"sweep of {plural(len(rows), 'point')}", [verdict, table, more])
