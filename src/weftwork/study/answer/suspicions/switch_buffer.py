"""Memory of switches that overflowed, or that paused links while the port behind them was idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.units import SIZE, format_quantity
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]

_BUFFERS: Final = 16  # times the memory; chosen: more than any switch of its generation has
_OF_BUFFERS: Final = ("drop_buffer_full", "drop_egress_threshold")


def _small_buffer(records: RunRecords) -> Iterator[Suspect]:
    """Memory of switches that overflowed, or that paused links while the port behind them was idle."""
    fabric = records.prepared.fabric
    is_idle = records.evidence.is_troubled and records.evidence.paused_share > 0 and not records.evidence.is_full
    has_credits = records.prepared.transport.link_credits and not records.evidence.is_full
    lost = records.drops(*_OF_BUFFERS)
    if not (lost or is_idle or has_credits):
        return
    switches = tuple(
        switch.model_copy(update={"buffer_bytes": switch.buffer_bytes * _BUFFERS}) for switch in fabric.switches
    )
    smallest = min(switch.buffer_bytes for switch in fabric.switches)
    why = "overflowed" if lost else "gave too few credits" if has_credits else "paused links before they were needed"
    yield Suspect(
        kind="setting",
        name="buffer",
        key="fabric.switch.buffer",
        text=f"of {format_quantity(SIZE, smallest)} {why}",
        change=changed(what_if.on_fabric, switches=switches),
    )


SUSPICION: Final = Suspicion(
    rank=120,
    key="fabric.switch.buffer",
    needs=frozenset({"packets"}),
    suspects=_small_buffer,
)
