"""IPv4 and IPv6 headers."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest

from weftwork.base.errors import UsageError
from weftwork.wire.fields import MalformedPacket
from weftwork.wire.ip import (
    DONT_FRAGMENT,
    ECN_CE,
    ECN_ECT0,
    MORE_FRAGMENTS,
    Ipv4Header,
    Ipv6Header,
    decode_ip,
    internet_checksum,
    ip_header_bytes,
)

# IP header of a CNP captured on a ConnectX-4 Lx, published in the tests of scapy (test/contrib/roce.uts).
CAPTURED = bytes.fromhex("45c2003c718c400040119161 0a001101 0a001201")
CAPTURED_RECORD = Ipv4Header(
    source=IPv4Address("10.0.17.1"),
    destination=IPv4Address("10.0.18.1"),
    payload_bytes=40,
    dscp=48,
    ecn=ECN_ECT0,
    identification=0x718C,
)
V6 = Ipv6Header(
    source=IPv6Address("fe80::1"),
    destination=IPv6Address("fe80::2"),
    payload_bytes=3,
    dscp=26,
    ecn=ECN_CE,
    flow_label=0xABCDE,
)


def checksummed(header: bytes) -> bytes:
    """Repair the checksum of a header that was changed on purpose."""
    blank = header[:10] + b"\0\0" + header[12:]
    return blank[:10] + internet_checksum(blank).to_bytes(2, "big") + blank[12:]


def test_a_captured_header_is_read_and_written() -> None:
    record, payload = Ipv4Header.decode(CAPTURED + bytes(40))
    assert record == CAPTURED_RECORD
    assert len(payload) == 40
    assert record.encode() == CAPTURED


def test_the_padding_of_the_link_is_not_payload() -> None:
    _, payload = Ipv4Header.decode(CAPTURED + b"\x01" * 40 + b"\x02" * 6)
    assert bytes(payload) == b"\x01" * 40


def test_options_and_fragments_are_kept() -> None:
    header = replace(
        CAPTURED_RECORD, options=b"\x94\x04\x00\x00", flags=MORE_FRAGMENTS, fragment_offset_bytes=1480, payload_bytes=8
    )
    record, _ = Ipv4Header.decode(header.encode() + bytes(8))
    assert record == header
    assert record.size_bytes == 24
    assert record.is_fragment
    assert not replace(header, flags=DONT_FRAGMENT, fragment_offset_bytes=0).is_fragment


def test_an_ipv6_header_has_its_bits_in_place() -> None:
    encoded = V6.encode()
    assert encoded[:8].hex() == "66babcde" + "0003" + "11" + "40"
    record, payload = decode_ip(encoded + b"abcd")
    assert record == V6
    assert bytes(payload) == b"abc"


def test_the_version_chooses_the_codec() -> None:
    assert isinstance(decode_ip(CAPTURED + bytes(40))[0], Ipv4Header)
    with pytest.raises(MalformedPacket, match="found version 5, wanted 4"):
        decode_ip(b"\x55" + bytes(40))
    with pytest.raises(MalformedPacket, match="found 0 bytes"):
        decode_ip(b"")


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (CAPTURED[:19], "IPv4: found 19 bytes, wanted at least 20"),
        (CAPTURED + bytes(39), "IPv4 payload: found 39 bytes, wanted at least 40"),
        (checksummed(b"\x44" + CAPTURED[1:]) + bytes(40), "IPv4: found a header of 16 bytes, wanted at least 20"),
        (checksummed(b"\x4f" + CAPTURED[1:]), "IPv4: found 20 bytes, wanted at least 60"),
        (checksummed(CAPTURED[:2] + b"\0\x13" + CAPTURED[4:]), "IPv4: found a total length of 19, wanted at least 20"),
        (CAPTURED[:10] + b"\0\0" + CAPTURED[12:] + bytes(40), "IPv4: found header checksum 0x0000, wanted 0x9161"),
    ],
)
def test_a_wrong_ipv4_header_says_why(packet: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        Ipv4Header.decode(packet)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (V6.encode()[:39], "IPv6: found 39 bytes, wanted at least 40"),
        (V6.encode() + b"ab", "IPv6 payload: found 2 bytes, wanted at least 3"),
        (CAPTURED + bytes(40), "IPv6: found version 4, wanted 6"),
    ],
)
def test_a_wrong_ipv6_header_says_why(packet: bytes, message: str) -> None:
    with pytest.raises(MalformedPacket) as caught:
        Ipv6Header.decode(packet)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "change",
    [
        {"payload_bytes": 65516},
        {"payload_bytes": -1},
        {"protocol": 256},
        {"dscp": 64},
        {"ecn": 4},
        {"identification": -1},
        {"flags": 8},
        {"fragment_offset_bytes": 4},
        {"fragment_offset_bytes": 65536},
        {"ttl": 256},
        {"options": b"\0"},
        {"options": bytes(44)},
    ],
)
def test_an_ipv4_field_that_does_not_fit_is_the_callers_mistake(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(CAPTURED_RECORD, **change).encode()


@pytest.mark.parametrize(
    "change",
    [
        {"payload_bytes": 65536},
        {"next_header": 256},
        {"dscp": 64},
        {"ecn": 4},
        {"flow_label": 1 << 20},
        {"hop_limit": -1},
    ],
)
def test_an_ipv6_field_that_does_not_fit_is_the_callers_mistake(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        replace(V6, **change).encode()


def test_only_two_versions_have_a_size() -> None:
    assert (ip_header_bytes(4), ip_header_bytes(6)) == (20, 40)
    with pytest.raises(UsageError, match="found 5, wanted 4 or 6"):
        ip_header_bytes(5)
