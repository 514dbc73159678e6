"""Errors of predictions of published measurements, which give each predicted time its interval.

Source: the scorecard's rows, written by `weftwork.study.validation.error_rows`.
Leaves out: how a group of rows is chosen for a time (`weftwork.study.answer.interval`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["ScoredError", "scored_errors"]

_FILE = "scored_errors.csv"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredError:
    """The error of one predicted row, and what the row is a measurement of.

    Attributes
    ----------
    set : key of the scorecard's set
    gpu, precision, software, kind, gpus, size_bytes : as of `weftwork.study.prepare.likeness.Likeness`; the software
        without its release
    error : predicted over measured time, less one
    """

    set: str
    gpu: str
    precision: str
    software: str
    kind: str
    gpus: int
    size_bytes: int
    error: float


@cache
def scored_errors() -> tuple[ScoredError, ...]:
    """All rows of the table, in the order of the scorecard."""
    text = (files("weftwork.data") / _FILE).read_text(encoding="utf-8")
    return tuple(
        ScoredError(
            set=row["set"],
            gpu=row["gpu"],
            precision=row["precision"],
            software=row["software"],
            kind=row["kind"],
            gpus=int(row["gpus"]),
            size_bytes=int(row["size_bytes"]),
            error=float(row["error"]),
        )
        for row in csv.DictReader(text.splitlines())
    )
