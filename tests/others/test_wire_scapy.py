"""scapy builds the same bytes as our codecs, checksums and invariant CRC included."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.wire.ethernet import ETHERTYPE_IPV4, ETHERTYPE_IPV6, EthernetFrame, EthernetHeader, VlanTag
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth
from weftwork.wire.ip import Ipv4Header, Ipv6Header
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pfc import PriorityPause
from weftwork.wire.rocev2 import RoceV2Packet, rocev2_packet
from weftwork.wire.udp import UdpHeader, udp_checksum

pytest.importorskip("scapy", reason="scapy, the oracle, comes with the extra 'test'")

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.contrib.roce import AETH, BTH
from scapy.contrib.roce import cnp as scapy_cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)


V4 = st.builds(IPv4Address, bits(32))
V6 = st.builds(IPv6Address, bits(128))
MAC = st.binary(min_size=6, max_size=6)
BTHS = st.builds(
    Bth,
    # scapy takes the CNP and the ACK for headers of its own, so a plain body needs another opcode.
    opcode=st.sampled_from([Opcode.SEND_FIRST, Opcode.SEND_ONLY, Opcode.WRITE_MIDDLE, 0x64]),
    destination_qp=bits(24),
    psn=bits(24),
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
BODIES = st.integers(0, 16).flatmap(lambda words: st.binary(min_size=words * 4, max_size=words * 4))
PACKETS = st.one_of(
    [
        st.builds(
            rocev2_packet,
            source=address,
            destination=address,
            source_port=bits(16),
            bth=BTHS,
            body=BODIES,
            dscp=bits(6),
            ecn=bits(2),
        )
        for address in (V4, V6)
    ]
)


def scapy_ip(packet: RoceV2Packet) -> Packet:
    ip = packet.ip
    if isinstance(ip, Ipv4Header):
        return IP(
            src=str(ip.source),
            dst=str(ip.destination),
            tos=ip.dscp << 2 | ip.ecn,
            id=ip.identification,
            flags=ip.flags,
            frag=ip.fragment_offset_bytes // 8,
            ttl=ip.ttl,
            proto=ip.protocol,
        )
    return IPv6(
        src=str(ip.source),
        dst=str(ip.destination),
        tc=ip.dscp << 2 | ip.ecn,
        fl=ip.flow_label,
        nh=ip.next_header,
        hlim=ip.hop_limit,
    )


def scapy_bth(bth: Bth) -> Packet:
    return BTH(
        opcode=bth.opcode,
        solicited=bth.solicited_event,
        migreq=bth.migrated,
        padcount=bth.pad_bytes,
        version=bth.transport_version,
        pkey=bth.partition_key,
        fecn=bth.fecn,
        becn=bth.becn,
        resv6=bth.reserved6,
        dqpn=bth.destination_qp,
        ackreq=bth.ack_request,
        resv7=bth.reserved7,
        psn=bth.psn,
    )


def scapy_udp(packet: RoceV2Packet) -> Packet:
    return UDP(sport=packet.udp.source_port, dport=packet.udp.destination_port, chksum=0)


@given(packet=PACKETS)
def test_packets_with_their_icrc_are_equal(packet: RoceV2Packet) -> None:
    built = scapy_ip(packet) / scapy_udp(packet) / scapy_bth(packet.bth) / Raw(packet.body)
    assert built.build() == packet.encode()


@given(address=V4 | V6, kind=st.sampled_from(AethKind), value=bits(5), msn=bits(24), psn=bits(24))
def test_acknowledgements_are_equal(
    address: IPv4Address | IPv6Address, kind: AethKind, value: int, msn: int, psn: int
) -> None:
    aeth = Aeth(kind=kind, value=value, msn=msn)
    bth = Bth(opcode=Opcode.ACKNOWLEDGE, destination_qp=0x12, psn=psn)
    packet = rocev2_packet(source=address, destination=address, source_port=0xC000, bth=bth, body=aeth.encode())
    built = scapy_ip(packet) / scapy_udp(packet) / scapy_bth(bth) / AETH(syndrome=aeth.syndrome, msn=msn)
    assert built.build() == packet.encode()


@given(address=V4 | V6, destination_qp=bits(24))
def test_congestion_notifications_are_equal(address: IPv4Address | IPv6Address, destination_qp: int) -> None:
    packet = rocev2_packet(
        source=address, destination=address, source_port=0xC000, bth=cnp_bth(destination_qp), body=CNP_BODY
    )
    assert (scapy_ip(packet) / scapy_udp(packet) / scapy_cnp(dqpn=destination_qp)).build() == packet.encode()


@given(
    packet=PACKETS,
    destination=MAC,
    source=MAC,
    vlan=st.none() | st.builds(VlanTag, priority=bits(3), vlan_id=bits(12), drop_eligible=st.booleans()),
)
def test_ethernet_headers_are_equal(
    packet: RoceV2Packet, destination: bytes, source: bytes, vlan: VlanTag | None
) -> None:
    ethertype = ETHERTYPE_IPV4 if isinstance(packet.ip, Ipv4Header) else ETHERTYPE_IPV6
    header = EthernetHeader(destination=destination, source=source, ethertype=ethertype, vlan=vlan)
    built = Ether(dst=destination.hex(":"), src=source.hex(":"))
    if vlan is not None:
        built /= Dot1Q(prio=vlan.priority, dei=vlan.drop_eligible, vlan=vlan.vlan_id)
    assert (built / scapy_ip(packet)).build()[: header.size_bytes] == header.encode()


@given(
    payload=st.binary(max_size=64), address=V4 | V6, source_port=bits(16), destination_port=st.integers(40000, 50000)
)
def test_udp_checksums_are_equal(
    payload: bytes, address: IPv4Address | IPv6Address, source_port: int, destination_port: int
) -> None:
    header = UdpHeader(source_port=source_port, destination_port=destination_port, payload_bytes=len(payload))
    ip: Ipv4Header | Ipv6Header
    if isinstance(address, IPv4Address):
        ip = Ipv4Header(source=address, destination=address, payload_bytes=len(payload) + 8)
        outer = IP(src=str(address), dst=str(address), id=ip.identification, flags=ip.flags)
    else:
        ip = Ipv6Header(source=address, destination=address, payload_bytes=len(payload) + 8)
        outer = IPv6(src=str(address), dst=str(address))
    built = (outer / UDP(sport=source_port, dport=destination_port) / Raw(payload)).build()
    checked = replace(header, checksum=udp_checksum(ip, header, payload))
    assert built == ip.encode() + checked.encode() + payload


@given(vector=bits(8), quanta=st.tuples(*[bits(16)] * 8), source=MAC)
def test_priority_pauses_are_equal(vector: int, quanta: tuple[int, ...], source: bytes) -> None:
    pause = PriorityPause(class_enable_vector=vector, quanta=quanta)  # type: ignore[arg-type] # eight by construction
    fields = {f"c{priority}_enabled": vector >> priority & 1 for priority in range(8)}
    fields |= {f"c{priority}_pause_time": quanta[priority] for priority in range(8)}
    built = Ether(dst="01:80:c2:00:00:01", src=source.hex(":"), type=0x8808) / MACControlClassBasedFlowControl(**fields)
    frame, _ = EthernetFrame.decode(pause.frame(source).encode())
    assert built.build() == frame.header.encode() + frame.payload  # scapy pads too
