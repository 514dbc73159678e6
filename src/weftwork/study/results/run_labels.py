"""Distinct names of compared runs.

They are their own names, different keys, or folders.

Leaves out: colours and numbers, which pages and tables add.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["distinct", "labels_of_group", "value_words"]

_MOST_CHARACTERS: Final = 40  # chosen: room that a legend and a table have for a name
_MOST_KEYS: Final = 3  # chosen: with more values a label is no name any more
_STAMP: Final = re.compile(r"-\d{8}-\d{6}(-\d+)?$")  # of a folder that nobody named
_DERIVED: Final = {  # keys that follow from another one
    "transport.path_selection": "transport.load_balancing",
    "transport.port_selection": "transport.load_balancing",
    "fabric.hosts": "fabric.gpus",
}


def labels_of_group(
    names: Sequence[str], folders: Sequence[str], values: Sequence[Mapping[str, str]]
) -> tuple[str, ...]:
    """A name for each run of a group.

    It is its own name if all differ, else a key, a folder, or several keys.

    Parameters
    ----------
    names : of the scenarios
    folders : names of the run folders
    values : of each run, the text of every key that differs within the group, without the name

    Examples
    --------
    >>> labels_of_group(["a", "a"], ["run-1", "run-2"], [{"fabric.radix": "4"}, {"fabric.radix": "8"}])
    ('radix 4', 'radix 8')
    >>> labels_of_group(["a", "a"], ["run-1", "run-2"], [{}, {}])
    ('run-1', 'run-2')
    """
    if len(names) == 1 or _differ(names):
        return distinct(names)
    keys = [key for key in (values[0] if values else {}) if _DERIVED.get(key) not in values[0]]
    by_keys = [", ".join(value_words(key, one[key]) for key in keys) for one in values]
    if _differ(names := list(by_keys)) and len(keys) == 1:
        return distinct(by_keys)
    if _differ(folders) and not any(_STAMP.search(one) for one in folders):
        return distinct(folders)
    return distinct(by_keys if _differ(by_keys) and len(keys) <= _MOST_KEYS else folders)


def value_words(key: str, value: str) -> str:
    """A key and its value in words, without sections.

    Examples
    --------
    >>> value_words("transport.congestion_control", "dcqcn")
    'congestion control dcqcn'
    """
    return f"{key.rpartition('.')[2].replace('_', ' ')} {value}"


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The same names, shortened and numbered if repeated.

    Examples
    --------
    >>> distinct(["a", "a", "b"])
    ('a', 'a (2)', 'b')
    """
    taken: set[str] = set()
    counts: Counter[str] = Counter()
    found = []
    for name in map(_shortened, names):
        counts[name] += 1
        label = name
        while label in taken:
            label = f"{name} ({counts[name]})"
            counts[name] += label in taken
        taken.add(label)
        found.append(label)
    return tuple(found)


def _differ(names: Sequence[str]) -> bool:
    return len({_shortened(name) for name in names}) == len(names)


def _shortened(name: str) -> str:
    text = " ".join(name.split()) or "run"
    if len(text) <= _MOST_CHARACTERS:
        return text
    cut = text[: _MOST_CHARACTERS - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[_MOST_CHARACTERS // 2 :] else cut}\u2026"
