"""``weftwork report``: a page of one run, of two compared, or of a search for plans, in one file; or a trace."""

from __future__ import annotations

import json
import webbrowser
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.cli.compare import headline
from weftwork.cli.console import console
from weftwork.report.answer import finished
from weftwork.report.plan_words import PLAN_FILE, open_plan
from weftwork.report.words import amount
from weftwork.store.runs import open_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.store.runs import Run

__all__ = ["report"]

_KINDS: Final = {".html": "page", ".htm": "page", ".json": "trace"}


def report(first: Path, second: Path | None, *, out: Path | None, is_opened: bool, as_json: bool) -> None:
    """Write a page and say where it is.

    Parameters
    ----------
    first, second : run folders, the second is measured against the first; or the folder of a search for plans alone
    out : file to write; by default ``<run>.html`` beside the first run's folder, or ``<first>-<second>.html``; a name
        that ends in ``.json`` is for a trace, any other suffix than ``.html`` is refused
    is_opened : show it in a browser
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : one of them is no run or damaged, the file cannot be written, or its suffix is another
    """
    from weftwork.report.page import run_page

    is_plan = second is None and (first / PLAN_FILE).is_file()
    runs = [] if is_plan else [open_run(path) for path in (first, second) if path is not None]
    file = out if out is not None else _beside([run.path for run in runs] or [first])
    if file.is_dir():
        raise ConfigError(str(file), [Mistake(path="--out", text="is a folder; wanted a file such as page.html")])
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        shown = f"found '{file.suffix}'" if file.suffix else "found a name without a suffix"
        text = f"{shown}, wanted .html (a page) or .json (a trace for Perfetto)"
        raise ConfigError(str(file), [Mistake(path="--out", text=text, fix=str(file.with_suffix(".html")))])
    try:
        if kind == "trace":
            write_whole(file, _trace(first, runs))
        elif is_plan:
            write_whole(file, _plan(first))
        else:
            write_whole(file, run_page(runs[0]) if len(runs) == 1 else _comparison(*runs))
    except OSError as error:
        raise ConfigError(str(file), [Mistake(path="--out", text=f"cannot be written: {error.strerror}")]) from error
    size_bytes = file.stat().st_size
    if as_json:
        found = {kind: str(file), "size_bytes": size_bytes, "runs": [str(run.path) for run in runs],
                 "status": [run.status for run in runs]}  # fmt: skip
        typer.echo(json.dumps(found, indent=2))
    else:
        console().print(Text(f"{kind}: {file} ({amount(size_bytes, 'B')})"), soft_wrap=True)
        for run in runs:
            if not run.is_complete:
                console().print(Text(f"note: {run.path} is {run.status}; its numbers are partial"), soft_wrap=True)
    if is_opened:
        webbrowser.open(file.absolute().as_uri())


def _beside(folders: Sequence[Path]) -> Path:
    """Beside the first folder, since a run folder is written once."""
    found = [folder.resolve() for folder in folders]
    return found[0].parent / f"{'-'.join(folder.name for folder in found)}.html"


def _plan(folder: Path) -> str:
    """The page of a search for plans."""
    from weftwork.report.page_plan import plan_page

    document, scenario = open_plan(folder)
    return plan_page(document, str(folder), scenario)


def _trace(first: Path, runs: list[Run]) -> str:
    """The trace of one run, for Perfetto or Chrome's tracing."""
    from weftwork.report.trace import write_trace

    if len(runs) != 1:
        found = str(runs[1].path if runs else first)
        raise ConfigError(found, [Mistake(path="--out", text="a trace is of one run; wanted a .html file")])
    written = StringIO()
    write_trace(runs[0], written)
    return written.getvalue()


def _comparison(first: Run, second: Run) -> str:
    from weftwork.report.page_comparison import comparison_page
    from weftwork.study.results.compare import compare

    found = compare(first, second)
    is_whole = all(done == counted for done, counted in map(finished, (first, second)))
    return comparison_page(
        first,
        second,
        headline=headline(found, is_whole=is_whole, second="B"),
        differences=found.differences,
        numbers=found.numbers,
    )
