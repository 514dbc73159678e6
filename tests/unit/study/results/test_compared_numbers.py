"""Two runs side by side: the second is measured against the first, and seeds decide what is clear."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from helpers.run_folders import ANSWER

from weftwork.spec.comparison import ComparedNumber
from weftwork.spec.endings import ENDINGS, WHOLE
from weftwork.store.runs import Run
from weftwork.study.results.compare_runs import compare_runs


def a_run(scenario: str = "schema: 3\n", digest: str | None = None, **numbers: tuple[float | None, ...]) -> Run:
    """A run with numbers, each a value or a value with the ends of its interval over three seeds."""
    summary: dict[str, dict[str, Any]] = {
        name: {"value": value, "unit": "ps", **({"low": rest[0], "high": rest[1], "seeds": 3} if rest else {})}
        for name, (value, *rest) in numbers.items()
    }
    known = {"about": {"name": "a"}, "path": Path("nowhere"), "seeds": (), "status": WHOLE, "ending": ENDINGS[WHOLE],
             "is_complete": True,
             "answer": ANSWER}  # fmt: skip
    return cast(
        "Run", SimpleNamespace(scenario=scenario, summary=summary, provenance={"digest": digest, "files": {}}, **known)
    )


def pair(first: tuple[float | None, ...], second: tuple[float | None, ...]) -> ComparedNumber:
    (found,) = compare_runs([a_run(fct=first), a_run(fct=second)]).numbers
    return found


@pytest.mark.parametrize(
    ("first", "second", "change"),
    [(4.0, 5.0, 0.25), (5.0, 4.0, -0.2), (4.0, 4.0, 0.0), (4.0, 0.0, -1.0), (0.0, 4.0, None), (None, 4.0, None),
     (4.0, None, None)],
)  # fmt: skip
def test_a_change_is_that_of_the_second_against_the_first(
    first: float | None, second: float | None, change: float | None
) -> None:
    found = pair((first,), (second,))
    assert found.values == (first, second)
    assert found.changes == (None, None if change is None else pytest.approx(change))
    assert found.is_clear == (None, None)


@pytest.mark.parametrize(
    ("first", "second", "is_clear"),
    [
        ((2.0, 1.0, 3.0), (5.0, 4.0, 6.0), True),  # apart
        ((2.0, 1.0, 3.0), (4.0, 3.0, 5.0), False),  # they touch
        ((2.0, 1.0, 3.0), (3.0, 2.0, 4.0), False),  # they overlap
        ((3.0, 1.0, 5.0), (3.0, 2.0, 4.0), False),  # one inside the other
    ],
)
def test_a_change_is_clear_where_the_intervals_of_both_do_not_touch(
    first: tuple[float, ...], second: tuple[float, ...], *, is_clear: bool
) -> None:
    assert pair(first, second).is_clear == pair(second, first).is_clear == (None, is_clear)
    assert pair(first, second[:1]).is_clear == pair(first[:1], second).is_clear == (None, None)


def test_keys_that_differ_are_told_with_both_values() -> None:
    one = a_run("schema: 3\nfabric: {radix: 4}\nfaults: [{at: 1us, link: a}]\nname: x\n")
    other = a_run("schema: 3\nfabric: {radix: 8, nic: {pcie: true}}\nfaults: [{at: 2us, link: a}]\nname: x\n")
    found = [(one.key, *one.values) for one in compare_runs([one, other]).differences]
    assert found == [("fabric.radix", "4", "8"), ("faults.0.at", "1us", "2us"), ("fabric.nic.pcie", None, "true")]


@pytest.mark.parametrize(
    ("first", "second", "is_same"), [("ab", "ab", True), ("ab", "cd", False), (None, None, False), ("ab", None, False)]
)
def test_results_are_the_same_where_both_digests_are_there_and_equal(
    first: str | None, second: str | None, *, is_same: bool
) -> None:
    assert compare_runs([a_run(digest=first), a_run(digest=second)]).is_same_result is is_same
