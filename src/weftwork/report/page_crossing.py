"""The page of a crossing.

It has the verdict, the best contenders, controls, balancers, every cell, and the origin.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.version import VERSION
from weftwork.report.crossing_words import crossing_verdict, standing_words, took_words
from weftwork.report.figures.crossing import crossing_figure
from weftwork.report.page_elements import PageSection, Tile, paragraphs, render, table, tiles
from weftwork.report.words import typeset

if TYPE_CHECKING:
    from weftwork.spec.crossing import CrossingResult

__all__ = ["BEST_SHOWN", "best_places", "crossing_page", "crossing_pictures"]

BEST_SHOWN: Final = 20  # chosen: rows that fit a screen


def best_places(result: CrossingResult, most: int = BEST_SHOWN) -> list[int]:
    """Places of the best contenders.

    The base is added at the end if it is not among them.
    """
    found = [one.contender for one in result.standings[:most]]
    return found if result.base in found else [*found, result.base]


def crossing_pictures(result: CrossingResult) -> dict[str, str]:
    """SVG files by name: the best contenders, and each group of the page."""
    shown = {"crossing": best_places(result)} | {
        f"crossing-{origin}": places for origin, (_, _, places) in _grouped(result).items()
    }
    return {f"{name}.svg": crossing_figure(result, places, is_alone=True) for name, places in shown.items()}


def crossing_page(result: CrossingResult, folder: str, command: str) -> str:
    """Make the page.

    Parameters
    ----------
    result : of the crossing
    folder : that holds it
    command : that made it, and would go on with it

    Returns
    -------
    HTML, one file
    """
    crossed = (
        f"{plural(len(result.contenders), 'contender')} in {plural(len(result.settings), 'setting')},"
        f" {plural(result.seeds, 'seed')} each, {plural(result.hosts, 'NIC port')} at 400 Gb/s"
    )
    what = [("crossed", crossed), ("measured against", result.contenders[result.base].name)]
    sections = [_answer(result), _best(result), *_groups(result), _table(result), _origin(result, folder, command)]
    return render("Congestion controls crossed with load balancers", what, sections)


def _answer(result: CrossingResult) -> PageSection:
    shown = [
        Tile(
            name=name,
            value=f"{standing.ratio:.2f}",
            note=f"{result.contenders[standing.contender].name}; {standing_words(standing)}",
        )
        for name, standing in zip(("best", "next", "third"), result.standings, strict=False)
    ]
    content = paragraphs(crossing_verdict(result), "answer") + tiles(shown)
    return PageSection(id="answer", short="Answer", title="The answer", content=content)


_LEAD: Final = (
    "A number is the change of the column's measure against the base, on the same seeds; less is better. Squares: work"
    " of the switches; circles: work of the NICs."
)


def _best(result: CrossingResult) -> PageSection:
    content = f'<div class="wide">{crossing_figure(result, best_places(result))}</div>'
    return PageSection(id="best", short="Best", title="The best contenders", lead=_LEAD, content=content)


_GROUPS: Final = (
    ("controls", "Controls", "Controls with ECMP and with spraying"),
    ("balancers", "Balancers", "Balancers with three controls"),
    ("crossing", "Crossings", "The best controls with the best balancers"),
    ("all", "All", "Every control with every balancer"),
)


def _grouped(result: CrossingResult) -> dict[str, tuple[str, str, list[int]]]:
    """Groups of contenders, each by standing.

    Controls with ECMP and with spraying, balancers with three controls, and so on.
    """
    ranks = {one.contender: rank for rank, one in enumerate(result.standings)}
    found = {}
    for origin, short, title in _GROUPS:
        places = [place for place, one in enumerate(result.contenders) if one.origin == origin]
        places.sort(key=lambda place: (ranks.get(place, len(ranks)), place))
        if places:
            found[origin] = (short, title, places)
    return found


def _groups(result: CrossingResult) -> list[PageSection]:
    return [
        PageSection(
            id=origin, short=short, title=title, content=f'<div class="wide">{crossing_figure(result, places)}</div>'
        )
        for origin, (short, title, places) in _grouped(result).items()
    ]


def _table(result: CrossingResult) -> PageSection:
    """Every cell, with its interval."""
    rows = []
    standings = {one.contender: one for one in result.standings}
    order = [one.contender for one in result.standings]
    order += [place for place in range(len(result.contenders)) if place not in standings]
    for place in order:
        contender = result.contenders[place]
        cells = [result.cell(place, number) for number in range(len(result.settings))]
        rows.append(
            [
                escape(contender.name),
                escape(contender.carried),
                escape(standing_words(standings[place])) if place in standings else "none",
                *(
                    escape(typeset(took_words(result, cell))) + ("" if cell.differs else " ~")
                    if cell.values
                    else "none"
                    for cell in cells
                ),
            ]
        )
    head = ("contender", "carried by", "all (95 % interval)", *(setting.name for setting in result.settings))
    lead = "Means over the seeds. A tilde (~): no clear difference from the base. table.csv has all intervals."
    return PageSection(
        id="table", short="Table", title="Every cell", lead=lead, content=table(head, rows, texts=(0, 1))
    )


def _origin(result: CrossingResult, folder: str, command: str) -> PageSection:
    measured = [(setting.name, setting.text) for setting in result.settings if not setting.is_failed]
    facts = [
        ("folder", folder),
        ("command", command),
        ("Weftwork", VERSION),
        ("runs", f"{result.runs:,}, {result.run_s / 60:.0f} min of runs, {result.workers} at a time"),
        *measured,
    ]
    content = table(("", ""), [[escape(name), escape(text)] for name, text in facts], texts=(1,))
    lead = "The folder of every run is below runs, as weftwork run writes it; table.csv has every number."
    return PageSection(id="provenance", short="Provenance", title="Where this comes from", lead=lead, content=content)
