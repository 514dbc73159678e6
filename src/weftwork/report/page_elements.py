"""Elements of every page.

They are sections, tiles, tables, notices, and the final file.

Texts are escaped here, once. The template, its style and its script are in ``templates``. Leaves out: charts, which are
in `weftwork.report.figures`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from weftwork.base.version import VERSION
from weftwork.report.figures.colours import css_variables
from weftwork.report.words import sentence, typeset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PageSection", "Tile", "answer_lines", "bar", "notice", "paragraphs", "port", "render", "table", "tiles"]


_WIDE_TILES: Final = (6, 5, 4)  # in a row of a wide page
_MIDDLE_TILES: Final = (4, 3, 5)  # in a row of a tablet


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A part of a page.

    ``short`` is its name in the list of sections, ``content`` is HTML.
    """

    id: str
    short: str
    title: str
    content: str
    lead: str = ""


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A number that people look for first."""

    name: str
    value: str
    note: str = ""


def render(
    title: str, subtitle: Sequence[tuple[str, str]], sections: Sequence[PageSection], *, scripts: Sequence[str] = ()
) -> str:
    """The page, one file of HTML.

    Parameters
    ----------
    title : of the page
    subtitle : names and texts under it
    sections : in order
    scripts : files of ``templates`` that follow the script which every page has
    """
    import jinja2
    from markupsafe import Markup

    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_file("page.html.j2"))
    return template.render(
        title=title,
        subtitle=[(name, typeset(text)) for name, text in subtitle],
        sections=[
            {
                "id": one.id,
                "short": one.short,
                "title": one.title,
                "lead": typeset(one.lead),
                "content": Markup(one.content),  # noqa: S704 - made by this package, which escapes every text
            }
            for one in sections
        ],
        light=Markup(css_variables("light")),  # noqa: S704 - constants
        dark=Markup(css_variables("dark")),  # noqa: S704 - constants
        style=Markup(_file("page.css")),  # noqa: S704 - a file of ours
        script=Markup("".join(map(_file, ("page.js", *scripts)))),  # noqa: S704 - a file of ours
        version=VERSION,
    )


@cache
def _file(name: str) -> str:
    return files("weftwork.report").joinpath("templates", name).read_text(encoding="utf-8")


def tiles(found: Sequence[Tile]) -> str:
    """Numbers side by side, never one alone in a row.

    One number is written as words; without numbers the result is empty.
    """
    if not found:
        return ""
    if len(found) == 1:
        (one,) = found
        note = f" ({one.note})" if one.note else ""
        return paragraphs([f"{sentence(one.name)}: {one.value}{note}"], "told")
    made = "".join(
        f'<div class="tile"><span>{escape(tile.name)}</span><b>{escape(typeset(tile.value))}</b>'
        f"{f'<i>{escape(typeset(tile.note))}</i>' if tile.note else ''}</div>"
        for tile in found
    )
    wide, middle = (_columns(len(found), columns) for columns in (_WIDE_TILES, _MIDDLE_TILES))
    kind = "tiles odd" if len(found) % 2 else "tiles"
    return f'<div class="{kind}" style="--wide:{wide};--middle:{middle}">{made}</div>'


def _columns(count: int, wanted: Sequence[int]) -> int:
    """The number of columns with the fewest empty places.

    No tile is alone in the last row.
    """
    if count <= max(wanted):
        return count
    return min(wanted, key=lambda columns: (count % columns == 1, -count % columns, -columns))


def paragraphs(texts: Sequence[str], kind: str) -> str:
    """Sentences below each other."""
    return f'<div class="{kind}">' + "".join(f"<p>{escape(typeset(text))}</p>" for text in texts) + "</div>"


def answer_lines(
    labels: Sequence[str], texts: Sequence[str], culprit: str, also: Sequence[tuple[str, str]] = ()
) -> str:
    """The three lines of an answer as labels and texts.

    Empty lines are left out.

    Parameters
    ----------
    labels, texts : what each line is called, and what it says
    culprit : name with which the last line begins, which stands out; empty for nobody
    also : further lines below, each a label and a text
    """
    made = []
    for label, text in zip(labels, texts, strict=True):
        if not text:
            continue
        told = escape(typeset(text))
        if culprit and label == labels[-1] and text.startswith(culprit):
            told = f'<b class="culprit">{escape(culprit)}</b>{escape(typeset(text[len(culprit) :]))}'
        made.append(f"<dt>{escape(label)}</dt><dd>{told}</dd>")
    made += [f"<dt>{escape(label)}</dt><dd>{escape(typeset(text))}</dd>" for label, text in also]
    return f'<dl class="lines">{"".join(made)}</dl>'


def notice(texts: Sequence[str]) -> str:
    """Warnings that a reader must not overlook; empty without any."""
    return paragraphs(texts, "notice") if texts else ""


def port(name: str) -> str:
    """The name of a port or a link."""
    return f'<span class="port">{escape(name)}</span>'


def bar(share: float, width_px: int = 90) -> str:
    """A share as a length, in front of its number."""
    return f'<span class="bar" style="width:{width_px * min(max(share, 0.0), 1.0):.0f}px"></span>'


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", texts: Sequence[int] = ()
) -> str:
    """A table that scrolls if it is wider than the screen.

    Parameters
    ----------
    columns : headings
    rows : cells, HTML
    texts : columns that hold words
    """
    if not rows:
        return ""
    kind = dict.fromkeys(texts, ' class="text"')
    head = "".join(f"<th{kind.get(place, '')}>{escape(name)}</th>" for place, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{kind.get(place, '')}>{cell}</td>" for place, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{told}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
