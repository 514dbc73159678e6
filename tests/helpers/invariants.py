"""Invariants of the packet engine: what the core lists, where the C++ asserts each, and the mistake that it notices."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from mutants.entries import Mutant, read_mutants

from weftwork.base.errors import EngineError
from weftwork.engine import _native, packet
from weftwork.engine.packet import Series
from weftwork.engine.packet_input import PacketInput

__all__ = [
    "asserting_files",
    "assertions",
    "assertions_by_function",
    "assertions_in",
    "broken_by",
    "mistakes",
    "table",
]

ROOT = Path(__file__).parents[2]
_ASSERTION = re.compile(r"\bmust_hold\(.*?;\n", re.DOTALL)
_NAME = re.compile(r"\bInvariant::(\w+)")
_NO_CODE = re.compile(r"//[^\n]*|^[ \t]*#[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'", re.MULTILINE)
_STEP = re.compile(r"[{};]|\bmust_hold\(")
# What stands before the brace of a function: its name and parameters, and then what may follow them.
_FUNCTION = re.compile(
    r"\b(?P<name>\w+(?:::~?\w+)*)\s*\((?:[^()]|\([^()]*\))*\)\s*(?:const\b|noexcept\b|->[^{;]*|:[^:][^{;]*|\s)*$"
)
_BROKEN = re.compile(r"does not hold: (\w+): ")
# Samples, rates and bins of time too, so that their order is asserted.
_RECORDED = Series(every_ps=2_000_000, timeline_bins=50, flows=None)


def broken_by(engine_input: PacketInput) -> str | None:
    """The name of the invariant that a run breaks, or None where it keeps them all."""
    try:
        packet.run(engine_input, series=_RECORDED)
    except EngineError as error:
        found = _BROKEN.search(str(error))
        if found is None:
            raise
        return found[1]
    return None


@cache
def assertions() -> list[tuple[str, str]]:
    """(file below ``native``, invariant) of every assertion of the packet engine."""
    found = []
    for path in sorted((ROOT / "native/packet").glob("*.?pp")):
        for text in _ASSERTION.findall(path.read_text(encoding="utf-8")):
            found += [(path.name, name) for name in _NAME.findall(text)]
    return found


def assertions_in(text: str) -> Counter[tuple[int, str]]:
    """How many assertions each function of a C++ file has that has any, by the line of its brace and its name.

    An assertion in a function that stands inside another, such as a lambda, is the outer one's.
    """
    code = _NO_CODE.sub(lambda blank: " " * len(blank[0]), text)
    counts: Counter[tuple[int, str]] = Counter()
    open_braces: list[tuple[int, str] | None] = []  # the function that each opens
    begin = 0  # of what may be the head of a function
    for step in _STEP.finditer(code):
        function = next((each for each in open_braces if each), None)
        if step[0] == "must_hold(":
            assert function is not None, f"an assertion outside a function: {code[begin : step.end()]!r}"
            counts[function] += 1
            continue
        if step[0] == "{":
            head = None if function else _FUNCTION.search(code, begin, step.start())
            open_braces.append((code.count("\n", 0, step.start()) + 1, head["name"]) if head else None)
        elif step[0] == "}":
            open_braces.pop()
        begin = step.end()
    assert not open_braces
    return counts


def assertions_by_function() -> dict[tuple[str, int, str], int]:
    """How many assertions each function of the packet engine has that has any, by file, line and name."""
    return {
        (path.name, *function): count
        for path in sorted((ROOT / "native/packet").glob("*.?pp"))
        for function, count in assertions_in(path.read_text(encoding="utf-8")).items()
    }


def asserting_files(name: str) -> list[str]:
    """The files of ``native/packet`` that assert an invariant."""
    return sorted({file for file, invariant in assertions() if invariant == name})


def mistakes() -> dict[str, list[Mutant]]:
    """The planted mistakes by the invariant that has to notice them."""
    found: dict[str, list[Mutant]] = {}
    for mutant in read_mutants():
        if mutant.invariant is not None:
            found.setdefault(mutant.invariant, []).append(mutant)
    return found


def table() -> str:
    """The rows of docs/dev/invariants.md."""
    planted = mistakes()
    rows = ["| invariant | what always holds | asserted in `native/packet` | planted mistake |", "|---|---|---|---|"]
    for name, sentence in _native.invariants().items():
        files = ", ".join(f"`{file}`" for file in asserting_files(name))
        wrong = " ".join(mutant.mistake for mutant in planted.get(name, []))
        rows.append(f"| `{name}` | {sentence} | {files} | {wrong} |")
    return "\n".join(rows)
