"""Contenders against settings: a coloured cell for each pair.

The winner of a column is framed, and the price stands at the end of a row.

Blue is faster than the base, orange slower, and the number says it without colour; grey with a wave: no clear
difference from the base. A frame is the winner of a column, a dot whoever does not clearly differ from the winner.
Leaves out: intervals; the table has them.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.report.crossing_words import change_words, took_words
from weftwork.report.figures.colours import css_variables
from weftwork.report.words import amount, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.crossing import CrossingCell, CrossingResult

__all__ = ["crossing_figure"]

_ROW_PX: Final = 20
_LETTER_PX: Final = 6.4  # chosen: above the mean width of the letters of a name
_CELL_PX: Final = 62
_HEAD_PX: Final = 84
_MARK_PX: Final = 17  # of a column of the price that is a mark
_BUFFER_PX: Final = 62
# chosen: three quarters less is as blue as it gets, and four times as much as orange
_FULL: Final = math.log(4)
# What is asked for -> heading; a mark in the row says that it is needed
_ASKED: Final = (
    ("PFC", "PFC", "switch"),
    ("marks (ECN)", "marks", "switch"),
    ("telemetry of each hop", "telemetry", "switch"),
    ("load of the path", "path load", "switch"),
    ("trimming", "trimming", "switch"),
    ("queue lengths", "own queues", "switch"),
    ("flow table", "flow table", "switch"),
    ("pinned paths", "laid paths", "switch"),
    ("keeps early packets", "early packets", "nic"),
    ("returns entropy", "entropy back", "nic"),
    ("timestamps", "timestamps", "nic"),
    ("credit by the receiver", "credit", "nic"),
    ("several queue pairs", "queue pairs", "nic"),
)
_THEMES: Final = (
    "<style>svg.crossing{{{light}font:11px system-ui,sans-serif;background:var(--panel)}}"
    "@media (prefers-color-scheme:dark){{svg.crossing{{{dark}}}}}</style>"
)


def crossing_figure(result: CrossingResult, places: Sequence[int], *, is_alone: bool = False) -> str:
    """Draw some contenders, one below the other.

    Parameters
    ----------
    result : of the crossing
    places : of the contenders, in the order of the rows
    is_alone : as a file of its own, which brings its colours
    """
    count = len(result.settings)
    name_px = round(12 + _LETTER_PX * max((len(result.contenders[place].name) for place in places), default=0))
    price_at = name_px + (count + 1) * _CELL_PX + 14
    width = price_at + len(_ASKED) * _MARK_PX + _BUFFER_PX + 8
    height = _HEAD_PX + len(places) * _ROW_PX + 24
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="crossing" viewBox="0 0 {width} {height}" width="{width}"'
        f' role="img" aria-label="{escape(_said(result, places))}" font-size="11">'
    )
    parts = [
        head,
        _THEMES.format(light=css_variables("light"), dark=css_variables("dark")) if is_alone else "",
        *_heads(result, name_px, price_at),
    ]
    standings = {one.contender: one for one in result.standings}
    for number, place in enumerate(places):
        y = _HEAD_PX + number * _ROW_PX
        contender = result.contenders[place]
        weight = ' font-weight="600"' if place == result.base else ""
        parts.append(_text(name_px - 6, y + 14, contender.name, anchor="end", more=weight))
        standing = standings.get(place)
        parts.append(
            _cell(name_px, y, None if standing is None else standing.ratio, contender.name,
                  is_told=standing is not None and standing.differs)
        )  # fmt: skip
        for setting in range(count):
            cell = result.cell(place, setting)
            parts.append(_setting(result, cell, name_px + 4 + (setting + 1) * _CELL_PX, y))
        parts += _price(result, place, price_at, y)
    parts.append(_text(6, height - 7, _legend(result), more=' fill="var(--soft)"', fill=""))
    parts.append("</svg>")
    return "".join(parts)


def _said(result: CrossingResult, places: Sequence[int]) -> str:
    best = next((one for one in result.standings if one.contender in places), None)
    if best is None:
        return "no contender has a result in every setting"
    return f"{result.contenders[best.contender].name} takes {best.ratio:.2f} of the time of the base"


def _legend(result: CrossingResult) -> str:
    base = result.contenders[result.base].name
    if result.seeds == 1:
        return f"Change against {base}. Framed: best of the column. Grey, ~: the noise is unknown with one seed."
    return (
        f"Change against {base}. Framed: best of the column. Dot: no clear difference from the best. Grey, ~: no clear"
        f" difference from {base} ({plural(result.seeds, 'seed')}, 95 %)."
    )


def _heads(result: CrossingResult, name_px: int, price_at: int) -> list[str]:
    found = [_text(name_px + _CELL_PX / 2, _HEAD_PX - 8, "all", anchor="middle", more=' font-weight="600"')]
    for number, setting in enumerate(result.settings):
        x = name_px + 4 + (number + 1.5) * _CELL_PX
        found.append(_text(x, _HEAD_PX - 22, setting.workload, anchor="middle"))
        if setting.is_failed:
            found.append(
                _text(x, _HEAD_PX - 8, "link fails", anchor="middle", more=' fill="var(--warn-line)"', fill="")
            )
    for number, (_, heading, _) in enumerate(_ASKED):
        x, y = price_at + number * _MARK_PX + 11, _HEAD_PX - 6
        found.append(f'<text transform="translate({x} {y}) rotate(-60)" fill="var(--soft)">{escape(heading)}</text>')
    x = price_at + len(_ASKED) * _MARK_PX + _BUFFER_PX
    found.append(_text(x, _HEAD_PX - 22, "reorder", anchor="end", more=' fill="var(--soft)"', fill=""))
    found.append(_text(x, _HEAD_PX - 8, "buffer", anchor="end", more=' fill="var(--soft)"', fill=""))
    return found


def _setting(result: CrossingResult, cell: CrossingCell, x: float, y: float) -> str:
    contender, setting = result.contenders[cell.contender], result.settings[cell.setting]
    if not cell.values:
        told = f"{contender.name}, {setting.name}: {cell.reason}"
        mark = _text(x + _CELL_PX / 2, y + 14, "none", anchor="middle", more=' fill="var(--soft)"', fill="")
        return f"<g><title>{escape(told)}</title>{mark}</g>"
    made = _cell(
        x, y, cell.ratio, f"{contender.name}, {setting.name}: {took_words(result, cell)}", is_told=cell.differs
    )
    if cell.is_best:
        made += (
            f'<rect x="{x + 1}" y="{y + 1}" width="{_CELL_PX - 4}" height="{_ROW_PX - 3}" fill="none"'
            ' stroke="var(--ink)" stroke-width="2"/>'
        )
    elif cell.is_as_good:
        made += f'<circle cx="{x + 5}" cy="{y + 9.5}" r="2.5" fill="var(--ink)"/>'
    return made


def _cell(x: float, y: float, ratio: float | None, told: str, *, is_told: bool) -> str:
    """A rectangle with its number.

    It is grey if it does not differ clearly from the base.
    """
    if ratio is None:
        return _text(x + _CELL_PX / 2, y + 14, "none", anchor="middle", more=' fill="var(--soft)"', fill="")
    strength = min(abs(math.log(max(ratio, 1e-9))) / _FULL, 1.0) if is_told else 0.0
    colour = "var(--accent)" if ratio < 1 else "var(--warn-line)"
    fill, opacity = (colour, 0.12 + 0.6 * strength) if is_told else ("var(--faint)", 0.25)
    words = change_words(ratio) if is_told else f"~ {change_words(ratio)}"
    ink = "" if is_told else ' fill="var(--soft)"'
    return (
        f'<g><title>{escape(told)}</title><rect x="{x}" y="{y}" width="{_CELL_PX - 2}" height="{_ROW_PX - 1}"'
        f' fill="{fill}" fill-opacity="{opacity:.2f}"/>'
        f"{_text(x + _CELL_PX / 2, y + 14, words, anchor='middle', more=ink, fill='' if ink else 'var(--ink)')}</g>"
    )


def _price(result: CrossingResult, place: int, x: float, y: float) -> list[str]:
    """Marks for the demands on switches and NICs, and the largest reorder buffer."""
    contender = result.contenders[place]
    found = []
    for number, (need, heading, side) in enumerate(_ASKED):
        if need in (contender.switch if side == "switch" else contender.nic):
            at = x + number * _MARK_PX + 3
            shape = (
                f'<rect x="{at}" y="{y + 5}" width="9" height="9" fill="var(--c4)"/>'
                if side == "switch"
                else f'<circle cx="{at + 4.5}" cy="{y + 9.5}" r="4.5" fill="var(--c3)"/>'
            )
            found.append(f"<g><title>{escape(f'{contender.name} needs {heading} ({side})')}</title>{shape}</g>")
    cells = [result.cell(place, setting) for setting in range(len(result.settings))]
    early = max((cell.prices.get("reorder_buffer_bytes", 0.0) for cell in cells), default=0.0)
    text = amount(early, "B") if early else "none"
    found.append(_text(x + len(_ASKED) * _MARK_PX + _BUFFER_PX, y + 14, text, anchor="end"))
    return found


def _text(x: float, y: float, text: str, *, anchor: str = "start", more: str = "", fill: str = "var(--ink)") -> str:
    colour = f' fill="{fill}"' if fill else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{colour}{more}>{escape(typeset(text))}</text>'
