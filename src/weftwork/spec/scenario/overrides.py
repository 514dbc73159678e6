"""Values that ``--set`` or Python put in place of those of a scenario.

Leaves out: how the changed tree is read (`weftwork.spec.scenario.reader`).
"""

from __future__ import annotations

from weftwork.base.errors import Mistake
from weftwork.spec.scenario.key_paths import SHORT_FORMS, is_null, joined_key, shown_key
from weftwork.spec.scenario.python_tree import value_tree
from weftwork.spec.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, read_tree

__all__ = ["apply_override"]


def apply_override(root: Mapping, key: str, given: object) -> tuple[Mapping, list[Mistake]]:
    """Apply one ``--set key=text`` to the tree; ``null`` or None removes the key.

    A key to remove that the tree does not have stays in it as null without a line, so that the reader judges its name.

    Parameters
    ----------
    root, key : the tree of the scenario, and a dotted key
    given : YAML text, or a value of any other type that a scenario may have

    Returns
    -------
    the new tree, and the mistakes of the option itself
    """
    label = f"--set {shown_key(key)}"
    node, mistakes = read_tree(given, where=label) if isinstance(given, str) else value_tree(given, label)
    mistakes = [Mistake(path=label if isinstance(given, str) else m.path, text=m.text) for m in mistakes]
    if mistakes:
        return root, mistakes
    parts = key.split(".")
    if not all(parts):
        return root, [Mistake(path=label, text="not a key; wanted one such as transport.congestion_control")]
    value = Scalar(text="") if node is None else _without_lines(node)
    changed = _put(root, parts, value, "")
    if not isinstance(changed, Mapping):
        return root, [Mistake(path=label, text="no such place; a list is counted from 0")]
    return changed, []


def _put(node: Node | None, parts: list[str], value: Node, path: str) -> Node | None:
    """Return the node with ``value`` at ``parts``; None if a list has no such place."""
    if not parts:
        return value
    head, *rest = parts
    at = joined_key(path, head)
    if isinstance(node, Sequence):
        if not (head.isdecimal() and head.isascii() and len(head) < 6) or int(head) > len(node.items):
            return None
        index = int(head)
        inner = _put(node.items[index] if index < len(node.items) else None, rest, value, at)
        if inner is None:
            return None
        return Sequence(items=(*node.items[:index], inner, *node.items[index + 1 :]), line=node.line)
    short = SHORT_FORMS.get(".".join(part for part in path.split(".") if not part.isdecimal()))
    if isinstance(node, Mapping):
        base = node
    elif isinstance(node, Scalar) and node.value is not None and short is not None and head != short:
        base = Mapping(line=node.line).put(short, node)
    else:
        base = Mapping(line=node.line if node is not None else None)
    entry = base.get(head)
    if not rest and is_null(value) and (entry is not None or head == short):
        return base.drop(head)
    inner = _put(entry.node if entry is not None else None, rest, value, at)
    return None if inner is None else base.put(head, inner)


def _without_lines(node: Node) -> Node:
    match node:
        case Scalar():
            return Scalar(text=node.text, plain=node.plain)
        case Sequence():
            return Sequence(items=tuple(_without_lines(item) for item in node.items))
        case Mapping():
            made = Mapping()
            for entry in node.entries:
                made = made.put(entry.key, _without_lines(entry.node))
            return made
