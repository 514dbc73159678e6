"""What is read of a captured packet, and how far where it is cut short or broken."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

import pytest
from helpers.captures import bth, cnp, frame, management, write

from weftwork.wire.cm import CmRequest
from weftwork.wire.dissection import Carrier, dissect
from weftwork.wire.ethernet import ETHERTYPE_IPV4, EthernetHeader, VlanTag
from weftwork.wire.extended import Reth
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1, NativePacket, RoceV1Packet
from weftwork.wire.ip import MORE_FRAGMENTS, Ipv4Header, Ipv6Header
from weftwork.wire.lrh import Lrh
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import (
    LINK_INFINIBAND,
    LINK_LINUX_COOKED,
    LINK_LINUX_COOKED_2,
    LINK_RAW_IP,
    CapturedPacket,
)
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.transport import TransportPacket

WRITE = write("a", 100, 1)[0]
SEND = Bth(Opcode.SEND_ONLY, destination_qp=0x12, psn=7)
GRH = Ipv6Header(source=IPv6Address("fe80::1"), destination=IPv6Address("fe80::2"), payload_bytes=24, next_header=0x1B)
MACS = bytes(6), bytes.fromhex("020000000001")


def whole(data: bytes, link_type: int = 1) -> CapturedPacket:
    return CapturedPacket(0, data, len(data), link_type)


def test_a_rocev2_frame_is_read_to_its_payload() -> None:
    found = dissect(whole(WRITE))
    assert found.transport is not None
    assert found.udp is not None
    assert (found.kind, found.problem, found.has_wrong_icrc) == (Carrier.ROCE_V2, "", False)
    assert (found.transport.bth.psn, found.udp.source_port, len(found.transport.payload)) == (100, 0xC123, 256)
    assert found.transport.find(Reth) == Reth(0x7F0000, 0x1234, 256)
    assert found.icrc_found == found.icrc_wanted is not None


def test_tags_padding_and_check_sequences_change_nothing() -> None:
    tagged = EthernetHeader(
        destination=MACS[0], source=MACS[1], ethertype=ETHERTYPE_IPV4, vlan=VlanTag(priority=3, vlan_id=7)
    ).encode()
    found = dissect(whole(tagged + WRITE[14:] + b"pad and check sequence"))
    assert found.ethernet is not None
    assert found.ethernet.vlan == VlanTag(priority=3, vlan_id=7)
    assert (found.kind, found.problem, found.has_wrong_icrc) == (Carrier.ROCE_V2, "", False)
    assert dissect(whole(WRITE[14:], LINK_RAW_IP)).transport == dissect(whole(WRITE)).transport


def test_captures_of_any_interface_are_read() -> None:
    """tcpdump -i any puts a header of its own in place of Ethernet's (LINUX_SLL and LINUX_SLL2 of tcpdump.org)."""
    sll = bytes.fromhex("00000001000602000000000100000800")
    sll2 = bytes.fromhex("0800000000000002000100060200000000010000")
    wanted = dissect(whole(WRITE)).transport
    assert dissect(whole(sll + WRITE[14:], LINK_LINUX_COOKED)).transport == wanted
    assert dissect(whole(sll2 + WRITE[14:], LINK_LINUX_COOKED_2)).transport == wanted
    assert dissect(whole(sll[:15], LINK_LINUX_COOKED)).problem == "Linux cooked: found 15 bytes, wanted at least 16"


def test_rocev1_and_native_packets_are_read() -> None:
    header = EthernetHeader(destination=MACS[0], source=MACS[1], ethertype=ETHERTYPE_ROCE_V1).encode()
    first = dissect(whole(header + RoceV1Packet(grh=GRH, bth=SEND, body=b"payload!").encode() + b"padding"))
    lrh, far = Lrh(3, 4, packet_words=8), Lrh(3, 4, packet_words=18, next_header=3)
    native = NativePacket(lrh=lrh, grh=None, bth=SEND, body=b"payload!").encode() + b"\x12\x34"
    across = NativePacket(lrh=far, grh=GRH, bth=SEND, body=b"payload!").encode()
    found = [first, dissect(whole(native, LINK_INFINIBAND)), dissect(whole(across + b"\x12\x34", LINK_INFINIBAND))]
    assert [one.kind for one in found] == [Carrier.ROCE_V1, Carrier.INFINIBAND, Carrier.INFINIBAND]
    assert [one.transport and bytes(one.transport.payload) for one in found] == [b"payload!"] * 3
    assert [(one.problem, one.has_wrong_icrc, one.icrc_wanted is None) for one in found] == [("", False, False)] * 3
    assert [one.ip for one in found] == [GRH, None, GRH]


