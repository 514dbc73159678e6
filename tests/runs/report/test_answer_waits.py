"""For whom the others waited: the longest wait of all repetitions, and nothing where ranks end together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from helpers.run_folders import ABOUT, ANSWER, PROVENANCE, all_tables

from weftwork.base.clock import US_PS
from weftwork.report.answer import _waits
from weftwork.spec.result import TABLES
from weftwork.store.runs import Run, write_run


def of_repetitions(folder: Path, *rows: tuple[int, int, int | None]) -> Run:
    """Collectives that take 100 us: when the first rank had its result, when the last one, and which that was."""
    known = [
        {"repetition": number, "start_ps": 0, "end_ps": last_us * US_PS, "first_end_ps": first_us * US_PS,
         "last_rank": rank}
        for number, (first_us, last_us, rank) in enumerate(rows)
    ]  # fmt: skip
    types = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string()}
    schema = pa.schema([(column.name, types[column.type]) for column in TABLES["collectives"]])
    tables = {"collectives": pa.Table.from_pylist(known, schema=schema)}
    return write_run(
        folder / "run", scenario="", about=ABOUT, summary={}, answer=ANSWER, tables=all_tables(tables),
        provenance=PROVENANCE,
    )  # fmt: skip


def test_the_longest_wait_of_all_repetitions_is_told(tmp_path: Path) -> None:
    run = of_repetitions(tmp_path, (95, 100, 3), (60, 100, 7), (90, 100, 1))
    assert _waits(run).replace("\u202f", " ") == "Rank 7 had its result last, 40 us after the first."


@pytest.mark.parametrize(
    "rows", [((99, 100, 3),), ((20, 100, None),), ()], ids=["together", "cut off", "no collective"]
)
def test_nobody_waited(tmp_path: Path, rows: tuple[tuple[int, int, int | None], ...]) -> None:
    assert _waits(of_repetitions(tmp_path, *rows)) == ""
