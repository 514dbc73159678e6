"""Imported arguments as tables and as a document.

They are read, assumed, ignored or unknown.

Leaves out: what the arguments mean (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from weftwork.base.grammar import plural
from weftwork.workload.imports.reasons import changes_results

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from weftwork.workload.imports.megatron import MegatronImport

__all__ = ["import_document", "print_import"]

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def import_document(found: MegatronImport, assumed: Mapping[str, str] = _NOTHING) -> dict[str, object]:
    """The imported arguments as one JSON object.

    Parameters
    ----------
    found : what they say
    assumed : further keys that no argument says, with the reason
    """
    return {
        "program": found.program,
        "gpus": found.gpus,
        "model": None if found.model is None else found.model.name,
        "keys": dict(found.keys),
        "read": dict(found.read),
        "assumed": {**found.assumed, **assumed},
        "ignored": dict(found.ignored),
        "changes_time_or_memory": [argument for argument, reason in found.ignored.items() if changes_results(reason)],
        "unknown": dict(found.unknown),
    }


def print_import(screen: Console, found: MegatronImport, assumed: Mapping[str, str] = _NOTHING) -> None:
    """Print the imported arguments.

    Parameters are as for `import_document`.
    """
    unknown = {argument: _unknown_text(argument, near, found.program) for argument, near in found.unknown.items()}
    _print_table(screen, f"read: {plural(len(found.read), 'argument')}", found.read)
    every = {**found.assumed, **assumed}
    _print_table(screen, f"assumed: {plural(len(every), 'value')} without an argument", every)
    for title, is_change in (("ignored although it changes time or memory", True), ("ignored", False)):
        part = {argument: why for argument, why in found.ignored.items() if changes_results(why) == is_change}
        _print_table(screen, f"{title}: {plural(len(part), 'argument')}", _by_reason(part))
    _print_table(screen, f"unknown: {plural(len(unknown), 'argument')}, ignored too", unknown)


def _unknown_text(argument: str, near: str | None, program: str) -> str:
    if argument.startswith("$"):
        return "has no value without running the script"
    return f"no argument of {program}" + (f"; did you mean '{near}'?" if near else "")


def _by_reason(ignored: Mapping[str, str]) -> dict[str, str]:
    """Arguments grouped by the reason why they are ignored."""
    groups: dict[str, list[str]] = {}
    for argument, reason in ignored.items():
        groups.setdefault(reason, []).append(argument)
    return {"\n".join(arguments): reason for reason, arguments in groups.items()}


def _print_table(screen: Console, title: str, rows: Mapping[str, str]) -> None:
    if not rows:
        return
    screen.print()
    screen.print(Text(title))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column()
    for argument, text in rows.items():
        table.add_row(Text("\n".join(f"  {line}" for line in argument.splitlines())), Text(text))
    screen.print(table)
