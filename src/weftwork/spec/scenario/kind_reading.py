"""Shared code of all kinds of value: the error, and reading scalars."""

from __future__ import annotations

from weftwork.base.fix import Fix, ItemValue
from weftwork.spec.scenario.yaml_tree import Node, Scalar, show

__all__ = ["WrongValueError", "either", "scalar_of", "within"]


class WrongValueError(Exception):
    """A value does not fit its kind."""

    def __init__(self, text: str, fix: Fix | None = None) -> None:
        self.text = text
        self.fix = fix
        super().__init__(text, fix)


def scalar_of(node: Node, wanted: str) -> Scalar:
    """Return the scalar of a node, or raise `WrongValueError`.

    It is raised for an empty node and for a node that is not a scalar.
    """
    if not isinstance(node, Scalar) or node.value is None:
        message = f"found {show(node)}, wanted {wanted}"
        raise WrongValueError(message)
    return node


def within(item: int | str, fix: Fix | None) -> Fix | None:
    """Return the fix of an item or entry as a fix of the whole key."""
    match fix:
        case str():
            return ItemValue(item, fix)
        case ItemValue(inner, value):
            return ItemValue(f"{item}.{inner}", value)
        case _:
            return fix


def either(words: list[str] | tuple[str, ...]) -> str:
    """Join words as a choice: ``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
