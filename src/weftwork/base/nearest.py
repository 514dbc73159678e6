"""The nearest correct spelling of a wrong word.

It is the hint at the end of an error message.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from difflib import get_close_matches

from weftwork.base.fix import EntryName, KeyName

__all__ = ["nearest", "nearest_entry", "nearest_key", "turned_round"]

_LONGEST = 64  # chosen: no key or name of Weftwork is longer, and difflib is quadratic in the length
_SHORTEST = 3  # chosen: fewer letters begin too many words
_CUTOFF = 0.6  # chosen: difflib's own default; below it suggestions look random


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice nearest to ``word``, or None if none is near.

    Case and the difference between ``_``, ``-`` and a space do not count.

    Examples
    --------
    >>> nearest("oversubscriptoin", ["oversubscription", "radix"])
    'oversubscription'
    >>> nearest("oversub", ["oversubscription", "radix"])
    'oversubscription'
    >>> nearest("Fat_Tree", ["fat-tree", "leaf-spine"])
    'fat-tree'
    >>> nearest("banana", ["fat-tree", "leaf-spine"]) is None
    True
    """
    if len(word) > _LONGEST:
        return None
    plain = {_plain(choice): choice for choice in choices}
    longer = [choice for choice in plain if len(word) >= _SHORTEST and choice.startswith(_plain(word))]
    if longer:
        return plain[min(longer, key=len)]
    close = get_close_matches(_plain(word), plain, n=1, cutoff=_CUTOFF)
    return plain[close[0]] if close else None


def nearest_key(word: str, keys: Iterable[str]) -> KeyName | None:
    """Return the right name of an unknown key, or None if none is near.

    Examples
    --------
    >>> nearest_key("bufer", ["buffer", "radix"])
    KeyName(name='buffer')
    """
    name = nearest(word, keys)
    return None if name is None else KeyName(name)


def nearest_entry(word: str, entries: Iterable[str]) -> EntryName | None:
    """Return the right name of an unknown entry of a key, or None if none is near.

    Examples
    --------
    >>> nearest_entry("spien", ["leaf", "spine"])
    EntryName(entry='spien', name='spine')
    """
    name = nearest(word, entries)
    return None if name is None else EntryName(word, name)


def turned_round(link: str, links: Container[str]) -> str | None:
    """Return the link whose ends ``link`` names in reverse order, or None.

    Examples
    --------
    >>> turned_round("spine1-leaf3.2", {"leaf3-spine1.2"})
    'leaf3-spine1.2'
    >>> turned_round("spine1-leaf4", {"leaf3-spine1"}) is None
    True
    """
    ends, dot, number = link.partition(".")  # of parallel links
    for place in (index for index, letter in enumerate(ends) if letter == "-"):
        turned = f"{ends[place + 1 :]}-{ends[:place]}{dot}{number}"
        if turned in links:
            return turned
    return None


def _plain(word: str) -> str:
    return word.lower().replace("_", "-").replace(" ", "-")
