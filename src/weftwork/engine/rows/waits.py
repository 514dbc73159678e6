"""Rows of what a run waits for at its end: streams, and the ports of a deadlock.

Source: docs/models/packet-engine.md, sections Deadlock and Waits.
"""

from __future__ import annotations

from typing import Final

from weftwork.engine.rows.declare import Enum, Header, RowType, whole

__all__ = ["DEADLOCK_DTYPE", "DEADLOCK_ROW", "HEADER", "WAIT_DTYPE", "WAIT_KINDS", "WAIT_ROW", "WAIT_STATES"]

WAIT_KINDS: Final = ("send", "receive", "token", "collective", "time")  # WAIT_DTYPE.kind
WAIT_STATES: Final = ("not posted", "under way", "arrived", "failed")  # WAIT_DTYPE.state

WAIT_ROW: Final = RowType(
    struct="WaitRow",
    text="An incomplete thing that a stream waits for.",
    fields=(
        whole("rank", "that waits; where ranks are folded the one that stands for those that are alike"),
        whole("stream", "among those of the rank"),
        whole("stands_at", "operation of the program at which the stream is"),
        whole("turn", "of the innermost loop"),
        whole("kind", "index into WAIT_KINDS"),
        whole("op", "operation that asked for it"),
        whole("peer", "other end of a message; of a collective the first rank that has not come; -1: none"),
        whole("channel", "-1: none"),
        whole("ordinal", "of the message on its channel, of the call in its group, number of a token; -1: none"),
        whole("size_bytes", "-1: not known"),
        whole("state", "index into WAIT_STATES"),
        whole("source_port", "NIC_ROW port of a message that is posted; -1: none"),
        whole("destination_port", "NIC_ROW port of a message that is posted; -1: none"),
        whole("missing", "members of a collective that have not come; of a send messages that came unasked"),
    ),
)
DEADLOCK_ROW: Final = RowType(
    struct="DeadlockRow",
    text="One step of a deadlock: a class waits at a port, which the node of the next row's port has paused.",
    fields=(
        whole("port", "paused by the node of the next row's port; the last one by that of the first"),
        whole("traffic_class", "index of the class that is paused"),
        whole("waiting_bytes", "frames of that class that wait at the port"),
        whole("held_bytes", "what the far end's ingress holds of it, headroom included"),
    ),
)

WAIT_DTYPE: Final = WAIT_ROW.dtype
DEADLOCK_DTYPE: Final = DEADLOCK_ROW.dtype
HEADER: Final = Header(
    name="waits",
    text="What a run waits for at its end.",
    parts=(
        Enum.of_words(WAIT_KINDS, name="WaitKind", text="Kinds of things that streams wait for.", stored="uint8"),
        Enum.of_words(WAIT_STATES, name="WaitState", text="How far a thing has come.", stored="uint8"),
        WAIT_ROW,
        DEADLOCK_ROW,
    ),
)
