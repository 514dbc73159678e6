"""What mends a mistake, as a fact: the sentence of the mistake and the changes of the input are both made from it.

A plain text is the right value of the key that is wrong. The records below say what else may change: the name of the
key, its place, one item of its list, or other keys.
Leaves out: whether a change leads to a run, which the law of fixes shows (`tests/laws/test_fixes.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Change",
    "EntryName",
    "Fix",
    "ItemValue",
    "KeyName",
    "KeyPlace",
    "MovedKey",
    "OtherKey",
    "SetKey",
    "Settings",
    "changes_of",
    "document",
]

SET = "--set "  # before the path of a mistake in a value of the command line


@dataclass(frozen=True, slots=True)
class KeyName:
    """The key has another name in the same section; its value stays.

    Parameters
    ----------
    name : the right one
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """The key belongs to another section; its value stays.

    Parameters
    ----------
    path : the right one, from the top of the file
    """

    path: str

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class OtherKey:
    """The key was meant as the value of another key of its section, and goes.

    Parameters
    ----------
    key, value : of the other one
    """

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


@dataclass(frozen=True, slots=True)
class ItemValue:
    """The right value of a part of the key: an item of its list, or an entry of its mapping.

    Parameters
    ----------
    item : number of the item, counted from 0, or key of the entry
    value : the right one
    """

    item: int | str
    value: str

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class EntryName:
    """An entry of the key, which is a mapping, has another name; its value stays.

    Parameters
    ----------
    entry : the wrong name
    name : the right one
    """

    entry: str
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of keys that mend the mistake together.

    Parameters
    ----------
    values : pairs of a path from the top of the file and its value, as ``--set`` takes them; ``null`` removes a key
    """

    values: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return " ".join(f"--set {path}={value}" for path, value in self.values)


Fix: TypeAlias = str | KeyName | KeyPlace | OtherKey | ItemValue | EntryName | Settings


@dataclass(frozen=True, slots=True)
class SetKey:
    """A key takes a value; ``null`` removes it."""

    path: str
    value: str


@dataclass(frozen=True, slots=True)
class MovedKey:
    """A key goes to another path and keeps its value."""

    path: str
    to: str


Change: TypeAlias = SetKey | MovedKey


def changes_of(fix: Fix, path: str) -> tuple[Change, ...]:
    """Return what a fix changes in the input.

    Parameters
    ----------
    fix : of a mistake
    path : of the mistake

    Examples
    --------
    >>> changes_of("104", "fabric.gpus")
    (SetKey(path='fabric.gpus', value='104'),)
    >>> changes_of(KeyName("seed"), "fabric.hash.4.sede")
    (MovedKey(path='fabric.hash.4.sede', to='fabric.hash.4.seed'),)
    >>> changes_of(OtherKey("event", "slow"), "faults.0.slow")
    (SetKey(path='faults.0.slow', value='null'), SetKey(path='faults.0.event', value='slow'))
    """
    path = path.removeprefix(SET)
    section = path.rpartition(".")[0]

    def beside(key: str) -> str:
        return f"{section}.{key}" if section else key

    match fix:
        case str():
            return (SetKey(path, fix),)
        case KeyName(name):
            return (MovedKey(path, beside(name)),)
        case KeyPlace(place):
            return (MovedKey(path, place),)
        case OtherKey(key, value):
            return SetKey(path, "null"), SetKey(beside(key), value)
        case ItemValue(item, value):
            return (SetKey(f"{path}.{item}", value),)
        case EntryName(entry, name):
            return (MovedKey(f"{path}.{entry}", f"{path}.{name}"),)
        case Settings(values):
            return tuple(SetKey(key, value) for key, value in values)


def document(fix: Fix | None, path: str) -> list[dict[str, str]]:
    """Return the changes of a fix for JSON: what to set, and what to move."""
    rows = []
    for change in () if fix is None else changes_of(fix, path):
        match change:
            case SetKey(key, value):
                rows.append({"set": key, "value": value})
            case MovedKey(key, to):
                rows.append({"move": key, "to": to})
    return rows
