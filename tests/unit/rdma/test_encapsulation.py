"""The NIC behind each encapsulation: its packets against the codecs, its datagrams, and its connections."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Any

import pytest
from helpers.cm_pair import CmPair
from helpers.rdma_captures import CONVERSATIONS, packets_of, reliable
from helpers.rdma_encapsulations import ENCAPSULATIONS, INFINIBAND, INFINIBAND_GLOBAL, TwoLids, captured_packet
from helpers.rdma_pair import Pair

from weftwork.base.errors import UsageError
from weftwork.rdma.encapsulation import ROCE_V1, ROCE_V2, Encapsulation, InfinibandEncapsulation
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.verbs import AddressHandle, QpType, WcStatus, WrOpcode
from weftwork.wire.cm import CmRequest
from weftwork.wire.dissection import Carrier, dissect
from weftwork.wire.ethernet import EthernetHeader
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1, NativePacket, RoceV1Packet
from weftwork.wire.lrh import LRH_BYTES
from weftwork.wire.pcap import CapturedPacket
from weftwork.wire.rocev2 import RoceV2Packet
from weftwork.wire.vcrc import check_vcrc

EACH = pytest.mark.parametrize("encapsulation", ENCAPSULATIONS.values(), ids=ENCAPSULATIONS)


CARRIERS = {"RoCEv2": Carrier.ROCE_V2, "RoCEv1": Carrier.ROCE_V1, "InfiniBand": Carrier.INFINIBAND}


def decoded(packet: CapturedPacket, encapsulation: Encapsulation) -> RoceV2Packet | RoceV1Packet | NativePacket:
    """Read a packet by its codec, which checks the ICRC; nothing is left behind it."""
    if isinstance(encapsulation, InfinibandEncapsulation):
        check_vcrc(packet.data)
        native, vcrc = NativePacket.decode(packet.data)
        assert len(vcrc) == 2
        assert native.encode() == bytes(packet.data)[:-2]
        return native
    header, behind = EthernetHeader.decode(packet.data)
    assert (header.ethertype == ETHERTYPE_ROCE_V1) is (encapsulation is ROCE_V1)
    codec = RoceV1Packet if encapsulation is ROCE_V1 else RoceV2Packet
    found, rest = codec.decode(behind)
    assert not rest
    assert found.encode() == bytes(behind)
    return found


@EACH
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda one: one.__name__)
def test_the_codecs_read_every_packet(conversation: Callable[..., Pair], encapsulation: Encapsulation) -> None:
    packets = packets_of(conversation, encapsulation)
    assert packets
    for packet in packets:
        decoded(packet, encapsulation)
        found = dissect(packet)
        assert (found.kind, found.problem) == (CARRIERS[encapsulation.name], "")
        assert found.icrc_found == found.icrc_wanted is not None


@EACH
def test_the_transport_is_the_same_behind_every_header(encapsulation: Encapsulation) -> None:
    def headers(of: Encapsulation) -> list[Bth]:
        return [decoded(packet, of).bth for packet in packets_of(reliable, of)]

    assert headers(encapsulation) == headers(ROCE_V2)


@pytest.mark.parametrize(("encapsulation", "header_bytes"), [(ROCE_V2, 20), (ROCE_V1, 40), (INFINIBAND_GLOBAL, 40)])
def test_a_datagram_brings_its_network_header(encapsulation: Encapsulation, header_bytes: int) -> None:
    pair = datagram(encapsulation)
    front = bytes(40 - header_bytes) + encapsulation.network_header(pair.sent[0], len(pair.sent[0].payload()))
    assert bytes(pair.buffers[1][:40]) == front
    assert bytes(pair.buffers[1][40:45]) == b"hello"
    assert [wc.has_grh for wc in pair.poll(1)] == [True]


def test_a_local_packet_of_infiniband_has_no_grh() -> None:
    pair = datagram(INFINIBAND)
    assert bytes(pair.buffers[1][:45]) == bytes(40) + b"hello"
    (wc,) = pair.poll(1)
    assert (wc.has_grh, wc.byte_len) == (False, 45)


def datagram(encapsulation: Encapsulation, **handle: Any) -> Pair:
    """Send five bytes as a datagram."""
    pair = Pair(qp_type=QpType.UD, encapsulation=encapsulation)
    pair.buffers[0][:5] = b"hello"
    pair.post_recv(1, 1, 0, 256)
    to = AddressHandle(address=pair.nics[1].address, **handle)
    where: dict[str, Any] = {"ah": to, "remote_qpn": pair.qps[1].qp_num, "remote_qkey": 0x1234}
    pair.post(0, WrOpcode.SEND, sg_list=(pair.sge(0, 0, 5),), **where)
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.SUCCESS]
    return pair


@EACH
def test_marks_go_where_the_header_has_room_for_them(encapsulation: Encapsulation) -> None:
    pair = datagram(encapsulation, dscp=11)
    found = decoded(captured_packet(pair.sent[0], encapsulation), encapsulation)
    assert bytes(pair.buffers[1][40:45]) == b"hello"
    if isinstance(found, NativePacket):
        assert found.lrh.service_level == 11
    else:
        assert (found.ip if isinstance(found, RoceV2Packet) else found.grh).dscp == 11


def test_gids_of_rocev1_are_addresses() -> None:
    pair = datagram(ROCE_V1)
    found = decoded(captured_packet(pair.sent[0], ROCE_V1), ROCE_V1)
    assert isinstance(found, RoceV1Packet)
    assert (found.grh.source, found.grh.destination) == (IPv6Address("::ffff:a00:1"), IPv6Address("::ffff:a00:2"))
    pair = Pair(qp_type=QpType.RC, encapsulation=ROCE_V1, ipv6=True)
    pair.post(0, WrOpcode.RDMA_WRITE, sg_list=(pair.sge(0, 0, 5),), **pair.remote(0, 0))
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.SUCCESS]
    over_ipv6 = decoded(captured_packet(pair.sent[0], ROCE_V1), ROCE_V1)
    assert isinstance(over_ipv6, RoceV1Packet)
    assert over_ipv6.grh.source == IPv6Address("fd00::1")


def test_lids_of_infiniband_are_those_of_the_subnet() -> None:
    found = decoded(captured_packet(datagram(INFINIBAND).sent[0], INFINIBAND), INFINIBAND)
    assert isinstance(found, NativePacket)
    assert (found.lrh.source_lid, found.lrh.destination_lid) == (0x101, 0x102)
    assert found.lrh.packet_words * 4 == LRH_BYTES + len(datagram(INFINIBAND).sent[0].payload())


@EACH
def test_a_request_names_the_lids_of_its_path(encapsulation: Encapsulation) -> None:
    pair = CmPair(encapsulation=encapsulation)
    pair.establish()
    request = next(message for _, _, message in pair.messages() if isinstance(message, CmRequest))
    is_native = isinstance(encapsulation, InfinibandEncapsulation)
    lids = (0x101, 0x102) if is_native else (0xFFFF, 0xFFFF)
    assert (request.primary.local_lid, request.primary.remote_lid) == lids
    gids = [IPv6Address(gid) for gid in (request.primary.local_gid, request.primary.remote_gid)]
    assert gids == (
        [IPv6Address("fe80::1"), IPv6Address("fe80::2")]
        if is_native
        else [IPv6Address("::ffff:a00:1"), IPv6Address("::ffff:a00:2")]
    )


@EACH
def test_addresses_of_another_kind_are_refused(encapsulation: Encapsulation) -> None:
    pair = Pair(qp_type=QpType.UD, encapsulation=encapsulation)
    before = len(pair.qps[0].requester.entries)
    with pytest.raises(UsageError, match="found"):
        pair.post(0, WrOpcode.SEND, ah=AddressHandle(address=bytes(7)), remote_qpn=2)
    assert len(pair.qps[0].requester.entries) == before


def test_a_service_level_has_four_bits() -> None:
    nic = RdmaNic(b"\xfe\x80" + bytes(13) + b"\1", encapsulation=InfinibandEncapsulation(TwoLids()))
    with pytest.raises(UsageError, match="found 16, wanted a service level of InfiniBand, 0 to 15"):
        nic.flow(b"\xfe\x80" + bytes(13) + b"\2", 0, 16)