def test_pauses_notifications_and_management_are_read() -> None:
    pause = PriorityPause(class_enable_vector=8, quanta=(0, 0, 0, 9, 0, 0, 0, 0))
    assert dissect(whole(pause.frame(MACS[1]).encode())).pause == pause
    notified = dissect(whole(cnp("b"))).transport
    assert notified is not None
    assert (notified.shape.name, bytes(notified.payload)) == ("CNP", bytes(16))
    found = dissect(whole(management("a", CmRequest(local_qpn=0x11))))
    assert isinstance(found.cm, CmRequest)
    assert found.cm.local_qpn == 0x11


@pytest.mark.parametrize("bit", [14 * 8, 47 * 8 + 3, 60 * 8, len(WRITE) * 8 - 1])
def test_a_changed_bit_is_seen_or_stops_the_reading(bit: int) -> None:
    damaged = bytearray(WRITE)
    damaged[bit // 8] ^= 1 << bit % 8
    found = dissect(whole(bytes(damaged)))
    assert found.has_wrong_icrc or found.problem or found.kind is Carrier.OTHER


@pytest.mark.parametrize("kept_bytes", [14 + 20 + 8 + 12 + 16, len(WRITE) - 1])
def test_of_a_packet_cut_short_the_headers_are_read_and_the_icrc_is_not(kept_bytes: int) -> None:
    found = dissect(CapturedPacket(0, WRITE[:kept_bytes], len(WRITE)))
    assert found.transport is not None
    assert (found.transport.bth.psn, found.transport.find(Reth)) == (100, Reth(0x7F0000, 0x1234, 256))
    assert (found.icrc_found, found.icrc_wanted, found.problem) == (None, None, "")


@pytest.mark.parametrize(
    ("packet", "problem"),
    [
        (CapturedPacket(0, WRITE[:69], len(WRITE)), "RDMA: captured 27 of 28 bytes of headers from BTH on"),
        (CapturedPacket(0, WRITE[:45], len(WRITE)), "RDMA: captured 3 of 28 bytes of headers from BTH on"),
        (CapturedPacket(0, WRITE[:13], 13), "Ethernet: found 13 bytes, wanted at least 14"),
        (CapturedPacket(0, WRITE[:13], 14), "Ethernet: captured 13 of 14 bytes of the header"),
        (CapturedPacket(0, bytes(8), 8, LINK_INFINIBAND), "raw header of InfiniBand: found 8 bytes, wanted at least"),
        (CapturedPacket(0, Lrh(1, 2, 5).encode(), 20, LINK_INFINIBAND), "BTH: found 12 bytes with the ICRC, wanted at"),
        (CapturedPacket(0, Lrh(1, 2, 9).encode(), 8, LINK_INFINIBAND), "BTH: captured 0 of 1 bytes of the header"),
        (CapturedPacket(0, WRITE[:20], 1 << 32), "IPv4: captured 6 of 20 bytes of the header"),
    ],
)
def test_where_reading_ends_is_said(packet: CapturedPacket, problem: str) -> None:
    found = dissect(packet)
    assert re.match(problem, found.problem)
    assert found.transport is None


def test_an_opcode_of_a_vendor_keeps_what_was_read_before() -> None:
    send = frame("a", TransportPacket(bth("a", Opcode.SEND_ONLY, 5)))
    found = dissect(whole(send[:42] + b"\xc5" + send[43:]))
    assert found.problem == "BTH: found opcode 0xc5, which is a vendor's own"
    assert found.has_wrong_icrc


def test_what_is_not_rdma_is_left_alone() -> None:
    here = IPv4Address("10.0.0.1")
    tcp = Ipv4Header(source=here, destination=here, payload_bytes=4, protocol=6).encode() + b"data"
    first = Ipv4Header(source=here, destination=here, payload_bytes=8, flags=MORE_FRAGMENTS).encode() + bytes(8)
    other_port = bytearray(WRITE)
    other_port[36:38] = b"\x00\x35"
    arp = EthernetHeader(destination=MACS[0], source=MACS[1], ethertype=0x0806).encode() + bytes(46)
    for data in (WRITE[:14] + tcp, WRITE[:14] + first, bytes(other_port), arp):
        found = dissect(whole(data))
        assert (found.kind, found.transport, found.problem) == (Carrier.OTHER, None, "")
