"""The schema of a scenario file, and the migration of files of an older released schema.

The rule since the first release: a change after which a file would mean something else, or be refused, raises `SCHEMA`
by one and adds a step to `MIGRATIONS`, which rewrites the old tree and leaves a note for the user. New keys with
defaults raise nothing. A step works on the tree and keeps its lines, so that mistakes name the user's.
Source: decision 0041.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import Scalar, show

if TYPE_CHECKING:
    from weftwork.spec.scenario.reader import Reader

__all__ = ["MIGRATIONS", "OLDEST", "SCHEMA", "Step", "of_this_schema"]

SCHEMA: Final = 3
OLDEST: Final = 3  # of the first release; 1 and 2 were never released, so that nobody has such files

# The tree of schema n to the tree of schema n + 1, and notes on what was changed, each one sentence.
Step = Callable[[Tree], tuple[Tree, list[str]]]

# The step from each schema since OLDEST to the next, by the schema that it reads. Empty until a schema follows OLDEST.
MIGRATIONS: Mapping[int, Step] = MappingProxyType({})


def of_this_schema(root: Tree, reader: Reader, source: str) -> tuple[Tree, tuple[str, ...]]:
    """Bring the tree of a file to `SCHEMA`.

    A schema before `OLDEST`, or none, is a mistake of the reader, which goes on as if the file were of this schema.

    Returns
    -------
    the new tree, whose ``schema`` is `SCHEMA` unless it is no whole number, and the notes of all steps in order

    Raises
    ------
    ConfigError : the file is of a newer schema, whose keys this Weftwork cannot judge
    """
    entry = root.get("schema")
    if entry is None:
        reader.places.lines["schema"] = root.line
        reader.wrong("schema", f"missing, wanted `schema: {SCHEMA}` as the first line")
        return root.put("schema", Scalar(text=str(SCHEMA), line=root.line)), ()
    version = entry.node.value if isinstance(entry.node, Scalar) else None
    if not isinstance(version, int) or isinstance(version, bool):
        return root, ()
    reader.places.lines["schema"] = entry.line
    if version > SCHEMA:
        text = f"found {show(entry.node)}, and this Weftwork reads schema {SCHEMA}: install a newer Weftwork"
        raise ConfigError(source, [*reader.mistakes, reader.places.mistake("schema", text)])
    notes: list[str] = []
    if version < OLDEST:
        reader.wrong("schema", f"found {show(entry.node)}, wanted `schema: {SCHEMA}`")
    else:
        for number in range(version, SCHEMA):
            root, changes = MIGRATIONS[number](root)
            notes += [f"schema {number} to {number + 1}: {change}" for change in changes]
    return root.put("schema", Scalar(text=str(SCHEMA), line=entry.line)), tuple(notes)
