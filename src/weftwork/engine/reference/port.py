"""What switches and NICs of the reference engine share: packets, flow-control frames, and the port that sends them.

Source: `docs/models/packet-engine.md`, sections Time, Packets and Switches; pause frames are those of IEEE 802.3 annex
31B and 802.1Q clause 36. Leaves out: what is sent next, which is the switch's or the NIC's to say.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

from weftwork.base.clock import serialisation_ps
from weftwork.engine.outcome import PORT_DTYPE
from weftwork.policies.interface import OFF

if TYPE_CHECKING:
    from weftwork.engine.reference.queue_pair import QueuePair
    from weftwork.engine.reference.simulation import Simulation

__all__ = ["PAUSE_UNIT_BYTES", "Agenda", "Hop", "Node", "Packet", "PacketKind", "Phase", "Port"]

PAUSE_UNIT_BYTES: Final = 64  # one quantum is 512 bit times: IEEE 802.3, annex 31B.2


class Phase(IntEnum):
    """What a domain handles first at one instant."""

    DEPARTURE = 0
    INSTANT = 1
    FLOW_CONTROL = 2
    PACKET = 3
    AGENDA = 4


class Agenda(IntEnum):
    """Kinds of the agenda, in their order at one instant."""

    JOB = 0
    HOST_INTERFACE = 1
    RETRANSMISSION = 2
    CONGESTION_CONTROL = 3
    RECEIVER = 4
    REFRESH = 5
    DELIVERY = 6
    EGRESS = 7
    SIGNAL = 8


class PacketKind(IntEnum):
    """The number is part of a packet's identity."""

    DATA = 0
    ACK = 1
    NAK = 2
    CNP = 3
    CREDIT = 4
    PROBE = 5


@dataclass(kw_only=True, slots=True)
class Hop:
    """What one switch has written into a data packet."""

    queue_bytes: int
    tx_bytes: int
    rate_bps: int
    at_ps: int


@dataclass(kw_only=True, slots=True)
class Packet:
    """One packet on its way. Fields that its kind does not have stay at 0."""

    queue_pair: QueuePair
    origin: Port  # the NIC ports with which it was sent or queued
    destination: Port
    kind: PacketKind
    seq: int
    attempt: int
    size_bytes: int  # of the frame
    traffic_class: int
    entropy: int  # UDP source port: of the headers, and what an ACK echoes
    payload_bytes: int = 0
    asks_ack: bool = False
    is_marked: bool = False  # DATA: by a switch; ACK, NAK: echoed
    sent_at_ps: int = 0  # DATA: start of transmission at the NIC
    arrived_at_ps: int = 0  # DATA: at the receiving NIC
    hops: list[Hop] = field(default_factory=list)
    credit_bytes: int = 0
    msn: int = 0
    credit_code: int = 0
    echo: Packet | None = None  # ACK, NAK: the data packet that caused it
    host_delay_ps: int = 0  # DATA, once handled, and read through the echo
    ingress: Port | None = None  # by which it came into this node

    @property
    def identity(self) -> int:
        """Within its flow; every transmission has another."""
        return self.seq | self.attempt << 32 | self.kind << 48


class Node(Protocol):
    """A domain: a switch, or a host with its NIC ports."""

    def send_next(self, port: Port) -> None:
        """Start what is ready at a port that is up and idle and has no flow-control frame."""

    def receive(self, port: Port, packet: Packet) -> None:
        """Take a packet that has arrived whole and intact."""

    def port_went_down(self, port: Port) -> None:
        """Drop what waits at the port and forget what it had asked for."""


