"""Events of a NIC that belong to no request.

Source: ibv_get_async_event(3).
Leaves out: who hears them, see `device`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["AsyncEvent", "EventType"]


class EventType(Enum):
    """Kind of an asynchronous event (enum ibv_event_type)."""

    QP_FATAL = "a queue pair failed"
    SQ_DRAINED = "the requests in flight of a queue pair in SQD have ended"
    SRQ_LIMIT_REACHED = "a shared receive queue has fewer receives than its limit"
    CQ_ERR = "a completion queue was overrun"


@dataclass(frozen=True, kw_only=True, slots=True)
class AsyncEvent:
    """An event of the NIC.

    Parameters
    ----------
    event_type : what happened
    qp_num : the queue pair at which it happened
    """

    event_type: EventType
    qp_num: int
