"""Check that a step computes the same in Python and when compiled.

It uses only the arithmetic in which both agree to the bit. The check comes before anything runs. The check walks the
syntax tree of the step and of the functions that it calls, of the same file or of a part, and knows the type
of every expression: int (64 bits), float (64 bits) or bool. What it refuses, and why: ``**`` and other functions of
``math`` (another last bit), a variable that is an int here and a float there (Python would keep the int, the compiler
not, and large products then differ), a float for an int field (truncated silently), a variable that may not be set
yet, ``//`` and ``%`` of floats; and ``while``, for a step must end: an engine that calls a compiled one cannot stop it.
Leaves out: the size of integers. They must stay below 2**63, and below 2**53 where they meet a float or ``/``.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from weftwork.base.errors import PolicyError
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.policies.interface import Kind
from weftwork.policies.layout import RecordLayout
from weftwork.policies.step_file import PARTS, arithmetic_name, part_names

if TYPE_CHECKING:
    from weftwork.policies.step_file import StepFile

__all__ = ["ALLOWED_IMPORTS", "Checked", "RecordType", "RecordsType", "check_imports", "check_step"]

ALLOWED_IMPORTS = ("__future__", "dataclasses", "math", "typing", "weftwork.policies.interface")
_FUNCTIONS = {"sqrt": "float", "exp": "float", "log": "float", "floor": "int", "ceil": "int"}
_CONSTANTS = ("inf", "pi")
_WIDE = ("draw", "hash", "queue_pair_hash", "word")  # 62 bits or more: a quotient of ints is not that of floats
_ALLOWED = (
    "allowed are + - * /, // and % of ints, & | ^ and >> of ints, comparisons, and, or, not, min, max, abs, int, "
    "float, bool, math.sqrt, exp, log, floor and ceil, if, for over range, and functions of the same file or of a part"
)

Scalar = Literal["int", "float", "bool", "kind"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordType:
    """An argument of a step: a record and its writable fields.

    None: the step may write every field.
    """

    layout: RecordLayout
    writable: frozenset[str] | None = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordsType:
    """An array of records, such as the candidates; ``writable`` as in `RecordType`."""

    layout: RecordLayout
    writable: frozenset[str] | None = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class _ArrayType:
    element: Scalar


Type = Scalar | RecordType | RecordsType | _ArrayType | None


@dataclass(kw_only=True)
class Checked:
    """Result of a check.

    Attributes
    ----------
    functions : of the step's own file that it needs, itself included
    part_functions : full name of the part, and name, of each function of a part that it needs
    fields : that it reads or writes: name of the record's layout, and of the field
    kinds : of signals that it names
    """

    functions: set[str] = field(default_factory=set)
    part_functions: set[tuple[str, str]] = field(default_factory=set)
    fields: set[tuple[str, str]] = field(default_factory=set)
    kinds: set[Kind] = field(default_factory=set)


def check_imports(file: str, tree: ast.Module) -> None:
    """Refuse imports that a compiled step could not follow.

    It is no sandbox: the file is run as any Python is.

    Raises
    ------
    PolicyError : an import other than of `ALLOWED_IMPORTS`, or of names of a part
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
            if names[0] in part_names() and all(alias.name != "*" for alias in node.names):
                continue
        else:
            continue
        for name in names:
            if name not in ALLOWED_IMPORTS:
                raise PolicyError(file, node.lineno, _why_not(name))


def _why_not(name: str) -> str:
    """Explain why a policy imports little.

    Nobody shall take the rule for a sandbox.
    """
    if name == PARTS or name.startswith(f"{PARTS}."):
        parts = ", ".join(part.removeprefix(f"{PARTS}.") for part in part_names())
        return f"a policy imports functions of a part by name: from {PARTS}.<part> import <name>; parts are {parts}"
    return (
        f"a policy may not import {name}: its steps become machine code, which cannot use modules; "
        f"allowed are {', '.join(ALLOWED_IMPORTS)} and names of {PARTS}.*; the rule is no protection, since all other "
        "lines of this file run as any Python does"
    )


def check_step(file: StepFile, name: str, arguments: tuple[Type, ...]) -> Checked:
    """Check a step and every function that it calls.

    Parameters
    ----------
    file : of the policy
    name : of the step
    arguments : types of its arguments, None where there is no record

    Raises
    ------
    PolicyError : with file, line and what is allowed
    """
    checked = Checked()
    function = file.functions[name]
    result = _Program(own=file, checked=checked).call(file, function, arguments)
    if result is not None:
        raise PolicyError(file.path, function.lineno, f"'{name}' returns a value; a step writes its state instead")
    return checked


