"""Go-back-N on packets, which sends again what arrived behind a lost packet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _go_back_n(records: RunRecords) -> Iterator[Suspect]:
    transport, repeated = records.prepared.transport, records.counters["out_of_order_discards"]
    if not repeated or transport.recovery != "go-back-n":
        return
    if not records.drops() and not transport.reorder_tolerant:
        return  # packets came early, none was lost
    yield Suspect(
        kind="setting",
        name="go-back-n",
        key="transport.recovery",
        text=f"discarded {plural(repeated, 'packet')} that arrived behind lost packets, to send them again",
        change=changed(what_if.with_transport, recovery="selective-repeat"),
    )


SUSPICION: Final = Suspicion(
    rank=230, key="transport.recovery", standing="reaction", needs=frozenset({"packets"}), suspects=_go_back_n
)
