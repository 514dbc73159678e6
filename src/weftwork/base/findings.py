"""The collector of mistakes and notes on the road from an input to what it makes.

A function that judges takes the collector and notes what it finds. Stages end the road: at the end of a stage with a
mistake, all mistakes are raised as one error, in the order of their places and not of their checks.
Leaves out: lines of a file, which whoever read the file adds.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, CaveatKind
from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weftwork.base.fix import Fix

__all__ = ["Findings"]


@dataclass(kw_only=True)
class Findings:
    """Mistakes, which stop the road at the end of a stage, and notes, which go with the result.

    Parameters
    ----------
    source : name of the file or of the thing that is judged, for the error; empty: the section
    section : dotted path before all keys, such as ``fabric.pinned.3``; empty: keys are whole paths
    line : of the section in its file, counted from 1, for mistakes without a line of their own; None: unknown

    Attributes
    ----------
    notes : by subject, in the order of their first note; the last note of a subject holds
    """

    source: str = ""
    section: str = ""
    line: int | None = None
    notes: dict[str, Caveat] = field(default_factory=dict, init=False)
    _entries: list[Mistake | Findings] = field(default_factory=list, init=False)

    @property
    def mistakes(self) -> list[Mistake]:
        """All mistakes so far, those of a reserved place at that place."""
        every: list[Mistake] = []
        for entry in self._entries:
            every += entry.mistakes if isinstance(entry, Findings) else [entry]
        return every

    @property
    def has_mistakes(self) -> bool:
        """Whether there is any mistake so far."""
        return any(not isinstance(entry, Findings) or entry.has_mistakes for entry in self._entries)

    def wrong(self, key: str, text: str, fix: Fix | None = None, *, line: int | None = None) -> None:
        """Note a mistake.

        Parameters
        ----------
        key : below the section; empty: the section itself
        text : what was found and what is allowed, one sentence without a full stop
        fix : what mends it
        line : in the file, counted from 1; None: that of the section
        """
        at = self.line if line is None else line
        self._entries.append(Mistake(path=self._path(key), text=text, fix=fix, line=at))

    def note(self, subject: str, kind: CaveatKind, text: str) -> None:
        """Note what a user should know of the result; see `weftwork.base.caveat.Caveat`."""
        self.notes[subject] = Caveat(subject=subject, kind=kind, text=text)

    def note_each(self, caveats: Iterable[Caveat]) -> None:
        """Note what a catalogue or a part knows of itself."""
        for caveat in caveats:
            self.notes[caveat.subject] = caveat

    def include(self, mistakes: Iterable[Mistake]) -> None:
        """Note the mistakes of an error that was raised elsewhere, whose paths are whole."""
        self._entries += mistakes

    def join(self, other: Findings) -> None:
        """Note all that another collector holds."""
        self.include(other.mistakes)
        self.note_each(other.notes.values())

    def is_sound(self, *keys: str) -> bool:
        """Whether no mistake was found at these keys so far."""
        wrong = {mistake.path for mistake in self.mistakes}
        return wrong.isdisjoint(self._path(key) for key in keys)

    def at(self, section: str, line: int | None = None) -> Findings:
        """Return this collector for the keys of a section below its own.

        Parameters
        ----------
        section : dotted path, below the section of this collector
        line : of the section in its file; None: unknown
        """
        place = Findings(source=self.source, section=self._path(section), line=line)
        place.notes, place._entries = self.notes, self._entries
        return place

    def reserved(self, section: str = "") -> Findings:
        """Reserve a place: a collector whose mistakes stand before all that is noted here later.

        Its notes are the notes of this collector.

        Parameters
        ----------
        section : dotted path before its keys, below the section of this collector
        """
        place = Findings(source=self.source, section=self._path(section))
        place.notes = self.notes
        self._entries.append(place)
        return place

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Collect the mistakes of a stage, and stop at its end if there are any.

        An error that is raised in the stage stops it at once and is told alone: what follows it cannot be judged.

        Parameters
        ----------
        name : of the stage, such as ``parts``, for `ConfigError.stage`

        Raises
        ------
        ConfigError : with all mistakes of the stage
        """
        yield
        self.refuse(name)

    def refuse(self, stage: str = "") -> None:
        """Raise the mistakes, if there are any.

        Parameters
        ----------
        stage : name of the stage that ends here

        Raises
        ------
        ConfigError : with all mistakes
        """
        if self.has_mistakes:
            raise ConfigError(self.source or self.section, self.mistakes, stage=stage)

    def _path(self, key: str) -> str:
        return f"{self.section}.{key}" if self.section and key else self.section or key
