"""Memory of NICs that overflowed, since the host takes packets more slowly than the link brings them."""

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

_BUFFERS: Final = 16  # times the memory; chosen: more than any NIC of its generation has


def _receive_buffer(records: RunRecords) -> Iterator[Suspect]:
    """Memory of NICs that overflowed, since the host takes packets more slowly than the link brings them."""
    fabric, lost = records.prepared.fabric, records.drops("drop_receive_buffer")
    if not lost:
        return
    nics = tuple(
        nic.model_copy(update={"receive_buffer_bytes": nic.receive_buffer_bytes * _BUFFERS}) for nic in fabric.nics
    )
    smallest = min(nic.receive_buffer_bytes for nic in fabric.nics)
    yield Suspect(
        kind="setting",
        name="receive buffer",
        key="fabric.nic.receive_buffer",
        text=f"of {format_quantity(SIZE, smallest)} overflowed: {plural(lost, 'packet')} reached a NIC without room",
        change=changed(what_if.on_fabric, nics=nics),
    )


SUSPICION: Final = Suspicion(
    rank=130, key="fabric.nic.receive_buffer", needs=frozenset({"packets"}), suspects=_receive_buffer
)
