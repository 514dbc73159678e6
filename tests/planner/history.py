"""What git says of the tree that is checked: its files, its place in history, and what changed since a base."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BASE_FILE = ".ci/base"
CHECKS_FILE = ".ci/run"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """The commit that is checked.

    Parameters
    ----------
    place : of the commit among the first parents of its history, from 0; moves by one from commit to commit
    changed : files that differ from the base, those of the working tree included; None where the base is not known
    remark : what could not be known, in a sentence; empty where all was known
    functions : of `.ci/run`, whose text differs from that of the base
    """

    place: int
    changed: frozenset[str] | None
    remark: str = ""
    functions: frozenset[str] = frozenset()


def tracked_files(root: Path) -> list[str]:
    """Files that git tracks, or all files of a tree without git."""
    names = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if names is not None:
        return sorted(name for name in names.split("\0") if name and (root / name).is_file())
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def change_of(root: Path, base: str | None) -> Change:
    """Compare the tree with its base.

    Parameters
    ----------
    root : of the repository
    base : a commit; None: that of `.ci/base`
    """
    count = _git(root, "rev-list", "--count", "--first-parent", "HEAD")
    if count is None:
        return Change(place=0, changed=None, remark="there is no git history: the first turn is run")
    if _git(root, "rev-parse", "--is-shallow-repository") == "true":
        head = _git(root, "rev-parse", "HEAD") or "0"
        return Change(
            place=int(head, 16),
            changed=None,
            remark="the clone is shallow: the commit's name draws the turn, and what the change touches is not known",
        )
    place = int(count)
    file = root / BASE_FILE
    if base is None and file.is_file():
        base = file.read_text(encoding="utf-8").split("#")[0].strip() or None
    if base is None:
        remark = f"no base is given and {BASE_FILE} names none: the turn alone decides"
        return Change(place=place, changed=None, remark=remark)
    differing = _git(root, "diff", "--name-only", "-z", f"{base}...HEAD") if _is_commit(root, base) else None
    if differing is None:
        return Change(
            place=place, changed=None, remark=f"this clone does not have the base {base}: the turn alone decides"
        )
    pending = _git(root, "diff", "--name-only", "-z", "HEAD") or ""
    fresh = _git(root, "ls-files", "-z", "--others", "--exclude-standard") or ""
    names = f"{differing}\0{pending}\0{fresh}".split("\0")
    changed = frozenset(name for name in names if name)
    functions = _changed_functions(root, base) if CHECKS_FILE in changed else frozenset()
    return Change(place=place, changed=changed, functions=functions)


def _changed_functions(root: Path, base: str) -> frozenset[str]:
    """Functions of the checks whose text is not that of the base."""
    before = functions_of(_git(root, "show", f"{base}:{CHECKS_FILE}") or "")
    now = functions_of((root / CHECKS_FILE).read_text(encoding="utf-8"))
    return frozenset(name for name, text in now.items() if before.get(name) != text)


def functions_of(text: str) -> dict[str, str]:
    """The functions of a shell script by name, from ``name() {`` to the ``}`` at the start of a line."""
    return {match[1]: match[0] for match in re.finditer(r"^(\w+)\(\) \{\n.*?^\}", text, re.MULTILINE | re.DOTALL)}


def _is_commit(root: Path, name: str) -> bool:
    return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it refuses or is missing."""
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip("\n") if done.returncode == 0 else None
