"""Pages whose commands run while the site is built, so that a page shows what Weftwork prints and nothing else.

::

    ```{weftwork} run examples/permutation.yaml -o runs/ecmp
    :expect: took 133 us; Nothing was lost.
    ```

runs the command line in a folder of that page, which holds a copy of ``examples``, and shows command and output. What
the prose around it claims stands in ``expect``: a text that the output lacks, or another exit code than ``code``, is a
warning, and warnings are errors. ``lines`` shows the first lines only, ``picture`` an SVG that the command wrote, and
``page`` an HTML page that it wrote, in a frame. ``{weftwork-python}`` runs its code in the same folder and shows
what it prints, and a ``picture``; ``{weftwork-file}`` shows a file of the folder, or writes it from its content.

Runs depend on scenario and seed alone and pages name their run folders. What a machine adds is taken out: wall times
("packet-hops in 1.2 s"), the page's folder in paths, and blanks at the ends of lines.
Leaves out: programs other than Weftwork, which a page shows as plain text.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from themed_pictures import themed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

__all__ = ["setup"]

ROOT = Path(__file__).parents[2]
_LOGGER = logging.getLogger(__name__)
WIDTH = 80  # chosen: columns of a block beside the navigation on a small laptop
_OPTION = re.compile(r" (?=--?[a-z])")
_WALL = re.compile(r"(?<=packet-hops) in [0-9.,]+ m?s\b")


class _Page(SphinxDirective):
    """What the directives share: the page's folder, and blocks of literal text."""

    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "expect": directives.unchanged_required,
        "lines": directives.unchanged_required,
    }

    def folder(self) -> Path:
        """The folder of this page; made when its first command runs."""
        self.env.weftwork_pages.add(self.env.docname)  # type: ignore[attr-defined]
        base = Path(self.env.weftwork_folder)  # type: ignore[attr-defined]
        folder = base / self.env.docname.replace("/", "-")
        if not folder.is_dir():
            shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        return folder

    def block(self, text: str, language: str) -> nodes.literal_block:
        """Literal text, highlighted."""
        block = nodes.literal_block(text, text, language=language)
        self.set_source_info(block)
        return block

    def output(self, text: str) -> list[nodes.Node]:
        """What was printed, after `expect` was looked for in all of it; `lines` shows its first lines only."""
        told = " ".join(text.split())
        for wanted in (" ".join(part.split()) for part in self.options.get("expect", "").split(";")):
            if wanted not in told:
                self.wrong(f"the output lacks {wanted!r}:\n{text}")
        lines = text.rstrip().splitlines()
        if "lines" in self.options and len(lines) > (most := int(self.options["lines"])):
            lines = [*lines[:most], "..."]
        return [self.block("\n".join(lines), "text")] if lines else []

    def pictures(self, folder: Path) -> list[nodes.Node]:
        """The SVG that `picture` names, if it is given, in the theme of the page."""
        if "picture" not in self.options:
            return []
        svg = (folder / self.options["picture"]).read_text(encoding="utf-8")
        shown = themed(svg, self.env.new_serialno("weftwork-picture"))
        return [nodes.raw("", f"<figure>{shown}</figure>", format="html")]

    def wrong(self, text: str) -> None:
        """Warn at this directive."""
        _LOGGER.warning(text, location=self.get_location())

    def framed(self, *parts: nodes.Node) -> nodes.container:
        """Command and output as one thing."""
        return nodes.container("", *parts, classes=["weftwork-command"])


