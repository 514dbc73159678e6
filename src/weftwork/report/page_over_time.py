"""The parts of a page about time.

They are the use of links by tier, and queues, pauses, marks and drops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.base.units import RATE, format_quantity
from weftwork.report.culprit_marks import TO_BLAME, fault_times, faults_of, is_to_blame
from weftwork.report.culprit_places import culprit_place
from weftwork.report.figures.axes import figure
from weftwork.report.figures.fabric import scale
from weftwork.report.figures.heat_map import heat_map, rows_of
from weftwork.report.figures.lines import Curve, Moment, curves
from weftwork.report.over_time import directions
from weftwork.report.page_elements import PageSection, notice
from weftwork.report.words import amount, sentence
from weftwork.spec.fidelities import FIDELITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.report.over_time import Direction, OverTime
    from weftwork.store.runs import Run

__all__ = ["congestion", "moments", "not_recorded", "utilisation", "without_words"]

_MOST_LINES: Final = 6  # of one chart, as there are colours
_MOST_WORDS: Final = 6  # chosen: moments whose words have room in a chart
_MOST_NAMES: Final = 4  # chosen: of links that a note below a chart names
_HALF: Final = 0.5  # of its rate: where no link ever comes so far, axes end at the busiest
_SMALL: Final = 0.01  # of the longest queue; what stays below is not drawn
_STRIPS: Final = (  # column of the timeline, what it is called, unit
    ("pauses", "PFC pause frames", "count"),
    ("paused_ps", "paused ports", "number"),
    ("marks", "ECN marks", "count"),
    ("drops", "dropped packets", "count"),
)


def not_recorded(run: Run) -> str:
    """Why a run has nothing over time, for people."""
    return FIDELITIES[run.provenance["engine"]].nothing_over_time or "Nothing was sent in this run."


def moments(run: Run, end_ps: int) -> list[Moment]:
    """Faults of the scenario as moments, with bands for the culprit's.

    The first of the culprit says that it is to blame. Where there are many, the first of each place has words.
    """
    ends = {(one.text, one.start_ps): one.end_ps for one in fault_times(run)}
    found: list[Moment] = []
    rows = [row for row in faults_of(run) if row["at_ps"] <= end_ps]
    places: set[str] = set()
    for row in rows:
        is_culprit = is_to_blame(run, row["place"])
        blamed = f", {TO_BLAME}" if is_culprit and not any(one.is_culprit for one in found) else ""
        what = f"{row['place']} {row['detail']}"
        until = None
        if is_culprit and (what, row["at_ps"]) in ends:
            until = min(ends[what, row["at_ps"]] or end_ps, end_ps) / end_ps
        has_words = len(rows) <= _MOST_WORDS or row["place"] not in places
        places.add(row["place"])
        text = f"{what}{blamed}" if has_words else ""
        found.append(Moment(at=row["at_ps"] / end_ps, text=text, is_culprit=is_culprit, until=until))
    return found


def without_words(found: Sequence[Moment]) -> list[Moment]:
    """The same moments without words, for the later charts."""
    return [replace(one, text="") for one in found]


def utilisation(run: Run, over_time: OverTime | None) -> PageSection:
    """Mean and busiest link of every direction, with a heat map."""
    title, short = "How busy the links were", "Links"
    if over_time is None:
        return PageSection(id="links", short=short, title=title, content=notice([not_recorded(run)]))
    names = run.query("select name from links order by port")["name"].to_pylist()
    found = [direction for direction in directions(run) if len(direction.ports)]
    faults = moments(run, over_time.end_ps)
    lines = without_words(faults)
    place = culprit_place(run)
    blamed = frozenset[int]() if place is None else place.ports
    top = max((float(over_time.utilisation(one.ports).max(initial=0.0)) for one in found), default=1.0)
    high = 1.0 if top > _HALF else max(top, 1e-6)
    idle = [
        one for one in found if not over_time.values("bytes", one.ports).any() and not blamed & {*one.ports.tolist()}
    ]
    shown = [(number, one) for number, one in enumerate(found) if one not in idle]
    cards = [
        _direction(one, over_time, names, lines if place else faults, high, blamed, anchor=f"links-{number}")
        for place, (number, one) in enumerate(shown)
    ]
    width = amount(over_time.bin_ps, "ps")
    lead = (
        f"Share of time in which links were sending, in steps of {width}. Gaps between frames count as sending. The "
        "heat map below each chart has a row for every link, the busiest on top."
        + (
            f" No link was in use for half of a step, so axes and colours end at {amount(high, 'share')}."
            if high < 1
            else ""
        )
        + (f" Nothing was sent {' or '.join(one.name for one in idle)}." if idle else "")
    )
    return PageSection(
        id="links",
        short=short,
        title=title,
        lead=lead,
        content=scale(high) + f'<div class="two">{"".join(cards)}</div>',
    )


def _direction(
    direction: Direction,
    over_time: OverTime,
    names: list[str],
    faults: list[Moment],
    high: float,
    blamed: frozenset[int],
    *,
    anchor: str,
) -> str:
    shares = over_time.utilisation(direction.ports)
    chart = curves(
        f"Utilisation, {direction.name}",
        [
            Curve(name="mean of all links", values=shares.mean(axis=0), is_area=True),
            Curve(name="busiest at each time", values=shares.max(axis=0)),
        ],
        edges_ps=over_time.edges_ps,
        unit="share",
        high=high,
        height_px=130,
        moments=faults,
    )
    rows = rows_of(shares, [names[port] for port in direction.ports.tolist()])
    each = format_quantity(RATE, direction.rate_bps // len(direction.ports))
    count = plural(len(direction.ports), "link")
    rates = {int(rate) for rate in over_time.rate_bps[direction.ports].tolist()}
    of = f"{count} of {each}" if len(rates) == 1 else f"{count} of {each} on average"
    notes = []
    if rows.links_per_row > 1:
        links = plural(rows.links_per_row, "link")
        notes.append(f"Each row shows {links} of about the same mean: the largest use at each time.")
    ports = direction.ports.tolist()
    own = [at for at, port in enumerate(ports) if port in blamed]
    if own:
        links = ", ".join(names[ports[at]] for at in own[:_MOST_NAMES])
        more = f" and {len(own) - _MOST_NAMES} more" if len(own) > _MOST_NAMES else ""
        notes.append(f"{sentence(TO_BLAME)}: {links}{more}.")
    marked = sorted({int(rows.row_of[at]) for at in own})
    title = f"Heat map of {direction.name}"
    body = chart + heat_map(title, rows, edges_ps=over_time.edges_ps, high=high, culprits=marked)
    return figure(direction.name, body, aside=of, note=" ".join(notes), anchor=anchor)


def congestion(run: Run, over_time: OverTime | None) -> PageSection:
    """Queues by direction, and pauses, marks and drops on one axis."""
    title, short = "Queues, pauses, marks and drops", "Queues"
    if over_time is None:
        return PageSection(id="queues", short=short, title=title, content=notice([not_recorded(run)]))
    faults = moments(run, over_time.end_ps)
    queues = [
        Curve(name=direction.name, values=over_time.values("queue_bytes", direction.ports).max(axis=0))
        for direction in directions(run)
    ]
    longest = max((int(curve.values.max(initial=0)) for curve in queues), default=0)
    queues = [curve for curve in queues if curve.values.max(initial=0) > max(_SMALL * longest, 1)]
    queues = sorted(queues, key=lambda curve: -int(curve.values.max()))[:_MOST_LINES]
    parts = []
    if queues:
        chart = curves("Longest queue", queues, edges_ps=over_time.edges_ps, unit="B", height_px=220, moments=faults)
        note = (
            "Bytes that wait at the fullest port of each tier at the end of each step. A shorter peak may be missed. "
            "Tiers with less than 1 % of the longest queue are left out."
        )
        name = "Longest queue of each tier" if len(queues) > 1 else f"Longest queue, {queues[0].name}"
        parts.append(figure(name, chart, note=note))
    absent = []
    for number, (column, name, unit) in enumerate(_STRIPS):
        total = over_time.total(column)
        if not total.any():
            if column != "paused_ps":
                absent.append(name)
            continue
        values = total / over_time.length_ps if column == "paused_ps" else total
        what = "Paused ports, mean of each step" if column == "paused_ps" else f"{sentence(name)}, in each step"
        strip = curves(
            what,
            [Curve(name=name, values=np.asarray(values), is_area=True)],
            edges_ps=over_time.edges_ps,
            unit=unit,
            height_px=90,
            moments=without_words(faults),
            first_colour=(4, 4, 5, 2)[number],
        )
        parts.append(figure(what, strip))
    *others, last = absent or [""]
    lead = f"There were no {', '.join(others)}{' or ' if others else ''}{last}." if absent else ""
    return PageSection(id="queues", short=short, title=title, lead=lead, content="".join(parts))
