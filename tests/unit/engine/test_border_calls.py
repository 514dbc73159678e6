"""No value crosses between Python and the core by its place among others: functions of the core take names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import weftwork.engine
from weftwork.engine import _native

STUB = ast.parse((Path(weftwork.engine.__file__).parent / "_native.pyi").read_text(encoding="utf-8"))


def functions(owner: ast.Module | ast.ClassDef, before: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield every function with its full name."""
    for each in owner.body:
        if isinstance(each, ast.FunctionDef):
            yield f"{before}{each.name}", each
        elif isinstance(each, ast.ClassDef):
            yield from functions(each, f"{each.name}.")


def by_position(function: ast.FunctionDef) -> list[str]:
    """Arguments that may be given by position, besides the object itself."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args) if each.arg != "self"]


def has_places(kind: ast.expr | None) -> bool:
    """Whether a type is a tuple, or has one in it."""
    return kind is not None and any(isinstance(part, ast.Name) and part.id == "tuple" for part in ast.walk(kind))


FUNCTIONS = dict(functions(STUB))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_core_takes_at_most_one_argument_by_position(name: str) -> None:
    assert len(by_position(FUNCTIONS[name])) <= 1, "nb::kw_only(), or an Input of weftwork.engine.rows"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_core_returns_no_tuple(name: str) -> None:
    function = FUNCTIONS[name]
    kinds = [each.annotation for each in (*function.args.args, *function.args.kwonlyargs)]
    assert [kind for kind in (*kinds, function.returns) if has_places(kind)] == [], "rows of a record, or a dictionary"


@pytest.mark.parametrize(
    ("text", "places", "is_tuple"),
    [
        ("def run(first: int, second: int) -> None: ...", ["first", "second"], False),
        ("def run(self, first: int, *, second: int) -> None: ...", ["first"], False),
        ("def run() -> list[tuple[str, int]]: ...", [], True),
    ],
)
def test_the_rule_sees_what_it_forbids(text: str, places: list[str], *, is_tuple: bool) -> None:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert by_position(function) == places
    assert has_places(function.returns) == is_tuple


def test_the_stub_names_what_the_core_has() -> None:
    of_stub = {name.partition(".")[0] for name in FUNCTIONS}
    of_core = {name for name, value in vars(_native).items() if callable(value) and not name.startswith("_")}
    errors = {
        name for name in of_core if isinstance(vars(_native)[name], type) and issubclass(vars(_native)[name], Exception)
    }
    assert of_core - errors == of_stub


def test_the_core_refuses_a_second_argument_by_position() -> None:
    fluid = _native.Fluid.__new__(_native.Fluid)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        fluid.stop(0, 1, 2.0)  # type: ignore[call-arg]
