"""Conditions of the shell: true, false, or not known.

Source: POSIX.1-2017, Shell and Utilities, ``test``; ``[[ ... ]]`` as in the GNU Bash manual, section 3.2.5.2.
Leaves out: files, of which a script that is not run knows nothing.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weftwork.workload.imports.shell_values import without_value

__all__ = ["is_match", "test_words", "truth_of_all", "truth_of_any"]

_NUMBERS: Final = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
_OF_FILES: Final = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxGLNOS")
_BETWEEN: Final = frozenset({"=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef", *_NUMBERS})
_SLOW: Final = (")*", ")+", ")?", "{", "\\", "[[:")
_LONGEST: Final = 2_000  # chosen: letters of a text that is compared with a pattern


def truth_of_all(*truths: bool | None) -> bool | None:
    """``&&`` of truths that may be unknown."""
    return False if False in truths else None if None in truths else True


def truth_of_any(*truths: bool | None) -> bool | None:
    """``||`` of truths that may be unknown."""
    return True if True in truths else None if None in truths else False


def is_match(text: str, pattern: str) -> bool | None:
    """Whether a pattern of the shell covers a text."""
    if without_value(text) or without_value(pattern) or len(text) + len(pattern) > _LONGEST:
        return None
    try:
        return fnmatch.fnmatchcase(text, pattern.replace("[^", "[!"))
    except re.error:
        return None


def test_words(words: Sequence[str], *, is_double: bool) -> bool | None:
    """Judge the words between brackets.

    Parameters
    ----------
    words : with values; a mark in one makes what depends on it unknown
    is_double : ``[[ ... ]]``, in which the right side is a pattern

    Examples
    --------
    >>> test_words(["8", "-eq", "70"], is_double=True)
    False
    """
    reader = _ConditionReader(words=words, is_double=is_double)
    truth = reader.any()
    return truth if reader.at >= len(words) else None


@dataclass(kw_only=True)
class _ConditionReader:
    words: Sequence[str]
    is_double: bool
    at: int = 0
    depth: int = 0

    @property
    def _next(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def any(self) -> bool | None:
        truth = self._all()
        while self._next in {"||", "-o"}:
            self.at += 1
            truth = truth_of_any(truth, self._all())
        return truth

    def _all(self) -> bool | None:
        truth = self._not()
        while self._next in {"&&", "-a"}:
            self.at += 1
            truth = truth_of_all(truth, self._not())
        return truth

    def _not(self) -> bool | None:
        is_negated = False
        while self._next == "!" and self.at + 1 < len(self.words):
            self.at += 1
            is_negated = not is_negated
        truth = self._one()
        return truth if truth is None or not is_negated else not truth

    def _one(self) -> bool | None:
        first = self._next
        if first is None:
            return False
        second = self.words[self.at + 1] if self.at + 1 < len(self.words) else None
        if first == "(" and second not in _BETWEEN and self.depth < 20:  # chosen: nobody nests deeper
            self.at, self.depth = self.at + 1, self.depth + 1
            truth = self.any()
            self.at += self._next == ")"
            self.depth -= 1
            return truth
        if second in _BETWEEN and self.at + 2 < len(self.words):
            self.at += 3
            return self._compared(first, second, self.words[self.at - 1])
        if second is not None and (first in {"-z", "-n", "-v"} or first in _OF_FILES):
            self.at += 2
            return _single(first, second)
        self.at += 1
        return None if without_value(first) else first != ""

    def _compared(self, first: str, operator: str, second: str) -> bool | None:
        if operator in _NUMBERS:
            return _numbers(first, _NUMBERS[operator], second, is_double=self.is_double)
        if operator in {"-nt", "-ot", "-ef"}:
            return None
        if operator == "=~":
            return _expression(first, second)
        if operator in {"<", ">"}:
            is_known = not without_value(first) and not without_value(second)
            return ((first < second) if operator == "<" else (first > second)) if is_known else None
        equal = is_match(first, second) if self.is_double else _equal(first, second)
        return equal if equal is None or operator != "!=" else not equal


def _equal(first: str, second: str) -> bool | None:
    if first == second:
        return True
    return None if without_value(first) or without_value(second) else False


def _single(operator: str, text: str) -> bool | None:
    if operator in {"-z", "-n"}:
        rest = re.sub("\0[^\1]*\1", "", text)
        if rest != text and not rest:
            return None
        return (operator == "-n") == bool(rest)
    return False if not text and operator != "-v" else None


def _numbers(first: str, operator: str, second: str, *, is_double: bool) -> bool | None:
    values = []
    for text in (first, second):
        if without_value(text):
            return None
        number = text.strip()
        if not number and is_double:
            number = "0"
        if not re.fullmatch(r"[-+]?[0-9]{1,18}", number):
            return None if number else False  # the shell says that no whole number stands there
        values.append(int(number))
    left, right = values
    return {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
            ">=": left >= right}[operator]  # fmt: skip


def _expression(text: str, pattern: str) -> bool | None:
    if without_value(text) or without_value(pattern) or len(text) + len(pattern) > _LONGEST:
        return None
    repetitions = sum(pattern.count(letter) for letter in "*+?")
    if repetitions > 2 or pattern.count("(") > 1 or any(part in pattern for part in _SLOW):
        return None  # chosen: such expressions could take for ever
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return None
