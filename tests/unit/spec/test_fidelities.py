"""A fidelity is a row of spec and a file of study, and nothing else compares with its name."""

from __future__ import annotations

import re
from pathlib import Path

from weftwork.spec import fidelities
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.workload import EngineSection

PACKAGE = Path(fidelities.__file__).parents[1]


NAMES = "|".join(FIDELITIES)
COMPARISON = re.compile(rf"""\b(?:fidelity|engine['"]\])\)? (?:==|!=|in|not in) .*['"](?:{NAMES})['"]""")


def comparisons(text: str) -> list[str]:
    """Comparisons of an engine or a fidelity with a name of one."""
    return [match[0] for match in COMPARISON.finditer(text)]


def test_a_comparison_with_a_name_is_seen() -> None:
    assert comparisons("a = scenario.engine.fidelity != 'flow'") == ["fidelity != 'flow'"]
    assert comparisons("""a = run.provenance["engine"] in {"packet", "flow"}""") != []
    assert comparisons("a = plugin.per == 'packet'") == []


def test_nothing_compares_with_the_name_of_a_fidelity() -> None:
    there = {
        file.relative_to(PACKAGE).as_posix(): compared
        for file in PACKAGE.rglob("*.py")
        if "testing" not in file.parts  # kits run either packet engine, which a test names
        and (compared := comparisons(file.read_text(encoding="utf-8")))
    }
    assert there == {}


def test_the_key_offers_the_rows() -> None:
    kind = rows_of(EngineSection)["fidelity"].kind
    assert tuple(kind.options) == tuple(FIDELITIES)  # type: ignore[attr-defined]
    assert [row.name for row in FIDELITIES.values() if row.has_timeline == bool(row.nothing_over_time)] == []
