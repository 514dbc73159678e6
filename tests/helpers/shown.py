"""What a page or an answer shows, read back: its sections, tables, charts and sentences, and its words as numbers.

It knows nothing of `weftwork.report`: what stands there is compared with what a test computes from the tables of a run.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from helpers.pages import VOID, plain
from numpy.typing import NDArray

from weftwork.store.runs import Run

_UNITS = {
    "": 1.0, "%": 0.01, "bit": 1.0, "points": 0.01,
    "ps": 1.0, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12, "min": 60e12, "h": 3600e12, "days": 86_400e12,
    **{f"{lead}{unit}": factor for unit in ("b/s", "B/s", "B", "bps")
       for lead, factor in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))},
    "KB": 1e3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
}  # fmt: skip
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = "|".join(sorted((re.escape(unit) for unit in _UNITS if unit), key=len, reverse=True))
QUANTITY = rf"{_NUMBER}(?: ?(?:{_UNIT})(?![\w/]))?"
_QUANTITY = re.compile(rf"({_NUMBER}) ?({_UNIT})?(?: points)?")


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Words of it and of all inside, with ordinary spaces."""
        return plain(self._text()).strip()

    def _text(self) -> str:
        return "".join(one if isinstance(one, str) else one._text() for one in self.children)

    def all(self, tag: str = "", kind: str = "", **attributes: str) -> list[Element]:
        """Elements inside, by tag, class and attributes; in the order of the page."""
        return [
            one
            for one in self._inside()
            if (not tag or one.tag == tag)
            and (not kind or kind in one.attributes.get("class", "").split())
            and all(one.attributes.get(name) == value for name, value in attributes.items())
        ]

    def _inside(self) -> Iterator[Element]:
        for one in self.children:
            if isinstance(one, Element):
                yield one
                yield from one._inside()


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("page", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - `Page` of helpers.pages holds that they are pairs
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


@lru_cache(maxsize=4)  # a module asks one page dozens of times
def page_of(html: str) -> Element:
    """A whole page, which nobody changes."""
    builder = _Builder()
    builder.feed(html)
    return builder.root


def section(html: str, name: str) -> Element:
    """The section of a page with this id."""
    (found,) = page_of(html).all("section", id=name)
    return found


def prose(part: Element) -> str:
    """The paragraphs of a part, with a blank between them."""
    return " ".join(one.text for one in part.all("p"))


def three_lines(found: Element | str) -> dict[str, str]:
    """The three lines of an answer, by their labels: of a part of a page, or of a terminal."""
    if isinstance(found, str):
        return {label: match[1] for label in ("took", "measured", "limited by", "to blame")
                if (match := re.search(rf"^{label} +(.+?) *$", found, re.MULTILINE))}  # fmt: skip
    (listed,) = found.all("dl", kind="lines")
    return {name.text: line.text for name, line in zip(listed.all("dt"), listed.all("dd"), strict=True)}


def rows(part: Element, head: str) -> list[dict[str, str]]:
    """The table whose first heading is ``head``: a mapping of headings to texts for each row; headings that occur
    again, as ``p99`` of a second quantity does, get an ordinal behind them.
    """
    for table in part.all("table"):
        names: list[str] = []
        for one in table.all("th"):
            again = names.count(one.text)
            names.append(f"{one.text} {again + 1}" if again else one.text)
        if names and names[0] == head:
            body = [[cell.text for cell in row.all("td")] for row in table.all("tr")]
            return [dict(zip(names, cells, strict=True)) for cells in body if cells]
    raise AssertionError(f"no table begins with {head!r}: {[one.text[:40] for one in part.all('table')]}")


def printed_beside(text: str, head: str, other: str) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Two tables of an answer in a terminal that stand side by side, by their first headings."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith(f"{head} ") and other in line)
    end = next(place for place, line in enumerate(lines) if place > begin and not line.strip())
    at = lines[begin].index(other)
    left, right = ("\n".join(part) for part in zip(*((line[:at], line[at:]) for line in lines[begin:end]), strict=True))
    return printed(left, head), printed(right, other)


def printed(text: str, head: str) -> list[dict[str, str]]:
    """A table of an answer in a terminal whose first heading is ``head``; columns stand two blanks apart."""
    lines = text.splitlines()
    begin = next(place for place, line in enumerate(lines) if re.split(r"\s{2,}", line.strip())[0] == head)
    names = re.split(r"\s{2,}", lines[begin].strip())
    found = []
    for line in lines[begin + 1 :]:
        if not line.strip():
            break
        found.append(dict(zip(names, re.split(r"\s{2,}", line.strip()), strict=False)))
    return found


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart: the heading of its figure, its label for those who do not see it, and what it tells at each place."""

    heading: str
    label: str
    until: tuple[str, ...]
    lines: dict[str, tuple[str, ...]]


def charts(part: Element) -> list[Chart]:
    """All charts that tell their values."""
    found = []
    for figure in part.all("figure"):
        heading = " ".join(one.text for one in figure.children if isinstance(one, Element) and one.tag == "figcaption")
        for place in figure.all(kind="pa"):
            if "data-tip" not in place.attributes:
                continue
            tip: dict[str, Any] = json.loads(place.attributes["data-tip"])
            (drawing,) = place.all("svg")
            found.append(Chart(
                heading=heading, label=plain(drawing.attributes["aria-label"]),
                until=tuple(plain(text) for text in tip["t"]),
                lines={name: tuple(plain(text) for text in values) for name, _, values in tip["s"]},
            ))  # fmt: skip
    return found


def columns(folder: Path, name: str) -> dict[str, NDArray[Any]]:
    """A table of a run's folder as arrays; nulls are NaN."""
    table = Run(folder).table(name)
    found: dict[str, NDArray[Any]] = {}
    for one in table.column_names:
        values = table[one].to_pylist()
        is_text = any(isinstance(value, str) for value in values)
        found[one] = np.array(values, object) if is_text else np.array([math.nan if v is None else v for v in values])
    return found


def value_of(text: str) -> float:
    """A quantity in ps, B, b/s, 1 for a share, or as it is."""
    found = _QUANTITY.fullmatch(text.strip())
    assert found, f"no quantity: {text!r}"
    return float(found[1].replace(",", "")) * _UNITS[found[2] or ""]


def is_shown(text: str, value: float | None, slack: float = 0.0) -> bool:
    """Whether a text is a number in three digits, or in all digits before the point; a dash is none.

    Half of the last digit is what rounding explains, and ``slack`` a share that the test explains; from 0.01 to 1 the
    third digit behind the point is the last.
    """
    if value is None:
        return text.strip() in {"-", "\u2013"}
    found = _QUANTITY.fullmatch(text.strip())
    assert found, f"no quantity: {text!r}"
    digits, factor = float(found[1].replace(",", "")), _UNITS[found[2] or ""]
    magnitude = abs(digits)
    place = 0 if magnitude >= 100 else 2 - math.floor(math.log10(magnitude)) if magnitude > 0 else 3
    place = min(place, 3) if magnitude >= 0.01 else place
    return abs(digits * factor - value) <= (0.5 * 10.0**-place * 1.0001 + (1e-9 + slack) * magnitude) * factor


def is_told(text: str, value: float) -> bool:
    """Whether any quantity of a text is a number, in as many digits as are shown."""
    return any(is_shown(found, value) for found in re.findall(rf"(?<![\w.>-]){QUANTITY}(?![\w.-]*\w)", text))


def wrong(pairs: Sequence[tuple[str, str, float | None]], slack: float = 0.0) -> list[str]:
    """Of names, texts and values those whose text does not show the value."""
    return [
        f"{name}: shown {text!r}, wanted {value!r}" for name, text, value in pairs if not is_shown(text, value, slack)
    ]


def told(text: str, sentence: str) -> list[str]:
    """The quantities at the places ``{}`` of a sentence that stands in a text; ``{w}`` is a word, without a blank."""
    pattern = re.escape(sentence).replace(r"\{\}", f"({QUANTITY})").replace(r"\{w\}", r"(\S+)")
    found = re.search(pattern, text)
    assert found, f"nobody says {sentence!r} in {text!r}"
    return list(found.groups())
