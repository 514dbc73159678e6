"""How often a slice of a TPU pod is available: closed forms, exact states, random states and most blocks."""

from __future__ import annotations

import pytest

from weftwork.topology import slice_availability
from weftwork.topology.slice_availability import available_in_blocks, most_blocks
from weftwork.topology.tpu_slices import grid_of


def test_random_states_agree_with_all_states(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = available_in_blocks(12, (1, 2, 2), 0.8)
    monkeypatch.setattr(slice_availability, "MOST_EXACT_CUBES", 1)
    found = available_in_blocks(12, (1, 2, 2), 0.8)
    assert 0 < found.error < 0.004
    assert found.value == pytest.approx(exact.value, abs=4 * found.error)
    assert found == available_in_blocks(12, (1, 2, 2), 0.8)
    assert found != available_in_blocks(12, (1, 2, 2), 0.8, seed=1)


def test_blocks_that_a_line_of_failed_cubes_leaves() -> None:
    line = frozenset(range(4))  # y = z = 0
    assert most_blocks(64, (2, 2, 2), frozenset()) == (8, True)
    assert most_blocks(64, (1, 4, 4), line) == (3, True)
    assert most_blocks(64, (4, 4, 4), frozenset({5})) == (0, True)
    assert grid_of(64) == (4, 4, 4)
