"""The files whose functions a step calls: the policy's own file, and the parts that it imports.

A policy may import names of ``weftwork.policies.parts.<part>`` and nothing else of Weftwork beside its interface. A
part may import other parts. The check, the search for accesses and the compiler follow a call from one file into the
other by the object that the name stands for, so that a new name (``import estimate as measure``) is the same function.
Leaves out: attributes of a part's module (``windows.estimate``), which are refused on loading.
"""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, TypeGuard

__all__ = ["PARTS", "StepFile", "arithmetic_name", "is_part_function", "part_file", "part_names", "parts_of"]

PARTS: Final = "weftwork.policies.parts"
_FOLDER: Final = Path(__file__).parent / "parts"
_OF_ARITHMETIC: Final = frozenset({"sqrt", "exp", "log", "floor", "ceil"})


@dataclass(frozen=True, kw_only=True, eq=False)
class StepFile:
    """One file with functions of steps.

    Attributes
    ----------
    path : as messages name it
    text : its source
    tree : of the text
    namespace : globals of the imported file
    """

    path: str
    text: str
    tree: ast.Module
    namespace: Mapping[str, Any]

    @cached_property
    def functions(self) -> Mapping[str, ast.FunctionDef]:
        """Functions at the top of the file, by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    def called(self, name: str) -> tuple[StepFile, ast.FunctionDef] | None:
        """File and function that a name of this file stands for, or None for another thing.

        Parameters
        ----------
        name : as the file's functions call it
        """
        if name in self.functions:
            return self, self.functions[name]
        value = self.namespace.get(name)
        if not is_part_function(value):
            return None
        part = part_file(value.__module__)
        function = part.functions.get(value.__name__)
        return None if function is None or part.namespace.get(value.__name__) is not value else (part, function)


def is_part_function(value: object) -> TypeGuard[FunctionType]:
    """Whether an object is a function of a part.

    Parameters
    ----------
    value : of a file's globals
    """
    return isinstance(value, FunctionType) and (value.__module__ or "").startswith(f"{PARTS}.")


def arithmetic_name(value: object) -> str | None:
    """Name in `weftwork.policies.arithmetic` of what takes a value's place in compiled code.

    Parameters
    ----------
    value : of a file's globals

    Returns
    -------
    empty: the module itself takes the place of ``math``; None: nothing takes its place
    """
    if isinstance(value, ModuleType) and value is math:
        return ""
    name = getattr(value, "__name__", "")
    return name if getattr(value, "__module__", None) == "math" and name in _OF_ARITHMETIC else None


def part_names() -> tuple[str, ...]:
    """Full names of the parts."""
    return tuple(f"{PARTS}.{file.stem}" for file in sorted(_FOLDER.glob("*.py")) if file.stem != "__init__")


@cache
def part_file(module: str) -> StepFile:
    """A part, read and imported once in a process.

    Parameters
    ----------
    module : its full name
    """
    path = _FOLDER / f"{module.removeprefix(f'{PARTS}.')}.py"
    text = path.read_text(encoding="utf-8")
    namespace = vars(importlib.import_module(module))
    return StepFile(path=str(path), text=text, tree=ast.parse(text, str(path)), namespace=namespace)


def parts_of(tree: ast.Module) -> tuple[StepFile, ...]:
    """Parts that a file imports, and those that these import, by name.

    Parameters
    ----------
    tree : of a file whose imports are checked
    """
    names: set[str] = set()
    trees = [tree]
    while trees:
        nodes = (node for node in ast.walk(trees.pop()) if isinstance(node, ast.ImportFrom))
        imported = {node.module for node in nodes if node.module and node.module.startswith(f"{PARTS}.")} - names
        names |= imported
        trees += [part_file(name).tree for name in imported]
    return tuple(part_file(name) for name in sorted(names))
