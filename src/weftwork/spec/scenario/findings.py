"""Collect mistakes of a choice while a scenario or call is checked.

They go into the reading of a scenario, or into one error of a Python call. So one check in one place serves both.
Leaves out: the checks themselves, which stand in the file of their choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from weftwork.base.errors import CodeError, ConfigError
from weftwork.base.findings import Findings
from weftwork.base.fix import Fix
from weftwork.base.folder import Folder
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.rows import rows_of

__all__ = ["Collected", "Read", "asked"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Read:
    """Findings about a section of a scenario during its reading.

    See `weftwork.spec.scenario.choice.KeyFindings`.
    """

    reader: Reader
    section: str

    def wrong(self, key: str, text: str, fix: Fix | None = None) -> None:
        """Note a mistake with its line."""
        self.reader.wrong(self._path(key), text, fix)

    def is_sound(self, *keys: str) -> bool:
        """Whether no mistake was found at these keys so far."""
        return self.reader.is_sound(*(self._path(key) for key in keys))

    def which(self, first: str, second: str) -> str:
        """Return the key that the user wrote.

        The answer is the first key, unless only the second was written.
        """
        return second if self.reader.which(self._path(first), self._path(second)) == self._path(second) else first

    def _path(self, key: str) -> str:
        return f"{self.section}.{key}" if key else self.section


@dataclass(kw_only=True)
class Collected(Findings):
    """Findings about the arguments of a Python call, whose names are ``given``."""

    given: frozenset[str] = frozenset()

    def which(self, first: str, second: str) -> str:
        """Return the argument that was given.

        The answer is the first argument, unless only the second was given.
        """
        return second if first not in self.given and second in self.given else first


def asked(folder: Folder[T], label: str, reader: Reader, path: str, call: Callable[[T], R]) -> R | None:
    """Call an offer of a chosen file and turn its errors into mistakes.

    They become mistakes of the scenario. Where a key of the choice is itself wrong nothing is called, so that a check
    meets values of its rows alone, and nothing is called of a file that this reader does not run.

    Parameters
    ----------
    folder, label : of the choice, whose key was found to be sound
    path : of the key that chooses, such as ``traffic.pattern``
    call : takes the record

    Returns
    -------
    what the call returned, or None where it failed or was not made
    """
    if not reader.runs(path, label):
        return None
    record: Any = folder.load(label)
    section = path.rpartition(".")[0]
    if not reader.is_sound(*(f"{section}.{row.key}" for row in rows_of(record.keys).values())):
        return None
    try:
        with folder.blaming(label):
            return call(record)
    except CodeError as wrong:
        reader.wrong(path, str(wrong))
    except ConfigError as wrong:
        for mistake in wrong.mistakes:
            reader.wrong(mistake.path, mistake.text, mistake.fix)
    return None
