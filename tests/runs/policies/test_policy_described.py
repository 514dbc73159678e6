"""The rows of the interface, which its page prints, hold every field that crosses to the core, each with its words."""

from pathlib import Path
from typing import Any

import pytest

from weftwork.engine import _native
from weftwork.policies import interface
from weftwork.policies.described import (
    field_rows,
)

ROOT = Path(__file__).parents[3]


PAGE = (ROOT / "docs" / "models" / "policy-interface.md").read_text(encoding="utf-8")


RECORDS = {"Signal", "PortSignal", "Candidate", "SenderState", "ReceiverState", "PathState"}
OF_POLICIES: dict[str, Any] = {name: row for name, row in _native.records().items() if name in RECORDS}


def test_every_record_of_policies_crosses() -> None:
    assert set(OF_POLICIES) == RECORDS


@pytest.mark.parametrize("name", sorted(OF_POLICIES))
def test_every_field_of_the_core_has_a_row_with_its_meaning_on_the_page(name: str) -> None:
    fields = OF_POLICIES[name]["fields"]
    rows = field_rows(getattr(interface, name))
    assert [field["name"] for field in fields] == [row.name for row in rows]
    assert [(field["kind"], field["count"]) for field in fields] == [
        ("f" if row.type == "float" else "i", max(row.size, 1)) for row in rows
    ]
    assert [row.name for row in rows if not row.text] == []
    assert f"<!-- rows: interface-{name} -->\n" in PAGE
