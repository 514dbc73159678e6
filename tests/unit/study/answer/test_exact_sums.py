"""Sums of times are exact, also where an integer of 64 bits does not hold them."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.study.answer.time_parts import _exact_sum


@pytest.mark.parametrize("most", [3, 2**33, 2**61])
def test_a_sum_is_that_of_whole_numbers(most: int) -> None:
    amounts, times = np.array([most - 1, most, 5], np.int64), np.array([2, 3, 2**20], np.int64)
    assert _exact_sum(amounts, times) == 2 * (most - 1) + 3 * most + 5 * 2**20


def test_a_sum_of_nothing_is_0() -> None:
    nothing = np.empty(0, np.int64)
    assert _exact_sum(nothing, nothing) == 0
