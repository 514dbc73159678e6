"""Charts of several runs on one axis.

Times and prices are bars; links, queues and rates are lines over time.

Reads the tables `timeline`, `links`, `nodes` and `tiers` of each run. Leaves out: runs of several seeds, whose seeds
have no common time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.report.comparison_words import different_fabrics, fabric_names, time_noun
from weftwork.report.figures.axes import figure
from weftwork.report.figures.bars import BarGroup, NamedBar, bars
from weftwork.report.figures.lines import Curve, curves
from weftwork.report.money import money_words
from weftwork.report.over_time import directions, read_over_time
from weftwork.report.page_over_time import not_recorded
from weftwork.report.words import amount, change
from weftwork.spec.sweep import SAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.spec.comparison import ComparedRun, RunComparison
    from weftwork.store.runs import Run

__all__ = ["MOST_LINES", "OverlaidRuns", "difference_charts", "overlaid"]

MOST_LINES: Final = 6  # of one chart, as there are colours
_BINS: Final = 240  # chosen: steps of a common axis, as many as a run keeps
_MOST_APART: Final = 4  # chosen: times as long, beyond which a reader is told that runs end early
_WHAT: Final = {"iteration": "an iteration", "collective": "a collective", "completion": "all messages"}
_MOST_TIERS: Final = 12  # with a chart of their own


def difference_charts(found: RunComparison) -> str:
    """The main number of every run as bars, with fabric prices.

    Bars are grouped by workload.
    """
    timed = [run for run in found.runs if run.value_ps is not None]
    if not timed:
        return ""
    nouns = list(dict.fromkeys(time_noun(run) for run in timed))
    title = f"Time of {_WHAT.get(nouns[0], 'each run') if len(nouns) == 1 else 'each run'}"
    charts = [_bars(found, title)]
    if prices := _price_bars(found):
        charts.append(prices)
    return f'<div class="two">{"".join(charts)}</div>' if len(charts) > 1 else charts[0]


def _bars(found: RunComparison, title: str) -> str:
    is_grouped = len(found.groups) > 1
    groups = [
        BarGroup(
            name=group.name if is_grouped else "",
            bars=tuple(
                NamedBar(
                    name=found.runs[place].short if is_grouped else found.runs[place].label,
                    words=_words(found.runs[place], is_first=place == group.first and len(group.runs) > 1),
                    value=found.runs[place].value_ps,
                    low=found.runs[place].low_ps,
                    high=found.runs[place].high_ps,
                )
                for place in group.runs
            ),
        )
        for group in found.groups
    ]
    notes = ["Changes are measured against the first run of each workload." if is_grouped else
             "Changes are measured against the first run."]  # fmt: skip
    if is_grouped:
        notes.append("Each workload has an axis of its own, which begins at zero.")
    if any(run.low_ps is not None for run in found.runs):
        notes.append("Whiskers are 95 % intervals over the seeds.")
    return figure(title, bars(groups, title), note=" ".join(notes))


def _words(run: ComparedRun, *, is_first: bool) -> str:
    if run.value_ps is None:
        return run.status
    told = amount(run.value_ps, "ps")
    if is_first or run.change is None:
        return told
    return f"{told}, {change(run.change) if abs(run.change) >= SAME else 'the same'}"


def _price_bars(found: RunComparison) -> str:
    """A bar for the price of every fabric.

    Empty if fewer than two have a price, or all have the same.
    """
    fabrics, names = different_fabrics(found), fabric_names(found)
    priced = {place: one.price_usd for place, one in fabrics.items() if one.price_usd is not None}
    if len({price.typical for price in priced.values()}) < 2:
        return ""
    first = next(iter(priced.values())).typical
    is_alike = len({fabrics[place].gpus for place in priced}) == 1  # else another size is what costs more
    made = tuple(
        NamedBar(
            name=names[place],
            words=money_words(price.typical)
            + (f", {change(price.typical / first - 1)}" if number and first and is_alike else ""),
            value=price.typical,
            low=price.low,
            high=price.high,
        )
        for number, (place, price) in enumerate(priced.items())
    )
    note = "Typical prices; whiskers reach from the low to the high prices of the book. Servers are not counted."
    title = "Price of the fabric"
    return figure(title, bars([BarGroup(name="", bars=made)], title, colour="c3"), note=note)


@dataclass(frozen=True, kw_only=True)
class OverlaidRuns:
    """Charts over time of several runs.

    Attributes
    ----------
    links, queues, rates : HTML of the charts; empty where nothing was recorded
    notes : which runs are not drawn, and why
    lead : how to read the axes
    """

    links: str
    queues: str
    rates: str
    notes: tuple[str, ...]
    lead: str


@dataclass(frozen=True, kw_only=True)
class _Line:
    """Values of one run that hold from one edge to the next."""

    run: int
    edges_ps: NDArray[np.int64]
    values: NDArray[np.float64]


def overlaid(runs: Sequence[tuple[str, Run]]) -> OverlaidRuns:
    """Draw the always recorded series of several runs.

    Each tier has one axis, with a line for each run.

    Parameters
    ----------
    runs : label and run; of more than six the first six that recorded something are drawn
    """
    use: dict[str, list[_Line]] = {}
    queue: dict[str, list[_Line]] = {}
    rate: dict[str, list[_Line]] = {}
    notes: list[str] = []
    drawn: list[int] = []
    left: list[str] = []
    for place, (label, run) in enumerate(runs):
        over_time = None if run.seeds else read_over_time(run)
        has_rates = over_time is None and not run.seeds and run.tiers.num_rows
        if over_time is None and not has_rates:
            why = (
                "several seeds have no common time; compare runs of one seed each." if run.seeds else not_recorded(run)
            )
            notes.append(f"{label}: {why}")
            continue
        if len(drawn) == MOST_LINES:
            left.append(label)
            continue
        drawn.append(place)
        if over_time is None:
            for name, line in _tier_rates(run, place):
                rate.setdefault(name, []).append(line)
            continue
        for one in directions(run):
            if not len(one.ports):
                continue
            mean = over_time.utilisation(one.ports).mean(axis=0)
            use.setdefault(one.name, []).append(_Line(run=place, edges_ps=over_time.edges_ps, values=mean))
            longest = over_time.values("queue_bytes", one.ports).max(axis=0).astype(np.float64)
            queue.setdefault(one.name, []).append(_Line(run=place, edges_ps=over_time.edges_ps, values=longest))
    if left:
        notes.append(f"A chart has room for {MOST_LINES} runs; not drawn: {', '.join(left)}.")
    labels = [label for label, _ in runs]
    ends = [int(line.edges_ps[-1]) for lines in (*use.values(), *rate.values()) for line in lines]
    lead = "All runs share the axis of time."
    if ends and max(ends) > _MOST_APART * min(ends):
        lead += f" The shortest run ends at {amount(min(ends), 'ps')}."
    return OverlaidRuns(
        links=_charts(use, labels, drawn, "share", "Mean utilisation", high=1.0),
        queues=_charts(queue, labels, drawn, "B", "Longest queue", most=True),
        rates=_charts(rate, labels, drawn, "b/s", "Rate of all links together"),
        notes=tuple(notes),
        lead=lead,
    )


def _tier_rates(run: Run, place: int) -> list[tuple[str, _Line]]:
    """Rate of every tier over time for training on flows."""
    table = run.query("select tier, start_ps, at_ps, bytes from tiers where bytes > 0 order by start_ps")
    tiers = np.array(table["tier"].to_pylist(), object)
    starts, ends, sent = (table[name].to_numpy() for name in ("start_ps", "at_ps", "bytes"))
    found = []
    for tier in list(dict.fromkeys(tiers.tolist()))[:_MOST_TIERS]:
        own = tiers == tier
        edges = np.unique(np.concatenate([[0], starts[own], ends[own]]))
        values = np.zeros(len(edges) - 1)
        values[np.searchsorted(edges, starts[own])] = sent[own] * 8e12 / np.maximum(ends[own] - starts[own], 1)
        found.append((str(tier).replace("->", " \u2192 "), _Line(run=place, edges_ps=edges, values=values)))
    return found


def _charts(
    tiers: dict[str, list[_Line]],
    labels: Sequence[str],
    drawn: Sequence[int],
    unit: str,
    what: str,
    *,
    high: float | None = None,
    most: bool = False,
) -> str:
    """A chart for each tier.

    ``most`` keeps the largest value of a step instead of the mean.
    """
    cards = []
    for name, lines in tiers.items():
        if not any(line.values.any() for line in lines):
            continue
        end_ps = max(int(line.edges_ps[-1]) for line in lines)
        edges = np.unique(np.linspace(0, end_ps, _BINS + 1).astype(np.int64))
        found = []
        by_run = {line.run: line for line in lines}
        for place in drawn:
            values = np.zeros(len(edges) - 1)
            if place in by_run:
                values = (_largest if most else _means)(by_run[place], edges)
            found.append(Curve(name=labels[place], values=values))
        top = None if high is None else (high if max(float(one.values.max()) for one in found) > high / 2 else None)
        chart = curves(f"{what}, {name}", found, edges_ps=edges, unit=unit, high=top, height_px=150)
        cards.append(figure(f"{what}, {name}", chart))
    if not cards:
        return ""
    return f'<div class="two">{"".join(cards)}</div>' if len(cards) > 1 else cards[0]


def _means(line: _Line, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean of a line over each step of another axis; 0 behind its end."""
    total = np.concatenate([[0.0], np.cumsum(line.values * np.diff(line.edges_ps))])
    at = np.interp(edges, line.edges_ps, total)
    return np.asarray(np.diff(at) / np.diff(edges))


def _largest(line: _Line, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Largest value of a line in each step of another axis; 0 behind its end."""
    first = np.searchsorted(line.edges_ps, edges[:-1], side="right") - 1
    last = np.searchsorted(line.edges_ps, edges[1:], side="left")
    count = len(line.values)
    return np.array([line.values[a:b].max(initial=0.0) if a < count else 0.0
                     for a, b in zip(first.tolist(), np.maximum(last, first + 1).tolist(), strict=True)])  # fmt: skip
