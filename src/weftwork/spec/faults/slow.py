"""Lowers the rate of the PCIe behind a NIC port."""

from __future__ import annotations

from typing import Final

from weftwork.spec.fault_keys import RemainingRate, check_remaining_rate
from weftwork.spec.fault_kind import Change, FaultKind

__all__ = ["FAULT"]


def _words(keys: RemainingRate) -> str:
    return f"has its PCIe at {keys.text}{' of its rate' if keys.rate_bps is None else ''}"


def _begins(keys: RemainingRate) -> tuple[Change, ...]:
    return (Change(name="slow", fraction=keys.fraction, rate_bps=keys.rate_bps),)


FAULT: Final = FaultKind(
    source="docs/models/host-interface.md",
    keys=RemainingRate,
    order=5,
    places=("nic",),
    words=_words,
    begins=_begins,
    check=check_remaining_rate,
)
