"""Guess the meaning of a key that its section does not have.

The place decides: a misspelling is looked for in the section itself; then a word that one of its keys takes, such as
``slow`` for ``event: slow``; then a misspelling in the sections around and below; then the very same key elsewhere in
the scenario. A key that is misspelled and in the wrong section is not guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["unknown_key"]

_WORKLOADS: Final = ("collective", "traffic", "training", "jobs")  # a scenario has one of them


def unknown_key(
    key: str,
    path: str,
    here: Iterable[str],
    known: Mapping[str, Collection[str]],
    *,
    others: Iterable[str] = (),
    given: Collection[str] = (),
) -> tuple[str, str | None]:
    """Explain an unknown key, with the nearest fix.

    Parameters
    ----------
    key : as the user wrote it
    path : of it in the scenario, such as ``faults.0.slow``
    here : keys of its section
    known : all keys of a scenario by path, items of lists not counted, with the words that each takes
    others : keys that the section has with another choice than the user's
    given : paths that the user's file has

    Returns
    -------
    the text of the mistake, and its fix or None

    Examples
    --------
    >>> keys = {"faults.event": ["down", "slow"], "traffic.flows": [], "fabric.link_rate": []}
    >>> unknown_key("slow", "faults.0.slow", ["at", "event"], keys)
    ("unknown key: 'slow' is a value of 'event'", 'event: slow')
    >>> unknown_key("link_rate", "faults.0.link_rate", ["at", "event"], keys)
    ('unknown key here', 'fabric.link_rate')
    >>> unknown_key("flow", "faults.0.flow", ["at", "event"], keys)
    ('unknown key; wanted at or event', None)
    """
    here = list(here)
    near = nearest(key, [*here, *others])
    if near is not None:
        return "unknown key", near
    section = ".".join(part for part in path.rpartition(".")[0].split(".") if part and not part.isdecimal())
    for one in here:
        if key in known.get(f"{section}.{one}" if section else one, ()):
            return f"unknown key: '{key}' is a value of '{one}'", f"{one}: {key}"
    top = section.partition(".")[0]
    related = [one for one in known if top and one.startswith(f"{top}.")]
    leaf = nearest(key, {one.rpartition(".")[2] for one in related})
    elsewhere = [one for one in related if one.rpartition(".")[2] == leaf]
    if not elsewhere:
        has_workload = any(one in given for one in _WORKLOADS)
        absent = {one for one in _WORKLOADS if has_workload and one not in given}
        wanted = _plain(key)
        elsewhere = [
            one
            for one in known
            if _plain(one.rpartition(".")[2]) == wanted and one.partition(".")[0] not in absent and "." in one
        ]
    if elsewhere:
        return "unknown key here", max(elsewhere, key=lambda one: _shared(one, section))
    return f"unknown key; wanted {_list_of(here)}", None


def _shared(path: str, section: str) -> int:
    """Number of sections that a key shares with a place."""
    parts = zip(path.split("."), section.split("."), strict=False)
    return next((count for count, (one, other) in enumerate(parts) if one != other), section.count(".") + 1)


def _plain(key: str) -> str:
    return key.lower().replace("_", "-").replace(" ", "-")


def _list_of(names: list[str]) -> str:
    if len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return names[0] if names else "nothing: this section has no keys"
