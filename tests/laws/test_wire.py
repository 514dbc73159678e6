"""Laws of every codec: encode and decode are inverse, and no input raises anything but the documented error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Protocol

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.wire.ethernet import ETHERTYPE_VLAN, EthernetFrame, EthernetHeader, VlanTag
from weftwork.wire.extended import HEADER_BYTES, Aeth, AethKind
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import PSN_MODULUS, Bth, psn_add, psn_compare
from weftwork.wire.icrc import append_icrc, check_icrc
from weftwork.wire.infiniband import NativePacket, RoceV1Packet
from weftwork.wire.ip import Ipv4Header, Ipv6Header, decode_ip, internet_checksum
from weftwork.wire.lrh import NEXT_HEADER_BTH, NEXT_IS_BTH, NEXT_IS_GRH, Lrh
from weftwork.wire.opcodes import SHAPES
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_packet
from weftwork.wire.transport import TransportPacket, transport_packet
from weftwork.wire.udp import ROCE_V2_PORT, UdpHeader


class Record(Protocol):
    def encode(self) -> bytes: ...


# An example costs microseconds and refusals are the common case: more of them than the profile asks for.
MANY = settings(max_examples=case_count(plain=200, deep=1_000))


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


def size(maximum: int = 300) -> st.SearchStrategy[int]:
    return st.integers(0, maximum)


MAC = st.binary(min_size=6, max_size=6)
PSN = bits(24)
TAGS = st.builds(VlanTag, priority=bits(3), vlan_id=bits(12), drop_eligible=st.booleans())
ETHERNET = st.builds(
    EthernetHeader,
    destination=MAC,
    source=MAC,
    ethertype=bits(16).filter(lambda t: t != ETHERTYPE_VLAN),
    vlan=st.none() | TAGS,
)
IPV4 = st.builds(
    Ipv4Header,
    source=st.builds(IPv4Address, bits(32)),
    destination=st.builds(IPv4Address, bits(32)),
    payload_bytes=size(),
    protocol=bits(8),
    dscp=bits(6),
    ecn=bits(2),
    identification=bits(16),
    flags=bits(3),
    fragment_offset_bytes=bits(13).map(lambda units: units * 8),
    ttl=bits(8),
    options=st.integers(0, 10).flatmap(lambda words: st.binary(min_size=words * 4, max_size=words * 4)),
)
IPV6 = st.builds(
    Ipv6Header,
    source=st.builds(IPv6Address, bits(128)),
    destination=st.builds(IPv6Address, bits(128)),
    payload_bytes=size(),
    next_header=bits(8),
    dscp=bits(6),
    ecn=bits(2),
    flow_label=bits(20),
    hop_limit=bits(8),
)
UDP = st.builds(UdpHeader, source_port=bits(16), destination_port=bits(16), payload_bytes=size(), checksum=bits(16))
BTH = st.builds(
    Bth,
    opcode=bits(8),
    destination_qp=bits(24),
    psn=PSN,
    ack_request=st.booleans(),
    pad_bytes=bits(2),
    partition_key=bits(16),
    solicited_event=st.booleans(),
    migrated=st.booleans(),
    transport_version=bits(4),
    fecn=st.booleans(),
    becn=st.booleans(),
    reserved6=bits(6),
    reserved7=bits(7),
)
AETH = st.builds(Aeth, kind=st.sampled_from(AethKind), value=bits(5), msn=bits(24), reserved_bit=st.booleans())
PAUSES = st.builds(PriorityPause, class_enable_vector=bits(16), quanta=st.tuples(*[bits(16)] * 8))
BODIES = st.integers(0, 64).flatmap(lambda words: st.binary(min_size=words * 4, max_size=words * 4))
PACKETS = st.one_of(
    [
        st.builds(
            rocev2_packet,
            source=st.builds(address, bits(width)),
            destination=st.builds(address, bits(width)),
            source_port=bits(16),
            bth=BTH,
            body=BODIES,
            dscp=bits(6),
            ecn=bits(2),
        )
        for address, width in ((IPv4Address, 32), (IPv6Address, 128))
    ]
)


@given(record=st.one_of(TAGS, ETHERNET, BTH, AETH, PAUSES), behind=st.binary(max_size=40))
def test_a_header_comes_back_and_leaves_the_rest(record: Any, behind: bytes) -> None:
    decoded, rest = type(record).decode(record.encode() + behind)
    assert decoded == record
    assert bytes(rest) == behind


@given(record=st.one_of(IPV4, IPV6, UDP), behind=st.binary(max_size=40), data=st.data())
def test_a_header_with_a_length_comes_back_and_cuts_its_payload(
    record: Any, behind: bytes, data: st.DataObject
) -> None:
    payload = data.draw(st.binary(min_size=record.payload_bytes, max_size=record.payload_bytes))
    decoded, rest = type(record).decode(record.encode() + payload + behind)
    assert decoded == record
    assert bytes(rest) == payload


@given(header=ETHERNET, payload=st.binary(max_size=200))
def test_a_frame_comes_back_but_for_its_padding(header: EthernetHeader, payload: bytes) -> None:
    decoded, rest = EthernetFrame.decode(EthernetFrame(header=header, payload=payload).encode())
    assert decoded.header == header
    assert decoded.payload == payload.ljust(60 - header.size_bytes, b"\0")
    assert not rest


@given(packet=PACKETS, behind=st.binary(max_size=40))
def test_a_packet_comes_back_and_leaves_the_rest(packet: RoceV2Packet, behind: bytes) -> None:
    decoded, rest = RoceV2Packet.decode(packet.encode() + behind)
    assert decoded == packet
    assert bytes(rest) == behind


def almost_ipv4(data: bytes) -> bytes:
    """Make bytes with the right version and, where they are long enough, the right checksum: deeper checks are met."""
    if len(data) < 20:
        return data
    header_bytes = max(data[0] & 0xF, 5) * 4
    header = bytes([4 << 4 | header_bytes // 4]) + data[1:10] + b"\0\0" + data[12:header_bytes]
    return header[:10] + internet_checksum(header).to_bytes(2, "big") + header[12:] + data[header_bytes:]


def almost_rocev2(data: bytes) -> bytes:
    """Make bytes that have a right ICRC where an ICRC is possible at all."""
    udp = len(data).to_bytes(2, "big") + ROCE_V2_PORT.to_bytes(2, "big") + (len(data) + 12).to_bytes(2, "big") + b"\0\0"
    ip = Ipv4Header(source=IPv4Address(1), destination=IPv4Address(2), payload_bytes=len(data) + 12)
    packet = ip.encode() + udp + data
    return append_icrc(packet) if len(data) >= 12 else packet + bytes(4)


GRHS = st.builds(
    Ipv6Header,
    source=st.builds(IPv6Address, bits(128)),
    destination=st.builds(IPv6Address, bits(128)),
    payload_bytes=st.just(0),
    next_header=st.just(NEXT_HEADER_BTH),
    dscp=bits(6),
    flow_label=bits(20),
)
LRHS = st.builds(
    Lrh,
    destination_lid=bits(16),
    source_lid=bits(16),
    packet_words=bits(11),
    next_header=bits(2),
    virtual_lane=bits(4),
    service_level=bits(4),
    link_version=bits(4),
    reserved2=bits(2),
    reserved5=bits(5),
)


def rocev1(grh: Ipv6Header, bth: Bth, body: bytes) -> RoceV1Packet:
    return RoceV1Packet(grh=replace(grh, payload_bytes=16 + len(body)), bth=bth, body=body)


def native(lrh: Lrh, grh: Ipv6Header | None, bth: Bth, body: bytes) -> NativePacket:
    grh = grh and replace(grh, payload_bytes=16 + len(body))
    words = (8 + (40 if grh else 0) + 16 + len(body)) // 4
    lrh = lrh._replace(packet_words=words, next_header=NEXT_IS_GRH if grh else NEXT_IS_BTH)
    return NativePacket(lrh=lrh, grh=grh, bth=bth, body=body)


WITHOUT_UDP = st.one_of(st.builds(rocev1, GRHS, BTH, BODIES), st.builds(native, LRHS, st.none() | GRHS, BTH, BODIES))


@st.composite
def transport_packets(draw: st.DrawFn) -> TransportPacket:
    """Draw a packet of any opcode with any values in its headers."""
    opcode = draw(st.sampled_from(sorted(SHAPES)))
    shape = SHAPES[opcode]
    size_bytes = shape.headers_bytes
    block = draw(st.binary(min_size=size_bytes, max_size=size_bytes))
    rest = memoryview(block)
    headers = []
    for kind in shape.headers:
        header, rest = kind.decode(rest)
        headers.append(header)
    payload = draw(st.binary(max_size=40)) if shape.has_payload else b""
    return transport_packet(draw(BTH)._replace(opcode=opcode), tuple(headers), payload)


@given(packet=WITHOUT_UDP, behind=st.binary(max_size=40))
def test_a_packet_without_udp_comes_back_and_leaves_the_rest(
    packet: RoceV1Packet | NativePacket, behind: bytes
) -> None:
    decoded, rest = type(packet).decode(packet.encode() + behind)
    assert decoded == packet
    assert bytes(rest) == behind


@MANY
@given(packet=transport_packets())
def test_a_transport_packet_comes_back_with_its_headers_and_without_its_padding(packet: TransportPacket) -> None:
    decoded, rest = TransportPacket.decode(packet.encode())
    assert decoded == packet
    assert list(map(type, decoded.headers)) == list(map(type, packet.headers))
    assert not rest


@given(data=st.data(), packet=WITHOUT_UDP)
def test_a_damaged_packet_without_udp_is_read_to_the_bit_or_refused(
    data: st.DataObject, packet: RoceV1Packet | NativePacket
) -> None:
    encoded = bytearray(packet.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(bits(8))
    cut = bytes(encoded[: data.draw(st.integers(0, len(encoded)))])
    try:
        record, rest = type(packet).decode(cut)
    except MalformedPacket:
        return
    assert record.encode() + bytes(rest) == cut


DECODERS: list[Callable[[bytes], tuple[Record, memoryview]]] = [
    VlanTag.decode,
    EthernetHeader.decode,
    EthernetFrame.decode,
    PriorityPause.decode,
    Ipv4Header.decode,
    Ipv6Header.decode,
    decode_ip,
    UdpHeader.decode,
    Bth.decode,
    RoceV2Packet.decode,
    Lrh.decode,
    RoceV1Packet.decode,
    NativePacket.decode,
    TransportPacket.decode,
    *(kind.decode for kind in HEADER_BYTES),
]


@pytest.mark.parametrize("decode", DECODERS, ids=lambda decode: decode.__qualname__)
@MANY
@given(
    data=st.one_of(
        st.binary(max_size=160),
        st.binary(max_size=160).map(almost_ipv4),
        st.binary(max_size=80).map(lambda tail: b"\x60\0\0\0\0" + tail),
        st.binary(max_size=80).map(lambda tail: b"\x01\x01" + tail),
        st.binary(max_size=80).map(almost_rocev2),
        st.builds(
            lambda header, body: EthernetFrame(header=header, payload=body).encode(), ETHERNET, st.binary(max_size=80)
        ),
    )
)
def test_any_bytes_are_read_to_the_bit_or_refused(
    decode: Callable[[bytes], tuple[Record, memoryview]], data: bytes
) -> None:
    try:
        record, rest = decode(data)
    except MalformedPacket:
        return
    encoded = record.encode()
    assert data.startswith(encoded)
    assert data[len(encoded) :].startswith(bytes(rest))


@given(data=st.one_of(st.binary(max_size=120), st.binary(max_size=80).map(almost_rocev2)))
def test_any_bytes_pass_the_icrc_or_are_refused(data: bytes) -> None:
    try:
        check_icrc(data)
    except MalformedPacket:
        return
    assert append_icrc(data[:-4]) == data


@given(packet=PACKETS, data=st.data())
def test_a_flipped_bit_fails_where_it_is_covered_and_holds_where_not(packet: RoceV2Packet, data: st.DataObject) -> None:
    encoded = bytearray(packet.encode())
    ip_bytes = packet.ip.size_bytes
    rewritten = {8 * b + i for b in ((1, 8, 10, 11) if ip_bytes == 20 else (1, 2, 3, 7)) for i in range(8)}
    rewritten |= set() if ip_bytes == 20 else set(range(4))
    rewritten |= {8 * (ip_bytes + b) + i for b in (6, 7, 12) for i in range(8)}
    bit = data.draw(st.integers(0, len(encoded) * 8 - 1) | st.sampled_from(sorted(rewritten)))
    encoded[bit // 8] ^= 1 << bit % 8
    if bit in rewritten:
        check_icrc(bytes(encoded))
    else:
        with pytest.raises(MalformedPacket):
            check_icrc(bytes(encoded))


@given(psn=PSN, packets=st.integers(-(PSN_MODULUS // 2), PSN_MODULUS // 2 - 1))
def test_psn_distance_undoes_psn_addition(psn: int, packets: int) -> None:
    assert psn_compare(psn_add(psn, packets), psn) == packets


@given(psn=PSN, other=PSN)
def test_of_two_psns_one_is_ahead(psn: int, other: int) -> None:
    there, back = psn_compare(psn, other), psn_compare(other, psn)
    assert there == -back or there == back == -(PSN_MODULUS // 2)
