"""Whole RoCEv2 packets, and the sizes of frames against packets that are really encoded."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetFrame, EthernetHeader
from weftwork.wire.extended import RETH_BYTES, Aeth, AethKind
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth
from weftwork.wire.icrc import append_icrc
from weftwork.wire.ip import MORE_FRAGMENTS, Ipv4Header
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rocev2 import (
    RoceV2Packet,
    cnp_frame_bytes,
    rocev2_ack_frame_bytes,
    rocev2_data_frame_bytes,
    rocev2_packet,
)
from weftwork.wire.udp import roce_source_port

ADDRESSES: dict[int, tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]] = {
    4: (IPv4Address("10.0.0.1"), IPv4Address("10.0.0.2")),
    6: (IPv6Address("fd00::1"), IPv6Address("fd00::2")),
}
ACK_BODY = Aeth(kind=AethKind.ACK, value=31, msn=6).encode()


def packet(bth: Bth, body: bytes, ip_version: int = 4) -> RoceV2Packet:
    source, destination = ADDRESSES[ip_version]
    return rocev2_packet(
        source=source, destination=destination, source_port=roce_source_port(0x11, 0x12), bth=bth, body=body
    )


def encoded_frame_bytes(bth: Bth, body: bytes, ip_version: int) -> int:
    header = EthernetHeader(
        destination=bytes(6), source=bytes(6), ethertype=ETHERTYPE_IPV4 if ip_version == 4 else ETHERTYPE_IPV6
    )
    return len(EthernetFrame(header=header, payload=packet(bth, body, ip_version).encode()).encode())


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("payload_bytes", [0, 1, 2, 3, 4, 255, 256, 1024, 4095, 4096])
def test_data_frames_are_as_long_as_a_packet_that_is_encoded(payload_bytes: int, first: bool, ip_version: int) -> None:  # noqa: FBT001 - a generated case
    pad_bytes = -payload_bytes % 4
    opcode = Opcode.WRITE_FIRST if first else Opcode.WRITE_MIDDLE
    bth = Bth(opcode=opcode, destination_qp=0x12, psn=1, pad_bytes=pad_bytes)
    body = bytes(RETH_BYTES if first else 0) + bytes(payload_bytes + pad_bytes)
    wanted_bytes = encoded_frame_bytes(bth, body, ip_version)
    assert rocev2_data_frame_bytes(payload_bytes, ip_version, first=first) == wanted_bytes


@pytest.mark.parametrize(("ip_version", "ack_bytes", "cnp_bytes"), [(4, 66, 78), (6, 86, 98)])
def test_acks_and_cnps_are_as_long_as_a_packet_that_is_encoded(ip_version: int, ack_bytes: int, cnp_bytes: int) -> None:
    ack = Bth(opcode=Opcode.ACKNOWLEDGE, destination_qp=0x12, psn=1)
    assert rocev2_ack_frame_bytes(ip_version) == ack_bytes == encoded_frame_bytes(ack, ACK_BODY, ip_version)
    assert cnp_frame_bytes(ip_version) == cnp_bytes == encoded_frame_bytes(cnp_bth(0x12), CNP_BODY, ip_version)


def test_headers_cost_what_the_field_counts() -> None:
    overhead_bytes = [
        rocev2_data_frame_bytes(4096, version, first=first) - 4096 for version in (4, 6) for first in (True, False)
    ]
    assert overhead_bytes == [78, 62, 98, 82]
    assert rocev2_data_frame_bytes(0) == 64  # 62 bytes of headers, padded to the minimum frame


@pytest.mark.parametrize(("payload_bytes", "ip_version"), [(-1, 4), (1 << 16, 4), (0, 5)])
def test_sizes_of_nothing_are_the_callers_mistake(payload_bytes: int, ip_version: int) -> None:
    with pytest.raises(UsageError):
        rocev2_data_frame_bytes(payload_bytes, ip_version)


@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_packet_comes_back_and_the_padding_of_its_frame_is_the_rest(ip_version: int) -> None:
    made = packet(Bth(opcode=Opcode.SEND_ONLY, destination_qp=0x12, psn=9), b"four", ip_version)
    record, rest = RoceV2Packet.decode(made.encode() + b"\0\0")
    assert record == made
    assert bytes(rest) == b"\0\0"


def test_two_versions_make_no_packet() -> None:
    with pytest.raises(UsageError, match="wanted one IP version"):
        rocev2_packet(source=ADDRESSES[4][0], destination=ADDRESSES[6][0], source_port=1, bth=cnp_bth(1))


def test_lengths_that_disagree_are_the_callers_mistake() -> None:
    made = packet(cnp_bth(1), CNP_BODY)
    for wrong in (
        replace(made, body=b"123"),
        replace(made, body=b""),
        replace(made, udp=replace(made.udp, payload_bytes=0)),
        replace(made, ip=replace(made.ip, payload_bytes=0)),
    ):
        with pytest.raises(UsageError):
            wrong.encode()


def test_what_is_not_rocev2_says_why() -> None:
    made = packet(cnp_bth(1), CNP_BODY)
    assert isinstance(made.ip, Ipv4Header)
    whole = made.encode()
    fragment = replace(made, ip=replace(made.ip, flags=MORE_FRAGMENTS))
    other_port = replace(made, udp=replace(made.udp, destination_port=4793))
    short_udp = append_icrc(whole[:24] + b"\0\x24" + whole[26:-4])  # 36 where IP says 40
    odd = made.ip.encode()[:2] + b"\0\x3d" + made.ip.encode()[4:]
    odd = replace(made.ip, payload_bytes=41).encode() + whole[20:24] + b"\0\x29" + whole[26:-4] + b"\0"
    for packet_bytes, message in (
        (fragment.encode(), "found a fragment"),
        (other_port.encode(), "found UDP port 4793, wanted 4791"),
        (short_udp, "found 40 bytes in IP and 28 in UDP"),
        (append_icrc(odd), "found 21 bytes behind BTH, wanted a multiple of 4"),
    ):
        with pytest.raises(MalformedPacket, match=message):
            RoceV2Packet.decode(packet_bytes)
