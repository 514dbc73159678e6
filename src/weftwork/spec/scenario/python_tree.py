"""Values of Python to the tree that YAML text becomes: one reader then judges a file, a dict and an override.

Numbers, bools, None, text, paths, lists, tuples, mappings, and the scalars and arrays of NumPy. Text stays text, as in
quotes: ``"400Gbps"`` is a rate, and ``"8"`` is no number.
Leaves out: what the keys mean (`weftwork.spec.scenario.reader`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from weftwork.base.findings import Findings
from weftwork.spec.scenario.yaml_tree import MAX_DEPTH, MAX_NODES, Mapping, Node, Scalar, Sequence, YamlEntry

__all__ = ["NO_LINE", "mapping_tree", "value_tree"]

# The line of everything in a dict. None would say that ``--set`` brought it.
NO_LINE = 0

_WANTED = "a number, bool, None, text, pathlib.Path, list or dict"
_MOST_DIGITS = 40  # as in YAML text


@dataclass(kw_only=True)
class _ValueWalk:
    """One walk over a value: where its nodes stand, what was wrong, and how many values it has seen."""

    line: int | None
    findings: Findings
    bad: set[str] = field(default_factory=set)
    nodes: int = 0

    def wrong(self, path: str, text: str) -> None:
        self.bad.add(path)
        self.findings.wrong(path or "scenario", text)

    def node(self, value: object, path: str, depth: int = 0) -> Node | None:
        """The node of a value, or None where it has none."""
        self.nodes += 1
        if self.nodes > MAX_NODES or depth > MAX_DEPTH:
            if self.nodes == MAX_NODES + 1:
                self.wrong(path, f"more than {MAX_NODES:,} values; a scenario is never that long")
            elif depth == MAX_DEPTH + 1:
                self.wrong(path, f"nested more than {MAX_DEPTH} deep; a scenario is never that deep")
            return None
        if isinstance(value, np.generic):
            value = value.item()
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, MappingType):
            return self._mapping(value, path, depth)
        if isinstance(value, list | tuple):
            items = [self.node(item, _join(path, str(index)), depth + 1) for index, item in enumerate(value)]
            kept = tuple(item for item in items if item is not None)
            if len(kept) < len(items):
                self.bad.add(path)
                return None
            return Sequence(items=kept, line=self.line)
        return self._scalar(value, path)

    def _mapping(self, value: MappingType[object, object], path: str, depth: int) -> Mapping:
        entries = []
        for key, inner in value.items():
            if not isinstance(key, str):
                self.wrong(path, f"found the key {ascii(key)[:40]} of type {type(key).__name__}, wanted text as a key")
                continue
            node = self.node(inner, _join(path, key), depth + 1)
            if node is not None:
                entries.append(YamlEntry(key=str(key), node=node, line=self.line))
        return Mapping(entries=tuple(entries), line=self.line)

    def _scalar(self, value: object, path: str) -> Scalar | None:
        if value is None:
            return Scalar(text="", line=self.line)
        if isinstance(value, bool):
            return Scalar(text="true" if value else "false", line=self.line)
        if isinstance(value, int) and abs(value) < 10**_MOST_DIGITS:
            return Scalar(text=str(int(value)), line=self.line)
        if isinstance(value, int):
            self.wrong(path, f"found a whole number of more than {_MOST_DIGITS} digits")
            return None
        if isinstance(value, float):
            return Scalar(text=_float_text(float(value)), line=self.line)
        if isinstance(value, PurePath):
            text = str(value)
            value = text if os.sep in text else f".{os.sep}{text}"  # without a folder it could be a name
        if isinstance(value, str):
            text = str(value)
            if any("\ud800" <= character <= "\udfff" for character in text):
                self.wrong(path, "half of a surrogate pair (between \\ud800 and \\udfff) is not a character")
                return None
            return Scalar(text=text, plain=False, line=self.line)
        self.wrong(path, f"found {ascii(value)[:40]} of type {type(value).__name__}, wanted {_WANTED}")
        return None


def mapping_tree(given: MappingType[str, object], findings: Findings) -> tuple[Mapping, set[str]]:
    """The tree of a scenario that is a dict.

    Parameters
    ----------
    given : the dict
    findings : take all mistakes

    Returns
    -------
    the tree without what has no place in it, and the paths where something was left out
    """
    walk = _ValueWalk(line=NO_LINE, findings=findings)
    node = walk.node(given, "")
    return node if isinstance(node, Mapping) else Mapping(line=NO_LINE), walk.bad


def value_tree(value: object, path: str, findings: Findings) -> Node | None:
    """The tree of a value that an override gives, without lines.

    Parameters
    ----------
    value : any that a scenario may have
    path : its key, for mistakes
    findings : take all mistakes

    Returns
    -------
    the tree, or None where the value has none
    """
    return _ValueWalk(line=None, findings=findings).node(value, path)


def _float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"


def _join(path: str, key: str) -> str:
    shown = key if key.isprintable() and len(key) <= 48 else ascii(key)[:48]
    return f"{path}.{shown}" if path else shown
