"""The errors of Weftwork, as one tree split by cause.

``ConfigError`` is the user's, ``UsageError`` the caller's, ``CodeError`` the author's of a Python file that a scenario
names (``PolicyError`` where it is a policy), ``PeerError`` the other end's and ``EngineError`` ours. A stage collects
all its mistakes before it raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from weftwork.base.fix import Fix
from weftwork.base.grammar import plural

__all__ = [
    "CodeError",
    "ConfigError",
    "EngineError",
    "Mistake",
    "PeerError",
    "PolicyError",
    "ProgramError",
    "UsageError",
    "WeftworkError",
]


class WeftworkError(Exception):
    """Base of every error that Weftwork raises on purpose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mistake:
    """One mistake in an input: place, found value, allowed values, nearest fix.

    Parameters
    ----------
    path : dotted path of the key, such as ``fabric.oversubscription``
    text : what was found and what is allowed, one sentence without a full stop
    line : line in the file, counted from 1; None where there is no file
    fix : what mends it: the nearest right value of the key, or another change (`weftwork.base.fix`), or None
    """

    path: str
    text: str
    line: int | None = None
    fix: Fix | None = None

    def __str__(self) -> str:
        where = f"line {self.line}  " if self.line is not None else ""
        hint = f"; did you mean '{self.fix}'?" if self.fix is not None else ""
        return f"{where}{self.path}  {self.text}{hint}"


class ConfigError(WeftworkError):
    """The user's input is wrong.

    The error carries every mistake that the stage found.

    Parameters
    ----------
    source : name of the file or of the thing that is wrong
    mistakes : all of them, in the order of the file
    stage : name of the stage that stopped (`weftwork.base.findings.Findings.stage`); empty where there are no stages
    """

    def __init__(self, source: str, mistakes: list[Mistake], *, stage: str = "") -> None:
        self.source = source
        self.stage = stage
        self.mistakes = tuple(sorted(mistakes, key=lambda m: (m.line is None, m.line or 0)))
        super().__init__(source, self.mistakes)

    def __str__(self) -> str:
        count = len(self.mistakes)
        head = f"{self.source}: {plural(count, 'mistake')}, nothing was run"
        return "\n".join([head, *_rows(self.mistakes)])


def _rows(mistakes: tuple[Mistake, ...]) -> list[str]:
    """Format mistakes as aligned lines; later lines of a text keep its column."""
    where = [f"line {m.line}" if m.line is not None else "" for m in mistakes]
    where_width = max((len(w) for w in where), default=0)
    path_width = max((len(m.path) for m in mistakes), default=0)
    lines = []
    for at, mistake in zip(where, mistakes, strict=True):
        hint = f"; did you mean '{mistake.fix}'?" if mistake.fix is not None else ""
        start = "  " + (f"{at:<{where_width}}  " if where_width else "") + f"{mistake.path:<{path_width}}  "
        text = mistake.text.replace("\n", "\n" + " " * len(start))
        lines.append(f"{start}{text}{hint}")
    return lines


class UsageError(WeftworkError):
    """A Python function was called with a wrong argument."""


class CodeError(WeftworkError):
    """A user's Python file is wrong: it does not load, or its code failed.

    The message names the file and the line. As text it names a file below the current folder by its path from there, as
    the user does.

    Parameters
    ----------
    file : the user's
    line : line in it, counted from 1
    text : what happened, one sentence
    mistakes : where there are several at once, each with its line; ``text`` is then their heading
    """

    def __init__(self, file: str, line: int, text: str, mistakes: tuple[Mistake, ...] = ()) -> None:
        self.file = file
        self.line = line
        self.text = text
        self.mistakes = mistakes
        super().__init__(file, line, text, mistakes)

    def __str__(self) -> str:
        head = f"{_from_here(self.file)}, line {self.line}: {self.text}"
        return "\n".join([head, *_rows(self.mistakes)])


class PolicyError(CodeError):
    """A policy file is wrong: it does not compile, or one of its steps failed."""


def _from_here(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):  # it lies elsewhere, or the current folder is gone
        return file


class PeerError(WeftworkError):
    """The other end of a connection broke the protocol."""


class ProgramError(WeftworkError):
    """A program of the user's that Weftwork runs cannot go on."""


class EngineError(WeftworkError):
    """Weftwork has a bug: an invariant of an engine is broken. Please report it."""
