"""``weftwork runs``: list, show and delete run folders."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from weftwork.base.errors import ConfigError, Mistake, WeftworkError
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.base.units import SIZE, UnitError, parse_quantity
from weftwork.cli.console import console
from weftwork.report.crossing_words import crossing_verdict
from weftwork.report.design_folder import open_design
from weftwork.report.design_words import design_verdict
from weftwork.report.plan_words import open_plan, plan_verdict
from weftwork.report.sweep_words import sweep_verdict
from weftwork.report.three_lines import three_lines
from weftwork.report.tune_words import tune_verdict
from weftwork.report.words import amount
from weftwork.spec.verdicts import verdict_text
from weftwork.store.crossings import read_crossing
from weftwork.store.kept_folders import PRUNABLE_STATUSES, file_sizes, folder_at, folders_in, prunable, remove
from weftwork.store.named_runs import RUNS_FOLDER, folder_of
from weftwork.store.runs import open_run
from weftwork.store.sweeps import read_result
from weftwork.store.tunings import read_tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weftwork.store.kept_folders import FolderKind, KeptFolder

__all__ = ["list_runs", "prune_runs", "show_run"]

_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(min|h|d|w)")
_AGES: Final = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_VERDICTS: Final[dict[FolderKind, Callable[[Path], list[str]]]] = {
    "sweep": lambda folder: sweep_verdict(read_result(folder)),
    "tuning": lambda folder: tune_verdict(read_tuning(folder)),
    "crossing": lambda folder: crossing_verdict(read_crossing(folder)),
    "plan": lambda folder: plan_verdict(open_plan(folder)[0]),
    "design": lambda folder: design_verdict(open_design(folder)[0]),
}


def list_runs(folder: Path | None, *, as_json: bool) -> None:
    """Print a table of run folders, the newest first.

    Parameters
    ----------
    folder : that holds them; None: ``runs``, which need not be there
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : no such folder, or it is a run itself
    """
    parent = RUNS_FOLDER if folder is None else folder
    found = [] if folder is None and not parent.exists() else folders_in(parent)
    if as_json:
        typer.echo(
            json.dumps({"folder": str(parent), "runs": [_document(one, _answer(one)) for one in found]}, indent=2)
        )
        return
    if not found:
        console().print(
            Text(verdict_text("runs.none", folder=str(parent), looked_at=_looked_at(parent))), soft_wrap=True
        )
        return
    console().print(_table(found))
    total = amount(sum(one.size_bytes for one in found), "B")
    console().print(Text(f"{plural(len(found), 'folder')} in {parent}, {total}"), soft_wrap=True)


def _looked_at(parent: Path) -> str:
    """The entries of a folder without runs, in words."""
    if not parent.exists():
        return "there is no such folder"
    entries = sum(1 for _ in parent.iterdir())
    return f"{plural(entries, 'entry', 'entries')}, none of them a folder of a run"


def show_run(given: Path, *, has_sources: bool, as_json: bool) -> None:
    """Print the answer of a run again, and its files with their sizes.

    Parameters
    ----------
    given : the folder, or the name of a run in ``runs``
    has_sources : whether every caveat is written out
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : no such folder, no folder of Weftwork, damaged, or not ended
    """
    from weftwork.cli.run import print_run, run_document  # here, since a list needs no engine

    path = folder_of(given)
    folder = folder_at(path) if path.is_dir() else None
    if folder is None or folder.kind in {"run", "seeds"}:
        result = open_run(path)
        if as_json:
            typer.echo(json.dumps({**run_document(result), **_files(result.path)}, indent=2))
            return
        print_run(result, has_sources=has_sources)
    elif folder.kind == "leftover":
        raise _wrong(str(path), "run", "is what a killed run has left; weftwork runs prune --yes deletes it")
    else:
        said = _VERDICTS[folder.kind](path)
        if as_json:
            typer.echo(json.dumps({**_document(folder, said[0]), "said": said, **_files(path)}, indent=2))
            return
        for text in said:
            console().print(Text(text), soft_wrap=True)
    _print_files(path)


def prune_runs(
    folder: Path | None,
    *,
    keep: int | None,
    older_than: str | None,
    status: str | None,
    larger_than: str | None,
    has_named: bool,
    is_done: bool,
    as_json: bool,
) -> None:
    """Delete folders that fulfil all conditions, or list them.

    Parameters
    ----------
    folder : that holds them; None: ``runs``, which need not be there
    keep : how many of the newest stay
    older_than : such as ``30d``
    status : of a folder, such as ``interrupted``
    larger_than : such as ``1GB``
    has_named : whether runs that were given a name may go too
    is_done : whether the folders are deleted
    as_json : one JSON object instead of words

    Raises
    ------
    ConfigError : with all wrong conditions; no such folder, or one of a sweep; a folder cannot be deleted
    """
    asked = _conditions(older_than, status, larger_than)
    parent = RUNS_FOLDER if folder is None else folder
    around = folder_at(parent.absolute().parent)
    if around is not None:
        raise _wrong(str(parent), "folder", f"belongs to a {around.kind}, whose runs go with it: delete {around.path}")
    found = [] if folder is None and not parent.exists() else folders_in(parent)
    going = prunable(
        found,
        keep=keep,
        older_than=asked.older_than,
        status=status,
        larger_than_bytes=asked.larger_than_bytes,
        has_named=has_named,
    )
    if is_done:
        for one in going:
            remove(one)
    freed = sum(one.size_bytes for one in going)
    if as_json:
        document = {
            "folder": str(parent),
            "is_deleted": is_done,
            "freed_bytes": freed,
            "runs": [_document(one, None) for one in going],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    if not going:
        kept = plural(len(found), "folder of runs is kept", "folders of runs are kept")
        text = verdict_text(
            "runs.nothing-to-delete", folder=str(parent), looked_at=kept if found else _looked_at(parent)
        )
        console().print(Text(text), soft_wrap=True)
        return
    console().print(_table(going, has_answers=False))
    what = f"{plural(len(going), 'folder')}, {amount(freed, 'B')}"
    text = f"Deleted {what}." if is_done else f"Would delete {what}. Give --yes to delete."
    console().print(Text(text), soft_wrap=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Conditions:
    older_than: timedelta | None
    larger_than_bytes: int | None


def _conditions(older_than: str | None, status: str | None, larger_than: str | None) -> _Conditions:
    """Read the conditions that are text; all mistakes at once."""
    mistakes = []
    age = None if older_than is None else _AGE.fullmatch(older_than.strip())
    span = None
    if age is not None:
        try:
            span = timedelta(**{_AGES[age[2]]: float(age[1])})
        except OverflowError:
            age = None
    if older_than is not None and age is None:
        text = f"found '{older_than}', wanted a time such as 30d, with min, h, d or w"
        mistakes.append(Mistake(path="--older-than", text=text))
    choices = PRUNABLE_STATUSES
    if status is not None and status not in choices:
        text = f"found '{status}', wanted {', '.join(choices[:-1])} or {choices[-1]}"
        mistakes.append(Mistake(path="--status", text=text, fix=nearest(status, choices)))
    size = None
    if larger_than is not None:
        try:
            size = int(parse_quantity(SIZE, larger_than))
        except UnitError as error:
            mistakes.append(Mistake(path="--larger-than", text=error.text, fix=error.fix))
    if mistakes:
        raise ConfigError("weftwork runs prune", mistakes)
    return _Conditions(older_than=span, larger_than_bytes=size)


def _answer(folder: KeptFolder) -> str | None:
    """The main answer of a folder in a few words.

    None if it has none, or is damaged.
    """
    if folder.is_damaged or folder.kind == "leftover":
        return None
    try:
        if folder.kind in {"run", "seeds"}:
            return three_lines(open_run(folder.path))[0] or None
        return next(iter(_VERDICTS[folder.kind](folder.path)), None)
    except WeftworkError:  # not ended, or damaged: `weftwork runs show` says what is wrong
        return None


def _table(folders: Sequence[KeptFolder], *, has_answers: bool = True) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("name", "folder", "kind", "status", *(["answer"] if has_answers else []), "when"):
        table.add_column(name, overflow="fold", no_wrap=name not in {"name", "answer"})
    table.add_column("size", justify="right", no_wrap=True)
    for one in folders:
        when = one.when.astimezone().strftime("%Y-%m-%d %H:%M")
        answer = [_answer(one) or "-"] if has_answers else []
        words = [one.name or "-", one.path.name, one.kind, one.status, *answer, when, amount(one.size_bytes, "B")]
        table.add_row(*(Text(word) for word in words))
    return table


def _document(folder: KeptFolder, answer: str | None) -> dict[str, Any]:
    return {
        "name": folder.name,
        "path": str(folder.path),
        "kind": folder.kind,
        "status": folder.status,
        "answer": answer,
        "when": folder.when.isoformat(timespec="seconds"),
        "size_bytes": folder.size_bytes,
        "is_named": folder.is_named,
    }


def _files(folder: Path) -> dict[str, Any]:
    return {"files": [{"file": name, "size_bytes": size} for name, size in file_sizes(folder)]}


def _print_files(folder: Path) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    sizes = file_sizes(folder)
    for name, size_bytes in sizes:
        table.add_row(Text(name), Text(amount(size_bytes, "B")))
    out = console()
    out.print()
    out.print(table)
    out.print(Text(f"{plural(len(sizes), 'file')}, {amount(sum(size for _, size in sizes), 'B')}"), soft_wrap=True)


def _wrong(source: str, path: str, text: str) -> ConfigError:
    return ConfigError(source, [Mistake(path=path, text=text)])
