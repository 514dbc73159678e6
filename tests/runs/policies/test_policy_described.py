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


RECORDS = {
    "SIGNAL_DTYPE": "Signal", "PORT_SIGNAL_DTYPE": "PortSignal", "CANDIDATE_DTYPE": "Candidate",
    "CONGESTION_CONTROL_PREFIX": "SenderState", "RECEIVER_PREFIX": "ReceiverState",
    "PATH_SELECTION_PREFIX": "PathState",
}  # fmt: skip


OF_POLICIES = [record for record in _native.records() if record[1] in RECORDS]


def test_every_record_of_policies_crosses() -> None:
    assert {name for _, name, _, _ in OF_POLICIES} == set(RECORDS)


@pytest.mark.parametrize("record", OF_POLICIES, ids=lambda record: record[0])
def test_every_field_of_the_core_has_a_row_with_its_meaning_on_the_page(record: tuple[Any, ...]) -> None:
    _, name, _, fields = record
    rows = field_rows(getattr(interface, RECORDS[name]))
    assert [field for field, *_ in fields] == [row.name for row in rows]
    assert [(kind, count) for _, _, kind, _, count in fields] == [
        ("f" if row.type == "float" else "i", max(row.size, 1)) for row in rows
    ]
    assert [row.name for row in rows if not row.text] == []
    assert f"<!-- rows: interface-{RECORDS[name]} -->\n" in PAGE
