"""Conditions of the shell: true, false, or not known."""

from __future__ import annotations

import pytest

from weftwork.workload.imports.shell_conditions import is_match, test_words
from weftwork.workload.imports.shell_values import mark

test_words.__test__ = False  # type: ignore[attr-defined]  # a function of the product, whose name says what it judges
X = mark("X")


@pytest.mark.parametrize(
    ("words", "truth"),
    [
        ("a", True), ("! a", False), ("", False), ("-n a", True), ("-z a", False), ("a = a", True), ("a != b", True),
        ("8 -eq 08", True), ("8 -lt 9 && 9 -le 9", True), ("8 -gt 9 || 9 -ge 9", True),
        ("( a = b || a = a ) && b", True),
        ("llama-8b == llama*", True), ("llama == *8b", False), ("v12 =~ ^v[0-9]+$", True), ("a =~ b|c", False),
        ("a < b", True), ("-f a", None), ("-d a || a", True), ("-d a && a = b", False), ("x -eq 1", None),
        ("X", None), ("X = a", None), ("X = a && a = b", False), ("-n aX", True), ("-n X", None), ("a =~ (a+)+", None),
        ("a -nt b", None), ("a =~ [", None),
    ],
)  # fmt: skip
def test_a_condition_is_judged(words: str, truth: bool | None) -> None:  # noqa: FBT001 - what the case expects
    assert test_words(words.replace("X", X).split(), is_double=True) is truth


def test_single_brackets_know_no_patterns_and_no_empty_numbers() -> None:
    assert test_words(["a*", "=", "ab"], is_double=False) is False
    assert test_words(["", "-eq", "0"], is_double=False) is False
    assert test_words(["", "-eq", "0"], is_double=True) is True


@pytest.mark.parametrize(
    ("text", "pattern", "truth"),
    [("7b", "7*", True), ("7b", "[^8]b", True), ("7b", "8b", False), (X, "*", None), ("a" * 5_000, "a*", None)],
)
def test_a_pattern_covers_a_text(text: str, pattern: str, truth: bool | None) -> None:  # noqa: FBT001 - as above
    assert is_match(text, pattern) is truth