@dataclass(kw_only=True)
class _Program:
    own: StepFile
    checked: Checked
    active: list[ast.FunctionDef] = field(default_factory=list)
    known: dict[tuple[ast.FunctionDef, tuple[Type, ...]], Type] = field(default_factory=dict)

    def call(self, file: StepFile, function: ast.FunctionDef, arguments: tuple[Type, ...]) -> Type:
        key = (function, arguments)
        if key in self.known:
            return self.known[key]
        if function in self.active:
            raise PolicyError(file.path, function.lineno, f"'{function.name}' calls itself; a step has no recursion")
        self.active.append(function)
        if file is self.own:
            self.checked.functions.add(function.name)
        else:
            self.checked.part_functions.add((str(file.namespace["__name__"]), function.name))
        result = _Function(self, file, function, arguments).check()
        self.active.pop()
        self.known[key] = result
        return result


class _Function:
    """One function with the types of its arguments."""

    def __init__(
        self, program: _Program, file: StepFile, function: ast.FunctionDef, arguments: tuple[Type, ...]
    ) -> None:
        self.program = program
        self.file = file
        self.function = function
        spec = function.args
        plain = not (spec.vararg or spec.kwarg or spec.kwonlyargs or spec.defaults or function.decorator_list)
        if not plain:
            raise self.wrong(function, "a function of a step has plain arguments only: no defaults, no *, no decorator")
        names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
        if len(names) != len(arguments):
            raise self.wrong(
                function, f"'{function.name}' takes {plural(len(names), 'argument')}, wanted {len(arguments)}"
            )
        self.types: dict[str, Type] = dict(zip(names, arguments, strict=True))
        self.first_line = dict.fromkeys(names, function.lineno)
        stores = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        self.local = set(names) | {node.id for node in stores}
        self.returned: list[Type] = []

    def check(self) -> Type:
        left = self.block(self.function.body, set(self.types))
        if left is not None and any(kind is not None for kind in self.returned):
            raise self.wrong(
                self.function, f"'{self.function.name}' may end without a value, but returns a value elsewhere"
            )
        return self.returned[0] if self.returned else None

    def wrong(self, node: ast.AST, text: str) -> PolicyError:
        return PolicyError(self.file.path, getattr(node, "lineno", self.function.lineno), text)

    # Statements. A block returns the variables that are surely set after it, or None if nothing follows it.

    def block(self, body: list[ast.stmt], assigned: set[str]) -> set[str] | None:
        current: set[str] | None = set(assigned)
        for statement in body:
            if current is None:
                raise self.wrong(statement, "this line is never reached")
            current = self.statement(statement, current)
        return current

    def statement(self, node: ast.stmt, assigned: set[str]) -> set[str] | None:
        match node:
            case ast.Pass():
                return assigned
            case ast.Expr(value=ast.Constant(value=str())):
                return assigned
            case ast.Expr(value=ast.Call()):
                self.expression(node.value, assigned)
                return assigned
            case ast.Assign(targets=[target], value=value):
                return self.store(target, self.expression(value, assigned), assigned)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self.store(target, self.expression(value, assigned), assigned)
            case ast.AugAssign(target=target, op=op, value=value):
                old = self.expression(self.loaded(target), assigned)
                return self.store(target, self.arithmetic(node, op, old, value, target, assigned), assigned)
            case ast.If():
                self.condition(node.test, assigned)
                return _both(self.block(node.body, assigned), self.block(node.orelse, assigned))
            case ast.While():
                text = "'while' cannot be used in a step, since nothing could stop an endless loop"
                raise self.wrong(node, f"{text}; write for i in range(most) with break")
            case ast.For(target=ast.Name(), orelse=[]):
                self.loop(node, assigned)
                return assigned
            case ast.Break() | ast.Continue():
                return None
            case ast.Return():
                self.result(node, assigned)
                return None
            case _:
                raise self.wrong(node, f"'{_keyword(node)}' cannot be compiled in a step; {_ALLOWED}")

    def loop(self, node: ast.For, assigned: set[str]) -> None:
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as arguments, keywords=[]) if len(arguments) <= 3:
                for argument in arguments:
                    self.want_int(argument, self.expression(argument, assigned), "range")
            case _:
                raise self.wrong(node, f"a loop runs over range(...); {_ALLOWED}")
        inside = self.store(node.target, "int", set(assigned))
        self.block(node.body, inside)

    def result(self, node: ast.Return, assigned: set[str]) -> None:
        kind = None if node.value is None else self.expression(node.value, assigned)
        if not (kind is None or isinstance(kind, str)):
            raise self.wrong(node, "a function returns a number or nothing")
        if self.returned and self.returned[0] != kind:
            raise self.wrong(
                node, f"returns {_name(kind)}, and {_name(self.returned[0])} elsewhere; write float(...) or 0.0"
            )
        self.returned.append(kind)

    def store(self, target: ast.expr, kind: Type, assigned: set[str]) -> set[str]:
        match target:
            case ast.Name(id=name):
                if not isinstance(kind, str) or kind == "kind":
                    raise self.wrong(target, f"'{name}' would hold {_name(kind)}; a variable holds a number")
                known = self.types.setdefault(name, kind)
                line = self.first_line.setdefault(name, target.lineno)
                if known != kind:
                    text = f"'{name}' was {_name(known)} in line {line} and is {_name(kind)} here"
                    raise self.wrong(target, f"{text}; write float(...), int(...) or a literal such as 0.0")
                return assigned | {name}
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                self.store_field(target, owner, name, kind)
            case ast.Attribute(value=ast.Subscript(value=ast.Name(id=owner), slice=index), attr=name):
                self.want_int(index, self.expression(index, assigned), "an index")
                self.store_field(target, owner, name, kind)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=owner), attr=name) as array, slice=index):
                record = self.types.get(owner)
                kind_of_array = self.expression(array, assigned)
                if not isinstance(record, RecordType) or not isinstance(kind_of_array, _ArrayType):
                    raise self.wrong(target, f"'{owner}.{name}' is not an array")
                self.want_int(index, self.expression(index, assigned), "an index")
                self.want_writable(target, record, owner, name)
                self.want_fitting(target, f"{owner}.{name}[...]", kind_of_array.element, kind)
            case _:
                raise self.wrong(target, "a step assigns one variable, one field or one element at a time")
        return assigned

    def store_field(self, target: ast.expr, owner: str, name: str, kind: Type) -> None:
        record = self.types.get(owner)
        if isinstance(record, RecordsType):
            record = RecordType(layout=record.layout, writable=record.writable)
        if not isinstance(record, RecordType):
            raise self.wrong(target, f"'{owner}' has no fields to write")
        wanted = self.field_type(target, record, owner, name)
        if isinstance(wanted, _ArrayType):
            raise self.wrong(target, f"'{owner}.{name}' is an array; write its elements")
        self.want_writable(target, record, owner, name)
        self.want_fitting(target, f"{owner}.{name}", wanted, kind)

    # Expressions.

    def expression(  # noqa: C901, PLR0911, PLR0912 - one table of expressions
        self, node: ast.expr, assigned: set[str]
    ) -> Type:
        match node:
            case ast.Constant(value=bool()):
                return "bool"
            case ast.Constant(value=int(value)):
                if not -(2**63) <= value < 2**63:
                    raise self.wrong(node, f"{value} does not fit 64 bits")
                return "int"
            case ast.Constant(value=float()):
                return "float"
            case ast.Name():
                return self.name(node, assigned)
            case ast.Attribute():
                return self.attribute(node, assigned)
            case ast.Subscript(value=base, slice=index):
                array = self.expression(base, assigned)
                self.want_int(index, self.expression(index, assigned), "an index")
                if isinstance(array, _ArrayType):
                    return array.element
                if isinstance(array, RecordsType):
                    return RecordType(layout=array.layout, writable=array.writable)
                raise self.wrong(node, "only arrays of a state or signal and the candidates have an index")
            case ast.BinOp():
                left = self.expression(node.left, assigned)
                return self.arithmetic(node, node.op, left, node.right, node.left, assigned)
            case ast.UnaryOp(op=ast.Not()):
                self.condition(node.operand, assigned)
                return "bool"
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                kind = self.number(node, self.expression(node.operand, assigned))
                return "float" if kind == "float" else "int"
            case ast.BoolOp():
                kinds = {self.condition(value, assigned) for value in node.values}
                if kinds == {"int", "bool"}:  # a parameter or field that is a bool is kept as an int
                    return "int"
                if len(kinds) > 1:
                    raise self.wrong(node, "the sides of 'and' and 'or' have one type; write a comparison on each side")
                return kinds.pop()
            case ast.Compare():
                return self.comparison(node, assigned)
            case ast.IfExp():
                self.condition(node.test, assigned)
                return self.same(node, [self.expression(node.body, assigned), self.expression(node.orelse, assigned)])
            case ast.Call():
                return self.calling(node, assigned)
            case _:
                raise self.wrong(node, f"{_phrase(node)} cannot be compiled in a step; {_ALLOWED}")

    def name(self, node: ast.Name, assigned: set[str]) -> Type:
        if node.id in self.local:
            if node.id not in assigned:
                raise self.wrong(
                    node, f"'{node.id}' may not be set here yet; give it a value before the branch or loop"
                )
            return self.types[node.id]
        return self.constant(node, self.file.namespace.get(node.id), node.id)

    def constant(self, node: ast.expr, value: object, name: str) -> Scalar:
        if isinstance(value, Kind):
            self.program.checked.kinds.add(value)
            return "kind"
        if type(value) is bool:
            return "bool"
        if type(value) is int:
            return "int"
        if type(value) is float:
            return "float"
        raise self.wrong(node, f"'{name}' is not an argument, a variable or a number at the top of the file")

    def attribute(self, node: ast.Attribute, assigned: set[str]) -> Type:
        if isinstance(node.value, ast.Name) and node.value.id not in self.local:
            module = self.file.namespace.get(node.value.id)
            if arithmetic_name(module) == "":
                if node.attr not in _CONSTANTS:
                    raise self.wrong(node, f"'math.{node.attr}' cannot be used here; {_ALLOWED}")
                return "float"
            if module is Kind:
                if node.attr not in Kind.__members__:
                    raise self.wrong(node, f"there is no Kind.{node.attr}; there are {', '.join(Kind.__members__)}")
                self.program.checked.kinds.add(Kind[node.attr])
                return "kind"
        record = self.expression(node.value, assigned)
        owner = ast.unparse(node.value)
        if not isinstance(record, RecordType):
            raise self.wrong(node, f"'{owner}' has no fields")
        return self.field_type(node, record, owner, node.attr)

    def field_type(self, node: ast.AST, record: RecordType, owner: str, name: str) -> Scalar | _ArrayType:
        for item in record.layout.fields:
            if item.name == name:
                self.program.checked.fields.add((record.layout.name, name))
                return _ArrayType(element=item.type) if item.size else item.type
        names = [item.name for item in record.layout.fields]
        fix = nearest(name, names)
        meant = "" if fix is None else f"; did you mean '{fix}'?"
        raise self.wrong(node, f"'{owner}' has no field '{name}'; it has {', '.join(names) or 'none'}{meant}")

    def arithmetic(
        self, node: ast.AST, op: ast.operator, left: Type, right_node: ast.expr, left_node: ast.expr, assigned: set[str]
    ) -> Scalar:
        right = self.expression(right_node, assigned)
        kinds = {self.number(node, left), self.number(node, right)}
        match op:
            case ast.Add() | ast.Sub() | ast.Mult():
                return "float" if "float" in kinds else "int"
            case ast.Div():
                if "float" not in kinds and (_is_wide(left_node) or _is_wide(right_node)):
                    raise self.wrong(
                        node, "'draw' and 'hash' have 62 bits, 'word' 64; write float(...) before dividing"
                    )
                return "float"
            case ast.FloorDiv() | ast.Mod():
                if "float" in kinds:
                    raise self.wrong(node, "'//' and '%' take ints; for floats write math.floor(a / b)")
                return "int"
            case ast.BitAnd() | ast.BitOr() | ast.BitXor() if kinds == {"int"}:
                return "int"
            case ast.RShift() if kinds == {"int"}:
                if not (isinstance(right_node, ast.Constant) and 0 <= int(str(right_node.value)) < 63):
                    raise self.wrong(node, "'>>' takes a literal from 0 to 62")
                return "int"
            case ast.Pow():
                raise self.wrong(node, f"'**' rounds differently when compiled; write products; {_ALLOWED}")
            case _:
                raise self.wrong(node, f"this operator cannot be used here; {_ALLOWED}")

    def comparison(self, node: ast.Compare, assigned: set[str]) -> Scalar:
        kinds = [self.expression(side, assigned) for side in (node.left, *node.comparators)]
        for op in node.ops:
            if not isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                raise self.wrong(node, f"'is' and 'in' cannot be compiled in a step; {_ALLOWED}")
        for kind in kinds:
            if not isinstance(kind, str):
                raise self.wrong(node, f"{_name(kind)} cannot be compared")
            if "kind" in kinds and kind not in ("kind", "int"):
                raise self.wrong(node, "a Kind is compared with signal.kind")
        return "bool"

    def calling(self, node: ast.Call, assigned: set[str]) -> Type:
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.wrong(node, "a call in a step has plain arguments only")
        kinds = [self.expression(argument, assigned) for argument in node.args]
        match node.func:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (
                owner not in self.local and arithmetic_name(self.file.namespace.get(owner)) == ""
            ):
                return self.math_call(node, name, kinds)
            case ast.Name(id=name) if name in self.local:
                raise self.wrong(node, f"'{name}' is a variable, not a function")
            case ast.Name(id=name) if (called := self.file.called(name)) is not None:
                return self.program.call(*called, tuple(kinds))
            case ast.Name(id=name) if getattr(self.file.namespace.get(name), "__module__", None) == "math":
                return self.math_call(node, self.file.namespace[name].__name__, kinds)
            case ast.Name(id=name) if name not in self.file.namespace:
                return self.builtin(node, name, kinds)
            case _:
                raise self.wrong(node, f"'{ast.unparse(node.func)}' cannot be called in a step; {_ALLOWED}")

    def math_call(self, node: ast.Call, name: str, kinds: list[Type]) -> Scalar:
        if name not in _FUNCTIONS:
            raise self.wrong(node, f"'math.{name}' rounds differently when compiled, or is unknown; {_ALLOWED}")
        if len(kinds) != 1:
            raise self.wrong(node, f"'math.{name}' takes one argument here")
        self.number(node, kinds[0])
        return "int" if _FUNCTIONS[name] == "int" else "float"

    def builtin(self, node: ast.Call, name: str, kinds: list[Type]) -> Scalar:
        if name in ("min", "max") and len(kinds) >= 2:
            return self.same(node, kinds)
        if name in ("abs", "int", "float", "bool") and len(kinds) == 1:
            kind = self.number(node, kinds[0])
            if name == "abs":
                return "float" if kind == "float" else "int"
            return "int" if name == "int" else "float" if name == "float" else "bool"
        raise self.wrong(node, f"'{name}' cannot be called like this in a step; {_ALLOWED}")

    # What a place wants.

    def loaded(self, target: ast.expr) -> ast.expr:
        copy = ast.parse(ast.unparse(target), mode="eval").body
        for child in ast.walk(copy):
            ast.copy_location(child, target)
        return copy

    def number(self, node: ast.AST, kind: Type) -> Scalar:
        if kind not in ("int", "float", "bool"):
            raise self.wrong(node, f"{_name(kind)} is not a number")
        return kind

    def condition(self, node: ast.expr, assigned: set[str]) -> Scalar:
        return self.number(node, self.expression(node, assigned))

    def same(self, node: ast.expr, kinds: list[Type]) -> Scalar:
        first = self.number(node, kinds[0])
        for kind in kinds[1:]:
            if kind != first:
                text = f"{_name(first)} and {_name(kind)} meet in {_phrase(node)}"
                raise self.wrong(node, f"{text}; give all one type, as 0.0 or float(...)")
        return first

    def want_int(self, node: ast.AST, kind: Type, where: str) -> None:
        if kind != "int":
            raise self.wrong(node, f"{where} takes an int, found {_name(kind)}; write int(...) or math.floor(...)")

    def want_fitting(self, node: ast.AST, where: str, wanted: Scalar, kind: Type) -> None:
        self.number(node, kind)
        if wanted == "int" and kind == "float":
            raise self.wrong(node, f"'{where}' is an int and would be given a float; write int(...) or math.floor(...)")

    def want_writable(self, node: ast.AST, record: RecordType, owner: str, name: str) -> None:
        if record.writable is not None and name not in record.writable:
            raise self.wrong(node, f"'{owner}.{name}' is read only")


def _both(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _is_wide(node: ast.expr) -> bool:
    return any(isinstance(child, ast.Attribute) and child.attr in _WIDE for child in ast.walk(node))


def _name(kind: Type) -> str:
    if isinstance(kind, str):
        return "a Kind" if kind == "kind" else f"{'an' if kind == 'int' else 'a'} {kind}"
    return "nothing" if kind is None else "an array" if isinstance(kind, _ArrayType) else "a record"


def _keyword(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n", 1)[0].split(" ", 1)[0].rstrip(":")


def _phrase(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"'{text if len(text) <= 40 else text[:37] + '...'}'"
