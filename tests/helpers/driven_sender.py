"""A sender of the reference engine on a clock and a line that a test moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from helpers.by_hand import (
    FLOW,
    MTU_BYTES,
    HandClock,
    HandControl,
    HandLine,
    HandPath,
    Tally,
    answer,
    queue_pair_config,
)

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.reference.message import SendQueue
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.sender import Sender

__all__ = ["ACK", "CNP", "CREDIT", "NAK", "TIMEOUT_PS", "Driven", "drive"]

TIMEOUT_PS = MS_PS
ACK, NAK, CNP, CREDIT = PacketKind.ACK, PacketKind.NAK, PacketKind.CNP, PacketKind.CREDIT


@dataclass
class Driven:
    """A sender with all that it sees."""

    sender: Sender
    clock: HandClock
    line: HandLine
    control: HandControl
    counted: Tally
    complete: list[int] = field(default_factory=list)  # messages, in the order in which they were

    def post(self, *sizes_bytes: int, traffic_class: int = 0) -> None:
        for size_bytes in sizes_bytes:
            ordinal = len(self.sender.queue.messages)
            self.sender.post(size_bytes, traffic_class, lambda ordinal=ordinal: self.complete.append(ordinal))

    def leaves(self) -> Packet | None:
        """What the NIC would send now."""
        seq = self.sender.next_packet()
        return None if seq is None else self.sender.send(seq)

    def sends(self, packets: int) -> list[Packet]:
        """So many packets, each as soon as pacing lets it."""
        sent = []
        for _ in range(packets):
            self.clock.go_to(max(self.clock.now_ps, self.sender.next_send_at_ps))
            packet = self.leaves()
            assert packet is not None
            sent.append(packet)
        return sent

    def hears(self, kind: PacketKind, seq: int = 0, **changes: Any) -> None:
        self.sender.receive(answer(kind, seq, **changes))

    def holds_back(self) -> bool:
        """Whether nothing may leave even when pacing allows."""
        self.clock.go_to(max(self.clock.now_ps, self.sender.next_send_at_ps))
        return self.leaves() is None


def drive(
    *sizes_bytes: int,
    window_bytes: float | None = None,
    path: HandPath | None = None,
    moves_departures: bool = False,
    **changes: Any,
) -> Driven:
    clock, line, counted = HandClock(), HandLine(), Tally()
    control = HandControl(moves_departures=moves_departures)
    config = queue_pair_config(control, path, **({"retransmission_timeout_ps": TIMEOUT_PS} | changes))
    queue = SendQueue(MTU_BYTES)
    sender = Sender(
        FLOW, config, clock=clock, line=line, destination=1, queue=queue, base_rtt_ps=7 * US_PS, count=counted
    )
    driven = Driven(sender, clock, line, control, counted)
    if window_bytes is not None:
        sender.state.window_bytes = window_bytes
    driven.post(*sizes_bytes)
    return driven
