"""Brings a link, a switch or a NIC port back into service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.fault_kind import Change, FaultKind

if TYPE_CHECKING:
    from weftwork.spec.fault_kind import Detours
    from weftwork.spec.scenario.choice import NoKeys

__all__ = ["FAULT"]


def _words(_: NoKeys) -> str:
    return "comes up"


def _begins(_: NoKeys) -> tuple[Change, ...]:
    return (Change(name="up"),)


def _delays_ps(_: NoKeys, __: Detours) -> int:
    return 0


FAULT: Final = FaultKind(
    source="docs/models/faults.md",
    order=2,
    places=("link", "switch", "nic"),
    words=_words,
    begins=_begins,
    undoes="down",
    delays_ps=_delays_ps,
)
