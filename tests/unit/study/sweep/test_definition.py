"""What a sweep asks for: grids, zipped keys, lists, random samples; and every mistake at once, with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.study.sweep.definition import split_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4", ["1", "2", "4"]),
        ("[2,1],[4,1]", ["[2,1]", "[4,1]"]),
        ("{name: dcqcn, g: 0.004},none", ["{name: dcqcn, g: 0.004}", "none"]),
        ("'a,b',c", ["'a,b'", "c"]),
        ("one", ["one"]),
        ("1, 2", ["1", "2"]),
    ],
)
def test_commas_outside_brackets_separate_values(text: str, values: list[str]) -> None:
    assert split_values(text) == values


@given(values=st.lists(st.lists(st.integers(0, 99), min_size=1), min_size=1))
def test_values_that_are_lists_come_back_as_they_were(values: list[list[int]]) -> None:
    texts = [str(one) for one in values]
    assert split_values(",".join(texts)) == texts
