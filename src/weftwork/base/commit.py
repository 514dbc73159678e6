"""The commit of Weftwork that runs here: written by the build, or asked of git in a clone.

CMakeLists.txt writes ``commit.txt`` beside this file when a wheel or an sdist is built from a clone. In a clone itself
(``PYTHONPATH=src``) git is asked once, when the commit is first wanted and never at import.
Leaves out: releases; the version is in `weftwork.base.version`.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from weftwork.base.version import VERSION

__all__ = ["Commit", "commit", "version_text"]

_FILE: Final = Path(__file__).with_name("commit.txt")
_DIRTY: Final = "-dirty"  # as `git describe --dirty` says it
_PATIENCE_S: Final = 10  # chosen: git answers in 0.1 s; on a file system that hangs the commit stays unknown
_SHOWN: Final = 8  # chosen: as many letters as git itself shows in a large repository


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A commit, and whether tracked files had other content than the commit has.

    Attributes
    ----------
    name : hash, 40 hexadecimal digits
    date : of the commit, YYYY-MM-DD
    """

    name: str
    date: str
    is_dirty: bool

    @classmethod
    def of(cls, text: str) -> Commit | None:
        """Read ``HASH DATE`` or ``HASH-dirty DATE``; None for anything else.

        Examples
        --------
        >>> Commit.of("ce97650c" + 32 * "0" + "-dirty 2026-11-27").is_dirty
        True
        """
        described, _, date = text.strip().partition(" ")
        name = described.removesuffix(_DIRTY)
        if len(name) != 40 or not set(name) <= set("0123456789abcdef") or not date:
            return None
        return cls(name=name, date=date, is_dirty=name != described)

    @property
    def described(self) -> str:
        """The hash, with ``-dirty`` behind it where files were changed."""
        return self.name + (_DIRTY if self.is_dirty else "")


@cache
def commit() -> Commit | None:
    """The commit of this Weftwork; None where neither the build nor git knew it."""
    clone = _FILE.parents[3]
    if _FILE.parents[2].name == "src" and (clone / ".git").exists():
        return _asked(clone)
    try:
        return Commit.of(_FILE.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError):
        return None


def version_text() -> str:
    """The version with its commit, such as ``0.1.0 (commit ce97650c, 2026-11-27)``."""
    known = commit()
    if known is None:
        return VERSION
    changed = " with local changes" if known.is_dirty else ""
    return f"{VERSION} (commit {known.name[:_SHOWN]}{changed}, {known.date})"


def _asked(clone: Path) -> Commit | None:
    """Ask git for the commit of a clone; None where there is no git, or it refuses."""
    git = shutil.which("git")
    if git is None:
        return None
    words = []
    for question in (
        ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"),
        ("log", "-1", "--format=%cs"),
    ):
        try:
            answer = subprocess.run(  # noqa: S603 - git itself, with arguments of ours
                [git, "--no-optional-locks", "-C", str(clone), *question],
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=_PATIENCE_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        words.append(answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else "")
    return Commit.of(" ".join(words))
