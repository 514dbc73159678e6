"""A tap of the reference engine, which records frames.

It notes every frame that starts at the ports where it listens.
Source: `weftwork.engine.capture`; the native engine notes the same in ``native/packet/capture.hpp``.
Leaves out: the frames of other ports, and whether a frame arrives.
"""

from __future__ import annotations

from weftwork.engine.capture import CaptureRequest
from weftwork.engine.reference.clock import Clock
from weftwork.engine.reference.packet import HopTelemetry, Packet, PacketKind
from weftwork.engine.rows.outcome import CAPTURE_KINDS
from weftwork.policies.interface import HOPS

__all__ = ["Tap"]

_ANSWERS = (PacketKind.ACK, PacketKind.NAK)


class Tap:
    """Recorded frames.

    Attributes: ``rows`` by the fields of `CAPTURE_DTYPE`, in the order of time at each port.
    """

    def __init__(self, request: CaptureRequest, clock: Clock) -> None:
        self.request = request
        self.clock = clock
        self.rows: list[tuple[int | list[int], ...]] = []

    def packet(self, port: int, packet: Packet) -> None:
        """Note a packet that starts now."""
        flow, kind = packet.flow.id, packet.kind
        told = packet.echo if kind == PacketKind.NAK else None
        amount = {PacketKind.CREDIT: packet.credit_bytes, PacketKind.REQUEST: packet.request_bytes}
        cause = packet.echo if kind in _ANSWERS else packet
        row = (
            *(self.clock.now_ps, port, int(kind), packet.traffic_class),
            *(flow >> 40, flow >> 16 & 0xFFFFFF, flow & 0xFFFF),
            *(packet.seq, packet.attempt, packet.origin, packet.destination),
            *(packet.size_bytes, packet.payload_bytes, packet.entropy, packet.hop_count),
            *(int(packet.is_marked), int(packet.asks_ack), int(cause is not None and cause.is_cut)),
            *(packet.msn, packet.credit_code, amount.get(kind, 0)),
            -1 if told is None else told.seq,
            *_telemetry([] if cause is None else cause.hops),
        )
        self.rows.append(row)

    def flow_control(self, port: int, traffic_class: int, amount: int, size_bytes: int, *, is_credit: bool) -> None:
        """Note a frame of pauses or of credit."""
        kind = CAPTURE_KINDS.index("LINK CREDIT" if is_credit else "PAUSE")
        nothing_else = (0,) * 7  # flow, numbers and ends
        self.rows.append(
            (*(self.clock.now_ps, port, kind, traffic_class), *nothing_else, size_bytes, *(0,) * 8, amount, -1,
             *_telemetry([]))
        )  # fmt: skip


def _telemetry(hops: list[HopTelemetry]) -> tuple[int | list[int], ...]:
    """Telemetry of switches, in columns of equal length."""
    told = [(hop.queue_bytes, hop.tx_bytes, hop.rate_bps, hop.at_ps, hop.port) for hop in hops]
    filled = told + [(0, 0, 0, 0, 0)] * (HOPS - len(told))
    return len(told), *(list(column) for column in zip(*filled, strict=True))
