"""A command of Weftwork in this process: its exit code, and what it printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from weftwork.cli import main

__all__ = ["Answer", "Command", "command_of"]


class Answer(NamedTuple):
    """Exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


def command_of(capsys: pytest.CaptureFixture[str], *first: str) -> Command:
    """Make what runs a command in the current folder.

    Parameters
    ----------
    capsys : of the test
    first : words before those of each call, such as ``import``
    """

    def run(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as left:
            main([*first, *arguments])
        out, err = capsys.readouterr()
        code = left.value.code
        return Answer(code if isinstance(code, int) else 0, out, err)

    return run
