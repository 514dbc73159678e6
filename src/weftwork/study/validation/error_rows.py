"""Errors of the scorecard, row by row, with what a row is of: the table behind the interval of each time.

``python -m weftwork.study.validation.error_rows > src/weftwork/data/scored_errors.csv`` writes the table. A row that
Weftwork predicts takes the road of every run (`weftwork.study.validation.predict`).
Leaves out: sets that compare with programs, and ratios of fabrics, which are no measured times; curves that were fitted
to the network whose rows they predict.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from dataclasses import astuple, fields

from weftwork.base.grammar import plural
from weftwork.data.scored import ScoredError
from weftwork.hardware.catalogue import SERVERS
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.prepare.likeness import Likeness, family
from weftwork.study.validation.curves import CurveRow, rows_of
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.validate import SETS, point_of

__all__ = ["error_rows", "scored_error", "scored_rows", "write_table"]

_DIGITS = 4  # chosen: of an error; the next digit is below what any source publishes


def scored_rows() -> tuple[tuple[str, Case | CurveRow], ...]:
    """Rows of the scorecard that are measured times, each with the key of its set."""
    rows: list[tuple[str, Case | CurveRow]] = []
    for key, chosen in SETS.items():
        if chosen.cases is not None:
            rows += [(key, case) for case in chosen.cases(True)[0]]  # noqa: FBT003
        rows += [(key, row) for row in rows_of(key) if not row.is_calibrated]
    return tuple(rows)


def likeness_of(row: Case | CurveRow) -> Likeness:
    """What a row of the scorecard is a measurement of."""
    if isinstance(row, CurveRow):
        gpu = str(SERVERS[row.server].value("gpu"))
        hosts = -(-row.gpus // row.domain_gpus)
        return Likeness.of_collective(row.operation, gpu, row.gpus, hosts=hosts, size_bytes=row.size_bytes)
    return Likeness.of_training(row.model, row.plan, row.gpu, row.software)


def scored_error(asked: tuple[str, Case | CurveRow]) -> ScoredError:
    """Predict a row and return its error with what it is of.

    Parameters
    ----------
    asked : the key of a set and a row of it
    """
    key, row = asked
    like = likeness_of(row)
    return ScoredError(
        set=key,
        gpu=like.gpu,
        precision=like.precision,
        software=family(like.software),
        kind=like.kind,
        gpus=like.gpus,
        size_bytes=like.size_bytes,
        error=round(point_of((row, {})).error, _DIGITS),
    )


def error_rows(processes: int) -> Iterator[ScoredError]:
    """Predict every row of `scored_rows`.

    Parameters
    ----------
    processes : that predict side by side
    """
    with worker_processes(processes) as workers:
        yield from workers.answers(scored_error, scored_rows())


def write_table() -> None:
    """Write the table to standard output, and what goes on to standard error."""
    rows = len(scored_rows())
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow([field.name for field in fields(ScoredError)])
    for place, row in enumerate(error_rows(len(os.sched_getaffinity(0))), 1):
        table.writerow(astuple(row))
        sys.stderr.write(f"\r{place} of {plural(rows, 'row')}{'' if place < rows else chr(10)}")


if __name__ == "__main__":
    write_table()
