"""Events of the connection manager, and their channels.

Source: pyverbs, cmid.pyx (names); librdmacm, rdma_get_cm_event(3).
Leaves out: a descriptor for events, which only the kernel's connection manager has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.compat.pyverbs.base import PyverbsObject
from weftwork.compat.pyverbs.cm_agent import EventQueue, Happening

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.librdmacm_enums import rdma_cm_event_type

__all__ = ["CMEvent", "CMEventChannel"]


class CMEventChannel(PyverbsObject):
    """A channel for events of identifiers.

    Attributes
    ----------
    queue : the events
    """

    def __init__(self) -> None:
        self.queue = EventQueue()

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class CMEvent(PyverbsObject):
    """The next event of a channel; waits for it.

    Parameters
    ----------
    channel : of identifiers

    Attributes
    ----------
    happening : content
    """

    def __init__(self, channel: CMEventChannel) -> None:
        self.happening: Happening = channel.queue.get()

    @property
    def event_type(self) -> rdma_cm_event_type:
        """What happened."""
        return self.happening.kind

    @property
    def private_data(self) -> bytes:
        """Bytes of the peer."""
        return self.happening.private_data

    def event_str(self) -> str:
        """What happened, as its name in librdmacm."""
        return self.happening.kind.name

    def ack_cm_event(self) -> None:
        """Do nothing: the content lives as long as the event."""

    def close(self) -> None:
        """Acknowledge the event."""
        self.ack_cm_event()
