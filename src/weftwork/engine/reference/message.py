"""Messages of the reference engine: the send queue, and the inbox.

The sender posts messages; the receiving rank claims them in the inbox.
Source: `docs/models/packet-engine.md`, sections The job, Queue pairs and the sending NIC, and Order.
Leaves out: how a message gets there, see `queue_pair` and `server`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from weftwork.engine.reference.clock import Clock
from weftwork.policies.interface import OFF

__all__ = ["Inbox", "Message", "SendQueue"]


@dataclass(kw_only=True, slots=True)
class Message:
    """One message.

    Between servers, packets ``first`` to ``end - 1`` of its queue pair carry it.

    Attributes
    ----------
    completed : called when all of it is acknowledged
    """

    size_bytes: int
    posted_at_ps: int
    completed: Callable[[], None]
    delivered_at_ps: int = OFF
    acked_at_ps: int = OFF
    traffic_class: int = 0
    first: int = 0
    end: int = 0
    bytes_before: int = 0  # payload of all messages before it

    def acknowledged(self, now_ps: int) -> None:
        """Tell the sending rank that the whole message has arrived."""
        self.acked_at_ps = now_ps
        self.completed()


class SendQueue:
    """The messages of a queue pair, cut into packets.

    A message has ``max(1, ceil(size / mtu))`` packets, the last one shorter.

    Attributes
    ----------
    messages : all of them, in their order
    """

    def __init__(self, mtu_bytes: int) -> None:
        self.mtu_bytes = mtu_bytes
        self.messages: list[Message] = []
        self._firsts: list[int] = []

    @property
    def end(self) -> int:
        """Number of posted packets."""
        return self.messages[-1].end if self.messages else 0

    def append(self, size_bytes: int, traffic_class: int, now_ps: int, completed: Callable[[], None]) -> None:
        """Add a message."""
        first = self.end
        last = self.messages[-1] if self.messages else None
        message = Message(
            size_bytes=size_bytes,
            traffic_class=traffic_class,
            first=first,
            end=first + max(1, -(-size_bytes // self.mtu_bytes)),
            bytes_before=last.bytes_before + last.size_bytes if last else 0,
            posted_at_ps=now_ps,
            completed=completed,
        )
        self.messages.append(message)
        self._firsts.append(first)

    def ordinal_of(self, seq: int) -> int:
        """Ordinal of the message of packet ``seq``."""
        return bisect_right(self._firsts, seq) - 1

    def message_of(self, seq: int) -> Message:
        """Message of packet ``seq``."""
        return self.messages[self.ordinal_of(seq)]

    def bytes_before(self, seq: int) -> int:
        """Payload of all packets before ``seq``.

        ``seq`` may be one past the last packet.
        """
        if not self.messages:
            return 0
        message = self.messages[-1]
        if seq < message.first:
            message = self.message_of(seq)
        return message.bytes_before + min(message.size_bytes, (seq - message.first) * self.mtu_bytes)

    def payload_bytes(self, first: int, end: int) -> int:
        """Payload of packets ``first`` to ``end - 1``."""
        return self.bytes_before(end) - self.bytes_before(first)

    def packet_bytes(self, seq: int) -> int:
        """Payload of one posted packet."""
        message = self.message_of(seq)
        return min(self.mtu_bytes, message.size_bytes - (seq - message.first) * self.mtu_bytes)


class Inbox:
    """Arrived messages of one (source, destination, channel).

    The n-th RECEIVE claims the n-th message.

    Parameters
    ----------
    clock : what time it is
    messages : that are on their way or here, in their order
    matches_any : whether the n-th RECEIVE claims the n-th message that arrives, whichever it is, instead

    Attributes
    ----------
    delivered, receives : how many messages have arrived, and how many were asked for
    claimed : messages that have arrived and were asked for
    delivered_bytes : of the messages that have arrived
    """

    def __init__(self, clock: Clock, messages: list[Message], *, matches_any: bool = False) -> None:
        self.clock = clock
        self.messages = messages
        self.matches_any = matches_any
        self.delivered = 0
        self.delivered_bytes = 0
        self.receives = 0
        self.claimed = 0
        self._waiting: dict[int, Callable[[], None]] = {}  # by the number of the RECEIVE, from 0

    def has(self, receive: int) -> bool:
        """Whether the message of the RECEIVE with this number has arrived.

        Numbers begin at 0.
        """
        if self.matches_any:
            return receive < self.delivered
        return receive < len(self.messages) and self.messages[receive].delivered_at_ps != OFF

    def claim(self, completed: Callable[[], None]) -> bool:
        """Ask for the next message; returns whether it is there already.

        Otherwise ``completed`` is called when it is.
        """
        receive = self.receives
        self.receives += 1
        if self.has(receive):
            self.claimed += 1
            return True
        self._waiting[receive] = completed
        return False

    def deliver(self, ordinal: int | None = None) -> Message:
        """Take a complete message.

        It is the next message, or out of order the message with this number.
        """
        if ordinal is None:
            ordinal = self.delivered
        message = self.messages[ordinal]
        message.delivered_at_ps = self.clock.now_ps
        self.delivered_bytes += message.size_bytes
        completed = self._waiting.pop(self.delivered if self.matches_any else ordinal, None)
        self.delivered += 1
        if completed is not None:
            self.claimed += 1
            completed()
        return message
