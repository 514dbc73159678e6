"""A set of PSNs as ranges does what a set of integers does."""

from hypothesis import given
from hypothesis import strategies as st

from weftwork.rdma.psn_ranges import PsnRanges

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 30)), max_size=30)


@given(STEPS, st.integers(0, 30), st.integers(0, 30))
def test_ranges_and_a_set_agree(steps: list[tuple[bool, int, int]], low: int, high: int) -> None:
    ranges, plain = PsnRanges(), set[int]()
    for adds, start, end in steps:
        if adds:
            ranges.add(start, end)
            plain |= set(range(start, end))
        else:
            ranges.discard(start, end)
            plain -= set(range(start, end))
    assert [psn for psn in range(31) if psn in ranges] == sorted(plain)
    assert bool(ranges) is bool(plain)
    gaps = ranges.gaps(low, high)
    assert [psn for start, end in gaps for psn in range(start, end)] == sorted(set(range(low, high)) - plain)
    assert all(start < end for start, end in gaps)
    if plain:
        start, end = ranges.first()
        assert start == min(plain)
        for psn in plain:
            start, end = ranges.around(psn)
            assert set(range(start, end)) <= plain
            assert not {start - 1, end} & plain
    ranges.clear()
    assert not ranges
