"""The reference model's published runs: what their rows say, and what a run of a row gives."""

from __future__ import annotations

import pytest

from weftwork.study.validation.ultra_ethernet import small_cases


@pytest.mark.parametrize("paths", ["bitmap", "mixed", "reps"])
def test_1024_hosts_take_as_long_as_in_the_reference_model(paths: str) -> None:
    (row,) = [row for row in small_cases()[0] if row.pattern == "permutation" and row.path_selection == paths]
    assert abs(row.point().error) < 0.05
