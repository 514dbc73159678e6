"""Invariants of the packet engine: what the core lists, where the C++ asserts each, and the mistake that it notices."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mutants.entries import Mutant, read_mutants

from weftwork.base.errors import EngineError
from weftwork.engine import _native, packet
from weftwork.engine.packet import Series
from weftwork.engine.packet_input import PacketInput

__all__ = ["asserting_files", "assertions", "broken_by", "mistakes", "table"]

ROOT = Path(__file__).parents[2]
_ASSERTION = re.compile(r"\bmust_hold\(.*?;\n", re.DOTALL)
_NAME = re.compile(r"\bInvariant::(\w+)")
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
