"""Native InfiniBand in memory: bytes on each link, what the switch changes and drops, addresses, and devices."""

from __future__ import annotations

import re
import threading
from ipaddress import IPv6Address, ip_address
from typing import Any

import pytest
from helpers.rdma_devices import PATIENCE_S, DeviceEnd, exchange, join

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram, IcrcStates, PacketFlow
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.infiniband import InfinibandPort, InfinibandWire
from weftwork.rdma.drivers.mailbox import MOST_WAITING, Mailbox
from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import NativePacket
from weftwork.wire.ip import ECN_CE
from weftwork.wire.lrh import LRH_BYTES
from weftwork.wire.opcodes import Opcode
from weftwork.wire.pcap import LINK_INFINIBAND, CapturedPacket
from weftwork.wire.vcrc import append_vcrc, check_vcrc

WITH_AND_WITHOUT = pytest.mark.parametrize("has_grh", [False, True], ids=["local", "global"])


class Links:
    """A wire with two ports, and the packets on the links to the switch and from the switch."""

    def __init__(self, **wire: Any) -> None:
        self.to_switch: list[bytes] = []
        self.from_switch: list[CapturedPacket] = []
        self.wire = InfinibandWire(capture=self.from_switch.append, clock_ns=lambda: 7, **wire)
        carry = self.wire.carry

        def note(packet: bytes) -> None:
            self.to_switch.append(packet)
            carry(packet)

        self.wire.carry = note  # type: ignore[method-assign]
        self.ports = [self.wire.open(), self.wire.open()]

    def packet(self, level: int = 0, number: int = 0x1234, *, fecn: bool = False) -> Datagram:
        """From the first port to the second."""
        source, destination = (port.address for port in self.ports)
        flow = PacketFlow(source, destination, 0, IcrcStates(self.ports[0].encapsulation), dscp=level)
        return flow.close(Bth(Opcode.SEND_ONLY, destination_qp=number, psn=7, fecn=fecn).encode(), (b"12345678",))


def arrived(port: InfinibandPort) -> Datagram | None:
    found = port.receive()
    return None if found is None else found._replace(parts=(bytes(found.payload()),))


@WITH_AND_WITHOUT
def test_every_operation_between_two_devices(*, has_grh: bool) -> None:
    wire = InfinibandWire(has_grh=has_grh)
    a, b = join(*(DeviceEnd("", port=wire.open()) for _ in range(2)))
    with b.device:
        exchange(a, b)
    assert a.qp.attr.path_mtu == 4096
    assert not wire.counters + a.port.counters + b.port.counters
    a.device.close()


@WITH_AND_WITHOUT
def test_bytes_on_both_links(*, has_grh: bool) -> None:
    links = Links(has_grh=has_grh, port_lanes=(3,) * 16)
    sent = links.packet(level=10)
    links.ports[0].send(sent)
    (before,), (captured,) = links.to_switch, links.from_switch
    assert captured[2:] == (len(before), LINK_INFINIBAND, "lid 2", "")
    for data, lane in ((before, 3), (captured.data, 2)):
        check_vcrc(data)
        packet, vcrc = NativePacket.decode(data)
        assert len(vcrc) == 2
        lrh = packet.lrh
        assert (lrh.source_lid, lrh.destination_lid, lrh.service_level, lrh.virtual_lane) == (1, 2, 10, lane)
        assert (packet.grh is not None) is has_grh
        if packet.grh is not None:
            assert (packet.grh.source, packet.grh.destination) == tuple(IPv6Address(p.address) for p in links.ports)
    assert before[1:-2] == bytes(captured.data)[1:-2]  # all but the lane, and the variant CRC
    assert before[-2:] != bytes(captured.data)[-2:]
    assert arrived(links.ports[1]) == sent._replace(parts=(bytes(sent.payload()),))


def test_a_lane_that_stays_keeps_the_bytes() -> None:
    links = Links()
    links.ports[0].send(links.packet())
    assert [packet.data for packet in links.from_switch] == links.to_switch


def test_a_mark_of_congestion_is_seen() -> None:
    links = Links()
    links.ports[0].send(links.packet(fecn=True))
    found = arrived(links.ports[1])
    assert found is not None
    assert found.ecn == ECN_CE


