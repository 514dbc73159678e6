"""Waits of a job's streams at the end of a run.

They are found in the state in which a run of the reference engine ends.
Source: `docs/models/packet-engine.md`, section Waits. Leaves out: words, see `weftwork.study.results.waits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from weftwork.engine.reference.message import Message
from weftwork.engine.reference.queue_pair import QueuePair
from weftwork.engine.rows.waits import WAIT_DTYPE, WAIT_KINDS, WAIT_STATES
from weftwork.engine.waits import in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.engine.reference.job import RankStream
    from weftwork.engine.reference.server import ServerLane

    Carrier = Callable[[int, int, int], QueuePair | ServerLane]

__all__ = ["waits_of"]


def waits_of(streams: Iterable[RankStream], carrier: Carrier, *, has_receives: bool) -> NDArray[np.void]:
    """One row per message, receive, token or instant that a stream awaits.

    The rows are `WAIT_DTYPE`, in order.

    Parameters
    ----------
    streams : of all ranks
    carrier : what carries the messages of (source, destination, channel)
    has_receives : whether ranks ask for messages at all
    """
    rows = [row for stream in streams for row in _rows(stream, carrier, has_receives=has_receives)]
    return in_order(np.array(rows, WAIT_DTYPE))


def _rows(stream: RankStream, carrier_of: Carrier, *, has_receives: bool) -> Iterator[tuple[int, ...]]:
    for posted in stream.posted:
        ends = (stream.rank, posted.peer) if posted.kind == "send" else (posted.peer, stream.rank)
        carrier = carrier_of(*ends, posted.channel)
        message = carrier.messages[posted.ordinal] if posted.ordinal < len(carrier.messages) else None
        is_send = posted.kind == "send"
        is_acknowledged = message is not None and message.acked_at_ps >= 0
        if (is_send and is_acknowledged) or (not is_send and carrier.inbox.has(posted.ordinal)):
            continue
        unasked = carrier.inbox.delivered - carrier.inbox.claimed if is_send and has_receives else 0
        place = (posted.op, posted.peer, posted.channel, posted.ordinal)
        yield (*_row(stream, posted.kind, *place), *_known(carrier, message), unasked)
    nothing = (-1, WAIT_STATES.index("not posted"), -1, -1, 0)
    if stream.is_timed:
        yield _row(stream, "time", stream.position, -1, -1, -1) + nothing
    elif not stream.has_stopped and stream.awaits >= 0:
        yield _row(stream, "token", stream.position, -1, -1, stream.awaits) + nothing


def _row(stream: RankStream, kind: str, op: int, peer: int, channel: int, ordinal: int) -> tuple[int, ...]:
    place = (stream.rank, stream.index, stream.position, stream.turn)
    return (*place, WAIT_KINDS.index(kind), op, peer, channel, ordinal)


def _known(carrier: QueuePair | ServerLane, message: Message | None) -> tuple[int, ...]:
    """Size, state and NIC ports of a wait."""
    if message is None:
        return (-1, WAIT_STATES.index("not posted"), -1, -1)
    state = "arrived" if message.delivered_at_ps >= 0 else "under way"
    if not isinstance(carrier, QueuePair):
        return (message.size_bytes, WAIT_STATES.index(state), -1, -1)
    if state == "under way" and carrier.sender is not None and carrier.sender.has_failed:
        state = "failed"
    return (message.size_bytes, WAIT_STATES.index(state), carrier.source_nic.id, carrier.destination_nic.id)
