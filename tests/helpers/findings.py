"""Functions that take a collector of findings as their last argument, called by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from weftwork.base.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.base.caveat import Caveat
    from weftwork.base.errors import Mistake

__all__ = ["judged", "mistakes_of", "notes_of", "sound"]

T = TypeVar("T")


def judged(call: Callable[..., T], *given: Any, **more: Any) -> tuple[T, list[Mistake]]:
    """What a function returns, and the mistakes that it notes."""
    findings = Findings(source="test")
    made = call(*given, findings, **more)
    return made, findings.mistakes


def sound(call: Callable[..., T], *given: Any, **more: Any) -> T:
    """What a function returns that finds no mistake."""
    made, mistakes = judged(call, *given, **more)
    assert mistakes == []
    return made


def mistakes_of(check: Callable[..., None], *given: Any, **more: Any) -> list[Mistake]:
    """The mistakes that a check notes."""
    return judged(check, *given, **more)[1]


def notes_of(note: Callable[..., None], *given: Any, **more: Any) -> dict[str, Caveat]:
    """The notes that a function takes, by subject."""
    findings = Findings(source="test")
    note(*given, findings, **more)
    return findings.notes
