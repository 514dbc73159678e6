"""A port of the reference engine: transmission and pauses.

It obeys pauses, and asks the other end for pauses.

Source: `docs/models/packet-engine.md`, sections Time and Switches; pause frames are those of IEEE 802.3 annex 31B and
802.1Q clause 36. Where links give credit, the port takes it and brings it back; the accounts are in `link_credits`.
Leaves out: what is sent next, which is the switch's or the NIC's to say; the wire, see `link`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from weftwork.base.clock import serialisation_ps
from weftwork.engine.packet_input import PAUSE_UNIT_BYTES
from weftwork.engine.reference.clock import Agenda, Clock, Phase
from weftwork.engine.reference.link import Wire
from weftwork.engine.reference.link_credits import LinkCredits
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.tap import Tap
from weftwork.engine.rows.outcome import PORT_DTYPE
from weftwork.policies.interface import OFF

__all__ = ["Node", "Port", "PortConfig"]


class Node(Protocol):
    """A switch, or a NIC of one port."""

    def send_next(self, port: Port) -> None:
        """Send the next packet of an idle port that is up.

        The port has no flow-control frame.
        """

    def receive(self, port: Port, packet: Packet) -> None:
        """Take a packet that has arrived complete and intact."""

    def port_went_down(self, port: Port) -> None:
        """Drop the port's waiting packets and forget its pauses."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PortConfig:
    """One port at the start.

    Parameters
    ----------
    id, local_index : among all ports, and among those of its node
    rate_bps : line rate
    classes : how many traffic classes there are
    pause_quanta : of the flow-control frames that it sends
    pause_frame_bytes, interframe_bytes : size of such a frame, and what follows any frame
    """

    id: int
    local_index: int
    rate_bps: int
    classes: int
    pause_quanta: int
    pause_frame_bytes: int
    interframe_bytes: int


