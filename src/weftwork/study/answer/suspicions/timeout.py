"""Timeout of packets: too short if nothing was lost, else too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.units import DURATION, format_quantity
from weftwork.study.answer.round_trip import longest_trip_ps, short_duration
from weftwork.study.answer.suspect import HASTY, Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]

_PATIENT: Final = 1_000  # times the timeout; chosen: longer than any run that ends


def _timeouts(records: RunRecords) -> Iterator[Suspect]:
    """The timeout: too short if nothing was lost, else too long."""
    timeouts, prepared = records.counters["timeouts"], records.prepared
    if not timeouts:
        return
    timeout_ps = prepared.transport.retransmission_timeout_ps
    length = format_quantity(DURATION, timeout_ps)
    often = "once" if timeouts == 1 else f"{timeouts:,} times"
    has_losses = records.drops() > 0
    text = f"of {length} ran out {often} though nothing was lost"
    if has_losses:
        text = f"of {length} passed before lost packets were sent again, {often}"
    elif (trip_ps := longest_trip_ps(prepared, records.execution)) > timeout_ps:
        text = f"of {length} is shorter than the round trip of {short_duration(trip_ps)}, and ran out {often}"
    other_ps = max(1, timeout_ps // HASTY) if has_losses else timeout_ps * _PATIENT
    yield Suspect(
        kind="setting",
        name="timeout",
        key="transport.timeout",
        text=text,
        change=changed(what_if.with_transport, timeout_ps=other_ps),
    )


SUSPICION: Final = Suspicion(
    rank=100, key="transport.timeout", standing="reaction", needs=frozenset({"packets"}), suspects=_timeouts
)
