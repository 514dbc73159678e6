"""Signals of a sender to its policies.

They go to congestion control and path selection.
Source: `docs/models/packet-engine.md`, section What policies see and write.
Leaves out: when a step is called and what comes of it, see `steps`; the receiver's signals, see `receiver`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.flow import QueuePairConfig
from weftwork.engine.reference.line import SenderLine
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.path_load import load_of
from weftwork.policies.interface import Kind

__all__ = ["News", "SenderSignals", "SenderView"]


class SenderView(Protocol):
    """A sender as its policies see it."""

    line: SenderLine
    slot: int
    nxt: int

    @property
    def inflight_bytes(self) -> int:
        """Payload in flight whose fate is unknown."""

    @property
    def backlog_bytes(self) -> int:
        """Payload posted and not sent yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """News of a sender from one ACK or NAK.

    Attributes
    ----------
    acked_bytes : payload newly acknowledged
    arrived_bytes : payload newly known to have arrived, also beyond gaps
    lost_bytes : payload newly known to be lost
    marked_bytes : payload that has arrived with a mark since the last ACK signal
    completed_messages : messages newly acknowledged whole
    """

    acked_bytes: int
    arrived_bytes: int
    lost_bytes: int
    marked_bytes: int
    completed_messages: int


class SenderSignals:
    """Makes the signals of one sender.

    Parameters
    ----------
    config : rules of the queue pair
    clock : what time it is
    sender : whose state each signal tells
    base_rtt_ps : round trip of a packet and its ACK without queues
    """

    def __init__(self, config: QueuePairConfig, clock: Clock, sender: SenderView, base_rtt_ps: int) -> None:
        self.config = config
        self.clock = clock
        self.sender = sender
        self.base_rtt_ps = base_rtt_ps

    def of(self, kind: Kind, **fields: int) -> Any:  # noqa: ANN401 - the record of the policies
        """Make a signal with common fields and the given fields."""
        signal = self.config.congestion_control.new_signal()
        signal.kind = int(kind)
        signal.now_ps = self.clock.now_ps
        signal.next_seq = self.sender.nxt
        signal.line_rate_bps = self.sender.line.rate_bps
        signal.base_rtt_ps = self.base_rtt_ps
        signal.fabric_base_rtt_ps = self.config.fabric_base_rtt_ps
        signal.mtu_bytes = self.config.transport.mtu_bytes
        signal.inflight_bytes = self.sender.inflight_bytes
        signal.backlog_bytes = self.sender.backlog_bytes
        for name, value in fields.items():
            setattr(signal, name, value)
        return signal

    def ack(self, packet: Packet, seq: int, news: News) -> Any:  # noqa: ANN401
        """Make the signal of an ACK or NAK that acknowledges up to ``seq``."""
        signal = self.of(
            Kind.ACK,
            bytes=news.acked_bytes,
            seq=seq,
            ecn=int(packet.is_marked),
            arrived_bytes=news.arrived_bytes,
            marked_bytes=news.marked_bytes,
            lost_bytes=news.lost_bytes,
            completed_messages=news.completed_messages,
            **self._times(packet),
            **self._path(packet),
        )
        for index, hop in enumerate(packet.echo.hops if packet.echo is not None else ()):
            signal.hop_queue_bytes[index] = hop.queue_bytes
            signal.hop_tx_bytes[index] = hop.tx_bytes
            signal.hop_rate_bps[index] = hop.rate_bps
            signal.hop_at_ps[index] = hop.at_ps
            signal.hop_port[index] = hop.port
        if self.config.has_path_load and packet.echo is not None and not packet.echo.is_cut:
            signal.path_load = load_of(packet.echo.path_load_code)
        return signal

    def nak(self, packet: Packet, seq: int, lost_bytes: int) -> Any:  # noqa: ANN401
        """Make the signal of a NAK that reports a loss."""
        return self.of(Kind.NAK, seq=seq, lost_bytes=lost_bytes, **self._path(packet))

    def trim(self, packet: Packet, payload_bytes: int) -> Any:  # noqa: ANN401
        """Make the signal of a NAK that reports a cut packet."""
        signal = self.of(
            Kind.TRIM, bytes=payload_bytes, lost_bytes=payload_bytes, **self._times(packet), **self._path(packet)
        )
        if packet.echo is not None:
            signal.seq = packet.echo.seq
            signal.last_hop = int(packet.echo.is_cut_at_last_hop)
        return signal

    def _times(self, packet: Packet) -> dict[str, int]:
        """Round trip of the echoed packet, if packets carry departure times."""
        if packet.echo is None or not self.config.echoes_time:
            return {}
        rtt_ps, host_delay_ps = self.clock.now_ps - packet.echo.sent_at_ps, packet.host_delay_ps
        return {"rtt_ps": rtt_ps, "host_delay_ps": host_delay_ps, "fabric_delay_ps": rtt_ps - host_delay_ps}

    def _path(self, packet: Packet) -> dict[str, int]:
        """Entropy of the echoed packet, if needed, and its number of switches."""
        if packet.echo is None:
            return {}
        entropy = packet.echo.entropy if self.config.echoes_entropy else 0
        return {"entropy": entropy, "hops": packet.echo.hop_count}
