"""Pictures that follow the theme of the page, by the reader's system and by the button of the site alike.

An SVG file goes into the page itself, since a file that the page only names sees the system's theme and no button. Its
rules hold inside its figure alone, and its ``@media (prefers-color-scheme: dark)`` follows the theme of the page.
A PNG has a twin, ``NAME-dark.png``, shown in its place on a dark page. A picture without a dark form is a warning.
Frames with whole pages follow by `_static/frames.js`.
Leaves out: pictures that say ``only-light`` or ``only-dark`` themselves, and raw HTML.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

__all__ = ["setup", "themed"]

_LOGGER = logging.getLogger(__name__)
_CHOSEN: Final = {"only-light", "only-dark"}  # furo's classes
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_DARK: Final = re.compile(r"@media \(prefers-color-scheme: ?dark\) ?\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}")
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_IDS: Final = re.compile(r'\b(id="|url\(#|href="#)')


def themed(svg: str, number: int, *, label: str = "") -> str:
    """An SVG as a part of a page, whose ids and rules meet no others there.

    Parameters
    ----------
    svg : text of the file
    number : of the picture in the site, from 0
    label : what it says to those who do not see it; empty where the file says it
    """
    name = f"picture{number}"
    own = _IDS.sub(lambda match: f"{match[1]}{name}-", svg)
    own = _STYLE.sub(lambda style: f"<style>{_scoped(style[1], f'.{name}')}</style>", own)
    if label and "aria-label=" not in own:
        own = own.replace("<svg ", f'<svg aria-label="{escape(label)}" ', 1)
    return f'<span class="weftwork-picture {name}">{own}</span>'


def _scoped(css: str, scope: str) -> str:
    """Rules of a file, for what lies in the scope alone; the dark ones as furo chooses its theme."""
    dark = "".join(match[1] for match in _DARK.finditer(css))
    always = "".join(_prefixed(_DARK.sub("", css), scope))
    chosen = "".join(_prefixed(dark, f'body[data-theme="dark"] {scope}'))
    preferred = "".join(_prefixed(dark, f'body:not([data-theme="light"]) {scope}'))
    return f"{always}\n@media not print{{{chosen}}}\n@media screen and (prefers-color-scheme:dark){{{preferred}}}"


def _prefixed(rules: str, scope: str) -> Iterator[str]:
    for selectors, declarations in _RULE.findall(rules):
        scoped = ",".join(f"{scope} {selector.strip()}" for selector in selectors.split(","))
        yield f"{scoped}{{{declarations.strip()}}}"


class _DarkForms(SphinxTransform):
    """Each picture of a page gets its dark form; runs before Sphinx collects the files of pictures."""

    default_priority = 300

    def apply(self, **_: object) -> None:
        """Replace each SVG by its text, and put the dark twin of each PNG after it."""
        for image in list(self.document.findall(nodes.image)):
            if _CHOSEN & set(image.get("classes", ())) or "://" in image["uri"]:
                continue
            _, file = self.env.relfn2path(image["uri"], self.env.docname)
            path = Path(file)
            if not path.is_file():
                continue  # Sphinx warns
            self.env.note_dependency(file)
            if path.suffix == ".svg":
                text = path.read_text(encoding="utf-8")
                if _DARK.search(text) is None:
                    self._missing(image, "has no rules for prefers-color-scheme: dark")
                shown = themed(text, self.env.new_serialno("weftwork-picture"), label=image.get("alt", ""))
                image.replace_self(nodes.raw("", shown, format="html"))
                continue
            twin = path.with_name(f"{path.stem}-dark{path.suffix}")
            if not twin.is_file():
                self._missing(image, f"has no dark twin {twin.name}")
                continue
            dark = image.copy()
            dark["uri"] = image["uri"].removesuffix(path.name) + twin.name
            image["classes"] = [*image["classes"], "only-light"]
            dark["classes"] = [*dark["classes"], "only-dark"]
            image.parent.insert(image.parent.index(image) + 1, dark)

    def _missing(self, image: nodes.image, text: str) -> None:
        _LOGGER.warning("the picture %s %s", image["uri"], text, location=image)


def setup(app: Sphinx) -> dict[str, bool]:
    """Give pictures their dark form when a page is read."""
    app.add_transform(_DarkForms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