class Port:
    """One end of a link: transmission, the pause it obeys and the pause it asks of the other end."""

    def __init__(self, simulation: Simulation, port_id: int, node: Node, pause_quanta: int) -> None:
        plan = simulation.plan
        classes = len(plan.class_priority)
        self.simulation = simulation
        self.id = port_id
        self.node = node
        self.peer_id = int(plan.port_peer[port_id])
        self.local_index = port_id - int(plan.port_base[int(plan.port_node[port_id])])
        self.rate_bps = int(plan.port_rate_bps[port_id])
        self.delay_ps = int(plan.port_delay_ps[port_id])
        self.loss = float(plan.port_loss[port_id])
        self.corruption = float(plan.port_corruption[port_id])
        self.is_up = True
        self.times_down = 0  # what started before the latest LINK_DOWN is lost
        self.busy_until_ps = 0
        self.frames: deque[tuple[int, int]] = deque()  # flow control that waits: class, quanta
        self.pause_until_ps = [0] * classes  # obeyed
        self.pause_quanta = pause_quanta  # of the frames that it sends
        self.asked = [False] * classes  # the other end has been asked to pause
        self.refresh_at_ps = [OFF] * classes
        self.counts: dict[str, int] = dict.fromkeys(PORT_DTYPE.names or (), 0)

    def is_paused(self, traffic_class: int) -> bool:
        """Whether the other end has forbidden this class now."""
        return self.pause_until_ps[traffic_class] > self.simulation.now_ps

    # Transmission

    def start(self) -> None:
        """Send the next thing, if the port is up, idle and has one; harmless at any other time."""
        if not self.is_up or self.busy_until_ps > self.simulation.now_ps:
            return
        if self.frames:
            traffic_class, quanta = self.frames.popleft()
            self.counts["pauses_sent" if quanta else "resumes_sent"] += 1
            arrival_ps = self._occupy(self.simulation.plan.transport.pause_frame_bytes)
            self.simulation.at(arrival_ps, Phase.FLOW_CONTROL, (self.peer_id,), self._frame_arrives,
                               traffic_class, quanta, self.times_down)  # fmt: skip
        else:
            self.node.send_next(self)

    def transmit(self, packet: Packet) -> None:
        """Start a packet."""
        self.counts["frames"] += 1
        self.counts["bytes"] += packet.size_bytes
        arrival_ps = self._occupy(packet.size_bytes)
        self.simulation.at(arrival_ps, Phase.PACKET, (self.peer_id,), self.simulation.packet_arrives,
                           self, packet, self.times_down)  # fmt: skip

    def wake_at(self, at_ps: int) -> None:
        """Try again among the departures of an instant to come."""
        self.simulation.at(at_ps, Phase.DEPARTURE, (self.id,), self.start)

    def _occupy(self, size_bytes: int) -> int:
        """Take the wire for a frame; returns when it is at the other end, whole."""
        wire_bytes = size_bytes + self.simulation.plan.transport.interframe_bytes
        self.busy_until_ps = self.simulation.now_ps + serialisation_ps(wire_bytes, self.rate_bps)
        self.wake_at(self.busy_until_ps)
        return self.busy_until_ps + self.delay_ps

    # Flow control

    def ask_pause(self, traffic_class: int) -> None:
        """Ask the other end to stop a class, again and again until `ask_resume`."""
        self.asked[traffic_class] = True
        self._send_pause(traffic_class)

    def ask_resume(self, traffic_class: int) -> None:
        """Let the other end go on."""
        self.asked[traffic_class] = False
        self.refresh_at_ps[traffic_class] = OFF
        self.frames.append((traffic_class, 0))
        self.start()

    def _send_pause(self, traffic_class: int) -> None:
        simulation = self.simulation
        pause_ps = serialisation_ps(PAUSE_UNIT_BYTES * self.pause_quanta, self.rate_bps)
        refresh_at_ps = simulation.now_ps + pause_ps // 2
        self.refresh_at_ps[traffic_class] = refresh_at_ps
        simulation.at(
            refresh_at_ps, Phase.AGENDA, (Agenda.REFRESH, self.id, traffic_class), self._refresh, traffic_class
        )
        self.frames.append((traffic_class, self.pause_quanta))
        self.start()

    def _refresh(self, traffic_class: int) -> None:
        if self.refresh_at_ps[traffic_class] == self.simulation.now_ps:
            self._send_pause(traffic_class)

    def _frame_arrives(self, traffic_class: int, quanta: int, times_down: int) -> None:
        """At the other end: ``self`` is the port that has sent the frame."""
        if times_down == self.times_down:
            self.simulation.ports[self.peer_id].obey(traffic_class, quanta)

    def obey(self, traffic_class: int, quanta: int) -> None:
        """Stop a class for a time that starts now, or let it go on."""
        now_ps = self.simulation.now_ps
        until_ps = now_ps + serialisation_ps(PAUSE_UNIT_BYTES * quanta, self.rate_bps)
        self.counts["paused_ps"] += until_ps - max(now_ps, self.pause_until_ps[traffic_class])
        self.pause_until_ps[traffic_class] = until_ps
        if quanta:
            self.wake_at(until_ps)
        else:
            self.start()

    # Faults

    def go_down(self) -> None:
        """LINK_DOWN at this end: the wire, the queues and all that flow control knew are lost."""
        now_ps = self.simulation.now_ps
        self.is_up = False
        self.times_down += 1
        self.frames.clear()
        for traffic_class, until_ps in enumerate(self.pause_until_ps):
            self.counts["paused_ps"] -= max(0, until_ps - now_ps)
            self.pause_until_ps[traffic_class] = 0
            self.asked[traffic_class] = False
            self.refresh_at_ps[traffic_class] = OFF
        self.node.port_went_down(self)
