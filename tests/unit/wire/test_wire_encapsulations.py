"""Every row of the table of encapsulations is read, or its frames are named; new rows are tested by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.encapsulated_frames import (
    CARRIER_OF,
    FRAME,
    IPV4,
    NATIVE_WITH_GRH,
    PSN,
    ethernet,
    frame_of,
    gre,
    in_ipv4,
    in_udp,
    label,
    tagged,
    with_extension,
)

from weftwork.wire.dissection import Carrier, Fate, dissect
from weftwork.wire.encapsulations import LAYERS, link_name
from weftwork.wire.ethernet import ETHERTYPE_IPV4
from weftwork.wire.icrc import icrc
from weftwork.wire.ip import ECN_CE, MORE_FRAGMENTS, Ipv4Header
from weftwork.wire.layers import Layer, Selector
from weftwork.wire.pcap import LINK_ERF, LINK_ETHERNET, LINK_INFINIBAND, CapturedPacket

ROWS = [pytest.param(row, id=f"{row.selector.name}-{row.number:#x}") for row in LAYERS]
READ = [param for param in ROWS if param.values[0].read or param.values[0].carrier]  # type: ignore[union-attr]
NAMED = [param for param in ROWS if param not in READ]


def whole(data: bytes, link_type: int = LINK_ETHERNET) -> CapturedPacket:
    return CapturedPacket(0, data, len(data), link_type)


def test_no_number_has_two_rows() -> None:
    numbers = [(row.selector, row.number) for row in LAYERS]
    assert len(set(numbers)) == len(numbers)
    assert all(row.source for row in LAYERS)


@pytest.mark.parametrize("row", READ)
def test_a_row_leads_to_the_packet_inside_and_its_icrc(row: Layer) -> None:
    seen = dissect(frame_of(row.selector, row.number))
    kind = CARRIER_OF.get((row.selector, row.number), Carrier.ROCE_V2)
    assert row.name in seen.layers
    assert (seen.kind, seen.fate, seen.reason, seen.problem) == (kind, Fate.READ, "", "")
    if kind is Carrier.PFC:
        assert seen.pause is not None
        return
    assert seen.transport is not None
    assert seen.transport.bth.psn == PSN
    if row.selector is Selector.IP_PROTOCOL and row.number in {0, 43, 44, 60}:
        assert seen.icrc_unchecked == f"{row.name} of IPv6"
    else:
        assert (seen.icrc_unchecked, seen.has_wrong_icrc, seen.icrc_found is None) == ("", False, False)


@pytest.mark.parametrize("row", READ)
def test_of_a_row_cut_at_any_byte_nothing_is_invented(row: Layer) -> None:
    packet = frame_of(row.selector, row.number)
    whole_packet = dissect(packet)
    for kept_bytes in range(0, len(packet.data), 3):
        seen = dissect(packet._replace(data=packet.data[:kept_bytes]))
        if seen.fate is Fate.READ:  # what was cut off is the VCRC or a frame check sequence
            assert (seen.kind, seen.icrc_found) == (whole_packet.kind, whole_packet.icrc_found)
        else:
            assert seen.fate is Fate.CUT
            assert seen.reason
            assert (seen.icrc_found, seen.icrc_wanted) == (None, None)
            assert seen.icrc_unchecked == ("cut" if seen.is_rdma else "")
        assert seen.transport is None or whole_packet.transport is not None
        assert seen.transport is None or seen.transport.bth == whole_packet.transport.bth  # type: ignore[union-attr]


@pytest.mark.parametrize("row", NAMED)
def test_a_row_without_reader_is_named(row: Layer) -> None:
    packets: dict[Selector, Callable[[int], CapturedPacket]] = {
        Selector.LINK_TYPE: lambda number: whole(FRAME, number),
        Selector.ETHERTYPE: lambda number: whole(ethernet(number, bytes(46))),
        Selector.IP_PROTOCOL: lambda number: in_ethernet(in_ipv4(number, bytes(20))),
        Selector.ERF_TYPE: lambda number: whole(bytes(8) + bytes([number]) + bytes(71), LINK_ERF),
    }
    seen = dissect(packets[row.selector](row.number))
    assert (seen.kind, seen.fate, seen.transport) == (Carrier.OTHER, Fate.PASSED_OVER, None)
    if row.selector is Selector.LINK_TYPE:
        assert seen.reason == "a link type that is not read"
        assert link_name(row.number) == f"{row.name} (link type {row.number})"
    else:
        assert seen.reason == row.name


def fragment() -> bytes:
    """The first fragment of a packet, whose UDP header names the port of RoCEv2."""
    header, payload = Ipv4Header.decode(IPV4)
    return replace(header, flags=MORE_FRAGMENTS).encode() + bytes(payload)


def in_ethernet(packet: bytes) -> CapturedPacket:
    return whole(ethernet(ETHERTYPE_IPV4, packet))


@pytest.mark.parametrize(
    ("packet", "reason", "example"),
    [
        (whole(FRAME, 60_000), "a link type that is not read", ""),
        (whole(ethernet(0x1234, bytes(46))), "EtherType 0x1234", ""),
        (whole(ethernet(0x0026, bytes(46))), "Ethernet with a length (LLC: spanning tree and others)", ""),
        (in_ethernet(in_ipv4(200, bytes(8))), "IP protocol 200", ""),
        (in_ethernet(in_udp(53, bytes(8))), "UDP to other ports than RoCE's", "UDP 49152 to 53"),
        (
            whole(ethernet(0x8808, b"\0\1" + bytes(44))),
            "MAC control other than PFC (PAUSE of a whole link)",
            "opcode 0x0001",
        ),
        (in_ethernet(gre(0x880B, bytes(20), 0x3001)), "GRE of another version than 0 (PPTP)", "version 1"),
        (in_ethernet(gre(ETHERTYPE_IPV4, IPV4, 0x4000)), "GRE with source routes", ""),
        (
            in_ethernet(gre(0x22EB, bytes(10) + b"\x08\0", 0x1000)),
            "ERSPAN of other frames than Ethernet's, in GRE",
            "frame type 2",
        ),
        (
            in_ethernet(in_udp(4789, bytes(8) + FRAME)),
            "VXLAN without a valid network identifier",
            "flags 0x00",
        ),
        (
            in_ethernet(in_udp(4790, b"\x0c\0\0\x04" + bytes(4) + IPV4)),
            "VXLAN-GPE with neither IP nor Ethernet behind it",
            "next protocol 4",
        ),
        (in_ethernet(in_udp(6081, b"\x40" + bytes(7) + FRAME)), "Geneve of another version than 0", "version 1"),
        (
            whole(ethernet(0x8847, label(FRAME))),
            "MPLS labels with no IP packet behind them (a pseudowire?)",
            "first byte 0x02",
        ),
        (
            in_ethernet(in_udp(4789, b"\x08" + bytes(7) + ethernet(0x0806, bytes(46)))),
            "ARP, in VXLAN",
            "UDP 49152 to 4789",
        ),
        (
            whole(bytes(8) + b"\0\0\x11\x23" + bytes(40), LINK_INFINIBAND),
            "raw packets of InfiniBand: mirrored InfiniBand (ibdump --decap reads it)",
            "",
        ),
        (whole(b"\0\1" + bytes(46), LINK_INFINIBAND), "raw packets of InfiniBand: IPv6", ""),
        (
            whole(tagged(ETHERTYPE_IPV4, IPV4, *[0x88A8] * 30)),
            "more than 24 headers in front of a packet",
            "",
        ),
        (whole(b"\x50" + bytes(30), 101), "IPv4 that cannot be read", "IPv4: found version 5, wanted 4"),
        (
            whole(ethernet(0x86DD, with_extension(44, b"\0\0\x08" + bytes(4)))),
            "fragments of IPv6, which are not put together",
            "",
        ),
        (
            in_ethernet(fragment()),
            "fragments of IPv4, which are not put together",
            "",
        ),
    ],
)
def test_what_is_passed_over_has_its_reason(packet: CapturedPacket, reason: str, example: str) -> None:
    seen = dissect(packet)
    assert (seen.fate, seen.reason, seen.example) == (Fate.PASSED_OVER, reason, example)


def test_a_mirror_that_cuts_packets_itself_is_a_cut() -> None:
    """Frame and record agree, and only the inner IP header says that the packet was longer."""
    mirrored = ethernet(ETHERTYPE_IPV4, gre(0x88BE, bytes(8) + FRAME[:100], 0x1000))
    seen = dissect(whole(mirrored))
    assert (seen.fate, seen.reason, seen.icrc_unchecked) == (Fate.CUT, "behind their headers, in ERSPAN in GRE", "cut")
    assert seen.missing_bytes == len(FRAME) - 100
    assert seen.transport is not None
    assert seen.transport.bth.psn == PSN


def test_the_first_erspan_has_no_header_of_its_own() -> None:
    seen = dissect(whole(ethernet(ETHERTYPE_IPV4, gre(0x88BE, FRAME))))
    assert (seen.fate, seen.tunnels, seen.has_wrong_icrc) == (Fate.READ, ["GRE"], False)


def test_a_mark_outside_of_a_tunnel_counts() -> None:
    data = bytearray(ethernet(ETHERTYPE_IPV4, in_udp(4789, b"\x08" + bytes(7) + FRAME)))
    assert not dissect(whole(bytes(data))).is_marked
    data[15] |= ECN_CE
    data[24:26] = bytes(2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(14, 34, 2))
    data[24:26] = (0xFFFF - (total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
    seen = dissect(whole(bytes(data)))
    assert seen.is_marked
    assert seen.ip is not None
    assert seen.ip.ecn != ECN_CE


def test_the_icrc_of_a_native_packet_with_grh_is_that_of_its_grh_alone() -> None:
    """As real adapters have it: a capture of ConnectX packets holds by this rule and not by the bytes of the LRH."""
    seen = dissect(whole(NATIVE_WITH_GRH, LINK_INFINIBAND))
    assert (seen.has_wrong_icrc, seen.icrc_found) == (False, icrc(NATIVE_WITH_GRH[8:-6]))
    damaged = bytearray(NATIVE_WITH_GRH)
    damaged[70] ^= 1
    assert dissect(whole(bytes(damaged), LINK_INFINIBAND)).has_wrong_icrc
