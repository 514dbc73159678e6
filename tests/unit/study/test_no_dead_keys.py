"""No key of a scenario is dead: each has a row with two values that have different results.

The keys are those that `weftwork schema` prints, the rows those of `keys/rows.yaml`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from helpers.keys import printed_keys, rows_in

from weftwork.spec.scenario.schema import json_schema

HERE = Path(__file__).parent / "keys"


ROWS = rows_in((HERE / "rows.yaml").read_text(encoding="utf-8"))


def test_every_key_that_the_schema_prints_has_a_row() -> None:
    """But for those of a sweep, which no run has: tests/runs/study/sweep/test_no_dead_sweep_keys.py has these."""
    printed = {key: senses for key, senses in printed_keys(json_schema()).items() if not key.startswith("sweep.")}
    rows = Counter(row.key for row in ROWS)
    missing = {key: senses - rows[key] for key, senses in printed.items() if rows[key] < senses}
    assert not missing, f"give each of these a row in {HERE.name}/rows.yaml, see CONTRIBUTING.md: {missing}"


def test_every_row_has_a_key() -> None:
    assert {row.key for row in ROWS} - set(printed_keys(json_schema())) == set()
