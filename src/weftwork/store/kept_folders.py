"""The folders that commands have written below a folder such as ``runs``: which there are, and which may go.

A folder counts where its own documents say so; a leftover is what a run that was killed had not finished. Links are
neither listed nor followed.
Leaves out: what a folder says, which `weftwork.report` tells.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.whole_file import temporary_beside
from weftwork.spec.endings import CUT_BY_HAND, STATUSES, WHOLE
from weftwork.store.damage import read_json
from weftwork.store.folder_lock import is_held

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PRUNABLE_STATUSES",
    "STATUSES_OF_FOLDERS",
    "FolderKind",
    "KeptFolder",
    "file_sizes",
    "folder_at",
    "folders_in",
    "prunable",
    "remove",
]

FolderKind = Literal["run", "seeds", "sweep", "tuning", "crossing", "plan", "design", "leftover"]
_RUNNING: Final = "running"
_DAMAGED: Final = "damaged"
_UNFINISHED: Final = "unfinished"
STATUSES_OF_FOLDERS: Final = (*STATUSES, _RUNNING, _DAMAGED, _UNFINISHED)
PRUNABLE_STATUSES: Final = tuple(status for status in STATUSES_OF_FOLDERS if status != _RUNNING)
_SEVERAL: Final[dict[str, FolderKind]] = {
    "sweep": "sweep",
    "tune": "tuning",
    "cross": "crossing",
    "design": "design",
}
_PLAN_KEYS: Final = frozenset({"name", "best", "front", "cloud"})
_RUN_FILES: Final = ("provenance.json", "summary.json", "scenario.yaml")
_LEFTOVER: Final = re.compile(r"\..+-[0-9a-f]{8}\.unfinished")  # as `weftwork.base.whole_file.temporary_beside` has it


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFolder:
    """A folder that a command has written.

    Attributes
    ----------
    path : where it is
    kind : what it holds; ``seeds``: a run of several seeds
    name : of the run or the scenario; empty for a leftover
    status : one of `STATUSES_OF_FOLDERS`
    when : when it was begun, as far as is known
    size_bytes : of all its files
    is_named : whether the run was given a name
    """

    path: Path
    kind: FolderKind
    name: str
    status: str
    when: datetime
    size_bytes: int
    is_named: bool = False

    @property
    def is_running(self) -> bool:
        """Whether a process writes into it."""
        return self.status == _RUNNING

    @property
    def is_damaged(self) -> bool:
        """Whether its files are not those of a whole run."""
        return self.status == _DAMAGED


def folders_in(parent: Path) -> list[KeptFolder]:
    """List the folders of commands in a folder, the newest first.

    Raises
    ------
    ConfigError : it is not there, cannot be read, or is such a folder itself
    """
    if not parent.is_dir():
        raise _wrong(parent, "there is no such folder")
    own = folder_at(parent)
    if own is not None:
        raise _wrong(parent, f"is a {own.kind} itself; wanted the folder around it, {parent.absolute().parent}")
    try:
        inside = [parent / entry.name for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise _wrong(parent, f"cannot be read: {error.strerror}") from error
    found = [one for one in map(folder_at, inside) if one is not None]
    return sorted(found, key=lambda one: (one.when, one.path.name), reverse=True)


def folder_at(path: Path) -> KeptFolder | None:
    """Say what a folder holds; None where no command of Weftwork has written it."""
    if _LEFTOVER.fullmatch(path.name):
        status = _RUNNING if is_held(path) else _UNFINISHED
        return _folder(path, "leftover", "", status, path)
    for word, kind in _SEVERAL.items():
        document = _document(path / f"{word}.json")
        if document is not None and isinstance(document.get("format"), int) and "digest" in document:
            ended = WHOLE if (path / "result.json").is_file() else CUT_BY_HAND
            status = _RUNNING if is_held(path / f"{word}.lock") else ended
            return _folder(path, kind, str(document.get("name", kind)), status, path / f"{word}.json")
    document = _document(path / "plan.json")
    if document is not None and document.keys() >= _PLAN_KEYS:
        return _folder(path, "plan", str(document["name"]), WHOLE, path / "plan.json")
    return _run_at(path)


def _run_at(path: Path) -> KeptFolder | None:
    if not all(os.path.lexists(path / name) for name in _RUN_FILES):
        return None
    provenance, summary = _document(path / "provenance.json"), _document(path / "summary.json")
    if provenance is None or summary is None or provenance.get("status") not in STATUSES:
        return _folder(path, "run", path.name, _DAMAGED, path)
    about = summary.get("about")
    name = about.get("name") if isinstance(about, dict) else None
    return _folder(
        path,
        "seeds" if "seeds" in provenance else "run",
        str(path.name if name is None else name),
        _RUNNING if is_held(path) else str(provenance["status"]),
        path / "provenance.json",
        started=provenance.get("started"),
        is_named="name" in provenance,
    )


def _folder(
    path: Path,
    kind: FolderKind,
    name: str,
    status: str,
    dated: Path,
    *,
    started: object = None,
    is_named: bool = False,
) -> KeptFolder:
    when = datetime.fromtimestamp(dated.lstat().st_mtime, UTC)
    if isinstance(started, str):
        try:
            read = datetime.fromisoformat(started)
        except ValueError:
            pass
        else:
            when = read if read.tzinfo is not None else when
    size_bytes = sum(size for _, size in file_sizes(path))
    return KeptFolder(
        path=path, kind=kind, name=name, status=status, when=when, size_bytes=size_bytes, is_named=is_named
    )


def file_sizes(folder: Path) -> list[tuple[str, int]]:
    """Every file below a folder with its size in bytes, by path within the folder; links are not followed."""
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            try:
                found.append((str(file.relative_to(folder)), file.lstat().st_size))
            except FileNotFoundError:  # a run that is under way has taken it away
                continue
    return sorted(found)


def prunable(
    folders: Sequence[KeptFolder],
    *,
    keep: int | None = None,
    older_than: timedelta | None = None,
    status: str | None = None,
    larger_than_bytes: int | None = None,
    has_named: bool = False,
    now: datetime | None = None,
) -> list[KeptFolder]:
    """Choose the folders that may go: leftovers of killed runs, and those that fulfil every condition that is given.

    A folder into which a process writes never goes.

    Parameters
    ----------
    folders : the newest first
    keep : how many of the newest stay; of named runs and leftovers none counts
    older_than : how long ago a folder was begun at least
    status : of a folder
    larger_than_bytes : of all its files
    has_named : whether runs that were given a name may go too
    now : by default the time of the clock

    Returns
    -------
    without conditions, leftovers alone
    """
    before = None if older_than is None else (datetime.now(UTC) if now is None else now) - older_than
    is_asked = not (keep is None and before is None and status is None and larger_than_bytes is None)
    free = [one for one in folders if one.kind != "leftover" and (has_named or not one.is_named)]
    kept = set() if keep is None else {one.path for one in free[:keep]}
    chosen = {
        one.path
        for one in free
        if is_asked
        and one.path not in kept
        and (before is None or one.when < before)
        and (status is None or one.status == status)
        and (larger_than_bytes is None or one.size_bytes > larger_than_bytes)
    }
    return [one for one in folders if not one.is_running and (one.kind == "leftover" or one.path in chosen)]


def remove(folder: KeptFolder) -> None:
    """Delete a folder, after another look at it; its name is free at once, whatever ends the deletion.

    Raises
    ------
    ConfigError : it is no longer what was listed, or it cannot be deleted
    """
    found = None if folder.path.is_symlink() or not folder.path.is_dir() else folder_at(folder.path)
    if found is None or found.kind != folder.kind or found.is_running:
        raise _wrong(folder.path, "has changed since it was listed, and stays")
    going = folder.path
    try:
        if folder.kind != "leftover":
            going = folder.path.rename(temporary_beside(folder.path, folder.path.name[:60]))
        shutil.rmtree(going)
    except OSError as error:
        raise _wrong(going, f"cannot be deleted: {error.strerror}") from error


def _document(file: Path) -> dict[str, Any] | None:
    """A JSON object; None where there is none."""
    if not file.is_file():
        return None
    try:
        return read_json(file)
    except ConfigError:
        return None


def _wrong(path: Path, text: str) -> ConfigError:
    return ConfigError(str(path), [Mistake(path="folder", text=text)])
