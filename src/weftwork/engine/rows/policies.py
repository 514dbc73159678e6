"""Rows between the core and a policy's compiled step, as `weftwork.policies.interface` declares them.

The interface is the declaration: its annotated fields and their comments, see `weftwork.policies.described`.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowField, RowType
from weftwork.policies.described import field_rows
from weftwork.policies.interface import (
    HOPS,
    TIMERS,
    Candidate,
    Kind,
    PathState,
    PortSignal,
    ReceiverState,
    SenderState,
    Signal,
)

__all__ = ["HEADER", "PATH_STATE", "RECEIVER_STATE", "SENDER_STATE"]

_TEXTS: Final[dict[type, str]] = {
    Signal: "Signal to a sender's step, a receiver's step or a path selection.",
    PortSignal: "Signal to a port selection.",
    Candidate: "Port among which a port selection chooses.",
    SenderState: "First fields of a congestion control's state.",
    ReceiverState: "First fields of a receiver's state.",
    PathState: "First fields of a path selection's state.",
}


def _record(owner: type) -> RowType:
    fields = tuple(
        RowField(name=row.name, type="float64" if row.type == "float" else "int64", text=row.text, size=row.size)
        for row in field_rows(owner)
    )
    return RowType(struct=owner.__name__, text=_TEXTS[owner], fields=fields)


SENDER_STATE: Final = _record(SenderState)
RECEIVER_STATE: Final = _record(ReceiverState)
PATH_STATE: Final = _record(PathState)
HEADER: Final = Header(
    name="policies",
    text="What a policy's compiled step reads and writes: weftwork.policies.interface, eight bytes a field.",
    numbers=(
        ("kTimers", TIMERS, "Timers of a queue pair's policy on each side."),
        ("kHops", HOPS, "Switches whose telemetry a packet carries."),
    ),
    parts=(Enum.of(Kind, name="Kind", text="Kinds of signals."), *(_record(owner) for owner in _TEXTS)),
)
