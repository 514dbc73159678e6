"""Nothing but the row of an ending compares with its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weftwork.spec import endings
from weftwork.spec.endings import STATUSES

PACKAGE: Final = Path(endings.__file__).parents[1]
OF_RUNS: Final = frozenset(STATUSES)
HELD: Final = frozenset({"status", "end"})  # what holds the name of an ending: of a run, a study, a point or a folder
HOMES: Final = {
    "study/pool/work.py": ["failed", "full", "lost", "run"],  # how a point of a pool ends, with what others ask of it
}
OTHERS: Final = ("rdma/", "compat/", "wire/")  # whose status is that of a completion or a header


def _names(node: ast.expr) -> Iterator[str]:
    """Text in a side of a comparison, also inside a collection."""
    for part in node.elts if isinstance(node, ast.Set | ast.Tuple | ast.List) else [node]:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _is_held(node: ast.expr) -> bool:
    """Whether a side is a status or an end: ``run.status``, ``end`` or ``document["end"]``."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value in HELD
    return getattr(node, "attr", getattr(node, "id", None)) in HELD


def compared(text: str) -> Iterator[str]:
    """Names of endings with which a text compares."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            is_ending = any(map(_is_held, sides))
            yield from (name for side in sides for name in _names(side) if is_ending or name in OF_RUNS)


def test_a_comparison_with_a_name_is_seen() -> None:
    assert list(compared("a = run.status == 'complete'")) == ["complete"]
    assert list(compared("a = 'stuck' != known")) == ["stuck"]
    assert sorted(compared("a = found.end in {'full', 'done'} or document['end'] == 'lost'")) == [
        "done",
        "full",
        "lost",
    ]
    assert list(compared("a = recompute == 'full'")) == []


def test_nothing_compares_with_the_name_of_an_ending() -> None:
    word = re.compile(r"\b(?:status|end)\b|[\"'](?:" + "|".join(map(re.escape, STATUSES)) + ")[\"']")
    there = {}
    for file in PACKAGE.rglob("*.py"):
        module, text = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        if not module.startswith(OTHERS) and word.search(text) and (names := sorted(set(compared(text)))):
            there[module] = names
    assert there == HOMES
