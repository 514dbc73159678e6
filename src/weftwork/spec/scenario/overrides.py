"""Values that ``--set`` or Python put in place of those of a scenario.

Leaves out: how the changed tree is read (`weftwork.spec.scenario.reader`).
"""

from __future__ import annotations

from weftwork.base.findings import Findings
from weftwork.spec.scenario.key_paths import SHORT_FORMS, is_null, joined_key, shown_key
from weftwork.spec.scenario.python_tree import value_tree
from weftwork.spec.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, read_tree

__all__ = ["apply_override"]


def apply_override(root: Mapping, key: str, given: object, findings: Findings) -> Mapping:
    """Apply one ``--set key=text`` to the tree; ``null`` or None removes the key.

    A key to remove that the tree does not have stays in it as null without a line, so that the reader judges its name.

    Parameters
    ----------
    root, key : the tree of the scenario, and a dotted key
    given : YAML text, or a value of any other type that a scenario may have
    findings : take the mistakes of the option itself

    Returns
    -------
    the new tree; with a mistake, the tree as it is
    """
    label = f"--set {shown_key(key)}"
    of_value = Findings()
    node = read_tree(given, of_value, where=label) if isinstance(given, str) else value_tree(given, label, of_value)
    for mistake in of_value.mistakes:  # lines of the option are no lines of the file
        findings.wrong(label if isinstance(given, str) else mistake.path, mistake.text)
    if of_value.has_mistakes:
        return root
    parts = key.split(".")
    if not all(parts):
        findings.wrong(label, "not a key; wanted one such as transport.congestion_control")
        return root
    value = Scalar(text="") if node is None else _without_lines(node)
    changed = _put(root, parts, value, "")
    if not isinstance(changed, Mapping):
        findings.wrong(label, "no such place; a list is counted from 0")
        return root
    return changed


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
