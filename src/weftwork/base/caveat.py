"""Caveats of a result: unverified figures, choices and approximations.

Leaves out: how caveats are worded for people (`weftwork.report`); mistakes, which are errors.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "CAVEAT_KINDS",
    "IN_FULL",
    "Caveat",
    "CaveatKind",
    "assumed_texts",
    "caveats_by_subject",
    "caveats_of",
    "caveats_to_json",
    "mismatch_texts",
]

# mismatch: parts that do not fit each other, printed in full behind the first lines of a run; assumed: what an input
# leaves open and results depend on, always printed in full; ignored: a key of the user's without effect in this run,
# always printed too; unverified: a figure that nobody has read in its source;
# chosen: a figure or a rule without one; approximate: what the result leaves out or rounds; note: changes no result
CaveatKind = Literal["mismatch", "assumed", "unverified", "chosen", "approximate", "ignored", "note"]
CAVEAT_KINDS: Final[tuple[str, ...]] = typing.get_args(CaveatKind)
IN_FULL: Final[frozenset[CaveatKind]] = frozenset({"mismatch", "assumed", "ignored"})  # whose texts are always printed
_OPEN: Final[frozenset[CaveatKind]] = frozenset({"mismatch", "assumed"})
_FIELDS: Final = ("subject", "kind", "text")


@dataclass(frozen=True, kw_only=True, slots=True)
class Caveat:
    """One caveat of a result.

    Parameters
    ----------
    subject : what it is true of: a figure such as ``tomahawk-3.buffer_bytes``, a key, or ``engine.flow``
    kind : what kind of thing it is
    text : in words, with value and source where it is a figure
    """

    subject: str
    kind: CaveatKind
    text: str


def caveats_by_subject(caveats: Iterable[Caveat]) -> dict[str, Caveat]:
    """Caveats by subject; the last caveat of a subject wins."""
    return {caveat.subject: caveat for caveat in caveats}


def assumed_texts(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """What inputs left open and results depend on, and parts that do not fit each other; each text once."""
    return tuple(dict.fromkeys(caveat.text for caveat in caveats if caveat.kind in _OPEN))


def mismatch_texts(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Parts that do not fit each other; each text once."""
    return tuple(dict.fromkeys(caveat.text for caveat in caveats if caveat.kind == "mismatch"))


def caveats_to_json(caveats: Mapping[str, Caveat]) -> list[dict[str, str]]:
    """Caveats as a list of JSON records."""
    return [{name: getattr(caveat, name) for name in _FIELDS} for caveat in caveats.values()]


def caveats_of(document: Mapping[str, Any], source: str) -> dict[str, Caveat]:
    """Read the caveats of a file.

    They are a list of records.

    Parameters
    ----------
    document : a JSON object that may have the key ``caveats``
    source : name of the file, for messages

    Raises
    ------
    ConfigError : with all that is wrong with them
    """
    listed = document.get("caveats", [])
    mistakes: list[Mistake] = []
    found: list[Caveat] = []
    if not isinstance(listed, list):
        listed = []
        mistakes.append(Mistake(path="caveats", text=f"wanted a list of records with {', '.join(_FIELDS)}"))
    for number, record in enumerate(listed):
        place = f"caveats.{number}"
        if not isinstance(record, dict) or set(record) != set(_FIELDS):
            mistakes.append(Mistake(path=place, text=f"found {record!r}, wanted a record with {', '.join(_FIELDS)}"))
            continue
        if record["kind"] not in CAVEAT_KINDS:
            kind = str(record["kind"])
            text = f"found '{kind}', wanted {', '.join(CAVEAT_KINDS[:-1])} or {CAVEAT_KINDS[-1]}"
            mistakes.append(Mistake(path=f"{place}.kind", text=text, fix=nearest(kind, CAVEAT_KINDS)))
            continue
        found.append(Caveat(subject=str(record["subject"]), kind=record["kind"], text=str(record["text"])))
    if mistakes:
        raise ConfigError(source, mistakes)
    return caveats_by_subject(found)
