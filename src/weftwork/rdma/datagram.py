"""Datagrams of the NIC, from BTH to the ICRC at the end of each.

Source: IBTA vol. 1, 7.8.1 and annex A17; the BTH as in ``weftwork.wire.ib``, packed here at once because every packet
needs it.
Leaves out: sockets, and the headers in front of BTH, see `encapsulation`; IPv4 options. The identification of IPv4 is
under the ICRC: a driver sends 0, or says what it will send.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.wire.checksum import crc32
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES, icrc_behind
from weftwork.wire.ip import ECN_ECT0, IPV4_HEADER_BYTES
from weftwork.wire.udp import UDP_HEADER_BYTES

if TYPE_CHECKING:
    from weftwork.rdma.encapsulation import Encapsulation

__all__ = ["BTH", "LARGEST_BYTES", "SMALLEST_BYTES", "Datagram", "IcrcStates", "PacketFlow", "is_intact"]

BTH: Final = struct.Struct(">BBHII")
_ICRC: Final = struct.Struct("<I")
_IPV4_BYTES: Final = 4
_MOST_SIZES: Final = 256  # chosen: of packets with another identification than 0
_MOST_HIDDEN: Final = 64  # chosen: of 2^16, so that chance lets no changed packet pass; a train numbers 0 to 63
_MOST_TRAINS: Final = 32  # chosen: kinds of packets in the middle of a message, of one flow
_MOST_STATES: Final = 4096  # chosen: flows x sizes of packets that a busy host sees at once


class Datagram(NamedTuple):
    """A packet of RDMA, or a train of several.

    Over UDP it goes to or comes from port 4791. A socket takes or gives a train by one call.

    Parameters
    ----------
    source, destination : IP addresses or GIDs, 4 or 16 bytes in network order
    source_port : of UDP, entropy of the flow; without a meaning where there is no UDP
    parts : its payload from BTH to ICRC, in pieces to be sent one behind the other; one piece where it has arrived
    ecn : 2 bits; as it arrived, or to be sent
    dscp : of the IP header or GRH; service level of native InfiniBand
    identification : of IPv4, 16 bits; None where a socket has hidden it
    segment_bytes : of a train the payload of each packet, of which the last may have less; the identification of IPv4
        counts up from 0. 0 of a single packet
    """

    source: bytes
    destination: bytes
    source_port: int
    parts: tuple[bytes | memoryview, ...]
    ecn: int = ECN_ECT0
    dscp: int = 0
    identification: int | None = 0
    segment_bytes: int = 0

    def payload(self) -> bytes | memoryview:
        """The bytes in one piece; several pieces are copied."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def packets(self) -> list[Datagram]:
        """The packets of a train, or the single packet itself."""
        if not self.segment_bytes:
            return [self]
        payload, size_bytes = memoryview(self.payload()), self.segment_bytes
        return [
            self._replace(parts=(payload[at : at + size_bytes],), segment_bytes=0, identification=at // size_bytes)
            for at in range(0, len(payload), size_bytes)
        ]


class IcrcStates:
    """Cached states of the ICRC behind the headers in front of BTH.

    They are kept for every flow and size of packet.

    Parameters
    ----------
    encapsulation : which headers these are
    """

    def __init__(self, encapsulation: Encapsulation = ROCE_V2) -> None:
        self.has_ports: Final = encapsulation.has_ports
        self._encapsulation: Final = encapsulation
        self._states: dict[tuple[bytes, bytes, int, int, int], int] = {}
        self._hidden: dict[int, dict[int, int]] = {}

    def of(self, flow: tuple[bytes, bytes, int], payload_bytes: int, identification: int = 0) -> int:
        """State behind the headers.

        Parameters
        ----------
        flow : source and destination; source port, or ``dscp`` where there are no ports
        payload_bytes : from BTH to ICRC
        identification : of IPv4

        Raises
        ------
        UsageError : no packet has these addresses
        """
        key = (*flow, payload_bytes, identification)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= _MOST_STATES:
                self._states.clear()
            state = self._states[key] = self._make(flow, payload_bytes, identification)
        return state

    def _make(self, flow: tuple[bytes, bytes, int], payload_bytes: int, identification: int) -> int:
        source, destination, mark = flow
        port, dscp = (mark, 0) if self.has_ports else (0, mark)
        sample = Datagram(source, destination, port, (), dscp=dscp, identification=identification)
        return self._encapsulation.state(self._encapsulation.front(sample, payload_bytes))

    def hidden_identification(self, flow: tuple[bytes, bytes, int], payload_bytes: int, wrong: int) -> int | None:
        """IPv4 identification below 64 with which a packet's ICRC is right.

        None if there is none. A CRC is affine: a bit of the identification changes it by a word that depends on the
        size of the packet alone.

        Parameters
        ----------
        flow, payload_bytes : as in `of`
        wrong : ICRC of the packet, exclusive or that for identification 0
        """
        by_word = self._hidden.get(payload_bytes)
        if by_word is None:
            zeros = bytes(payload_bytes - ICRC_BYTES)
            base = crc32(zeros, self.of(flow, payload_bytes))
            words = (crc32(zeros, self.of(flow, payload_bytes, number)) ^ base for number in range(_MOST_HIDDEN))
            if len(self._hidden) >= _MOST_SIZES:
                self._hidden.clear()
            by_word = self._hidden[payload_bytes] = {word: number for number, word in enumerate(words)}
        return by_word.get(wrong)


def is_intact(datagram: Datagram, payload: memoryview, states: IcrcStates) -> bool:
    """Whether the ICRC of an arrived packet is right.

    Its payload holds BTH and ICRC at least.
    """
    covered = len(payload) - ICRC_BYTES
    mark = datagram.source_port if states.has_ports else datagram.dscp
    flow = (datagram.source, datagram.destination, mark)
    state = states.of(flow, len(payload), datagram.identification or 0)
    (found,) = _ICRC.unpack_from(payload, covered)
    wrong = found ^ icrc_behind(state, payload[:covered])
    if wrong == 0 or datagram.identification is not None or len(datagram.source) != _IPV4_BYTES:
        return bool(wrong == 0)
    return states.hidden_identification(flow, len(payload), wrong) is not None


class PacketFlow:
    """Packets from here to one address with the same marks.

    Parameters
    ----------
    source, destination, source_port, dscp : as in `Datagram`
    states : of the NIC
    """

    def __init__(
        self, source: bytes, destination: bytes, source_port: int, states: IcrcStates, *, dscp: int = 0
    ) -> None:
        self.source: Final = source
        self.destination: Final = destination
        self.source_port: Final = source_port
        self.dscp: Final = dscp
        self._key: Final = (source, destination, source_port if states.has_ports else dscp)
        self._states: Final = states
        self._behind: dict[tuple[bytes, int], tuple[int, ...]] = {}

    def states_behind(self, front: bytes, payload_bytes: int) -> tuple[int, ...]:
        """ICRC states of a train's packets, behind eight bytes of BTH.

        Parameters
        ----------
        front : these eight bytes
        payload_bytes : of each packet, from BTH to ICRC
        """
        states = self._behind.get((front, payload_bytes))
        if states is None:
            if len(self._behind) >= _MOST_TRAINS:
                self._behind.clear()
            states = self._behind[front, payload_bytes] = tuple(
                icrc_behind(self._states.of(self._key, payload_bytes, number), front) for number in range(_MOST_HIDDEN)
            )
        return states

    def close(
        self,
        header: bytes,
        pieces: tuple[bytes | memoryview, ...] = (),
        pad_bytes: int = 0,
        identification: int = 0,
    ) -> Datagram:
        """Append the ICRC to a packet; copies no payload.

        Parameters
        ----------
        header : BTH and extended headers
        pieces : of the payload
        pad_bytes : zeros behind it, as BTH says
        identification : of IPv4
        """
        size_bytes = len(header) + sum(map(len, pieces)) + pad_bytes + ICRC_BYTES
        crc = icrc_behind(self._states.of(self._key, size_bytes, identification), header)
        for piece in pieces:
            crc = crc32(piece, crc)
        trailer = bytes(pad_bytes)
        parts = (header, *pieces, trailer + _ICRC.pack(crc32(trailer, crc)))
        return Datagram(self.source, self.destination, self.source_port, parts, ECN_ECT0, self.dscp, identification)


SMALLEST_BYTES: Final = BTH_BYTES + ICRC_BYTES  # of a payload of UDP that can be a packet
LARGEST_BYTES: Final = 0xFFFF - IPV4_HEADER_BYTES - UDP_HEADER_BYTES  # RFC 791, section 3.1: total length
