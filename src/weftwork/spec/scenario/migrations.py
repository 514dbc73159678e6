"""Migration of older scenarios: one function per schema step, n to n + 1.

The rule: a change after which an old file would mean something else, or be refused, raises `SCHEMA` by one and adds
the step that rewrites the old tree, with a note for the user. New keys with defaults raise nothing. A newer file is
refused.
Weftwork reads every schema since 1. A step works on the tree and keeps its lines, so that mistakes name the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import Node, Scalar, Sequence, Value, YamlEntry

__all__ = ["MIGRATIONS", "SCHEMA", "Step", "migrate", "present_key"]

SCHEMA = 3

# The tree of schema n to the tree of schema n + 1, and notes on what was changed, each one sentence.
Step = Callable[[Tree], tuple[Tree, list[str]]]

# Schema 1 to 2: section, old key, new key. One word for one thing: a chunk is a part of a collective's data, a slice
# what takes its turn on a port inside a server, a launch is that of a kernel.
_RENAMED_IN_2: Final = (
    ("training", "chunks", "virtual_stages"),
    ("jobs", "chunks", "virtual_stages"),
    ("collective", "launch_latency", "base_latency"),
    ("fabric.node", "chunk", "slice"),
    *((f"{jobs}.software", "fused_experts", "expert_streams") for jobs in ("training", "jobs")),
    *((f"{jobs}.software", "graph_share", "graphs") for jobs in ("training", "jobs")),
)
# What values are under the new key, where they are others. A share of graphs between none and all is like no list of
# modules: it stays under the old key, which reading refuses.
_VALUES_IN_2: Final[Mapping[str, Mapping[Value, Node]]] = {
    "expert_streams": {True: Scalar(text="0"), False: Scalar(text="1")},
    "graphs": {0: Sequence(), 1: Sequence(items=(Scalar(text="iteration"),))},
}


def _with_new_keys(tree: Tree) -> tuple[Tree, list[str]]:
    notes: list[str] = []
    for section, old, new in _RENAMED_IN_2:
        renamed = _renamed(tree, section.split("."), old, new)
        if isinstance(renamed, Tree) and renamed != tree:
            notes.append(f"'{section}.{old}' is now '{section}.{new}'")
            tree = renamed
    return tree, notes


def _renamed(node: Node, path: list[str], old: str, new: str) -> Node:
    """A tree with a key renamed in the section or list at ``path``.

    Nothing is renamed if the new name is there already.
    """
    if isinstance(node, Sequence):
        return replace(node, items=tuple(_renamed(item, path, old, new) for item in node.items))
    if not isinstance(node, Tree):
        return node
    if path:
        section, *rest = path
        below = (
            replace(one, node=_renamed(one.node, rest, old, new)) if one.key == section else one for one in node.entries
        )
        return replace(node, entries=tuple(below))
    if node.get(new) is not None:
        return node
    return replace(node, entries=tuple(_renamed_entry(one, new) if one.key == old else one for one in node.entries))


def _renamed_entry(entry: YamlEntry, new: str) -> YamlEntry:
    """An entry under the new name of its value; unchanged if none fits."""
    values = _VALUES_IN_2.get(new)
    if values is None:
        return replace(entry, key=new)
    value = values.get(entry.node.value) if isinstance(entry.node, Scalar) else None
    return entry if value is None else replace(entry, key=new, node=replace(value, line=entry.node.line))


def present_key(path: str) -> tuple[str, int] | None:
    """Present name of an older key, and the schema that renamed it.

    None for other keys.

    Examples
    --------
    >>> present_key("jobs.0.chunks"), present_key("collective.chunks"), present_key("fabric.rail_only")
    (('jobs.0.virtual_stages', 2), None, ('fabric.topology', 3))
    """
    if path == "fabric.rail_only":
        return "fabric.topology", 3
    around, _, key = path.rpartition(".")
    section = ".".join(part for part in around.split(".") if not part.isdigit())
    return next(((f"{around}.{new}", 2) for own, old, new in _RENAMED_IN_2 if (own, old) == (section, key)), None)


def _with_names_of_trees(tree: Tree) -> tuple[Tree, list[str]]:
    """Schema 2 to 3: new names for rails, and fewer spines.

    Rails that are not joined have a name of their own. Partly filled fat trees have fewer spines.
    """
    entry = tree.get("fabric")
    if entry is None or not isinstance(entry.node, Tree):
        return tree, []
    fabric, notes = entry.node, list[str]()
    name, rail_only = _scalar(fabric, "topology"), _scalar(fabric, "rail_only")
    is_flag = rail_only is not None and isinstance(rail_only.value, bool)
    if rail_only is not None and is_flag and name is not None and name.text == "rail-optimized":
        fabric = fabric.drop("rail_only")
        if rail_only.value:
            fabric = fabric.put("topology", Scalar(text="rail-only", line=name.line))
        notes.append("'fabric.rail_only' is now the topology 'rail-only'")
    if _is_partly_filled(fabric):
        radix, scalar = _whole(fabric, "radix"), _scalar(fabric, "radix")
        if radix is not None and scalar is not None:
            fabric = fabric.put("spines", Scalar(text=str(radix // 2), line=scalar.line))
            notes.append("a fat tree of two tiers has the spines that its leaves need: 'fabric.spines' keeps radix / 2")
        else:
            notes.append("a fat tree of two tiers has the spines that its leaves need; 'fabric.spines' sets others")
    below = (replace(one, node=fabric) if one.key == "fabric" else one for one in tree.entries)
    return replace(tree, entries=tuple(below)), notes


def _is_partly_filled(fabric: Tree) -> bool:
    """Whether a fabric is a partly filled fat tree of two tiers.

    Its hosts are counted, and differ from the number that fits plainly.
    """
    if _text(fabric, "topology") not in {"", "fat-tree"} or _text(fabric, "tiers") != "2" or fabric.get("spines"):
        return False
    counted = _scalar(fabric, "hosts") or _scalar(fabric, "gpus")
    radix = _whole(fabric, "radix")
    if counted is None or counted.value is None:
        return False
    return fabric.get("node") is not None or radix is None or counted.value != radix**2 // 2


def _scalar(node: Tree, key: str) -> Scalar | None:
    entry = node.get(key)
    return entry.node if entry is not None and isinstance(entry.node, Scalar) else None


def _whole(node: Tree, key: str) -> int | None:
    scalar = _scalar(node, key)
    value = None if scalar is None else scalar.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(node: Tree, key: str) -> str:
    scalar = _scalar(node, key)
    return "" if scalar is None else scalar.text


MIGRATIONS: Mapping[int, Step] = {1: _with_new_keys, 2: _with_names_of_trees}


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
