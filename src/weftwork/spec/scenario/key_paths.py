"""Paths of keys, and the keys whose value may be one word."""

from __future__ import annotations

from typing import Final

from weftwork.spec.scenario.yaml_tree import Node, Scalar

__all__ = ["SHORT_FORMS", "is_null", "joined_key", "shown_key"]

# Keys whose value may be one word instead of a mapping, and the key that the word then stands for.
SHORT_FORMS: Final = {
    "transport.congestion_control": "name",
    "transport.path_selection": "name",
    "transport.port_selection": "name",
    "fabric.switch": "model",
    "fabric.nic": "model",
    "fabric.node": "model",
    "training.software": "name",
    "jobs.software": "name",
}


def is_null(node: Node) -> bool:
    """Whether a node is ``null``."""
    return isinstance(node, Scalar) and node.value is None


def joined_key(path: str, key: str) -> str:
    """Dotted path of a key below a path, which may be empty."""
    return f"{path}.{key}" if path else key


def shown_key(key: str) -> str:
    """A key as messages show it: short and printable."""
    shown = key if len(key) <= 48 else key[:45] + "..."
    return shown if shown.isprintable() and shown.strip() else ascii(shown)
