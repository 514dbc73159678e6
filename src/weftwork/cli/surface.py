"""What `weftwork.compare` and `weftwork.report` do: what the commands of these names do, with runs in place of folders.

Decision: they are on this floor. A page of several runs needs `weftwork.study`, which compares them, and
`weftwork.report`, which draws it; these two do not know each other, and the command line is where both meet. So a
program and a user get the same page from the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from weftwork.base.errors import UsageError
from weftwork.cli.compare import open_runs
from weftwork.cli.report import write_report
from weftwork.store.runs import Run
from weftwork.study.results.compare_runs import compare_runs

if TYPE_CHECKING:
    from weftwork.spec.comparison import RunComparison

__all__ = ["compare", "report"]


def compare(*runs: Run | str | Path, prices: str | None = None) -> RunComparison:
    """Compare runs: times, fabrics and prices, and what differs in their scenarios and numbers.

    Parameters
    ----------
    runs : two or more, each a run or its folder; others of a workload are measured against its first with a time
    prices : name of a shipped price book, or the path of another

    Raises
    ------
    ConfigError : fewer than two, some are no runs, or the price book is wrong; with all mistakes
    UsageError : an argument is neither a run nor a path
    """
    return compare_runs(open_runs([_folder(one) for one in runs], least=2), prices=prices)


def report(
    runs: Run | str | Path | Iterable[Run | str | Path], path: str | Path | None = None, *, prices: str | None = None
) -> Path:
    """Write a page about a run, or about several that are compared.

    Parameters
    ----------
    runs : a run or its folder, or several of them; or the folder of a sweep, a tuning, a crossing, a search for plans
        or a design
    path : file to write; by default ``<run>.html`` beside the first run's folder. A name that ends in ``.json`` is for
        a trace of one run, for Perfetto
    prices : name of a shipped price book, or the path of another, for the fabrics of several runs

    Returns
    -------
    the file

    Raises
    ------
    ConfigError : one of them is no run or damaged, or the file cannot be written
    UsageError : an argument has another type, or there is no run
    """
    given = [runs] if isinstance(runs, (Run, str, Path)) or not isinstance(runs, Iterable) else list(runs)
    folders = [_folder(one) for one in given]
    if not folders:
        raise UsageError("found no run, wanted one or more")
    if path is not None and not isinstance(path, (str, Path)):
        raise UsageError(f"found path={ascii(path)[:60]}, wanted a path or None")
    return write_report(folders, out=None if path is None else Path(path), prices=prices).file


def _folder(one: object) -> Path:
    if isinstance(one, Run):
        return one.path
    if isinstance(one, (str, Path)):
        return Path(one)
    raise UsageError(f"found {ascii(one)[:60]}, wanted a run or its folder")
