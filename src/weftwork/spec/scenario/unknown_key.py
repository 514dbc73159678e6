"""Guess the meaning of a key that its section does not have.

The place decides: a misspelling is looked for in the section itself; then a word that one of its keys takes, such as
``slow`` for ``event: slow``; then a misspelling in the sections around and below; then the very same key elsewhere in
the scenario. A key that is misspelled and in the wrong section is not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weftwork.base.fix import Fix, KeyName, KeyPlace, OtherKey
from weftwork.base.nearest import nearest
from weftwork.spec.workloads import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = ["KnownKeys", "unknown_key"]


def _anything(path: str, place: str, value: object) -> bool:  # noqa: ARG001 - where no rows are known
    return True


def _nothing(key: str) -> str | None:  # noqa: ARG001 - where no conditions are known
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownKeys:
    """All keys of a scenario, to tell a user where a key belongs.

    Parameters
    ----------
    words : all keys by path, items of lists not counted, with the words that each takes
    lists : paths whose values are lists of sections
    suits : whether a key takes a value of the file: by its path without and with the items of lists
    """

    words: Mapping[str, Collection[str]] = field(default_factory=dict)
    lists: Collection[str] = ()
    suits: Callable[[str, str, object], bool] = _anything


def unknown_key(  # noqa: PLR0913 - the key, its place, and what stands around it by name
    key: str,
    path: str,
    here: Iterable[str],
    known: KnownKeys,
    *,
    others: Iterable[str] = (),
    given: Collection[str] = (),
    beside: Collection[str] = (),
    value: object = None,
    meaningless: Callable[[str], str | None] = _nothing,
) -> tuple[str, Fix | None]:
    """Explain an unknown key, with the nearest fix.

    Parameters
    ----------
    key : as the user wrote it
    path : of it in the scenario, such as ``faults.0.slow``
    here : keys of its section
    known : all keys of a scenario
    others : keys that the section has with another choice than the user's
    given : paths that the user's file has
    beside : keys that stand in the section
    value : of the key in the file; it is proposed for another place only where that place takes it
    meaningless : why a key of the section means nothing beside the others, or None

    Returns
    -------
    the text of the mistake, and its fix or None

    Examples
    --------
    >>> keys = KnownKeys(words={"faults.event": ["down", "slow"], "traffic.flows": [], "fabric.link_rate": []})
    >>> unknown_key("slow", "faults.0.slow", ["at", "event"], keys)
    ("unknown key: 'slow' is a value of 'event'", OtherKey(key='event', value='slow'))
    >>> unknown_key("link_rate", "faults.0.link_rate", ["at", "event"], keys)
    ('unknown key here', KeyPlace(path='fabric.link_rate'))
    >>> unknown_key("flow", "faults.0.flow", ["at", "event"], keys)
    ('unknown key; wanted at or event', None)
    """
    here = list(here)
    near = nearest(key, [*here, *others])
    if near is not None and near in beside:
        return f"unknown key; '{near}' stands here already", None
    if near is not None and (why := meaningless(near)) is not None:
        return f"unknown key; '{near}' {why}", None
    if near is not None:
        return "unknown key", KeyName(near)
    section = ".".join(part for part in path.rpartition(".")[0].split(".") if part and not part.isdecimal())
    for one in here:
        if key in known.words.get(f"{section}.{one}" if section else one, ()):
            return f"unknown key: '{key}' is a value of '{one}'", OtherKey(one, key)
    top = section.partition(".")[0]
    related = [one for one in known.words if top and one.startswith(f"{top}.")]
    leaf = nearest(key, {one.rpartition(".")[2] for one in related})
    elsewhere = [one for one in related if one.rpartition(".")[2] == leaf]
    if not elsewhere:
        has_workload = any(one in given for one in WORKLOADS)
        absent = {one for one in WORKLOADS if has_workload and one not in given}
        wanted = _plain(key)
        elsewhere = [
            one
            for one in known.words
            if _plain(one.rpartition(".")[2]) == wanted and one.partition(".")[0] not in absent and "." in one
        ]
    places = [(one, at) for one in elsewhere if (at := _in_lists(one, path, known.lists)) is not None]
    places = [(one, at) for one, at in places if known.suits(one, at, value)]
    if places:
        return "unknown key here", KeyPlace(max(places, key=lambda place: _shared(place[0], section))[1])
    return f"unknown key; wanted {_list_of(here)}", None


def _shared(path: str, section: str) -> int:
    """Number of sections that a key shares with a place."""
    parts = zip(path.split("."), section.split("."), strict=False)
    return next((count for count, (one, other) in enumerate(parts) if one != other), section.count(".") + 1)


def _in_lists(place: str, path: str, lists: Collection[str]) -> str | None:
    """A place with the items in which it is: those of the key; None where it is in a list that the key is not in."""
    parts, given = place.split("."), path.split(".")
    shown: list[str] = []
    for index, part in enumerate(parts):
        shown.append(part)
        if ".".join(parts[: index + 1]) in lists and index + 1 < len(parts):
            if given[: len(shown)] != shown or len(given) <= len(shown):
                return None
            shown.append(given[len(shown)])
    return ".".join(shown)


def _plain(key: str) -> str:
    return key.lower().replace("_", "-").replace(" ", "-")


def _list_of(names: list[str]) -> str:
    if len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return names[0] if names else "nothing: this section has no keys"
