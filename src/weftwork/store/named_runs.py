"""Runs by their names: how a folder is called for a run, and which folder in ``runs`` a name means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from weftwork.base.errors import ConfigError, Mistake

__all__ = ["RUNS_FOLDER", "folder_of", "name_in", "slug_of"]

RUNS_FOLDER: Final = Path("runs")
_SLUG: Final = re.compile(r"[^a-z0-9.]+")
_TIME: Final = r"-[0-9]{8}-[0-9]{6}(-[0-9]+)?"
_SHOWN: Final = 5  # chosen: a user picks one of a few


def slug_of(name: str) -> str:
    """The name of a run as a folder has it; other characters than letters, digits and dots become hyphens."""
    return _SLUG.sub("-", name.lower()).strip("-.")[:60] or "run"


def name_in(folder: Path) -> str | None:
    """The name that a run was given, from its provenance; None without one."""
    try:
        known = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no run, or a damaged one, which whoever opens it reports
        return None
    name = known.get("name") if isinstance(known, dict) else None
    return name if isinstance(name, str) else None


def folder_of(given: str | Path) -> Path:
    """The folder that a path or a name means: the path where it is there, else the one run of that name in ``runs``.

    Parameters
    ----------
    given : path of a folder, or a name such as ``my-run`` of ``runs/my-run-20260102-120000``

    Returns
    -------
    the folder; the path as it is where there is no run of that name

    Raises
    ------
    ConfigError : several runs have the name
    """
    path = Path(given)
    if len(path.parts) != 1 or path.exists() or path.is_symlink() or not RUNS_FOLDER.is_dir():
        return path
    if (RUNS_FOLDER / path).is_dir():
        return RUNS_FOLDER / path
    wanted = re.compile(re.escape(slug_of(path.name)) + _TIME)
    folders = [one for one in RUNS_FOLDER.iterdir() if one.is_dir() and not one.is_symlink()]
    found = [one for one in folders if wanted.fullmatch(one.name) or name_in(one) == path.name]
    found.sort(reverse=True)
    if len(found) > 1:
        more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        names = ", ".join(str(one) for one in found[:_SHOWN])
        text = f"{len(found):,} runs have this name: {names}{more}; name one of these folders"
        raise ConfigError(str(given), [Mistake(path="run", text=text, fix=str(found[0]))])
    return found[0] if found else path
