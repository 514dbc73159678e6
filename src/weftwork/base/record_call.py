"""Check the call that makes a plug-in's record, before the file runs.

Python stops at the first wrong field and names the line on which the call begins. This check finds all wrong fields at
once, each with its own line. Leaves out: the values of the fields, which only the run of the file knows; and a record
that a function of the file makes, for which Python's own error is reported.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weftwork.base.errors import CodeError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest_key

__all__ = ["check_record_call"]


def check_record_call(
    path: Path, tree: ast.Module, constant: str, records: Iterable[type], error: type[CodeError] = CodeError
) -> None:
    """Refuse unknown and missing fields of a file's record.

    The file assigns the record to a constant.

    Parameters
    ----------
    path, tree : the file
    constant : the name under which the file offers its record, such as ``PLUGIN``
    records : the dataclasses that the record may be of; a call of anything else is not judged
    error : the class of the error

    Raises
    ------
    CodeError : or the given class of it; with all wrong fields, each with its line and the nearest name
    """
    call = _call_of(tree, constant)
    record = None if call is None else _record_of(call, tree, records)
    if call is None or record is None:
        return
    mistakes = _wrong_fields(call, record)
    if not mistakes:
        return
    shown = f"{record.__name__}(...)"
    if len(mistakes) == 1:
        only = mistakes[0]
        hint = f"; did you mean '{only.fix}'?" if only.fix is not None else "."
        raise error(str(path), only.line or call.lineno, f"{shown}: {only.text} '{only.path}'{hint} {_takes(record)}")
    mistakes.sort(key=lambda mistake: mistake.line or 0)
    text = f"{plural(len(mistakes), 'field')} of {shown} are wrong. {_takes(record)}"
    raise error(str(path), mistakes[0].line or call.lineno, text, tuple(mistakes))


def _call_of(tree: ast.Module, constant: str) -> ast.Call | None:
    """The call that last assigns a constant at the top of a file."""
    found = None
    for node in tree.body:
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == constant for target in targets):
            found = getattr(node, "value", None)
    return found if isinstance(found, ast.Call) else None


def _record_of(call: ast.Call, tree: ast.Module, records: Iterable[type]) -> Any:  # noqa: ANN401 - a dataclass, or None
    """The record class that a call names, as imported by the file.

    ``Topology[Keys](...)`` names ``Topology``.
    """
    callee = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    by_name = {record.__name__: record for record in records}
    if isinstance(callee, ast.Attribute):  # of a module
        return by_name.get(callee.attr)
    if not isinstance(callee, ast.Name):
        return None
    imported = {
        alias.asname or alias.name: alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return by_name.get(imported.get(callee.id, ""))


def _wrong_fields(call: ast.Call, record: Any) -> list[Mistake]:  # noqa: ANN401 - a dataclass
    names = [field.name for field in dataclasses.fields(record)]
    given = {keyword.arg for keyword in call.keywords}
    mistakes = [
        Mistake(path=keyword.arg, line=keyword.lineno, text="unknown field", fix=nearest_key(keyword.arg, names))
        for keyword in call.keywords
        if keyword.arg is not None and keyword.arg not in names
    ]
    mistakes += [
        Mistake(path=ast.unparse(value), line=value.lineno, text="a field is given by its name, not by place as")
        for value in call.args
    ]
    if None in given or call.args:  # ``**more``, or values whose fields are not known: nobody knows what is missing
        return mistakes
    missing = [name for name in _required(record) if name not in given]
    meant = {str(mistake.fix) for mistake in mistakes}  # a required field that is there, with a wrong letter
    return mistakes + [
        Mistake(path=name, line=call.lineno, text="no value for the field") for name in missing if name not in meant
    ]


def _required(record: Any) -> list[str]:  # noqa: ANN401 - a dataclass
    nothing = dataclasses.MISSING
    return [f.name for f in dataclasses.fields(record) if f.default is nothing and f.default_factory is nothing]


def _takes(record: Any) -> str:  # noqa: ANN401 - a dataclass
    needed = _required(record)
    others = [field.name for field in dataclasses.fields(record) if field.name not in needed]
    return f"It needs {', '.join(needed)}" + (f", and may have {', '.join(others)}" if others else "")
