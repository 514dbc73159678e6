"""Whole numbers of the shell: ``$(( ... ))``, ``(( ... ))`` and ``let``.

Source: POSIX.1-2017, Shell Command Language, section 2.6.4; operators as in the GNU Bash manual, section 6.5.
Leaves out: shifts, bits and numbers that leave 64 bits, which have no value here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Final

__all__ = ["calculate"]

_TOKEN: Final = re.compile(
    r"\s*(0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18}(?![0-9A-Za-z_#])|[A-Za-z_]\w*|\*\*|\+\+|--|[-+*/%]?=(?!=)"
    r"|[<>=!]=|&&|\|\||[-+*/%()<>!?:,])"
)
_LARGEST: Final = 2**62
_DEEPEST: Final = 60  # chosen: brackets in brackets that a person writes
_MOST_TOKENS: Final = 200  # chosen: nobody writes two hundred numbers and signs
_BINDING: Final = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5,
                   "*": 6, "/": 6, "%": 6, "**": 7}  # fmt: skip


def calculate(
    text: str, value_of: Callable[[str], int | None], assigned: MutableMapping[str, int | None] | None = None
) -> int | None:
    """Value of an expression, or None without one.

    Parameters
    ----------
    text : variables stand by name or with their value in place
    value_of : a variable's value
    assigned : receives what the expression assigns; None for a value that is not known

    Examples
    --------
    >>> calculate("GPUS * 4 / (TP > 1 ? TP : 2)", {"GPUS": 8, "TP": 4}.get)
    8
    """
    tokens: list[str] = []
    text, at = text.strip(), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(match[1])
        at = match.end()
        if len(tokens) > _MOST_TOKENS:
            return None
    reader = _NumberReader(tokens=tokens, value_of=value_of, assigned={} if assigned is None else assigned)
    try:
        value = reader.list_()
    except _NoExpressionError:
        return None
    return value if reader.at == len(tokens) else None


class _NoExpressionError(Exception):
    """The text is no expression."""


@dataclass(kw_only=True)
class _NumberReader:
    tokens: list[str]
    value_of: Callable[[str], int | None]
    assigned: MutableMapping[str, int | None]
    at: int = 0
    depth: int = 0

    @property
    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _accept(self, token: str) -> bool:
        if self._next != token:
            return False
        self.at += 1
        return True

    def list_(self) -> int | None:
        """Expressions with commas between them; the last one counts."""
        value = self._assignment()
        while self._accept(","):
            value = self._assignment()
        return value

    def _assignment(self) -> int | None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NoExpressionError
        name, operator = self._next, self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else ""
        if name.isidentifier() and operator.endswith("=") and operator not in _BINDING:
            self.at += 2
            value = self._assignment()
            if operator != "=":
                value = _calculated(operator[0], self._variable(name), value)
            self.assigned[name] = value
        else:
            value = self._choice()
        self.depth -= 1
        return value

    def _choice(self) -> int | None:
        condition = self._binary(1)
        if not self._accept("?"):
            return condition
        first = self._assignment()
        if not self._accept(":"):
            raise _NoExpressionError
        second = self._assignment()
        return None if condition is None else first if condition else second

    def _binary(self, least: int) -> int | None:
        value = self._unary()
        while _BINDING.get(self._next, 0) >= least:
            operator = self._next
            self.at += 1
            is_right = operator == "**"
            second = self._binary(_BINDING[operator] + (not is_right))
            value = _calculated(operator, value, second)
        return value

    def _unary(self) -> int | None:
        token = self._next
        self.at += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NoExpressionError
        try:
            return self._operand(token)
        finally:
            self.depth -= 1

    def _operand(self, token: str) -> int | None:
        if token == "(":  # noqa: S105 - a bracket
            value = self.list_()
            if not self._accept(")"):
                raise _NoExpressionError
            return value
        if token in {"-", "+", "!"}:
            value = self._unary()
            return None if value is None else {"-": -value, "+": value, "!": int(not value)}[token]
        if token in {"++", "--"}:
            return self._step(self._name(), token, is_before=True)
        if token[:1].isdigit():
            return int(token, 16 if token[:2] in {"0x", "0X"} else 8 if _is_octal(token) else 10)
        if not token.isidentifier():
            raise _NoExpressionError
        if self._next in {"++", "--"}:
            step = self._next
            self.at += 1
            return self._step(token, step, is_before=False)
        return self._variable(token)

    def _name(self) -> str:
        name = self._next
        if not name.isidentifier():
            raise _NoExpressionError
        self.at += 1
        return name

    def _step(self, name: str, step: str, *, is_before: bool) -> int | None:
        value = self._variable(name)
        after = None if value is None else value + (1 if step == "++" else -1)
        self.assigned[name] = after
        return after if is_before else value

    def _variable(self, name: str) -> int | None:
        return self.assigned[name] if name in self.assigned else self.value_of(name)


def _is_octal(token: str) -> bool:
    return re.fullmatch("0[0-7]+", token) is not None


def _calculated(operator: str, first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        decides = {("&&", 0): 0, ("||", 1): 1}
        known = first if second is None else second
        return None if known is None else decides.get((operator, int(bool(known))))
    if operator == "**":
        value = first**second if 0 <= second < 63 and abs(first) < _LARGEST else None
    elif operator in {"/", "%"}:
        quotient = abs(first) // abs(second) if second else None  # towards zero
        sign = 1 if (first < 0) == (second < 0) else -1
        value = None if quotient is None else quotient * sign if operator == "/" else first - second * quotient * sign
    else:
        value = {
            "+": first + second, "-": first - second, "*": first * second, "<": int(first < second),
            ">": int(first > second), "<=": int(first <= second), ">=": int(first >= second),
            "==": int(first == second), "!=": int(first != second), "&&": int(bool(first and second)),
            "||": int(bool(first or second)),
        }[operator]  # fmt: skip
    return value if value is not None and abs(value) < _LARGEST else None
