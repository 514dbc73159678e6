"""One direction of a link of the reference engine.

It is the wire from the sending port to the far end.
Source: `docs/models/packet-engine.md`, sections Time and Switches, point 1: lost?
Leaves out: when a frame starts and how long it takes, which is the port's to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from weftwork.base.random import Stream, uniform
from weftwork.engine.reference.clock import Clock, Phase
from weftwork.engine.reference.packet import Packet

__all__ = ["FarEnd", "LinkConfig", "OneWayLink", "Wire"]


class Wire(Protocol):
    """A wire, to which a port hands its frames.

    The first bit has left before, the last bit leaves at ``left_at_ps``.
    """

    def carry(self, packet: Packet, left_at_ps: int) -> None:
        """Take a packet."""

    def carry_pause(self, traffic_class: int, quanta: int, left_at_ps: int) -> None:
        """Take a flow-control frame."""

    def carry_credit(self, traffic_class: int, credit_bytes: int, left_at_ps: int) -> None:
        """Take a frame with credit."""

    def cut(self) -> None:
        """Lose all frames in flight."""


class FarEnd(Protocol):
    """The port at the far end of a wire."""

    @property
    def id(self) -> int:
        """Port id; arrivals at one instant are handled in its order."""

    def receive(self, packet: Packet, /) -> None:
        """Take a packet that has arrived complete and intact."""

    def obey(self, traffic_class: int, quanta: int) -> None:
        """Stop a class for a time from now, or release it."""

    def take_credit(self, traffic_class: int, credit_bytes: int) -> None:
        """Add credit."""

    def give_back(self, traffic_class: int, size_bytes: int) -> None:
        """Return the credit of a lost packet, if links give credit."""

    def drop(self, reason: str) -> None:
        """Count a dropped packet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkConfig:
    """One direction of a link.

    Parameters
    ----------
    port_id : of the port that sends; losses are drawn there
    delay_ps : from the last bit's departure until the far end can handle the frame
    loss, corruption : probabilities of each packet
    seed : of the run
    """

    port_id: int
    delay_ps: int
    loss: float
    corruption: float
    seed: int


class OneWayLink:
    """Carries the frames of one port.

    Attributes
    ----------
    loss, corruption : probabilities; a fault changes the first
    times_cut : what started before the latest cut is lost
    arrivals, last_arrival_ps : of packets at the far end, those that were lost under way included
    """

    def __init__(self, config: LinkConfig, clock: Clock, far_end: FarEnd) -> None:
        self.config = config
        self.clock = clock
        self.far_end = far_end
        self.delay_ps = config.delay_ps
        self.loss = config.loss
        self.corruption = config.corruption
        self._place = (far_end.id,)  # of arrivals among those of one instant
        self.times_cut = 0
        self.arrivals = 0
        self.last_arrival_ps = 0

    def carry(self, packet: Packet, left_at_ps: int) -> None:
        """Carry a packet whose last bit leaves at an instant."""
        at_ps = left_at_ps + self.delay_ps
        self.clock.at(at_ps, Phase.PACKET, self._place, self._arrive, packet, self.times_cut)

    def carry_pause(self, traffic_class: int, quanta: int, left_at_ps: int) -> None:
        """Carry a flow-control frame, which only a cut can lose."""
        at_ps = left_at_ps + self.delay_ps
        arguments = (traffic_class, quanta, self.times_cut)
        self.clock.at(at_ps, Phase.FLOW_CONTROL, self._place, self._pause_arrives, *arguments)

    def carry_credit(self, traffic_class: int, credit_bytes: int, left_at_ps: int) -> None:
        """Carry a credit frame, which only a cut can lose."""
        at_ps = left_at_ps + self.delay_ps
        arguments = (traffic_class, credit_bytes, self.times_cut)
        self.clock.at(at_ps, Phase.FLOW_CONTROL, self._place, self._credit_arrives, *arguments)

    def cut(self) -> None:
        """Lose all frames in flight."""
        self.times_cut += 1

    def _arrive(self, packet: Packet, times_cut: int) -> None:
        self.arrivals += 1
        self.last_arrival_ps = self.clock.now_ps
        if times_cut != self.times_cut:
            self.far_end.drop("link_down")  # and no credit: that of a link that has come up again counts it already
        elif self.loss > 0 and self._luck(Stream.LINK_LOSS, packet) < self.loss:
            self._lose(packet, "link_loss")
        elif self.corruption > 0 and self._luck(Stream.LINK_CORRUPTION, packet) < self.corruption:
            self._lose(packet, "corrupted")
        else:
            self.far_end.receive(packet)

    def _lose(self, packet: Packet, reason: str) -> None:
        self.far_end.drop(reason)
        self.far_end.give_back(packet.traffic_class, packet.size_bytes)

    def _luck(self, stream: Stream, packet: Packet) -> float:
        return uniform(packet.draw(self.config.seed, stream, self.config.port_id))

    def _pause_arrives(self, traffic_class: int, quanta: int, times_cut: int) -> None:
        if times_cut == self.times_cut:
            self.far_end.obey(traffic_class, quanta)

    def _credit_arrives(self, traffic_class: int, credit_bytes: int, times_cut: int) -> None:
        if times_cut == self.times_cut:
            self.far_end.take_credit(traffic_class, credit_bytes)
