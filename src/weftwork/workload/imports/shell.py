"""Read shell scripts without running them.

A script that starts a training job is mostly assignments, arrays, a few conditions and a command at the end. Those are
followed; whatever would have to be run, such as ``$(hostname)``, has no value, and a word that needs it says so.
Leaves out: the parts of the work, which are modules of their own: words (`weftwork.workload.imports.shell_pieces`),
grammar (`weftwork.workload.imports.shell_syntax`), values (`weftwork.workload.imports.shell_expansion`), order
(`weftwork.workload.imports.shell_walk`) and commands (`weftwork.workload.imports.shell_commands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weftwork.workload.imports.schedulers import Allocation
from weftwork.workload.imports.shell_commands import CommandWalker
from weftwork.workload.imports.shell_expansion import OutOfStepsError
from weftwork.workload.imports.shell_values import ShellWord, without_value
from weftwork.workload.imports.shell_walk import Assumption

__all__ = ["ShellScript", "ShellWord", "read_shell", "without_value"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellScript:
    """Commands of a script, and its final variables.

    Both are in the order of the script.

    Attributes
    ----------
    commands : words of each program
    variables : and their words
    assumed : variables that nothing sets and that conditions ask for
    unread : files that the script reads as well, and their lines
    passed_over : variables that branches set which are passed over, and the variable that decides, with its line
    added : words that a condition adds of which nobody knows whether it holds
    allocation : what the scheduler gives to the job
    end_line : where the script ends itself, or None
    is_cut : whether the script makes more work than is read
    """

    commands: tuple[tuple[ShellWord, ...], ...]
    variables: Mapping[str, tuple[ShellWord, ...]]
    assumed: tuple[Assumption, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    passed_over: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    added: tuple[ShellWord, ...] = ()
    allocation: Allocation = field(default_factory=Allocation)
    end_line: int | None = None
    is_cut: bool = False


def read_shell(text: str, variables: Mapping[str, str] | None = None, *, calls_all: bool = False) -> ShellScript:
    r"""Read a script without running it.

    Parameters
    ----------
    text : of the script, or one command line
    variables : values that stand whatever the script assigns
    calls_all : whether functions that the script does not call are read as if it did

    Examples
    --------
    >>> script = read_shell('TP=8; ARGS=(--tp ${TP} "--cp=$((TP / 4))")\ntrain "${ARGS[@]}"')
    >>> [word.text for word in script.commands[-1]]
    ['train', '--tp', '8', '--cp=2']
    """
    plain = text.replace("\r\n", "\n")
    walker = CommandWalker(fixed=dict(variables or {}), last_line=plain.count("\n") + 1)
    is_cut = False
    try:
        walker.text(plain, line=1, is_file=True)
        if calls_all:
            for name, function in list(walker.state.functions.items()):
                if name not in walker.called:
                    walker.state.has_ended = ""
                    walker.script(function.body)
    except OutOfStepsError:
        is_cut = True
    return ShellScript(
        commands=tuple(walker.commands),
        variables={name: held for name, held in walker.state.values.items() if name not in walker.fixed},
        assumed=tuple(walker.assumed.values()),
        unread=dict(walker.unread),
        passed_over=dict(walker.passed_over),
        added=tuple(walker.added),
        allocation=walker.allocation,
        end_line=walker.end_line,
        is_cut=is_cut,
    )
