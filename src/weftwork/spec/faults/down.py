"""Takes a link, a switch or a NIC port out of service.

What is on the wire or queued for the link is lost. Traffic is delayed until routes or NICs avoid the part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.fault_kind import Change, FaultKind

if TYPE_CHECKING:
    from weftwork.spec.fault_kind import Detours
    from weftwork.spec.scenario.choice import NoKeys

__all__ = ["FAULT"]


def _words(_: NoKeys) -> str:
    return "is down"


def _begins(_: NoKeys) -> tuple[Change, ...]:
    return (Change(name="down"),)


def _delays_ps(_: NoKeys, detours: Detours) -> int:
    """Time until the part is avoided, by whoever learns of it last."""
    return max(detours.reconvergence_ps, detours.failover_ps)


FAULT: Final = FaultKind(
    source="docs/models/faults.md, section When a link goes down",
    order=1,
    places=("link", "switch", "nic"),
    words=_words,
    words_repeated="flaps",
    begins=_begins,
    delays_ps=_delays_ps,
)