@WITH_AND_WITHOUT
def test_a_changed_bit_on_either_link_is_seen_there(*, has_grh: bool) -> None:
    links = Links(has_grh=has_grh)
    links.ports[0].send(links.packet())
    assert arrived(links.ports[1]) is not None
    (packet,) = links.to_switch
    changed = [
        bytes(packet[: at // 8]) + bytes([packet[at // 8] ^ 1 << at % 8]) + packet[at // 8 + 1 :]
        for at in range(len(packet) * 8)
    ]
    for one in changed:
        links.wire.carry(one)
    assert links.wire.counters == {"vcrc": len(changed)}
    for one in changed:
        links.ports[1].take(one)
        assert links.ports[1].receive() is None
    assert links.ports[1].counters == {"vcrc": len(changed)}


@WITH_AND_WITHOUT
def test_a_bit_that_a_switch_changes_wrongly_reaches_no_queue_pair(*, has_grh: bool) -> None:
    """The variant CRC is right, as a faulty switch makes it: headers or the invariant CRC tell."""
    links = Links(has_grh=has_grh)
    device = RdmaDevice(port=links.ports[1])
    pair = device.create_qp(device.alloc_pd(), 2, (device.create_cq(1),) * 2)
    links.ports[0].send(links.packet(number=pair.qp_num))
    packet = links.to_switch[0]
    bth_at = LRH_BYTES + (40 if has_grh else 0)
    may_change = {0: 0xF0, bth_at + 4: 0xFF}
    if has_grh:
        may_change |= {LRH_BYTES: 0x0F, LRH_BYTES + 1: 0xFF, LRH_BYTES + 2: 0xFF, LRH_BYTES + 3: 0xFF}
        may_change[LRH_BYTES + 7] = 0xFF
        may_change[1] = 0xF0  # a service level, which the ICRC does not cover in front of a GRH
    device.progress()
    assert pair.counters == {"stranger": 1}  # the packet as it was: the queue pair has no peer
    seen = 0
    for at in range((len(packet) - 2) * 8):
        if may_change.get(at // 8, 0) >> at % 8 & 1:
            continue
        changed = bytearray(packet[:-2])
        changed[at // 8] ^= 1 << at % 8
        links.ports[1].take(append_vcrc(changed))
        while device.progress():
            pass
        refused = sum(device.nic.counters.values()) + sum(links.ports[1].counters.values())
        assert refused == seen + 1, (at // 8, at % 8)
        seen = refused
    assert pair.counters == {"stranger": 1}
    device.close()


@pytest.mark.parametrize(
    ("at", "value", "counter"),
    [(0, 0x01, "malformed"), (5, 0xFF, "malformed"), (3, 0x77, "no_route")],
    ids=["link version", "length", "destination"],
)
def test_the_switch_drops_and_counts(at: int, value: int, counter: str) -> None:
    links = Links()
    links.ports[0].send(links.packet())
    changed = bytearray(links.to_switch[0][:-2])
    changed[at] = value
    links.wire.carry(append_vcrc(changed))
    links.wire.carry(b"")
    assert links.wire.counters == {counter: 1, "vcrc": 1}
    assert len(links.from_switch) == 1


def test_a_port_that_has_left_keeps_its_lid() -> None:
    links = Links()
    second = links.ports[1]
    second.close()
    links.ports[0].send(links.packet())
    assert links.wire.counters == {"no_route": 1}
    again = links.wire.open(str(ip_address(second.address)))
    assert (again.address, again.lid) == (second.address, second.lid)
    second.close()  # once more: the new port stays
    links.ports[0].send(links.packet())
    assert again.receive() is not None


def test_addresses_of_the_subnet() -> None:
    wire = InfinibandWire()
    first, second = wire.open(), wire.open("fe80::abc")
    assert (first.lid, second.lid) == (1, 2)
    assert str(ip_address(first.address)) == "fe80::200:ff:fe00:1"
    assert wire.gid_at(2) == second.address
    for address, why in (
        ("fe80::abc", "found fe80::abc, which another port of this wire has"),
        ("10.0.0.1", "found 10.0.0.1, wanted a GID of this subnet, such as fe80::1"),
        ("fe80::", "found fe80::, wanted a GID of this subnet"),
        ("fd00::1", "found fd00::1, wanted a GID of this subnet"),
    ):
        with pytest.raises(UsageError, match=re.escape(why)):
            wire.open(address)
    with pytest.raises(UsageError, match=re.escape("found fe80::9, wanted a GID of this subnet: fe80::200:ff:fe00:1")):
        first.path_mtu(ip_address("fe80::9").packed)
    with pytest.raises(UsageError, match=re.escape("found 10.0.0.1")):
        first.path_mtu(bytes((10, 0, 0, 1)))


@pytest.mark.parametrize("lanes", [(0,) * 15, (15,) * 16, (-1,) * 16])
def test_lanes_are_sixteen_of_zero_to_fourteen(lanes: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="port_lanes"):
        InfinibandWire(port_lanes=lanes)
    with pytest.raises(UsageError, match="switch_lanes"):
        InfinibandWire(switch_lanes=lanes)


@WITH_AND_WITHOUT
def test_connections(*, has_grh: bool) -> None:
    wire = InfinibandWire(has_grh=has_grh)
    here, there = wire.open(), wire.open()
    with RdmaListener(RdmaDevice(port=there), 7471) as listener:
        request = listener.get_request()

        def serve() -> None:
            request.wait(PATIENCE_S).accept(b"yes")

        server = threading.Thread(target=serve)
        server.start()
        with RdmaConnector(RdmaDevice(port=here), str(ip_address(there.address)), 7471) as connection:
            assert connection.private_data.rstrip(b"\0") == b"yes"
            assert connection.qp.attr.remote_address == there.address
        server.join(PATIENCE_S)
        assert not listener.device.nic.counters
    assert not wire.counters


def test_a_mailbox_is_bounded_and_closes() -> None:
    box: Mailbox[int] = Mailbox()
    assert all(box.put(number) for number in range(MOST_WAITING))
    assert not box.put(0)
    assert box.take() == 0
    assert box.put(0)
    box.close()
    assert box.take() is None
    assert not box.put(0)
