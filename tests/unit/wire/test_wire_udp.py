"""UDP headers, checksums and the source ports of RoCEv2."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ip import Ipv4Header, Ipv6Header
from weftwork.wire.udp import ROCE_V2_PORT, UDP_HEADER_BYTES, UdpHeader, roce_source_port, udp_checksum

HEADER = UdpHeader(source_port=49152, destination_port=ROCE_V2_PORT, payload_bytes=5)


def test_a_header_counts_itself_in_its_length() -> None:
    assert HEADER.encode().hex() == "c000" + "12b7" + "000d" + "0000"
    assert len(HEADER.encode()) == UDP_HEADER_BYTES


def test_the_payload_ends_where_the_length_says() -> None:
    record, payload = UdpHeader.decode(HEADER.encode() + b"12345" + b"pad")
    assert record == HEADER
    assert bytes(payload) == b"12345"


@pytest.mark.parametrize(
    ("datagram", "message"),
    [
        (bytes(7), "UDP: found 7 bytes, wanted at least 8"),
        (bytes.fromhex("c00012b700070000"), "UDP: found a length of 7, wanted at least 8"),
        (bytes.fromhex("c00012b700090000"), "UDP payload: found 0 bytes, wanted at least 1"),
    ],
)
def test_a_wrong_header_says_why(datagram: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        UdpHeader.decode(datagram)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "header",
    [
        UdpHeader(source_port=-1, destination_port=1, payload_bytes=0),
        UdpHeader(source_port=1, destination_port=65536, payload_bytes=0),
        UdpHeader(source_port=1, destination_port=1, payload_bytes=65528),
        UdpHeader(source_port=1, destination_port=1, payload_bytes=-1),
        UdpHeader(source_port=1, destination_port=1, payload_bytes=0, checksum=65536),
    ],
)
def test_a_field_that_does_not_fit_is_the_callers_mistake(header: UdpHeader) -> None:
    with pytest.raises(UsageError):
        header.encode()


def test_the_checksum_of_a_published_packet() -> None:
    # UC SEND with UDP checksum 0xaca2 and ICRC 0x78f353f3, from the tests of scapy (test/contrib/roce.uts).
    payload = bytes.fromhex("2460ffff000000d300cf1710 4630818be28935d90e9a95505401be885e500000 78f353f3")
    header = UdpHeader(source_port=49152, destination_port=ROCE_V2_PORT, payload_bytes=len(payload))
    ip = Ipv4Header(
        source=IPv4Address("192.168.0.7"), destination=IPv4Address("192.168.0.7"), payload_bytes=8 + len(payload)
    )
    assert udp_checksum(ip, header, payload) == 0xACA2


def test_a_checksum_of_zero_is_sent_as_ones() -> None:
    # A payload of two bytes can make the sum anything; this one makes it all ones, whose complement would be zero.
    ip = Ipv6Header(source=IPv6Address("::1"), destination=IPv6Address("::2"), payload_bytes=10)
    header = UdpHeader(source_port=1, destination_port=2, payload_bytes=2)
    blank = udp_checksum(ip, header, b"\0\0")
    assert udp_checksum(ip, header, blank.to_bytes(2, "big")) == 0xFFFF


def test_source_ports_are_equal_both_ways_and_in_the_upper_quarter() -> None:
    for local in range(0x100, 0x140):
        for remote in (0x11, 0x100, 0xFFFFFF):
            port = roce_source_port(local, remote)
            assert port == roce_source_port(remote, local)
            assert 0xC000 <= port <= 0xFFFF


def test_source_ports_follow_the_rule_of_linux() -> None:
    # 0xFFFFFF squared is 0xFFFFFE000001; ^ >> 20 is 0xFFFFF1_FFFFE1 (low 20 bits 0xFFFE1); ^ >> 40 flips 0xFF of it.
    assert roce_source_port(0xFFFFFF, 0xFFFFFF) == 0xC000 | ((0xFFF1E & 0x3FFF) ^ (0xFFF1E >> 14))
    assert roce_source_port(5, 7, flow_label=0x4001) == 0xC000
    assert roce_source_port(5, 7, flow_label=0xFFFFF) == 0xFFC0


def test_consecutive_queue_pairs_get_many_ports() -> None:
    ports = Counter(roce_source_port(0x100 + i, 0x200 + i) for i in range(256))
    assert len(ports) > 240


@pytest.mark.parametrize("arguments", [(1 << 24, 1), (1, -1), (1, 1, 1 << 20)])
def test_a_number_that_does_not_fit_is_the_callers_mistake(arguments: tuple[int, ...]) -> None:
    with pytest.raises(UsageError):
        roce_source_port(*arguments)


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(251)), bytes(1_000) + b"\xff\xfe"], ids=len)
@pytest.mark.parametrize("version", [4, 6])
def test_a_receiver_finds_the_checksum_right(version: int, payload: bytes) -> None:
    """RFC 768, and RFC 8200, 8.1: the sum over pseudo header and datagram is all ones, so a multiple of 65,535."""
    length = (8 + len(payload)).to_bytes(2 if version == 4 else 4, "big")
    protocol = (17).to_bytes(2 if version == 4 else 4, "big")
    ip: Ipv4Header | Ipv6Header
    if version == 4:
        ends = IPv4Address("10.1.2.3"), IPv4Address("10.255.0.9")
        ip = Ipv4Header(source=ends[0], destination=ends[1], payload_bytes=8 + len(payload))
    else:
        ends_6 = IPv6Address("2001:db8::7:1"), IPv6Address("fe80::ffff:2")
        ip = Ipv6Header(source=ends_6[0], destination=ends_6[1], payload_bytes=8 + len(payload))
    header = UdpHeader(source_port=49_152, destination_port=4_791, payload_bytes=len(payload))
    checked = replace(header, checksum=udp_checksum(ip, header, payload))
    datagram = checked.encode() + payload
    covered = ip.source.packed + ip.destination.packed + length + protocol + datagram + b"\0" * (len(payload) % 2)
    assert checked.checksum != 0
    assert int.from_bytes(covered, "big") % 0xFFFF == 0
