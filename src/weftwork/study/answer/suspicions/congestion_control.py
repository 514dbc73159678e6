"""A congestion control that was told of congestion, or that left all resources idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.spec.scenario.policies import PolicyChoice
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _control(records: RunRecords) -> Iterator[Suspect]:
    """A congestion control that was told of congestion, or that left all resources idle."""
    control, outcome = records.prepared.policies["congestion_control"], records.execution.outcome
    was_asked = bool(records.counters["cnps_sent"]) or bool(outcome.ports["marks"].any())
    if control.name == "none" or not (was_asked or not records.evidence.is_full):
        return
    # a network without flow and congestion control loses what it cannot carry: a window of a round trip stands in
    transport = records.prepared.transport
    other = "none" if transport.lossless_priorities or transport.link_credits else "fixed-window"
    if other == control.name:
        return
    yield Suspect(
        kind="policy",
        name=control.name,
        key="transport.congestion_control",
        text=f"holds senders back, compared with {other}",
        change=changed(what_if.with_transport, congestion_control=PolicyChoice(name=other)),
    )


SUSPICION: Final = Suspicion(
    rank=240, key="transport.congestion_control", standing="reaction", needs=frozenset({"packets"}), suspects=_control
)
