"""Keys that a choice adds to its section, and keys of other choices.

Used where a section is read, written, listed and put into a schema. Leaves out: the reading itself
(`weftwork.spec.scenario.reader`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from weftwork.base.fix import Fix
from weftwork.base.nearest import nearest
from weftwork.spec.device import Record
from weftwork.spec.scenario.choice import Offer
from weftwork.spec.scenario.kinds import (
    DeviceKind,
    OfferKind,
    PolicyChoiceKind,
    Section,
    SectionList,
    WrongValueError,
    either,
)
from weftwork.spec.scenario.rows import KeyRow, as_node, rows_of, shown
from weftwork.spec.scenario.yaml_tree import Node

__all__ = ["OPTIONS", "Chooser", "chooser_of", "clash", "means_nothing", "usual_values"]

OPTIONS = "options"  # the field of a section that holds the keys of its choice


@dataclass(frozen=True, kw_only=True, slots=True)
class Chooser:
    """The key of a section that chooses a file of a folder.

    Attributes
    ----------
    name : its field
    row : its row
    kind : its kind
    """

    name: str
    row: KeyRow
    kind: OfferKind

    def others(self) -> Mapping[str, tuple[tuple[str, ...], KeyRow]]:
        """Each key of any file: the names with this key, and its first row."""
        found: dict[str, tuple[tuple[str, ...], KeyRow]] = {}
        for name, offer in self.kind.folder.items():
            for described in rows_of(offer.keys).values():
                names, first = found.get(described.key, ((), described))
                found[described.key] = ((*names, name), first)
        return found

    def rows(self) -> Iterator[KeyRow]:
        """Yield the rows of all files, each with its file names.

        Equal rows are merged.
        """
        merged: dict[str, list[tuple[KeyRow, tuple[str, ...]]]] = {}
        for name, offer in self.kind.folder.items():
            for described in rows_of(offer.keys).values():
                same = merged.setdefault(described.key, [])
                place = next((i for i, (row, _) in enumerate(same) if row == described), None)
                if place is None:
                    same.append((described, (name,)))
                else:
                    same[place] = (described, (*same[place][1], name))
        for rows in merged.values():
            yield from (replace(described, only=(self.row.key, names)) for described, names in rows)


def chooser_of(model: type[BaseModel]) -> Chooser | None:
    """Return the key of a section that chooses a file, or None."""
    for name, described in rows_of(model).items():
        if isinstance(described.kind, OfferKind):
            return Chooser(name=name, row=described, kind=described.kind)
    return None


def clash(offer: Offer[Record], model: type[BaseModel]) -> str | None:
    """Return the first key of an offer that its section already has."""
    taken = {described.key for described in rows_of(model).values()}
    return next((described.key for described in rows_of(offer.keys).values() if described.key in taken), None)


def means_nothing(selector: str, chosen: object, wanted: tuple[str, ...]) -> str:
    """Say that a key means nothing with a choice, and name better choices."""
    if chosen is None:
        return f"means nothing without {selector} {either(wanted)}"
    return f"means nothing with {selector} {shown(chosen)}, only with {either(wanted)}"


def usual_values(
    offer: Offer[Any] | None, rows: Mapping[str, KeyRow], given: Collection[str]
) -> tuple[dict[str, Node], list[tuple[str, Fix | None]]]:
    """Return the values that a choice sets by default.

    The reader takes a value from here if the user sets none.

    Parameters
    ----------
    offer : the choice
    rows : of the section
    given : keys that the user has set; a preset of policies goes before a default of one of them

    Returns
    -------
    values by key, and what is wrong with the others, each with the nearest right word
    """
    kept: dict[str, Node] = {}
    wrong: list[tuple[str, Fix | None]] = []
    if offer is None:
        return kept, wrong
    by_key = {described.key: described for described in rows.values()}
    without = ("path_selection", "port_selection") if "load_balancing" in given else ()
    for key, value in offer.defaults.items():
        described, node = by_key.get(key), as_node(value)
        if described is None:
            wrong.append((f"its defaults name '{key}', wanted one of {', '.join(by_key)}", nearest(key, list(by_key))))
            continue
        try:
            if not isinstance(described.kind, Section | SectionList | PolicyChoiceKind | DeviceKind):
                described.kind.read(node)
        except WrongValueError as refused:
            wrong.append((f"its default of '{key}' is wrong: {refused.text}", refused.fix))
            continue
        if key not in without:
            kept[key] = node
    return kept, wrong
