"""Timeout on flows, which passes before losses that no NAK tells of are repaired.

Flows have the mean cost of losses and count none, so that it is a suspect wherever a link can lose a packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.units import DURATION, format_quantity
from weftwork.study.answer.suspect import HASTY, Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _mean_timeout(records: RunRecords) -> Iterator[Suspect]:
    timeout_ps = records.prepared.transport.retransmission_timeout_ps
    yield Suspect(
        kind="setting",
        name="timeout",
        key="transport.timeout",
        text=f"of {format_quantity(DURATION, timeout_ps)} passes before losses that no NAK tells of are repaired",
        change=changed(what_if.with_transport, timeout_ps=max(1, timeout_ps // HASTY)),
    )


SUSPICION: Final = Suspicion(
    rank=280, key="transport.timeout", standing="reaction", needs=frozenset({"lossy flows"}), suspects=_mean_timeout
)
