"""In-band telemetry of HPCC: records of switches in packets.

The sender's congestion control reads them.
Source: Li et al., SIGCOMM 2019, doi:10.1145/3341302.3342085, figure 7 (fields); the units of the authors' simulator,
alibaba-edu/High-Precision-Congestion-Control, simulation/src/network/utils/int-header.h.
Leaves out: where in the packet the block stands, which the paper leaves to the NIC.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, Self

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket, check_fits, split

__all__ = [
    "QUEUE_UNIT_BYTES",
    "RATES_BPS",
    "SENT_UNIT_BYTES",
    "TELEMETRY_BYTES",
    "TELEMETRY_HOP_BYTES",
    "IntHop",
    "IntPath",
]

TELEMETRY_BYTES = 2  # figure 7: number of hops and path identity
TELEMETRY_HOP_BYTES = 8  # figure 7: 64 bits a hop
SENT_UNIT_BYTES = 128  # int-header.h, byteUnit
QUEUE_UNIT_BYTES = 80  # int-header.h, qlenUnit
# int-header.h, lineRateValues: what the code of a rate means
RATES_BPS: Final = (25_000_000_000, 50_000_000_000, 100_000_000_000, 200_000_000_000, 400_000_000_000)

_BASE = Struct(">H")
_HOP = Struct(">Q")


class IntHop(NamedTuple):
    """Record of one switch, written as the packet leaves.

    Parameters
    ----------
    rate_code : 4 bits, an index of ``RATES_BPS``
    time_ns : 24 bits of the switch's clock, which wrap after 16.8 ms
    sent_units : bytes that the port has sent, in units of 128 bytes, modulo 2^20
    queue_units : bytes in the queue of the port, in units of 80 bytes, 16 bits
    """

    rate_code: int
    time_ns: int
    sent_units: int
    queue_units: int

    def encode(self) -> bytes:
        """Eight bytes; UsageError for a field that does not fit."""
        check_fits("rate_code", self.rate_code, 4)
        check_fits("time_ns", self.time_ns, 24)
        check_fits("sent_units", self.sent_units, 20)
        check_fits("queue_units", self.queue_units, 16)
        return _HOP.pack(self.rate_code << 60 | self.time_ns << 36 | self.sent_units << 16 | self.queue_units)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read eight bytes; returns record and rest, or raises MalformedPacket."""
        head, rest = split(data, TELEMETRY_HOP_BYTES, "INT")
        (word,) = _HOP.unpack(head)
        return cls(word >> 60, word >> 36 & 0xFFFFFF, word >> 16 & 0xFFFFF, word & 0xFFFF), rest

    @property
    def rate_bps(self) -> int | None:
        """Rate of the port in bits per second; None for an unknown code."""
        return RATES_BPS[self.rate_code] if self.rate_code < len(RATES_BPS) else None


class IntPath(NamedTuple):
    """Telemetry of a packet: identity of the path, and hop records.

    Parameters
    ----------
    path_id : 12 bits, by which a sender sees that the path has changed
    hops : up to 15, in the order of the path
    """

    path_id: int
    hops: tuple[IntHop, ...]

    def encode(self) -> bytes:
        """Two bytes and eight a hop; UsageError for wrong fields.

        More than 15 hops are wrong too.
        """
        check_fits("path_id", self.path_id, 12)
        if len(self.hops) > 15:
            raise UsageError(f"hops: found {len(self.hops)}, wanted up to 15")
        return _BASE.pack(len(self.hops) << 12 | self.path_id) + b"".join(hop.encode() for hop in self.hops)

    @classmethod
    def decode(cls, data: memoryview | bytes) -> tuple[Self, memoryview]:
        """Read the hops that the block announces; returns record and rest.

        Raises MalformedPacket for fewer bytes.
        """
        head, rest = split(data, TELEMETRY_BYTES, "INT")
        (word,) = _BASE.unpack(head)
        count = word >> 12
        if len(rest) < count * TELEMETRY_HOP_BYTES:
            raise MalformedPacket("INT", f"found {len(rest)} bytes, wanted {count * TELEMETRY_HOP_BYTES}, 8 a hop")
        hops = []
        for _ in range(count):
            hop, rest = IntHop.decode(rest)
            hops.append(hop)
        return cls(word & 0xFFF, tuple(hops)), rest
