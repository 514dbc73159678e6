"""Pages with commands, outputs and tables, as the site shows them.

A page of the repository has its outputs already (`page_blocks`), and `python docs/outputs.py` holds them current. So
the build shows what is committed and runs nothing, but for HTML pages that commands write: those are too large to
commit. They are made when the site is finished, once for each state of Weftwork, and stand in frames.

Before a page is read, its blocks become directives. A comment ``<!-- {toctree} ... -->`` becomes the directive that it
names, and ``<!-- front matter ... -->`` the front matter. ``<a id="NAME"></a>`` by itself on a line becomes a target,
and the comments around tables disappear. Lines keep their numbers, so that warnings name the lines of the page.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import page_rows
from docutils import nodes
from page_blocks import MEASURED, Block, PageError, blocks, lacking
from page_runs import ROOT, PageRun, run_blocks, run_pages
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from themed_pictures import themed

if TYPE_CHECKING:
    from sphinx.application import Sphinx

__all__ = ["setup"]

_LOGGER = logging.getLogger(__name__)
_MARK: Final = re.compile(r"^<!-- (?:end rows|rows: \S+) -->$", re.MULTILINE)
_INCLUDED: Final = re.compile(r"^<!-- rows: included -->$.*?^<!-- end rows -->$", re.MULTILINE | re.DOTALL)
_OF_BUILD: Final = re.compile(r"^<!-- rows of the build: (\S+) -->$", re.MULTILINE)
_TARGET: Final = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
_FRONT_MATTER: Final = re.compile(r"\A<!-- front matter\n((?:.+\n)*?)-->\n")
_HIDDEN: Final = re.compile(r"^<!-- (\{[a-z-]+\}.*?)\n(.*?)^-->$", re.MULTILINE | re.DOTALL)


# Reading


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Turn what a code host hides or shows as text into what Sphinx reads."""
    text = source[0]
    try:
        listed = list(blocks(text))
    except PageError as error:
        raise ExtensionError(f"{docname}.md: {error}") from error
    app.env.temp_data["weftwork_blocks"] = listed
    lines = text.split("\n")
    for number, block in enumerate(listed):
        blanks = [""] * (block.end - block.start - 2)
        lines[block.start : block.end] = [f"```{{weftwork-block}} {number}", *blanks, "```"]
    text = "\n".join(lines)
    text = _INCLUDED.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _TARGET.sub(r"(\1)=", _MARK.sub("", text))
    text = _FRONT_MATTER.sub(r"---\n\1---\n", text)
    text = _HIDDEN.sub(r"```\1\n\2```", text)

    def rows(match: re.Match[str]) -> str:
        app.env.reread_always.add(docname)
        return "\n".join(page_rows.rows_of_build(match[1]))

    source[0] = _OF_BUILD.sub(rows, text)


class _Shown(SphinxDirective):
    """A block of the page, by its number."""

    required_arguments = 1
    has_content = True  # blank lines, as many as the page has

    def run(self) -> list[nodes.Node]:
        """Show the block as it is committed."""
        block: Block = self.env.temp_data["weftwork_blocks"][int(self.arguments[0])]
        if not {"lines", "quiet"} & block.options.keys():
            for claim in lacking(block, block.output):
                self.wrong(f"the output lacks {claim!r}")
        if block.is_command:
            parts = [self.literal(block.command, "console")]
        else:
            parts = [self.literal(block.text, block.language)]
        if block.name:
            name = nodes.literal_block(block.name, block.name, language="text", classes=["weftwork-name"])
            parts.insert(0, name)
        if block.output:
            parts.append(self.literal(block.output, "text"))
        shown: list[nodes.Node] = [nodes.container("", *parts, classes=["weftwork-command"])]
        if "measured" in block.options:
            shown.append(nodes.paragraph("", "", nodes.emphasis("", MEASURED.strip("*"))))
        if "picture" in block.options:
            shown += self.picture(block)
        if "page" in block.options:
            name = Path(block.options["page"]).name
            address = f"{self.env.docname.rpartition('/')[2]}-{name}"
            frame = f'<iframe src="{address}" title="{name}" loading="lazy"></iframe>'
            caption = f'<figcaption><a href="{address}">{name} by itself</a></figcaption>'
            shown.append(nodes.raw("", f'<figure class="weftwork-page">{frame}{caption}</figure>', format="html"))
        return shown

    def literal(self, text: str, language: str) -> nodes.literal_block:
        """Literal text, highlighted."""
        block = nodes.literal_block(text, text, language=language)
        self.set_source_info(block)
        return block

    def picture(self, block: Block) -> list[nodes.Node]:
        """The committed picture of a block, in the theme of the page."""
        label, address = block.picture or ("", "")
        path = Path(self.env.doc2path(self.env.docname)).parent / address
        if not path.is_file():
            self.wrong(f"there is no picture {address}; python docs/outputs.py --write makes it")
            return []
        self.env.note_dependency(str(path))
        shown = themed(path.read_text(encoding="utf-8"), self.env.new_serialno("weftwork-picture"), label=label)
        return [nodes.raw("", f"<figure>{shown}</figure>", format="html")]

    def wrong(self, text: str) -> None:
        """Warn at this block."""
        _LOGGER.warning(text, location=self.get_location())


# Pages in frames


def _framed(page: Path) -> list[int]:
    """The numbers of the blocks of a page that write an HTML page for a frame."""
    text = page.read_text(encoding="utf-8")
    return [number for number, block in enumerate(blocks(text)) if "page" in block.options]


def _state() -> str:
    """Digest of Weftwork as it is installed and of the examples: what runs depend on, besides the page."""
    digest = hashlib.sha256()
    for top in (page_rows.package(), ROOT / "examples"):
        for path in sorted(path for path in top.rglob("*") if path.is_file() and path.suffix != ".pyc"):
            digest.update(path.relative_to(top).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _kept(page: Path, folder: Path, last: int) -> PageRun:
    """Run a page up to its last framed page, and keep those in a folder."""

    def keep(block: Block, place: Path) -> None:
        if "page" in block.options and (source := place / block.options["page"]).is_file():
            shutil.copyfile(source, folder / source.name)

    return run_blocks(page, keep, last=last)


def _frames(app: Sphinx, failure: Exception | None) -> None:
    """Make the pages that stand in frames, unless an earlier build has made them of the same state."""
    if failure is not None or app.builder.format != "html":
        return
    state = ""
    wrong: list[str] = []
    for docname in sorted(app.env.found_docs):
        page = Path(app.env.doc2path(docname))
        numbers = _framed(page) if page.suffix == ".md" else []
        if not numbers:
            continue
        state = state or _state()
        digest = hashlib.sha256(f"{state} {docname}\n{page.read_text(encoding='utf-8')}".encode()).hexdigest()
        folder = Path(app.doctreedir) / "weftwork-frames" / digest[:16]
        if not folder.is_dir():
            part = folder.with_suffix(f".{os.getpid()}")
            part.mkdir(parents=True)
            for run in run_pages([page], 1, partial(_kept, folder=part, last=max(numbers))):
                wrong += run.mistakes
            part.rename(folder)
        for source in folder.iterdir():
            target = Path(app.outdir) / f"{docname}-{source.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    if wrong:
        raise ExtensionError("\n".join(wrong))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive of blocks."""
    app.add_directive("weftwork-block", _Shown)
    app.connect("source-read", _read)
    app.connect("build-finished", _frames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
