"""The page that compares two runs: what differs, in words; then their times, links and counters side by side.

What differs is found by the caller, who may import the study that compares; here it is only shown.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from weftwork.base.grammar import plural
from weftwork.report.answer import details
from weftwork.report.figures.axes import figure
from weftwork.report.figures.distribution import distribution
from weftwork.report.figures.lines import Curve, curves
from weftwork.report.over_time import directions, read_over_time
from weftwork.report.page import rests_on, three_lines_list, warnings
from weftwork.report.page_elements import PageSection, notice, paragraphs, port, render, table
from weftwork.report.page_flows import flow_values
from weftwork.report.page_over_time import moments, not_recorded
from weftwork.report.page_training import SCRIPTS, job_waterfalls, pipeline_figure
from weftwork.report.pipeline import is_training
from weftwork.report.words import amount, change, label, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run

__all__ = ["comparison_page"]

_MOST_APART: Final = 4  # chosen: times as long, up to which two runs share an axis of time


class _Difference(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def first(self) -> str | None: ...
    @property
    def second(self) -> str | None: ...


class _Pair(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def first(self) -> float | None: ...
    @property
    def second(self) -> float | None: ...
    @property
    def change(self) -> float | None: ...
    @property
    def is_clear(self) -> bool | None: ...


def comparison_page(
    first: Run,
    second: Run,
    *,
    headline: str,
    differences: Sequence[_Difference],
    numbers: Sequence[_Pair],
) -> str:
    """Make the page.

    Parameters
    ----------
    first, second : the second is measured against the first
    headline : which was faster, in a sentence
    differences : keys of the scenario with two values
    numbers : numbers of the summaries with their change

    Returns
    -------
    HTML, one file

    Raises
    ------
    ConfigError : a table is damaged
    """
    is_trained = is_training(first) and is_training(second)
    sections = [
        _answer(first, second, headline, differences),
        *(_training(first, second) if is_trained else (_times(first, second), _links(first, second))),
        _numbers(numbers),
        _origins(first, second),
    ]
    title = (
        f"{_short(first)} against {_short(second)}"
        if first.about["name"] != second.about["name"]
        else first.about["name"]
    )
    scripts = SCRIPTS if is_trained else ()
    return render(title, [("A", _told(first)), ("B", _told(second))], sections, scripts=scripts)


def _short(run: Run) -> str:
    return run.about["name"]


def _told(run: Run) -> str:
    about = run.about
    return f"{run.path.name}: {about.get('workload', '')}; {about.get('fabric', '')}; {about.get('transport', '')}"


def _answer(first: Run, second: Run, headline: str, differences: Sequence[_Difference]) -> PageSection:
    said = [headline]
    if not differences:
        said.append("The scenarios are the same.")
    elif len(differences) <= 3:
        parts = (
            f"{one.key} is {one.first or 'not set'} in A and {one.second or 'not set'} in B" for one in differences
        )
        said.append(f"What differs in the scenario: {'; '.join(parts)}.")
    else:
        said.append(f"The scenarios differ in {plural(len(differences), 'key')}.")
    rows = [
        [f"<code>{escape(one.key)}</code>", escape(one.first or "\u2013"), escape(one.second or "\u2013")]
        for one in differences
    ]
    told = [
        f"{name}: {text}" for name, run in (("A", first), ("B", second)) for text in warnings(run, is_ending_told=False)
    ]
    each = "".join(
        f'<figure><figcaption>{name} <small class="port">{escape(run.path.name)}</small></figcaption>'
        f"{three_lines_list(run)}{paragraphs(details(run), 'told')}{rests_on(run)}</figure>"
        for name, run in (("A", first), ("B", second))
    )
    content = (
        paragraphs(said, "answer")
        + notice(told)
        + f'<div class="two">{each}</div>'
        + table(("key of the scenario", "A", "B"), rows, texts=(1, 2))
    )
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


def _training(first: Run, second: Run) -> list[PageSection]:
    """Where the time of an iteration goes, and the pipelines, A above B; only the numbers where there are seeds."""
    if first.seeds or second.seeds:
        return []
    both = (("A", first), ("B", second))
    falls = "".join(f"<h3>{name}</h3>{job_waterfalls(run)}" for name, run in both)
    charts = "".join(f"<h3>{name}</h3>{pipeline_figure(run)}" for name, run in both)
    busiest = _busiest(first, second)
    return [
        PageSection(id="time", short="Time", title="Where the time goes", content=falls),
        PageSection(id="pipeline", short="Pipeline", title="The pipelines", content=charts),
        *([PageSection(id="links", short="Links", title="The links", content=busiest)] if busiest else []),
    ]


def _times(first: Run, second: Run) -> PageSection:
    charts = [
        distribution(
            title,
            [(f"{name}: {run.path.name}", flow_values(run, column)) for name, run in (("A", first), ("B", second))],
            unit,
        )
        for title, column, unit in (
            ("Completion time of flows", "fct_ps", "ps"),
            ("Slowdown of flows", "slowdown", "ratio"),
        )
    ]
    return PageSection(
        id="times",
        short="Times",
        title="How long it took",
        lead="What share of the flows was done within which time.",
        content=f'<div class="two">{"".join(charts)}</div>',
    )


def _links(first: Run, second: Run) -> PageSection:
    """Utilisation of every direction: A beside B, on one axis of time each."""
    title, short = "How busy the links were", "Links"
    both = [(name, run, None if run.seeds else read_over_time(run)) for name, run in (("A", first), ("B", second))]
    lacking = [f"{name}: {_lacks(run)}" for name, run, found in both if found is None]
    if lacking:
        return PageSection(id="links", short=short, title=title, content=notice(lacking) + _busiest(first, second))
    kinds = [{one.name: one for one in directions(run)} for _, run, _ in both]
    names = list(dict.fromkeys([*kinds[0], *kinds[1]]))
    ends = [found.end_ps for _, _, found in both if found is not None]
    is_common = max(ends) <= _MOST_APART * min(ends)  # else the shorter one would be a line at the left edge
    cards = []
    for name in names:
        for (which, run, found), known in zip(both, kinds, strict=True):
            if found is None or name not in known:
                cards.append(figure(f"{which}: {name}", "", note="There are no such links."))
                continue
            end_ps = max(ends) if is_common else found.end_ps
            shares = found.utilisation(known[name].ports)
            edges = np.append(found.edges_ps, end_ps) if found.end_ps < end_ps else found.edges_ps
            padded = np.pad(shares, ((0, 0), (0, len(edges) - 1 - found.bins)))
            chart = curves(
                f"Utilisation, {name}, {which}",
                [
                    Curve(name="mean of all links", values=padded.mean(axis=0), is_area=True),
                    Curve(name="busiest at each time", values=padded.max(axis=0)),
                ],
                edges_ps=edges,
                unit="share",
                high=1.0,
                height_px=110,
                moments=moments(run, end_ps),
            )
            cards.append(figure(f"{which}: {name}", chart, aside=plural(len(known[name].ports), "link")))
    lead = "A on the left, B on the right, " + (
        "with the same axis of time." if is_common else "each with an axis of its own, since one took far longer."
    )
    content = _busiest(first, second) + f'<div class="two pairs">{"".join(cards)}</div>'
    return PageSection(id="links", short=short, title=title, lead=lead, content=content)


def _lacks(run: Run) -> str:
    return "several seeds have no common time; compare two of its runs." if run.seeds else not_recorded(run)


def _busiest(first: Run, second: Run) -> str:
    """The links whose utilisation changed most."""
    if first.seeds or second.seeds:
        return ""
    found = [
        dict(zip(*run.query("select name, utilisation from links").to_pydict().values(), strict=True))
        for run in (first, second)
    ]
    common = sorted(found[0].keys() & found[1].keys(), key=lambda name: -abs(found[1][name] - found[0][name]))
    rows = [
        [port(name), *(escape(typeset(amount(one[name], "share"))) for one in found),
         escape(typeset(f"{100 * (found[1][name] - found[0][name]):+.1f} points"))]
        for name in common[:5]
        if found[0][name] != found[1][name]
    ]  # fmt: skip
    return table(("links that changed most", "A in use", "B in use", "change"), rows)


def _numbers(numbers: Sequence[_Pair]) -> PageSection:
    changed = [pair for pair in numbers if pair.first != pair.second]
    rows = [
        [escape(label(pair.name)), *(escape(typeset(amount(value, pair.unit))) for value in (pair.first, pair.second)),
         _change(pair)]
        for pair in changed
    ]  # fmt: skip
    same = len(numbers) - len(changed)
    content = table(("number", "A", "B", "change"), rows)
    lead = f"{plural(same, 'other number is', 'other numbers are')} equal."
    return PageSection(id="numbers", short="Numbers", title="The numbers that changed", lead=lead, content=content)


def _change(pair: _Pair) -> str:
    if pair.change is None:
        return "\u2013"
    seeds = "" if pair.is_clear is None else " (clear)" if pair.is_clear else " (within the seeds)"
    return escape(typeset(f"{change(pair.change)}{seeds}"))


def _origins(first: Run, second: Run) -> PageSection:
    keys = ("weftwork", "engine", "seed", "status", "started", "wall_s", "digest")
    rows = [
        [key.replace("_s", ", s"), *(escape(str(run.provenance.get(key, "\u2013"))) for run in (first, second))]
        for key in keys
    ]
    rows.insert(0, ["run", escape(str(first.path)), escape(str(second.path))])
    scenarios = "".join(
        f"<details><summary>Scenario of {name}, resolved</summary><pre>{escape(run.scenario)}</pre></details>"
        for name, run in (("A", first), ("B", second))
    )
    content = table(("", "A", "B"), rows, texts=(1, 2)) + scenarios
    return PageSection(id="provenance", short="Provenance", title="Where this comes from", content=content)
