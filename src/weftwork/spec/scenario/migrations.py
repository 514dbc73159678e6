"""How a scenario of an older schema becomes one of this schema: one function per step, from n to n + 1.

The rule: a change after which an old file would mean something else, or be refused, raises `SCHEMA` by one and adds
the step that rewrites the old tree, with a note for the user. New keys with defaults raise nothing. A newer file is
refused.
Weftwork reads every schema since 1. A step works on the tree and keeps its lines, so that mistakes name the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import Scalar

__all__ = ["MIGRATIONS", "SCHEMA", "Step", "migrate"]

SCHEMA = 1

# The tree of schema n to the tree of schema n + 1, and notes on what was changed, each one sentence.
Step = Callable[[Tree], tuple[Tree, list[str]]]

MIGRATIONS: Mapping[int, Step] = {}  # schema 1 is the first


def migrate(
    root: Tree, version: int, *, steps: Mapping[int, Step] = MIGRATIONS, target: int = SCHEMA
) -> tuple[Tree, tuple[str, ...]]:
    """Bring a tree from schema ``version`` to ``target``.

    Returns
    -------
    the new tree, whose ``schema`` is ``target``, and the notes of all steps in order
    """
    notes: list[str] = []
    for number in range(version, target):
        root, told = steps[number](root)
        notes += [f"schema {number} to {number + 1}: {note}" for note in told]
    entry = root.get("schema")
    line = entry.line if entry is not None else None
    return root.put("schema", Scalar(text=str(target), line=line)), tuple(notes)
