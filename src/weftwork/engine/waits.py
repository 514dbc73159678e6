"""Waits of a stuck run: those of every stream, and a deadlock's cycle.

Source: `docs/models/packet-engine.md`, sections Deadlock and Waits. Leaves out: words, see
`weftwork.study.results.waits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DEADLOCK_DTYPE", "WAIT_DTYPE", "WAIT_KINDS", "WAIT_STATES", "in_order"]

WAIT_KINDS: Final = ("send", "receive", "token", "collective", "time")  # WAIT_DTYPE.kind
WAIT_STATES: Final = ("not posted", "under way", "arrived", "failed")  # WAIT_DTYPE.state

WAIT_DTYPE: Final = np.dtype(
    [
        ("rank", np.int64),  # that waits; where ranks are folded the one that stands for those that are alike
        ("stream", np.int64),  # among those of the rank
        ("stands_at", np.int64),  # operation of the program at which the stream is
        ("turn", np.int64),  # of the innermost loop
        ("kind", np.int64),  # index into WAIT_KINDS
        ("op", np.int64),  # operation that asked for it
        ("peer", np.int64),  # other end of a message; of a collective the first rank that has not come; -1: none
        ("channel", np.int64),  # -1: none
        ("ordinal", np.int64),  # of the message on its channel, of the call in its group, number of a token; -1: none
        ("size_bytes", np.int64),  # -1: not known
        ("state", np.int64),  # index into WAIT_STATES
        ("source_port", np.int64),  # NIC port of a message that is posted; -1: none
        ("destination_port", np.int64),
        ("missing", np.int64),  # members of a collective that have not come; of a send messages that came unasked
    ]
)

DEADLOCK_DTYPE: Final = np.dtype(
    [
        ("port", np.int64),  # paused by the node of the next row's port; the last one by that of the first
        ("traffic_class", np.int64),  # index of the class that is paused
        ("waiting_bytes", np.int64),  # frames of that class that wait at the port
        ("held_bytes", np.int64),  # what the far end's ingress holds of it, headroom included
    ]
)

_KEYS: Final = ("rank", "stream", "kind", "peer", "channel", "ordinal")


def in_order(waits: NDArray[np.void]) -> NDArray[np.void]:
    """Rows sorted by rank, stream, kind, peer, channel and ordinal.

    Parameters
    ----------
    waits : `WAIT_DTYPE`, as an engine found them
    """
    return waits[np.lexsort([waits[name] for name in reversed(_KEYS)])]
