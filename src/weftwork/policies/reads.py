"""Find the fields that a policy's steps read and write, by kind of signal.

The answer is found in the syntax tree, without a run. A walk through the step and the functions that it calls, also of
parts, follows which kinds can still be the case: behind
``if signal.kind == Kind.ACK`` only an acknowledgement, in its ``else`` everything else. What it does not understand,
such as a kind that was added to a number, narrows nothing.
Leaves out: values. What is read behind a condition that is never true counts as read.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.policies.described import told_kinds
from weftwork.policies.interface import Kind

if TYPE_CHECKING:
    from weftwork.policies.described import Step
    from weftwork.policies.load import LoadedPolicy
    from weftwork.policies.step_file import StepFile

__all__ = ["Access", "StepName", "accesses"]

StepName = Literal["sender", "path", "receiver", "port"]
Kinds = frozenset[Kind]
_STEP_OF: Final[dict[str, StepName]] = {
    "congestion_control": "sender", "path_selection": "path", "port_selection": "port"
}  # fmt: skip
_ARGUMENTS: Final = {
    "sender": ("params", "state", "signal"),
    "path": ("params", "state", "signal"),
    "receiver": ("params", "state", "shared", "signal"),
    "port": ("params", "state", "signal", "candidates"),
}
_ELEMENTS: Final = {"candidates": "candidate", "ports": "port"}
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[int, int], bool]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """One place of the file or a part that reads or writes a field.

    Attributes
    ----------
    step : that comes there: of the sender, the path, the receiver or the port
    record : ``params``, ``state``, ``shared``, ``signal``, ``candidate`` or ``port`` (a row of ``port_state``)
    name : of the field
    is_write : whether it is written; what is added to is read, too
    kinds : of the signals at which the step can come there; of a port selection none
    place : file, line and column
    """

    step: StepName
    record: str
    name: str
    is_write: bool
    kinds: Kinds
    place: tuple[str, int, int]


def accesses(policy: LoadedPolicy) -> tuple[Access, ...]:
    """Find all field accesses of a policy's steps.

    Parameters
    ----------
    policy : of any kind
    """
    plugin: Any = policy.plugin
    file = policy.step_file
    steps: list[tuple[StepName, Any]] = [(_STEP_OF[policy.kind], plugin.step)]
    if getattr(plugin, "receive", None) is not None:
        steps.append(("receiver", plugin.receive))
    found: list[Access] = []
    for step, called in steps:
        roles = _ARGUMENTS[step]
        if step == "port" and plugin.port_state is not None:
            roles = (*roles[:2], "ports", *roles[2:])
        walk = _Walk(step=step)
        walk.call(file, file.functions[called.__name__], roles, _told(step, plugin))
        found += walk.found
    return tuple(found)


def _told(step: StepName, plugin: Any) -> Kinds:  # noqa: ANN401 - one of three records
    """Kinds of signals that may reach a step, by its plug-in."""
    if step == "port":
        return frozenset()
    always = {"sender": {Kind.START, Kind.TIMER}, "path": {Kind.SEND, Kind.TIMER}}
    of_step: Step = step
    return told_kinds(of_step) if step == "receiver" else told_kinds(of_step) & (plugin.signals | always[step])


@dataclass(kw_only=True)
class _Frame:
    """One call: its file, its arguments, and the values of names that are set once."""

    file: StepFile
    roles: Mapping[str, str]
    values: Mapping[str, ast.expr]

    def role(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return self.roles.get(node.id, "")
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            return _ELEMENTS.get(self.roles.get(node.value.id, ""), "")
        return ""


@dataclass(kw_only=True)
class _Walk:
    step: StepName
    found: list[Access] = field(default_factory=list)
    seen: set[tuple[ast.FunctionDef, tuple[str, ...], Kinds]] = field(default_factory=set)

    def call(self, file: StepFile, function: ast.FunctionDef, roles: tuple[str, ...], kinds: Kinds) -> None:
        key = (function, roles, kinds)
        if key in self.seen:
            return
        self.seen.add(key)
        names = [argument.arg for argument in function.args.args]
        frame = _Frame(file=file, roles=dict(zip(names, roles, strict=False)), values=_set_once(function))
        self.block(function.body, kinds, frame)

    def block(self, body: Iterable[ast.stmt], kinds: Kinds, frame: _Frame) -> Kinds | None:
        """Go through statements and return the kinds that leave them.

        None if nothing leaves.
        """
        after: Kinds | None = kinds
        for node in body:
            if after is None:
                break
            after = self.statement(node, after, frame)
        return after

    def statement(self, node: ast.stmt, kinds: Kinds, frame: _Frame) -> Kinds | None:
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self.expression(test, kinds, frame)
                yes, no = self.narrowed(test, kinds, frame)
                ways = [self.block(body, yes, frame), self.block(orelse, no, frame)]
                out = [way for way in ways if way is not None]
                return frozenset().union(*out) if out else None
            case ast.For(iter=ranged, body=body):
                self.expression(ranged, kinds, frame)
                self.block(body, kinds, frame)
                return kinds
            case ast.Assign(targets=targets, value=value):
                self.expression(value, kinds, frame)
                for target in targets:
                    self.target(target, kinds, frame)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.expression(value, kinds, frame)
                self.target(target, kinds, frame)
            case ast.AugAssign(target=target, value=value):
                self.expression(value, kinds, frame)
                self.expression(target, kinds, frame)
                self.target(target, kinds, frame)
            case ast.Return(value=value):
                if value is not None:
                    self.expression(value, kinds, frame)
                return None
            case ast.Break() | ast.Continue():
                return None
            case ast.Expr(value=value):
                self.expression(value, kinds, frame)
        return kinds

    def target(self, node: ast.expr, kinds: Kinds, frame: _Frame) -> None:
        match node:
            case ast.Attribute():
                self.note(node, kinds, frame, is_write=True)
            case ast.Subscript(value=value, slice=index):
                self.expression(index, kinds, frame)
                self.target(value, kinds, frame)

    def note(self, node: ast.Attribute, kinds: Kinds, frame: _Frame, *, is_write: bool) -> None:
        role = frame.role(node.value)
        if role:
            place = (frame.file.path, node.lineno, node.col_offset)
            self.found.append(
                Access(step=self.step, record=role, name=node.attr, is_write=is_write, kinds=kinds, place=place)
            )
        if isinstance(node.value, ast.Subscript):
            self.expression(node.value.slice, kinds, frame)

    def expression(self, node: ast.expr, kinds: Kinds, frame: _Frame) -> None:
        match node:
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    self.expression(value, kinds, frame)
                    yes, no = self.narrowed(value, kinds, frame)
                    kinds = yes if isinstance(op, ast.And) else no
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.expression(test, kinds, frame)
                yes, no = self.narrowed(test, kinds, frame)
                self.expression(body, yes, frame)
                self.expression(orelse, no, frame)
            case ast.Call(func=func, args=args):
                for argument in args:
                    self.expression(argument, kinds, frame)
                called = frame.file.called(func.id) if isinstance(func, ast.Name) else None
                if called is not None:
                    self.call(*called, tuple(frame.role(argument) for argument in args), kinds)
            case ast.Attribute():
                self.note(node, kinds, frame, is_write=False)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, kinds, frame)

    def narrowed(self, test: ast.expr, kinds: Kinds, frame: _Frame) -> tuple[Kinds, Kinds]:
        """Kinds for which a condition may be true, and may be false."""
        match test:
            case ast.Name(id=name) if name in frame.values:
                return self.narrowed(frame.values[name], kinds, frame)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yes, no = self.narrowed(operand, kinds, frame)
                return no, yes
            case ast.BoolOp(op=op, values=values):
                is_and = isinstance(op, ast.And)
                left, ended = kinds, frozenset[Kind]()
                for value in values:
                    yes, no = self.narrowed(value, left, frame)
                    left, ended = (yes, ended | no) if is_and else (no, ended | yes)
                return (left, ended) if is_and else (ended, left)
            case ast.Compare(left=left_side, ops=[op], comparators=[right_side]):
                return self.compared(type(op), left_side, right_side, kinds, frame)
        return kinds, kinds

    def compared(
        self, op: type[ast.cmpop], left: ast.expr, right: ast.expr, kinds: Kinds, frame: _Frame
    ) -> tuple[Kinds, Kinds]:
        holds = _COMPARISONS.get(op)
        number = self.number(right, frame) if self.is_kind(left, frame) else self.number(left, frame)
        if holds is None or number is None or self.is_kind(left, frame) == self.is_kind(right, frame):
            return kinds, kinds
        if self.is_kind(left, frame):
            yes = frozenset(kind for kind in kinds if holds(int(kind), number))
        else:
            yes = frozenset(kind for kind in kinds if holds(number, int(kind)))
        return yes, kinds - yes

    @staticmethod
    def is_kind(node: ast.expr, frame: _Frame) -> bool:
        if isinstance(node, ast.Name) and node.id in frame.values:
            node = frame.values[node.id]
        return isinstance(node, ast.Attribute) and node.attr == "kind" and frame.role(node.value) == "signal"

    @staticmethod
    def number(node: ast.expr, frame: _Frame) -> int | None:
        """Number of ``Kind.ACK``, or of a constant of the file with its value."""
        match node:
            case ast.Attribute(value=ast.Name(), attr=name) if name in Kind.__members__:
                return int(Kind[name])
            case ast.Constant(value=int(value)):
                return value
            case ast.Name(id=name) if isinstance(frame.file.namespace.get(name), int):
                return int(frame.file.namespace[name])
        return None


def _set_once(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Local names of a function with a single assignment, and their values.

    Arguments are left aside.
    """
    values: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name)) | ast.For(target=ast.Name(id=name)):
                values.setdefault(name, []).append(None)
    given = {argument.arg for argument in function.args.args}
    return {name: own[0] for name, own in values.items() if len(own) == 1 and own[0] is not None and name not in given}
