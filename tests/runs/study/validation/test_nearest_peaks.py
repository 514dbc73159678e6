"""Measured peaks that are near each other have errors that are alike."""

from __future__ import annotations

from itertools import product

import numpy as np

from weftwork.study.validation.nearest_peaks import NEAR, PeakQuestion, distance, is_comparable
from weftwork.study.validation.peak_memory import PeakRow, peak_rows


def asked(row: PeakRow) -> PeakQuestion:
    """The plan of a measured row as somebody would ask for it."""
    return PeakQuestion(
        model=row.model,
        plan=row.plan,
        gpu_bytes=row.gpu_bytes,
        software="plain",
        has_flash_attention=row.has_flash_attention,
    )


def test_errors_of_near_rows_are_alike_and_those_of_others_less_so() -> None:
    """What makes `NEAR` a bound: within it the errors of two rows differ by some 3 %, beyond by 5 % and more."""
    rows = [(row, row.error, asked(row)) for row in peak_rows() if not row.has_exceeded]
    near, far = [], []
    for (one, error, question), (other, other_error, _) in product(rows, rows):
        if one is not other and is_comparable(question, other):
            (near if distance(question, other) <= NEAR else far).append(abs(error - other_error))
    assert min(len(near), len(far)) > 500
    assert np.median(near) < 0.035
    assert np.median(far) > 0.05
