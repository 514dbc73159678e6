"""Apply the fixes of mistakes to a scenario, as a user would by ``--set``, until nothing is proposed any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.fix import SET, KeyPlace, MovedKey, SetKey, changes_of

Sets = dict[str, str]  # key to YAML text, as of ``--set``
Refused = Callable[[Sets], ConfigError | None]

ROUNDS = 8  # chosen: each stage of reading and preparing may have its say


def key_of(mistake: Mistake) -> str:
    return mistake.path.removeprefix(SET)


def value_at(text: str, sets: Sets, path: str) -> str | None:
    """The value of a key as YAML text, of the file or of a ``--set`` above or at it."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in sets:
            return _inside(yaml.safe_load(sets[head]), parts[length:])
    return _inside(yaml.safe_load(text), parts)


def _inside(tree: Any, parts: list[str]) -> str | None:
    for part in parts:
        if isinstance(tree, list) and part.isdecimal() and int(part) < len(tree):
            tree = tree[int(part)]
        elif isinstance(tree, dict):
            by_text = {str(key): value for key, value in tree.items()}
            if part not in by_text:
                return None
            tree = by_text[part]
        else:
            return None
    return yaml.safe_dump(tree, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()


def with_fix(text: str, sets: Sets, mistake: Mistake) -> Sets:
    """The settings with those of a fix."""
    assert mistake.fix is not None
    changed = dict(sets)
    for change in changes_of(mistake.fix, mistake.path):
        match change:
            case SetKey(path, value):
                changed.pop(path, None)
                changed[path] = value
            case MovedKey(path, to):
                value = value_at(text, changed, path)
                changed.pop(path, None)
                changed[path] = "null"
                if value is not None:
                    changed[to] = value
    return changed


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A fix that did not mend its mistake."""

    why: str
    mistake: Mistake
    after: tuple[Mistake, ...]

    def __str__(self) -> str:
        after = "".join(f"\n      {m}" for m in self.after)
        return f"{self.why}\n    {self.mistake}{after}"


def failures(text: str, refused: Refused) -> list[Failure]:
    """Fixes that fail: alone, or all together round by round.

    Parameters
    ----------
    text : of the scenario
    refused : the error of the scenario with these settings, or None where it is accepted
    """
    wrong: list[Failure] = []
    sets: Sets = {}
    seen: list[Sets] = [sets]
    for _ in range(ROUNDS):
        error = refused(sets)
        proposals = [] if error is None else [m for m in error.mistakes if m.fix is not None]
        if not proposals:
            return wrong
        wrong += (failure for mistake in proposals if (failure := _alone(text, sets, mistake, refused)) is not None)
        for mistake in proposals:
            sets = with_fix(text, sets, mistake)
        if sets in seen:
            return [*wrong, Failure(why="a circle of fixes", mistake=proposals[0], after=())]
        seen.append(sets)
    return [*wrong, Failure(why=f"no end after {ROUNDS} rounds", mistake=proposals[0], after=())]


def _alone(text: str, sets: Sets, mistake: Mistake, refused: Refused) -> Failure | None:
    """What is wrong with one fix: its mistake stays, or what it proposes is refused in turn."""
    assert mistake.fix is not None
    error = refused(with_fix(text, sets, mistake))
    if error is None:
        return None
    if any(key_of(m) == key_of(mistake) and m.text == mistake.text for m in error.mistakes):
        return Failure(why="the same mistake again", mistake=mistake, after=error.mistakes)
    values, keys = _proposed(mistake)
    for after in error.mistakes:
        key = key_of(after)
        if key in values or (key in keys and after.text.startswith(("unknown key", "means nothing"))):
            return Failure(why="what it proposes is refused", mistake=mistake, after=error.mistakes)
    return None


def _proposed(mistake: Mistake) -> tuple[set[str], set[str]]:
    """Keys whose value is proposed, and keys whose name alone is: their value may be another mistake."""
    assert mistake.fix is not None
    changes = changes_of(mistake.fix, mistake.path)
    values = {change.path for change in changes if isinstance(change, SetKey) and change.value != "null"}
    moved = {change.to for change in changes if isinstance(change, MovedKey)}
    return (values | moved, set()) if isinstance(mistake.fix, KeyPlace) else (values, moved)
