"""The objective of a tuning: a number of the summary, or an expression.

An expression has numbers of the summary by their names, decimal numbers, ``+ - * /``, brackets, and `FUNCTIONS`;
``default(NAME)`` is the mean of a number with the values of the file. A name that is no name of Python stands in
quotes: ``'fct_p99.9_ps'``. It is read by `ast` and walked here; nothing of it is run.
Leaves out: powers and comparisons; how scenarios are joined (`weftwork.study.tune.scores`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.numbers import HEADLINES, is_larger_better
from weftwork.study.sweep.verdict import objective_of

__all__ = ["FUNCTIONS", "NoValueError", "Objective", "objective_from"]

MOST_LETTERS: Final = 300  # chosen: nobody reads a longer one, and Python's own parser nests no deeper than it bears
FUNCTIONS: Final = ("abs", "default", "log", "max", "min")
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.Div: lambda one, other: one / other,
}


class NoValueError(Exception):
    """A run without a value of the objective; the text gives the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """The objective.

    Attributes
    ----------
    text : as it was asked for
    names : numbers of the summary that it reads
    unit : of a plain number; empty for an expression
    is_larger_better : whether more of it is better
    tree : the expression
    """

    text: str
    names: tuple[str, ...]
    unit: str
    is_larger_better: bool
    tree: ast.expr

    @property
    def is_of_whole_runs(self) -> bool:
        """Whether it reads a number that only finished runs have."""
        return any(name in HEADLINES for name in self.names)

    def value(self, numbers: Mapping[str, float | None], defaults: Mapping[str, float | None]) -> float:
        """Return the objective of one run.

        Parameters
        ----------
        numbers : of its summary
        defaults : means of the runs with the values of the file

        Raises
        ------
        NoValueError : a number is missing, or the arithmetic has no result
        """
        try:
            found = _value(self.tree, numbers, defaults)
        except ZeroDivisionError:
            raise NoValueError(f"{self.text} divides by 0") from None
        except (ValueError, OverflowError):
            raise NoValueError(f"{self.text} takes the logarithm of a number that is not above 0") from None
        if not math.isfinite(found):
            raise NoValueError(f"{self.text} is not finite")
        return found


def objective_from(
    text: str | None, numbers: Mapping[str, Mapping[str, object]], *, maximises: bool = False
) -> Objective:
    """Read an objective.

    Parameters
    ----------
    text : of the option; None for the headline of the runs
    numbers : of a summary, which say what names there are
    maximises : more is better; of a plain number that follows from its unit

    Raises
    ------
    ConfigError : with all mistakes
    """
    headline = objective_of(numbers, None)
    plain = headline if text is None else text.strip()
    if plain is None:
        raise _wrong(["the runs have no time of an iteration, a collective or all messages; give --objective NUMBER"])
    if plain in numbers:
        unit = str(numbers[plain]["unit"])
        larger = maximises or is_larger_better(plain)
        return Objective(text=plain, names=(plain,), unit=unit, is_larger_better=larger, tree=ast.Name(id=plain))
    tree, names = _parsed(plain, numbers)
    return Objective(text=plain, names=names, unit="", is_larger_better=maximises, tree=tree)


def _parsed(text: str, numbers: Mapping[str, object]) -> tuple[ast.expr, tuple[str, ...]]:
    if len(text) > MOST_LETTERS:
        raise _wrong([f"found {plural(len(text), 'letter')}, wanted at most {MOST_LETTERS}"])
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise _wrong([f"found '{text}', which is not an expression: {error.args[0]}"]) from error
    names: list[str] = []
    mistakes: list[str | Mistake] = []
    _check(tree, numbers, names, mistakes)
    if not names and not mistakes:
        mistakes.append(f"found '{text}', wanted at least one number of the summary: {', '.join(numbers)}")
    if mistakes:
        raise _wrong(mistakes)
    return tree, tuple(dict.fromkeys(names))


def _check(node: ast.expr, numbers: Mapping[str, object], names: list[str], mistakes: list[str | Mistake]) -> None:
    """Collect the names of an expression, and its mistakes."""
    match node:
        case ast.Constant(value=bool()):
            mistakes.append(f"found '{ast.unparse(node)}', wanted a number")
        case ast.Constant(value=int() | float()):
            pass
        case ast.Name(id=name) | ast.Constant(value=str() as name):
            if name in numbers:
                names.append(name)
            else:
                told = f"found '{name}', which the runs do not have; they have {', '.join(numbers)}"
                mistakes.append(Mistake(path="--objective", text=told, fix=nearest(name, numbers)))
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            _check(node.left, numbers, names, mistakes)
            _check(node.right, numbers, names, mistakes)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            _check(node.operand, numbers, names, mistakes)
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]) if function in FUNCTIONS:
            _check_call(function, arguments, numbers, names, mistakes)
        case ast.Call(func=ast.Name(id=function)):
            told = f"found '{function}(...)', wanted {', '.join(FUNCTIONS)} with arguments by place"
            mistakes.append(Mistake(path="--objective", text=told, fix=nearest(function, FUNCTIONS)))
        case _:
            mistakes.append(
                f"found '{ast.unparse(node)}', wanted numbers of the summary, + - * /, brackets and"
                f" {', '.join(FUNCTIONS)}"
            )


def _check_call(
    function: str,
    arguments: Sequence[ast.expr],
    numbers: Mapping[str, object],
    names: list[str],
    mistakes: list[str | Mistake],
) -> None:
    if function in {"min", "max"}:
        if len(arguments) < 2:
            mistakes.append(f"found {function} of {len(arguments)}, wanted two or more arguments")
    elif len(arguments) != 1:
        mistakes.append(f"found {function} of {len(arguments)}, wanted one argument")
    elif function == "default" and _name(arguments[0]) is None:
        mistakes.append(f"found 'default({ast.unparse(arguments[0])})', wanted the name of a number")
        return
    for one in arguments:
        _check(one, numbers, names, mistakes)


def _name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Constant(value=str() as name):
            return name
    return None


def _value(node: ast.expr, numbers: Mapping[str, float | None], defaults: Mapping[str, float | None]) -> float:
    """Evaluate an expression that `_check` has accepted."""
    name = _name(node)
    if name is not None:
        return _number(name, numbers)
    match node:
        case ast.Constant(value=value):
            return float(value)  # type: ignore[arg-type]  # a number: `_check`
        case ast.BinOp(left=left, op=operation, right=right):
            return _OPERATIONS[type(operation)](_value(left, numbers, defaults), _value(right, numbers, defaults))
        case ast.UnaryOp(op=operation, operand=operand):
            found = _value(operand, numbers, defaults)
            return -found if isinstance(operation, ast.USub) else found
        case ast.Call(func=ast.Name(id="default"), args=[argument]):
            return _number(str(_name(argument)), defaults)
        case ast.Call(func=ast.Name(id=function), args=arguments):
            found_all = [_value(one, numbers, defaults) for one in arguments]
            match function:
                case "min":
                    return min(found_all)
                case "max":
                    return max(found_all)
                case "abs":
                    return abs(found_all[0])
            return math.log(found_all[0])
    raise NoValueError(f"{ast.unparse(node)} has no value")


def _number(name: str, numbers: Mapping[str, float | None]) -> float:
    found = numbers.get(name)
    if found is None:
        raise NoValueError(f"the run has no {name}")
    return float(found)


def _wrong(mistakes: Sequence[str | Mistake]) -> ConfigError:
    told = [one if isinstance(one, Mistake) else Mistake(path="--objective", text=one) for one in mistakes]
    return ConfigError("command line", told)