class _Weftwork(_Page):
    """``{weftwork}``: one command line."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        **_Page.option_spec,
        "code": directives.nonnegative_int,
        "picture": directives.unchanged_required,
        "page": directives.unchanged_required,
        "quiet": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Run it and show it."""
        folder = self.folder()
        command = " ".join(self.arguments[0].split())
        text, code = _printed(folder, shlex.split(command))
        if code != self.options.get("code", 0):
            self.wrong(f"'weftwork {command}' ended with exit code {code}:\n{text}")
        shown = self.output(text)
        found: list[nodes.Node] = [
            self.framed(self.block(_written(command), "console"), *([] if "quiet" in self.options else shown))
        ]
        found += self.pictures(folder)
        if "page" in self.options:
            source = folder / self.options["page"]
            self.env.weftwork_published[f"{self.env.docname}-{source.name}"] = str(source)  # type: ignore[attr-defined]
            name = f"{self.env.docname.rpartition('/')[2]}-{source.name}"
            frame = f'<iframe src="{name}" title="{source.name}" loading="lazy"></iframe>'
            caption = f'<figcaption><a href="{name}">{source.name} by itself</a></figcaption>'
            found.append(nodes.raw("", f'<figure class="weftwork-page">{frame}{caption}</figure>', format="html"))
        return found


class _Python(_Page):
    """``{weftwork-python}``: a program of Python, in the page's folder."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        **_Page.option_spec,
        "picture": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Run it and show it with what it prints."""
        source = "\n".join(self.content)
        program = compile(source, f"{self.env.docname}.md", "exec")
        folder = self.folder()
        with _inside(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, {"__name__": "__main__"})  # noqa: S102 - a page of this repository
        return [self.framed(self.block(source, "python"), *self.output(printed.getvalue())), *self.pictures(folder)]


class _File(_Page):
    """``{weftwork-file}``: a file of the page's folder; content of the directive is written to it first."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {"language": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Write it, if it is given here, and show it."""
        path = self.folder() / self.arguments[0]
        if self.content:
            path.write_text("\n".join(self.content) + "\n", encoding="utf-8")
        name = nodes.literal_block(self.arguments[0], self.arguments[0], language="text", classes=["weftwork-name"])
        text = path.read_text(encoding="utf-8").rstrip()
        return [self.framed(name, self.block(text, self.options.get("language", "yaml")))]


def _written(command: str) -> str:
    """A command as one would type it, an option to a line where it is long."""
    if len(command) <= WIDTH:
        return f"$ weftwork {command}"
    return "$ weftwork " + _OPTION.sub(" \\\n    ", command)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _printed(folder: Path, arguments: list[str]) -> tuple[str, int]:
    """What a command prints, errors included, and its exit code."""
    from weftwork.cli import main

    code = 0
    with _inside(folder), contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        try:
            main(arguments)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
    text = _WALL.sub("", printed.getvalue().replace(f"{folder.resolve()}/", ""))
    return "\n".join(line.rstrip() for line in text.splitlines()), code


def _begin(_app: Sphinx, env: BuildEnvironment, _docnames: list[str]) -> None:
    env.weftwork_folder = tempfile.mkdtemp(prefix="weftwork-docs-")  # type: ignore[attr-defined]


def _prepare(_app: Sphinx, env: BuildEnvironment, *_changes: set[str]) -> set[str]:
    """Pages with commands are read anew in each build: they depend on all of Weftwork."""
    if not hasattr(env, "weftwork_pages"):
        env.weftwork_pages = set()  # type: ignore[attr-defined]
        env.weftwork_published = {}  # type: ignore[attr-defined]
    return env.weftwork_pages & env.found_docs  # type: ignore[attr-defined,no-any-return]


def _merge(_app: Sphinx, env: BuildEnvironment, _docnames: set[str], other: BuildEnvironment) -> None:
    """Take over what another process noted of the pages that it has read."""
    env.weftwork_pages |= other.weftwork_pages  # type: ignore[attr-defined]
    env.weftwork_published |= other.weftwork_published  # type: ignore[attr-defined]


def _finish(app: Sphinx, failure: Exception | None) -> None:
    for name, source in getattr(app.env, "weftwork_published", {}).items():
        if failure is None and Path(source).is_file():
            (Path(app.outdir) / Path(name).parent).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, Path(app.outdir) / name)
    shutil.rmtree(getattr(app.env, "weftwork_folder", ""), ignore_errors=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("weftwork", _Weftwork)
    app.add_directive("weftwork-python", _Python)
    app.add_directive("weftwork-file", _File)
    app.connect("env-get-outdated", _prepare)
    app.connect("env-before-read-docs", _begin)
    app.connect("env-merge-info", _merge)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