class Port:
    """One end of a link.

    `join` puts it at its node and its wire.

    Attributes
    ----------
    rate_bps : line rate, which a fault changes
    counts : by the names of `PORT_DTYPE`
    credits : of its link, or None: the link knows pauses
    frames : flow control that waits: class, and quanta or, under credits, bytes
    tap : notes what starts here, or None
    """

    def __init__(
        self, config: PortConfig, clock: Clock, count: Callable[[str], None], link_credits: LinkCredits | None = None
    ) -> None:
        self.config = config
        self.clock = clock
        self.count = count
        self.credits = link_credits
        self.tap: Tap | None = None
        self.node: Node
        self.wire: Wire
        self.id = config.id
        self.local_index = config.local_index
        self.rate_bps = config.rate_bps
        self.is_up = True
        self.busy_until_ps = 0
        self.frames: deque[tuple[int, int]] = deque()
        self.pause_until_ps = [0] * config.classes  # obeyed
        self.asked = [False] * config.classes  # the other end has been asked to pause
        self.refresh_at_ps = [OFF] * config.classes
        self.counts: dict[str, int] = dict.fromkeys(PORT_DTYPE.names or (), 0)

    def join(self, node: Node, wire: Wire) -> None:
        """Join a node, which chooses packets, and a wire, which carries them."""
        self.node = node
        self.wire = wire

    def is_paused(self, traffic_class: int) -> bool:
        """Whether the other end has forbidden this class now."""
        return self.pause_until_ps[traffic_class] > self.clock.now_ps

    def lacks_credit(self, traffic_class: int, frame_bytes: int) -> bool:
        """Whether a frame of this class lacks credit."""
        return self.credits is not None and self.credits.credit_bytes[traffic_class] < frame_bytes

    def is_held(self, traffic_class: int, frame_bytes: int) -> bool:
        """Whether flow control holds back a frame of this class."""
        return self.is_paused(traffic_class) or self.lacks_credit(traffic_class, frame_bytes)

    def receive(self, packet: Packet) -> None:
        """Hand a complete, intact packet to the node."""
        if self.credits is not None:
            self.credits.used_bytes[packet.traffic_class] += packet.size_bytes
        self.node.receive(self, packet)

    def drop(self, reason: str) -> None:
        """Count a dropped packet.

        It came in here, or wanted to leave here.
        """
        self.count(f"drop_{reason}")
        self.counts["drops"] += 1

    # Transmission

    def start(self) -> None:
        """Send the next frame, if the port is up and idle.

        A call at any other time is harmless.
        """
        if not self.is_up or self.busy_until_ps > self.clock.now_ps:
            return
        if self.frames:
            self._transmit_flow_control(*self.frames.popleft())
        else:
            self.node.send_next(self)

    def transmit(self, packet: Packet) -> None:
        """Start a packet and take its credit."""
        if self.credits is not None:
            self.credits.credit_bytes[packet.traffic_class] -= packet.size_bytes
        if self.tap is not None:
            self.tap.packet(self.id, packet)
        self.counts["frames"] += 1
        self.counts["bytes"] += packet.size_bytes
        self.wire.carry(packet, self._occupy(packet.size_bytes))

    def _transmit_flow_control(self, traffic_class: int, amount: int) -> None:
        """Start a frame of pauses or of credit."""
        size_bytes, is_credit = self.config.pause_frame_bytes, self.credits is not None
        if self.tap is not None:
            self.tap.flow_control(self.id, traffic_class, amount, size_bytes, is_credit=is_credit)
        left_at_ps = self._occupy(size_bytes)
        if is_credit:
            self.counts["credit_frames"] += 1
            self.wire.carry_credit(traffic_class, amount, left_at_ps)
        else:
            self.counts["pauses_sent" if amount else "resumes_sent"] += 1
            self.wire.carry_pause(traffic_class, amount, left_at_ps)

    def wake_at(self, at_ps: int) -> None:
        """Try again among the departures of a later instant."""
        self.clock.at(at_ps, Phase.DEPARTURE, (self.id,), self.start)

    def _occupy(self, size_bytes: int) -> int:
        """Occupy the wire for a frame; returns when its last bit has left."""
        wire_bytes = size_bytes + self.config.interframe_bytes
        self.busy_until_ps = self.clock.now_ps + serialisation_ps(wire_bytes, self.rate_bps)
        self.wake_at(self.busy_until_ps)
        return self.busy_until_ps

    # Flow control

    def ask_pause(self, traffic_class: int) -> None:
        """Ask the other end to stop a class, repeatedly until `ask_resume`."""
        self.asked[traffic_class] = True
        self._send_pause(traffic_class)

    def ask_resume(self, traffic_class: int) -> None:
        """Ask the other end to resume."""
        self.asked[traffic_class] = False
        self.refresh_at_ps[traffic_class] = OFF
        self.frames.append((traffic_class, 0))
        self.start()

    def _send_pause(self, traffic_class: int) -> None:
        quanta = self.config.pause_quanta
        pause_ps = serialisation_ps(PAUSE_UNIT_BYTES * quanta, self.rate_bps)
        refresh_at_ps = self.clock.now_ps + pause_ps // 2
        self.refresh_at_ps[traffic_class] = refresh_at_ps
        identity = (Agenda.REFRESH, self.id, traffic_class)
        self.clock.at(refresh_at_ps, Phase.AGENDA, identity, self._refresh, traffic_class)
        self.frames.append((traffic_class, quanta))
        self.start()

    def _refresh(self, traffic_class: int) -> None:
        if self.refresh_at_ps[traffic_class] == self.clock.now_ps:
            self._send_pause(traffic_class)

    def obey(self, traffic_class: int, quanta: int) -> None:
        """Stop a class for a time from now, or release it."""
        now_ps = self.clock.now_ps
        until_ps = now_ps + serialisation_ps(PAUSE_UNIT_BYTES * quanta, self.rate_bps)
        self.counts["paused_ps"] += until_ps - max(now_ps, self.pause_until_ps[traffic_class])
        self.pause_until_ps[traffic_class] = until_ps
        if quanta:
            self.wake_at(until_ps)
        else:
            self.start()

    # Credits

    def free(self, traffic_class: int, size_bytes: int) -> None:
        """Return the bytes of a packet that has left the node, as credit.

        It came in here; it may also have been dropped.
        """
        if self.credits is not None:
            self.credits.used_bytes[traffic_class] -= size_bytes
            self.give_back(traffic_class, size_bytes)

    def give_back(self, traffic_class: int, size_bytes: int) -> None:
        """Return bytes to the far end, gradually.

        Nothing is returned while the link is down, since a link that comes up starts again.
        """
        if self.credits is None or not self.is_up:
            return
        due_bytes = self.credits.owe(traffic_class, size_bytes)
        if due_bytes:
            self.frames.append((traffic_class, due_bytes))
            self.start()

    def take_credit(self, traffic_class: int, credit_bytes: int) -> None:
        """Add credit."""
        if self.credits is not None:
            self.credits.credit_bytes[traffic_class] += credit_bytes
            self.start()

    # Faults

    def go_down(self) -> None:
        """LINK_DOWN at this end: lose wire, queues and flow-control state."""
        now_ps = self.clock.now_ps
        self.is_up = False
        self.wire.cut()
        self.frames.clear()
        for traffic_class, until_ps in enumerate(self.pause_until_ps):
            self.counts["paused_ps"] -= max(0, until_ps - now_ps)
            self.pause_until_ps[traffic_class] = 0
            self.asked[traffic_class] = False
            self.refresh_at_ps[traffic_class] = OFF
        self.node.port_went_down(self)

    def come_up(self) -> None:
        """LINK_UP at this end."""
        self.is_up = True
        self.start()
