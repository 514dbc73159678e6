"""The first sentence of a comparison: which run was faster, and by how much."""

from __future__ import annotations

import pytest

from weftwork.cli.compare import headline
from weftwork.study.results.compare import Comparison, NumberPair


def compared(first: float, second: float, *, is_clear: bool | None = None, name: str = "completion_ps") -> Comparison:
    pair = NumberPair(name=name, unit="ps", first=first, second=second, change=second / first - 1, is_clear=is_clear)
    return Comparison(differences=(), numbers=(pair,), is_same_result=False)


def said(found: Comparison, *, is_whole: bool = True) -> str:
    return headline(found, is_whole=is_whole).replace("\u202f", " ")


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (8e6, 10e6, "The second took 25 % more time: 10 us against 8 us."),
        (10e6, 8e6, "The second took 20 % less time: 8 us against 10 us."),
        (8e6, 24e6, "The second took 3 times as long: 24 us against 8 us."),
        (8e6, 16e6, "The second took 2 times as long: 16 us against 8 us."),
        (8e6, 8e6, "Both took as long: 8 us against 8 us."),
    ],
)
def test_the_second_is_told_against_the_first(first: float, second: float, sentence: str) -> None:
    numbers = said(compared(first, second)).replace(".0 ", " ").replace(".00 ", " ")
    assert numbers == sentence


@pytest.mark.parametrize(
    ("is_clear", "end"), [(True, ", beyond what seeds explain."), (False, ", within what seeds explain.")]
)
def test_seeds_say_whether_it_is_clear(*, is_clear: bool, end: str) -> None:
    assert said(compared(8e6, 10e6, is_clear=is_clear)).endswith(end)


def test_what_cannot_be_compared_is_not() -> None:
    assert "not every run finished" in said(compared(8e6, 10e6), is_whole=False)
    assert said(compared(8e6, 10e6, name="drops")) == "The completion times cannot be compared."
