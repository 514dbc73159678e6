"""``weftwork report``: a page of runs or of a folder of runs; or a trace.

The folder is of a sweep, tuning, crossing, search or design.
"""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import write_whole
from weftwork.cli.compare import open_runs
from weftwork.cli.console import console
from weftwork.report.design_folder import is_design, open_design
from weftwork.report.plan_words import PLAN_FILE, open_plan
from weftwork.report.words import amount
from weftwork.store.crossings import is_crossing, read_crossing
from weftwork.store.named_runs import folder_of
from weftwork.store.sweeps import is_sweep, read_command, read_result
from weftwork.store.tunings import is_tuning, read_tuning

if TYPE_CHECKING:
    from weftwork.store.runs import Run

__all__ = ["WrittenReport", "report", "write_report"]

PAGE: Final = "page.html"  # in the folder of a sweep, a tuning or a search
_KINDS: Final = {".html": "page", ".htm": "page", ".json": "trace"}


def report(
    folders: Sequence[Path], *, out: Path | None, is_opened: bool, as_json: bool, prices: str | None = None
) -> None:
    """Write a page and print its path.

    Parameters
    ----------
    folders : of runs, which are compared where they are several; or the folder of a sweep, a tuning, a crossing, a
        search for plans or a design alone
    out : file to write; by default ``<run>.html`` beside the first run's folder, ``<first>-<second>.html`` of two,
        ``<first>-and-5-more.html`` of six, or ``page.html`` in the folder of the sweep or the search; a name that ends
        in ``.json`` is for a trace, any other suffix than ``.html`` is refused
    is_opened : show it in a browser
    as_json : one JSON object instead of words
    prices : name of a shipped price book, or the path of another, for the fabrics of several runs

    Raises
    ------
    ConfigError : one of them is no run or damaged, the file cannot be written, or its suffix is another
    """
    written = write_report(folders, out=out, prices=prices)
    if as_json:
        typer.echo(json.dumps(written.document(), indent=2))
    else:
        console().print(Text(f"{written.kind}: {written.file} ({amount(written.size_bytes, 'B')})"), soft_wrap=True)
        for run in written.runs:
            if not run.is_complete:
                console().print(Text(f"note: {run.path} is {run.status}; its numbers are partial"), soft_wrap=True)
    if is_opened:
        webbrowser.open(written.file.absolute().as_uri())


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenReport:
    """A page or a trace that was written.

    Attributes
    ----------
    kind : ``page`` or ``trace``
    file : the file
    size_bytes : its size
    runs : the runs that it is about; empty for the folder of a sweep and the like
    of, folder : kind and folder of such a folder; empty and None for runs
    """

    kind: str
    file: Path
    size_bytes: int
    runs: tuple[Run, ...] = ()
    of: str = ""
    folder: Path | None = None

    def document(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        found: dict[str, Any] = {self.kind: str(self.file), "size_bytes": self.size_bytes}
        if self.folder is not None:
            return {**found, self.of: str(self.folder)}
        return {**found, "runs": [str(run.path) for run in self.runs], "status": [run.status for run in self.runs]}


def write_report(folders: Sequence[Path], *, out: Path | None = None, prices: str | None = None) -> WrittenReport:
    """Write the page of a run, of compared runs, or of a folder of runs.

    Parameters
    ----------
    folders, out, prices : as in `report`

    Raises
    ------
    ConfigError : one of them is no run or damaged, the file cannot be written, or its suffix is another
    """
    from weftwork.report.page import run_page

    several = _several(folder_of(folders[0])) if len(folders) == 1 else None
    if several is not None:
        return _written_several(several, out)
    runs = open_runs(folders)
    if len(runs) == 1 and prices is not None:
        text = "is for runs that are compared; the price of one fabric is told by: weftwork cost"
        raise ConfigError("command line", [Mistake(path="--prices", text=text)])
    file = out if out is not None else _beside(runs)
    kind = _kind(file)
    text = _trace(runs) if kind == "trace" else run_page(runs[0]) if len(runs) == 1 else _comparison(runs, prices)
    size_bytes = _written(file, text)
    return WrittenReport(kind=kind, file=file, size_bytes=size_bytes, runs=tuple(runs))


def _kind(file: Path) -> str:
    """The kind of output by file name: a page or a trace."""
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
    """The kind of a folder of several runs; None for any other folder."""
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


def _written_several(one: _Several, out: Path | None) -> WrittenReport:
    """Write the page of a folder of several runs again, from its contents."""
    file = one.folder / PAGE if out is None else out
    if _kind(file) == "trace":
        raise ConfigError(str(one.folder), [Mistake(path="--out", text="a trace is of one run; wanted a .html file")])
    return WrittenReport(kind="page", file=file, size_bytes=_written(file, one.page()), of=one.kind, folder=one.folder)


def _beside(runs: list[Run]) -> Path:
    """A path beside the first run's folder, which is written once."""
    first, *others = [run.path.resolve() for run in runs]
    behind = f"-{others[0].name}" if len(others) == 1 else f"-and-{len(others)}-more" if others else ""
    if (first.parent / "provenance.json").is_file():  # a seed, inside the folder of several seeds
        return first.parent.parent / f"{first.parent.name}-{first.name}{behind}.html"
    return first.parent / f"{first.name}{behind}.html"


def _trace(runs: list[Run]) -> str:
    """The trace of one run, for Perfetto or Chrome's tracing."""
    from weftwork.report.trace import write_trace

    if len(runs) != 1:
        raise ConfigError(str(runs[1].path), [Mistake(path="--out", text="a trace is of one run; wanted a .html file")])
    written = StringIO()
    write_trace(runs[0], written)
    return written.getvalue()


def _comparison(runs: Sequence[Run], prices: str | None) -> str:
    from weftwork.report.page_comparison import comparison_page
    from weftwork.study.results.compare_runs import compare_runs

    return comparison_page(runs, compare_runs(runs, prices=prices))
