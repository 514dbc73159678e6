"""Dissection of a captured packet into headers.

Every header with a codec is read, the ICRC is checked, and the end of reading is noted with its reason.
Source: the codecs of this floor; what may stand in front of RDMA is the table of ``encapsulations``.
Leaves out: fragments, which are not put together; what RDMA packets mean to each other is in ``weftwork.rdma.capture``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from weftwork.wire.cm import CmMessage, decode_cm
from weftwork.wire.encapsulations import layer_name, layer_of
from weftwork.wire.ethernet import EthernetHeader
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import BTH_BYTES
from weftwork.wire.icrc import ICRC_BYTES, icrc, native_icrc
from weftwork.wire.ip import ECN_CE, IPV6_HEADER_BYTES, IpHeader, Ipv4Header, Ipv6Header
from weftwork.wire.layers import Carrier, CutShort, PassedOver, Selector, Span
from weftwork.wire.lrh import LRH_BYTES, NEXT_HEADER_BTH, NEXT_IS_BTH, NEXT_IS_GRH, Lrh
from weftwork.wire.mad import GENERAL_SERVICES_QP
from weftwork.wire.opcodes import SHAPES, TransportService
from weftwork.wire.pfc import PFC_OPCODE, PFC_PARAMETERS_BYTES, PriorityPause
from weftwork.wire.transport import TransportPacket
from weftwork.wire.udp import UDP_HEADER_BYTES, UdpHeader

if TYPE_CHECKING:
    from collections.abc import Callable

    from weftwork.wire.pcap import CapturedPacket

    _Rule = Callable[[memoryview], int]

__all__ = ["RDMA_CARRIERS", "Carrier", "Dissection", "Fate", "dissect"]

RDMA_CARRIERS: Final = frozenset({Carrier.ROCE_V2, Carrier.ROCE_V1, Carrier.INFINIBAND})
_MOST_LAYERS: Final = 24  # chosen: two tunnels with tags, labels and extension headers are 16


class Fate(Enum):
    """What became of a frame. Each frame has one of these."""

    READ = "read"  # a whole packet of RDMA, or PFC
    CUT = "cut"  # the capture lacks a part that was to be read or checked
    PASSED_OVER = "passed over"  # not RDMA, or not to be read; the reason says which


@dataclass(kw_only=True, slots=True)
class Dissection:
    """Parts of a packet that were read; other parts are None.

    Of a packet in a tunnel, the records are of the innermost headers.

    Parameters
    ----------
    kind : what carries the packet
    fate, reason, example : of the frame; the reason is the same for all frames of a kind and empty for frames that are
        read, and the example has the numbers of this frame
    layers : names of the headers in front, from the link type on
    tunnels : names of those that carry a packet or frame
    ethernet, lrh, ip, udp, transport, pause, cm : the records; ``ip`` is the GRH where there is one
    datagram : payload of ``udp``
    is_marked : whether an IP header, inside or outside of a tunnel, has the ECN mark of a switch
    icrc_found, icrc_wanted : as in the packet and as computed; None where it was not checked
    icrc_unchecked : why the ICRC of a packet of RDMA was not checked; empty if it was
    missing_bytes : bytes of the packet that the capture does not have
    problem : why reading ended, as the codec says it
    """

    kind: Carrier = Carrier.OTHER
    fate: Fate = Fate.READ
    reason: str = ""
    example: str = ""
    layers: list[str] = field(default_factory=list)
    tunnels: list[str] = field(default_factory=list)
    ethernet: EthernetHeader | None = None
    lrh: Lrh | None = None
    ip: IpHeader | None = None
    udp: UdpHeader | None = None
    datagram: memoryview | None = None
    transport: TransportPacket | None = None
    pause: PriorityPause | None = None
    cm: CmMessage | None = None
    is_marked: bool = False
    icrc_found: int | None = None
    icrc_wanted: int | None = None
    icrc_unchecked: str = ""
    missing_bytes: int = 0
    problem: str = ""

    @property
    def has_wrong_icrc(self) -> bool:
        """Whether the packet has an ICRC that is wrong."""
        return self.icrc_found != self.icrc_wanted

    @property
    def is_rdma(self) -> bool:
        """Whether the headers in front announce a packet of RDMA."""
        return self.kind in RDMA_CARRIERS


class _Front(NamedTuple):
    """What the ICRC has to know of the headers in front.

    Parameters
    ----------
    packet : from the innermost IP header on
    extension : header or options of IP that no rule of the ICRC covers; empty if there is none
    """

    packet: Span
    extension: str = ""


def dissect(packet: CapturedPacket) -> Dissection:
    """Read a captured packet as far as possible, without any error."""
    seen = Dissection()
    data = memoryview(packet.data)
    try:
        _walk(seen, Span(data, max(packet.original_bytes, len(data))), packet.link_type)
    except CutShort as error:
        seen.fate, seen.problem = Fate.CUT, f"{error.layer}: {error.text}"
        seen.reason = "inside the headers of RDMA" if seen.is_rdma else f"inside the header of {error.layer}"
        seen.icrc_unchecked = "cut" if seen.is_rdma else ""
    except PassedOver as error:
        seen.fate, seen.reason, seen.example = Fate.PASSED_OVER, error.reason, error.example
    except MalformedPacket as error:
        seen.fate, seen.problem, seen.example = Fate.PASSED_OVER, str(error), str(error)
        is_checked = seen.icrc_wanted is not None
        layer = seen.kind.value if seen.is_rdma else error.layer
        seen.reason = f"{layer} that cannot be read"
        seen.icrc_unchecked = "" if is_checked or not seen.is_rdma else "the packet cannot be read"
    if seen.tunnels and seen.reason:
        seen.reason += f", in {' in '.join(reversed(seen.tunnels))}"
    return seen


def _walk(seen: Dissection, span: Span, link_type: int) -> None:
    """Read headers until a packet of RDMA or PFC begins."""
    selector, number, front = Selector.LINK_TYPE, link_type, _Front(span)
    for _ in range(_MOST_LAYERS):
        row = layer_of(selector, number)
        if row is not None:
            seen.layers.append(row.name)
            if row.carrier is not None:
                _CARRIERS[row.carrier](seen, span, front)
                return
        if row is None or row.read is None:
            is_link = selector is Selector.LINK_TYPE
            raise PassedOver("a link type that is not read" if is_link else layer_name(selector, number), _ports(seen))
        step = row.read(span)
        if row.is_tunnel:
            seen.tunnels.append(row.name)
        if isinstance(step.header, EthernetHeader):
            seen.ethernet = step.header
        elif isinstance(step.header, UdpHeader):
            seen.udp, seen.datagram = step.header, step.rest.data
        elif step.header is not None:
            seen.ip, seen.udp, seen.datagram = step.header, None, None
            seen.is_marked = seen.is_marked or step.header.ecn == ECN_CE
            has_options = isinstance(step.header, Ipv4Header) and step.header.options
            front = _Front(span, "options of IPv4" if has_options else "")
        elif step.selector is Selector.IP_PROTOCOL:
            front = front._replace(extension=f"{row.name} of IPv6")
        selector, number, span = step.selector, step.number, step.rest
    raise PassedOver(f"more than {_MOST_LAYERS} headers in front of a packet")


def _ports(seen: Dissection) -> str:
    return "" if seen.udp is None else f"UDP {seen.udp.source_port} to {seen.udp.destination_port}"


def _pause(seen: Dissection, span: Span, _: _Front) -> None:
    opcode, _rest = span.front(2, "MAC control")
    if int.from_bytes(opcode, "big") != PFC_OPCODE:
        raise PassedOver("MAC control other than PFC (PAUSE of a whole link)", f"opcode 0x{opcode.hex()}")
    parameters, _rest = span.front(PFC_PARAMETERS_BYTES, "PFC")
    seen.pause, _nothing = PriorityPause.decode(parameters)
    seen.kind = Carrier.PFC


def _roce_v2(seen: Dissection, span: Span, front: _Front) -> None:
    seen.kind = Carrier.ROCE_V2
    seen.icrc_unchecked = front.extension
    if seen.ip is None:  # only UDP leads here, and only IP leads to UDP
        raise AssertionError(seen.layers)
    front_bytes = seen.ip.size_bytes + UDP_HEADER_BYTES
    _transport(seen, span, icrc, front.packet.data[: front_bytes + span.whole_bytes])


def _roce_v1(seen: Dissection, span: Span, _: _Front) -> None:
    seen.kind = Carrier.ROCE_V1
    _global(seen, span, icrc, span.data)


def _native(seen: Dissection, span: Span, _: _Front) -> None:
    front, _rest = span.front(LRH_BYTES, "LRH")
    seen.lrh, _nothing = Lrh.decode(front)
    if seen.lrh.next_header not in {NEXT_IS_BTH, NEXT_IS_GRH}:
        _raw(span, seen.lrh)
    seen.kind = Carrier.INFINIBAND
    packet = Span(span.data[: seen.lrh.packet_words * 4], seen.lrh.packet_words * 4)
    _lrh, payload = packet.front(LRH_BYTES, "LRH")
    if seen.lrh.next_header == NEXT_IS_GRH:
        _global(seen, payload, native_icrc, packet.data)
    else:
        _transport(seen, payload, native_icrc, packet.data)


def _raw(span: Span, lrh: Lrh) -> NoReturn:
    """Pass over packets of InfiniBand without BTH (IBTA vol. 1, 7.7.5): their next header is IPv6 or an EtherType."""
    name = "IPv6"
    if lrh.next_header == 0:
        header, _rest = span.front(LRH_BYTES + 4, "raw header of InfiniBand")
        name = layer_name(Selector.ETHERTYPE, int.from_bytes(header[LRH_BYTES + 2 :], "big"))
    raise PassedOver(f"raw packets of InfiniBand: {name}")


def _global(seen: Dissection, span: Span, rule: _Rule, packet: memoryview) -> None:
    """Read a GRH and what follows; ``packet`` are the captured bytes that the CRC covers, and perhaps more."""
    front, _rest = span.front(IPV6_HEADER_BYTES, "GRH")
    payload_bytes = int.from_bytes(front[4:6], "big")
    seen.ip, _nothing = Ipv6Header.decode(span.padded(IPV6_HEADER_BYTES + payload_bytes))
    seen.is_marked = seen.is_marked or seen.ip.ecn == ECN_CE
    if seen.ip.next_header != NEXT_HEADER_BTH:
        raise MalformedPacket("GRH", f"found next header {seen.ip.next_header:#04x}, wanted {NEXT_HEADER_BTH:#04x}")
    payload = Span(span.data[IPV6_HEADER_BYTES:][:payload_bytes], payload_bytes)
    behind_bytes = len(span.data) - IPV6_HEADER_BYTES - len(payload.data)
    _transport(seen, payload, rule, packet[: len(packet) - behind_bytes])


def _transport(seen: Dissection, span: Span, rule: _Rule, packet: memoryview) -> None:
    """Read BTH and everything behind it.

    ``packet`` is the captured bytes that the CRC covers and the CRC, ``span`` the same from BTH on.
    """
    if span.whole_bytes < BTH_BYTES + ICRC_BYTES:
        text = f"found {span.whole_bytes} bytes with the ICRC, wanted at least {BTH_BYTES + ICRC_BYTES}"
        raise MalformedPacket("BTH", text)
    seen.missing_bytes = span.whole_bytes - len(span.data)
    if not seen.missing_bytes and not seen.icrc_unchecked:
        (seen.icrc_found,) = struct.unpack("<I", packet[-ICRC_BYTES:])
        seen.icrc_wanted = rule(packet[:-ICRC_BYTES])
    opcode, _rest = span.front(1, "BTH")
    shape = SHAPES.get(opcode[0])
    needed_bytes = BTH_BYTES + (0 if shape is None else shape.headers_bytes)
    if len(span.data) < min(needed_bytes, span.whole_bytes - ICRC_BYTES):
        raise CutShort("RDMA", f"captured {len(span.data)} of {needed_bytes} bytes of headers from BTH on")
    seen.transport, _nothing = TransportPacket.decode(span.padded(span.whole_bytes)[: span.whole_bytes - ICRC_BYTES])
    if seen.missing_bytes:
        seen.fate, seen.reason, seen.icrc_unchecked = Fate.CUT, "behind their headers", "cut"
    bth = seen.transport.bth
    is_management = seen.transport.shape.service is TransportService.UD and bth.destination_qp == GENERAL_SERVICES_QP
    if is_management and not seen.missing_bytes:
        _, seen.cm = decode_cm(seen.transport.payload)


_CARRIERS: Final[dict[Carrier, Callable[[Dissection, Span, _Front], None]]] = {
    Carrier.ROCE_V2: _roce_v2,
    Carrier.ROCE_V1: _roce_v1,
    Carrier.INFINIBAND: _native,
    Carrier.PFC: _pause,
}
