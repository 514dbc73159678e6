"""``weftwork report``: a page of a run, of two, of a sweep, a tuning, a crossing, a search or a design; or a trace."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
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
from weftwork.report.design_folder import is_design, open_design
from weftwork.report.plan_words import PLAN_FILE, open_plan
from weftwork.report.words import amount
from weftwork.store.crossings import is_crossing, read_crossing
from weftwork.store.named_runs import folder_of
from weftwork.store.runs import open_run
from weftwork.store.sweeps import is_sweep, read_command, read_result
from weftwork.store.tunings import is_tuning, read_tuning

if TYPE_CHECKING:
    from weftwork.store.runs import Run

__all__ = ["report"]

PAGE: Final = "page.html"  # in the folder of a sweep, a tuning or a search
_KINDS: Final = {".html": "page", ".htm": "page", ".json": "trace"}


def report(first: Path, second: Path | None, *, out: Path | None, is_opened: bool, as_json: bool) -> None:
    """Write a page and say where it is.

    Parameters
    ----------
    first, second : run folders; the second is measured against the first; or the folder of a sweep, a tuning, a
        crossing, a search for plans or a design alone
    out : file to write; by default ``<run>.html`` beside the first run's folder, or ``<first>-<second>.html``, or
        ``page.html`` in the folder of the sweep or the search; a name that ends in ``.json`` is for a trace, any other
        suffix than ``.html`` is refused
    is_opened : show it in a browser
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : one of them is no run or damaged, the file cannot be written, or its suffix is another
    """
    from weftwork.report.page import run_page

    first = folder_of(first)
    several = _several(first)
    if several is not None:
        _report_several(several, second, out=out, is_opened=is_opened, as_json=as_json)
        return
    runs = [open_run(path) for path in (first, second) if path is not None]
    file = out if out is not None else _beside(runs)
    kind = _kind(file)
    page = run_page if len(runs) == 1 else _comparison
    size_bytes = _written(file, _trace(runs) if kind == "trace" else page(*runs))
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


def _kind(file: Path) -> str:
    """What a file of this name is: a page or a trace."""
    if file.is_dir():
        raise ConfigError(str(file), [Mistake(path="--out", text="is a folder; wanted a file such as page.html")])
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        shown = f"found '{file.suffix}'" if file.suffix else "found a name without a suffix"
        text = f"{shown}, wanted .html (a page) or .json (a trace for Perfetto)"
        raise ConfigError(str(file), [Mistake(path="--out", text=text, fix=str(file.with_suffix(".html")))])
    return kind


def _written(file: Path, text: str) -> int:
    """Write a file whole; returns its size in bytes."""
    try:
        write_whole(file, text)
    except OSError as error:
        raise ConfigError(str(file), [Mistake(path="--out", text=f"cannot be written: {error.strerror}")]) from error
    return file.stat().st_size


@dataclass(frozen=True, kw_only=True, slots=True)
class _Several:
    """A folder of more than runs, and how its page is made."""

    folder: Path
    kind: str
    page: Callable[[], str]


def _several(folder: Path) -> _Several | None:
    """What a folder of more than runs holds; None for any other."""
    if is_sweep(folder):
        return _sweep(folder)
    if is_crossing(folder):
        return _crossing(folder)
    if is_tuning(folder):
        return _tuning(folder)
    if is_design(folder):
        return _design(folder)
    return _plan(folder) if (folder / PLAN_FILE).is_file() else None


def _crossing(folder: Path) -> _Several:
    from weftwork.report.page_crossing import crossing_page

    return _Several(
        folder=folder,
        kind="crossing",
        page=lambda: crossing_page(read_crossing(folder), str(folder), read_command(folder)),
    )


def _tuning(folder: Path) -> _Several:
    from weftwork.report.page_tune import tune_page

    return _Several(
        folder=folder,
        kind="tuning",
        page=lambda: tune_page(read_tuning(folder), str(folder), read_command(folder)),
    )


def _sweep(folder: Path) -> _Several:
    from weftwork.report.page_sweep import sweep_page

    return _Several(
        folder=folder,
        kind="sweep",
        page=lambda: sweep_page(read_result(folder), str(folder), read_command(folder)),
    )


def _design(folder: Path) -> _Several:
    from weftwork.report.page_design import design_page

    def page() -> str:
        document, scenarios = open_design(folder)
        return design_page(document, str(folder), read_command(folder), scenarios)

    return _Several(folder=folder, kind="design", page=page)


def _plan(folder: Path) -> _Several:
    from weftwork.report.page_plan import plan_page

    def page() -> str:
        document, scenario = open_plan(folder)
        return plan_page(document, str(folder), scenario)

    return _Several(folder=folder, kind="plan", page=page)


def _report_several(one: _Several, second: Path | None, *, out: Path | None, is_opened: bool, as_json: bool) -> None:
    """Write the page of such a folder again, from what it holds."""
    file = one.folder / PAGE if out is None else out
    if second is not None:
        text = f"{one.folder} is a {one.kind}, which is not compared; wanted one folder"
        raise ConfigError(str(second), [Mistake(path="RUN", text=text)])
    if _kind(file) == "trace":
        raise ConfigError(str(one.folder), [Mistake(path="--out", text="a trace is of one run; wanted a .html file")])
    size_bytes = _written(file, one.page())
    if as_json:
        typer.echo(json.dumps({"page": str(file), "size_bytes": size_bytes, one.kind: str(one.folder)}, indent=2))
    else:
        console().print(Text(f"page: {file} ({amount(size_bytes, 'B')})"), soft_wrap=True)
    if is_opened:
        webbrowser.open(file.absolute().as_uri())


def _beside(runs: list[Run]) -> Path:
    """Beside the folder of the first run, since a run folder is written once."""
    folder = runs[0].path.resolve()
    return folder.parent / f"{'-'.join(run.path.resolve().name for run in runs)}.html"


def _trace(runs: list[Run]) -> str:
    """The trace of one run, for Perfetto or Chrome's tracing."""
    from weftwork.report.trace import write_trace

    if len(runs) != 1:
        raise ConfigError(str(runs[1].path), [Mistake(path="--out", text="a trace is of one run; wanted a .html file")])
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
