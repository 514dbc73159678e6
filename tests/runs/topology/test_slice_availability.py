"""How often a slice of a TPU pod is available: closed forms, exact states, random states and most blocks."""

from __future__ import annotations

import math
from itertools import combinations, product

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.topology.slice_availability import most_blocks, slice_rows
from weftwork.topology.tpu_slices import blocks, place_slice

Block = tuple[int, int, int]


BLOCKS = st.tuples(*[st.integers(1, 3)] * 3)


def by_states(cubes: int, block: Block, up: float, *, has_optical: bool) -> float:
    """Probability by placing the slice in every state of the pod."""
    sides = [4 * side for side in block]
    total = 0.0
    for state in product((0, 1), repeat=cubes):
        failed = {cube for cube, is_up in enumerate(state) if not is_up}
        if place_slice(sides, cubes=cubes, failed=failed, has_optical=has_optical) is not None:
            total += up ** (cubes - len(failed)) * (1 - up) ** len(failed)
    return total


@settings(max_examples=case_count(plain=10, deep=60))
@given(cubes=st.integers(1, 9), block=BLOCKS, up=st.floats(0.05, 0.95))
def test_probabilities_are_those_of_all_states(cubes: int, block: Block, up: float) -> None:
    x, y, z = (4 * side for side in sorted(block))
    row = next(
        (row for row in slice_rows(cubes=cubes, failed=(), up=up, own=(x, y, z)) if row.sides == (x, y, z)), None
    )
    assert row is not None
    assert row.fixed_available.error == 0
    assert row.fixed_available.value == pytest.approx(by_states(cubes, block, up, has_optical=False))
    assert row.optical_available == pytest.approx(by_states(cubes, block, up, has_optical=True), abs=1e-12)


def test_a_whole_pod_needs_every_cube() -> None:
    row = slice_rows(cubes=64, failed=(), up=0.99)[-1 - sum(1 for _ in range(6))]
    assert row.sides == (16, 16, 16)
    assert row.optical_available == pytest.approx(0.99**64)
    assert row.fixed_available.value == pytest.approx(0.99**64)
    assert (row.optical_count, row.fixed_count) == (1, 1)


def test_optical_switches_never_make_a_slice_rarer() -> None:
    for row in slice_rows(cubes=64, failed=(0, 21, 42, 63), up=0.97):
        assert row.optical_count >= row.fixed_count
        assert row.optical_available >= row.fixed_available.value - 4 * row.fixed_available.error
        assert row.optical_goodput >= row.fixed_goodput - 1e-12
        assert row.optical_count == 60 // row.cubes


def test_goodput_of_half_a_pod() -> None:
    row = next(row for row in slice_rows(cubes=64, failed=(), up=0.98) if row.sides == (8, 16, 16))
    some = sum(math.comb(64, up) * 0.98**up * 0.02 ** (64 - up) for up in range(32, 64)) / 2
    assert row.optical_goodput == pytest.approx(some + 0.98**64)
    assert row.fixed_goodput == pytest.approx(0.98**32)


@settings(max_examples=case_count(plain=15, deep=100))
@given(
    cubes=st.sampled_from([4, 6, 8]),
    block=st.tuples(*[st.integers(1, 2)] * 3),
    failed=st.sets(st.integers(0, 7), max_size=3),
)
def test_most_blocks_is_the_most_by_search(cubes: int, block: Block, failed: set[int]) -> None:
    healthy = [{*one} for one in blocks(cubes, block) if not failed & {*one}]
    size = math.prod(block)
    most = next(
        (
            count
            for count in range(cubes // size, 0, -1)
            if any(len(set().union(*some)) == count * size for some in combinations(healthy, count))
        ),
        0,
    )
    assert most_blocks(cubes, block, frozenset(failed)) == (most, True)
