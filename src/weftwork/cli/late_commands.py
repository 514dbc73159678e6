"""A group whose commands are built when somebody asks for them.

Reading the options of all commands from their functions takes as long as all else that ``weftwork --help`` does, and a
process runs one command.
Leaves out: the names, texts and options, which are in `weftwork.cli.commands`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, MutableMapping
from copy import copy
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer.models import CommandInfo, TyperInfo

__all__ = ["LateGroup", "late_group"]

Command = Any  # of click, which typer carries under a name of its own


class LateGroup(TyperGroup):
    """A group that lists its commands without building them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - a context of click
        """Names of the commands, in the order of their declaration."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - a context and a formatter of click
        """Write the section of the commands from their texts alone."""
        if not isinstance(self.commands, _LateCommands):
            super().format_commands(ctx, formatter)
            return
        TyperGroup(name=self.name, commands=self.commands.outlines()).format_commands(ctx, formatter)


class _LateCommands(MutableMapping[str, Command]):
    """Commands by name, each built when it is asked for."""

    def __init__(self, app: typer.Typer) -> None:
        declared: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
        self._declared = {str(info.name): info for info in declared}
        self._built: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._built:
            self._built[name] = _built(name, self._declared[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Command) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def outlines(self) -> dict[str, Command]:
        """Commands with their names and texts, and without options."""
        return {name: TyperCommand(name=name, help=_text(info)) for name, info in self._declared.items()}


def late_group(app: typer.Typer) -> TyperGroup:
    """Build the group of an app, whose class is `LateGroup`, without its commands.

    Parameters
    ----------
    app : with a callback of its own; each command and each group in it has a name
    """
    shell = copy(app)
    shell.registered_commands, shell.registered_groups = [], []
    group = cast("TyperGroup", typer.main.get_command(shell))
    group.commands = _LateCommands(app)
    return group


def _text(info: CommandInfo | TyperInfo) -> str | None:
    """The text of a command, or of a group."""
    inner = getattr(info, "typer_instance", None)
    return str(inner.info.help) if inner is not None else inspect.getdoc(info.callback)


def _built(name: str, info: CommandInfo | TyperInfo) -> Command:
    """Build a command, or a group with its commands."""
    inner = getattr(info, "typer_instance", None)
    if inner is None:
        inner = typer.Typer(rich_markup_mode=None, add_completion=False)
        inner.registered_commands.append(cast("CommandInfo", info))
    command = cast("Command", typer.main.get_command(inner))
    command.name = name
    return command
