"""Packets that came early by several paths, which receivers discarded although none was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _order(records: RunRecords) -> Iterator[Suspect]:
    transport, repeated = records.prepared.transport, records.counters["out_of_order_discards"]
    if not repeated or transport.recovery != "go-back-n" or records.drops() or transport.reorder_tolerant:
        return
    yield Suspect(
        kind="setting",
        name="order of packets",
        key="transport.reorder_tolerant",
        text=f"was lost on the way, and receivers discarded {plural(repeated, 'packet')} that came early",
        change=changed(what_if.with_transport, reorder_tolerant=True),
    )


SUSPICION: Final = Suspicion(
    rank=220,
    key="transport.reorder_tolerant",
    needs=frozenset({"packets"}),
    suspects=_order,
)
