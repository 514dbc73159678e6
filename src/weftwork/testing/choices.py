"""Common checks of all catalogue files.

A file needs a record with a source, rows with texts, and keys that read back. The kits of topologies, patterns and
transports begin with these checks, over the catalogue and over a user's own file.
Leaves out: what the choice builds, which the kit of its kind looks at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from weftwork.base.errors import CodeError, ConfigError
from weftwork.base.folder import Folder
from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.choice import Offer
from weftwork.spec.scenario.chosen import clash
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.spec.scenario.written import dump

__all__ = ["key_findings", "offer_findings", "read"]

_NO_VALUE = {"no": "value"}  # no kind of value takes a mapping


def offer_findings(folder: Folder[Any], label: str, section: type[BaseModel]) -> Iterator[str]:
    """Yield mistakes in the record of a file.

    Parameters
    ----------
    folder : of the kind
    label : a name of the folder, or the path of a file
    section : of the scenario in which the choice stands
    """
    try:
        offer: Offer[Any] = folder.load(label)
    except CodeError as wrong:
        yield str(wrong)
        return
    if not folder.text(label).strip():
        yield "the file has no docstring, whose first line says what the choice is"
    if not offer.source.strip():
        yield "source is empty, wanted a description of the choice, or 'chosen: why'"
    if (key := clash(offer, section)) is not None:
        yield f"key '{key}' is one that every such section has already"
    for row in rows_of(offer.keys).values():
        if not row.text.strip() or not row.source.strip():
            yield f"key '{row.key}' has no text or no source"
        if row.default is None and not row.absent:
            yield f"key '{row.key}' has no default and does not say what its absence means"


def key_findings(folder: Folder[Any], label: str, section: str, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield mistakes in reading and writing the keys.

    Parameters
    ----------
    folder, label : of the choice
    section : in which it stands, such as ``fabric``
    document : a whole scenario
    """
    try:
        scenario = read(document)
    except ConfigError as wrong:
        yield f"the example is refused: {wrong}"
        return
    written = dump(scenario)
    again = loads(written, nodes=nodes())
    if again != scenario or dump(again) != written:
        yield "the resolved scenario does not read back as it was written"
    for row in rows_of(folder.load(label).keys).values():
        broken = {**document, section: {**document[section], row.key: _NO_VALUE}}
        try:
            read(broken)
        except ConfigError as wrong:
            found = [mistake for mistake in wrong.mistakes if mistake.path == f"{section}.{row.key}"]
            if found and all(mistake.line is not None for mistake in found):
                continue
        yield f"a wrong value of '{row.key}' is not reported with its line"


def read(document: Mapping[str, Any]) -> Scenario:
    """Read a scenario from lines, with one key per line.

    Files are relative to the current folder.

    Raises
    ------
    ConfigError : with all mistakes
    """
    return loads(json.dumps(document, indent=1), directory=Path.cwd(), nodes=nodes())
