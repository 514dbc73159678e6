"""Pages of reports, read as a browser would: balanced, with nothing from elsewhere, and their text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from helpers.gallery import Gallery

from weftwork.store.runs import Run

VOID = {"meta", "br", "hr", "img", "input", "link"}  # of SVG every element is closed
LEAF_SPINE = """schema: 3
name: {name}
fabric: {{topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}}
transport: {{congestion_control: fixed-window}}
{rest}
"""


class Page(HTMLParser):
    """What is in a page: ``ids``, ``links`` that it would load or follow, ``text`` outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        assert len(known) == len(attrs), f"an attribute twice: {attrs}"
        if "id" in known:
            self.ids.append(known["id"] or "")
        self.links += [value or "" for name, value in attrs if name in {"href", "src", "xlink:href", "action"}]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] not in {"script", "style"}:
            self.text += data


def plain(text: str) -> str:
    """Typeset text as it stood before: ordinary spaces and `us`."""
    return re.sub(r"\s+", " ", text.replace("\u202f", " ").replace("\u00b5s", "us"))


def leaf_spine(rest: str, *, name: str = "tiny") -> str:
    """The text of a scenario: eight hosts on two leaves and two spines of 100 Gb/s."""
    return LEAF_SPINE.format(name=name, rest=rest)


def simulated(gallery: Gallery, rest: str, *, name: str = "tiny", **overrides: str) -> Run:
    """The run of eight hosts on two leaves and two spines of 100 Gb/s.

    Parameters
    ----------
    gallery : which makes it once for all tests that ask for it
    rest : sections of the scenario beside its fabric and its transport
    overrides : other keys by their dotted names with ``__`` for the dot
    """
    keys = {key.replace("__", "."): text for key, text in overrides.items()}
    run: Run = gallery.run(leaf_spine(rest, name=name), name=name, overrides=keys)
    return run
