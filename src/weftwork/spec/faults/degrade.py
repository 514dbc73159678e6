"""Lowers the rate of a link, for transmissions that start later."""

from __future__ import annotations

from typing import Final

from weftwork.spec.fault_keys import RemainingRate, check_remaining_rate
from weftwork.spec.fault_kind import Change, FaultKind

__all__ = ["FAULT"]


def _words(keys: RemainingRate) -> str:
    return f"has {keys.text} of its rate"


def _begins(keys: RemainingRate) -> tuple[Change, ...]:
    return (Change(name="degrade", fraction=keys.fraction, rate_bps=keys.rate_bps),)


FAULT: Final = FaultKind(
    source="docs/models/faults.md",
    keys=RemainingRate,
    order=3,
    places=("link",),
    words=_words,
    begins=_begins,
    check=check_remaining_rate,
)
