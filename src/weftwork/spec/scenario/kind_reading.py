"""Shared code of all kinds of value: the error, and reading scalars."""

from __future__ import annotations

from weftwork.spec.scenario.yaml_tree import Node, Scalar, show

__all__ = ["WrongValueError", "either", "scalar_of"]


class WrongValueError(Exception):
    """A value does not fit its kind."""

    def __init__(self, text: str, fix: str | None = None) -> None:
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


def either(words: list[str] | tuple[str, ...]) -> str:
    """Join words as a choice: ``a, b or c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
