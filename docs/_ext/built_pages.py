"""Checks on the pages as they were built: every link inside the site leads somewhere, and no page loads from elsewhere.

Sphinx checks the references that it makes itself. This sees all the rest too: links of raw HTML, of the theme, and of
files that commands have written. Leaves out: whether links to other sites still answer, which needs a network.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urldefrag, urlsplit

from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]

_LOADED: Final = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Page(HTMLParser):
    """What a page names, links to and loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element."""
        found = {name: value for name, value in attrs if value}
        self.ids |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if _LOADED.get(tag, "") in found and found.get("rel") != "canonical":
            self.loads.add(found[_LOADED[tag]])


def _check(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    top = Path(app.outdir)
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in top.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(top.resolve())
        wrong += [f"{name} loads {url}" for url in sorted(page.loads) if urlsplit(url).netloc]
        for url in sorted(page.links | page.loads):
            place, anchor = urldefrag(url)
            if urlsplit(place).scheme or urlsplit(place).netloc:
                continue
            target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
            if not target.exists():
                wrong.append(f"{name} links to {url}, which is not there")
            elif anchor and target in pages and unquote(anchor) not in pages[target].ids:
                wrong.append(f"{name} links to {url}; that page has no such place")
    if wrong:
        raise ExtensionError("\n".join(wrong))


def setup(app: Sphinx) -> dict[str, bool]:
    """Check when the site is built."""
    app.connect("build-finished", _check, priority=900)  # after files that other extensions write
    return {"parallel_read_safe": True, "parallel_write_safe": True}
