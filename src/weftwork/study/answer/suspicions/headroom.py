"""Headroom that does not hold what still arrives after a pause was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, format_quantity
from weftwork.study.answer.suspect import Suspect, changed
from weftwork.study.answer.suspicion import RunRecords, Suspicion
from weftwork.study.prepare import what_if

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["SUSPICION"]


def _headroom(records: RunRecords) -> Iterator[Suspect]:
    """Headroom that does not hold what still arrives after a pause was asked for."""
    fabric, lost = records.prepared.fabric, records.drops("drop_headroom_full")
    headroom_bytes = [switch.headroom_bytes for switch in fabric.switches if switch.headroom_bytes is not None]
    if not lost or not headroom_bytes:
        return
    needed = tuple(switch.model_copy(update={"headroom_bytes": None}) for switch in fabric.switches)
    yield Suspect(
        kind="setting",
        name="headroom",
        key="fabric.switch.headroom",
        text=(
            f"of {format_quantity(SIZE, min(headroom_bytes))} overflowed: {plural(lost, 'packet')} that came after a"
            " pause found no room"
        ),
        change=changed(what_if.on_fabric, switches=needed),
    )


SUSPICION: Final = Suspicion(
    rank=110,
    key="fabric.switch.headroom",
    needs=frozenset({"packets"}),
    suspects=_headroom,
)
