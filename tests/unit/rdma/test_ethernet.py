"""RoCEv1 over packet sockets: which frames a port takes, how it finds its peers, and what it refuses."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from helpers.rdma_devices import (
    NEEDS_PACKET_SOCKETS,
    PATIENCE_S,
    DeviceEnd,
    exchange,
    join,
)

from weftwork.base.errors import PeerError, UsageError
from weftwork.rdma.datagram import Datagram, IcrcStates, PacketFlow
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers import ethernet
from weftwork.rdma.drivers import neighbours as neighbours_module
from weftwork.rdma.drivers.ethernet import EthernetPort
from weftwork.rdma.drivers.neighbours import Neighbours
from weftwork.rdma.drivers.netlink import Interface, addresses, interfaces
from weftwork.rdma.encapsulation import ROCE_V1
from weftwork.rdma.rendezvous import RdmaConnector, RdmaListener, Rendezvous
from weftwork.rdma.verbs import QpAttr, QpState
from weftwork.wire.ib import Bth
from weftwork.wire.infiniband import ETHERTYPE_ROCE_V1
from weftwork.wire.opcodes import Opcode

HERE = "127.{}.{}.".format(*divmod(os.getpid() % 60_000, 250)) + "{}"


MINE, OTHERS = (socket.inet_aton(HERE.format(end)) for end in (2, 3))


HEADER = bytes(12) + ETHERTYPE_ROCE_V1.to_bytes(2)


@pytest.fixture
def ends() -> Iterator[Callable[..., DeviceEnd]]:
    made: list[DeviceEnd] = []

    def make(address: str) -> DeviceEnd:
        made.append(DeviceEnd(address, wire="rocev1"))
        return made[-1]

    yield make
    for end in made:
        end.device.close()


@pytest.fixture
def port() -> Iterator[EthernetPort]:
    opened = EthernetPort(HERE.format(2))
    yield opened
    opened.close()


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as opened:
        opened.bind(("lo", 0))
        yield opened


@NEEDS_PACKET_SOCKETS
@pytest.mark.parametrize(
    ("first", "second"),
    [(HERE.format(2), HERE.format(3)), (HERE.format(4),) * 2, ("::1",) * 2],
    ids=["two addresses", "one address", "IPv6"],
)
def test_every_operation_between_two_devices(ends: Callable[..., DeviceEnd], first: str, second: str) -> None:
    a, b = join(ends(first), ends(second))
    with b.device:
        exchange(a, b)
    assert not a.port.counters
    assert a.qp.attr.path_mtu == 4096
    assert not a.port.makes_trains


def packet(slot: int, source: bytes = OTHERS, destination: bytes = MINE, number: int = 0x1234) -> Datagram:
    flow = PacketFlow(source, destination, 0, IcrcStates(ROCE_V1))
    return flow.close(Bth(Opcode.SEND_ONLY, destination_qp=slot << 16 | number, psn=7).encode(), (b"12345678",))


def frame(datagram: Datagram) -> bytes:
    payload = bytes(datagram.payload())
    return HEADER + ROCE_V1.front(datagram, len(payload)) + payload


def arrived(port: EthernetPort) -> Datagram | None:
    """The next packet; all that was sent before has arrived, since the loopback interface has no queue."""
    found = port.receive()
    return None if found is None else found._replace(parts=(bytes(found.payload()),))


@NEEDS_PACKET_SOCKETS
def test_a_packet_arrives_as_it_was_sent(port: EthernetPort, sender: socket.socket) -> None:
    sent = packet(port.slot)._replace(dscp=26, ecn=1)
    sender.send(frame(sent))
    assert arrived(port) == sent._replace(parts=(bytes(sent.payload()),))
    assert arrived(port) is None


@NEEDS_PACKET_SOCKETS
def test_padding_behind_the_packet_is_left_away(port: EthernetPort, sender: socket.socket) -> None:
    sender.send(frame(packet(port.slot)) + b"padding")
    found = arrived(port)
    assert found is not None
    assert found.payload() == bytes(packet(port.slot).payload())


@NEEDS_PACKET_SOCKETS
@pytest.mark.parametrize(
    ("at", "value"),
    [(14, 0x40), (18, 0xFF), (19, 15), (20, 17)],
    ids=["version", "too long", "too short", "next header"],
)
def test_other_global_route_headers_are_counted(port: EthernetPort, sender: socket.socket, at: int, value: int) -> None:
    changed = bytearray(frame(packet(port.slot)))
    changed[at] = value
    sender.send(changed)
    sender.send(frame(packet(port.slot))[: 14 + 40 + 12])  # without a place for an ICRC
    assert arrived(port) is None
    assert port.counters == {"malformed": 2}


@NEEDS_PACKET_SOCKETS
def test_frames_for_others_do_not_reach_the_program(port: EthernetPort, sender: socket.socket) -> None:
    sender.send(frame(packet(port.slot, destination=OTHERS)))  # to another address
    sender.send(frame(packet(port.slot + 1)))  # to another process
    to_another_host = bytearray(frame(packet(port.slot)))
    to_another_host[:6] = b"\2\0\0\0\0\1"
    sender.send(to_another_host)
    assert not waits_in_kernel(port)
    sender.send(frame(packet(port.slot)))
    assert waits_in_kernel(port)


def waits_in_kernel(port: EthernetPort) -> bool:
    """Whether a frame waits at the socket, before any check of the program."""
    try:
        return bool(port._receiver.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@NEEDS_PACKET_SOCKETS
def test_the_nic_drops_what_was_changed_on_the_way(sender: socket.socket) -> None:
    with RdmaDevice(HERE.format(2), wire="rocev1") as device:
        end = device.create_qp(device.alloc_pd(), 2, (device.create_cq(1),) * 2)
        sent = bytearray(frame(packet(device.port.slot, number=end.qp_num & 0xFFFF)))
        sent[-1] ^= 1
        sender.send(sent)
        assert device.wait(lambda: device.nic.counters["rx_icrc_encapsulated"] == 1, PATIENCE_S)


@NEEDS_PACKET_SOCKETS
def test_a_changed_bit_that_the_icrc_covers_reaches_no_queue_pair(
    ends: Callable[..., DeviceEnd], sender: socket.socket
) -> None:
    victim = ends(HERE.format(2))
    attr = QpAttr(remote_address=OTHERS, rq_psn=7, path_mtu=256)
    victim.device.modify_qp(victim.qp, QpState.INIT, attr)
    victim.post_recv(victim.memory[:8])
    victim.device.modify_qp(victim.qp, QpState.RTR)
    sent = frame(packet(victim.port.slot, number=victim.qp.qp_num & 0xFFFF))
    may_change = {14: 0x0F, 15: 0xFF, 16: 0xFF, 17: 0xFF, 21: 0xFF, 58: 0xFF}
    for bit in range(8 * 14, 8 * len(sent)):
        if not may_change.get(bit // 8, 0) >> bit % 8 & 1:
            damaged = bytearray(sent)
            damaged[bit // 8] ^= 1 << bit % 8
            sender.send(damaged)
            while victim.device.progress():
                pass
    assert not victim.device.poll_cq(victim.cq)
    assert not victim.qp.counters
    sender.send(sent)
    assert victim.next().byte_len == 8
    assert victim.buffer[:8].tobytes() == b"12345678"


@NEEDS_PACKET_SOCKETS
def test_processes_of_one_address_get_their_own_requests() -> None:
    address = HERE.format(5)
    bystander = RdmaListener(RdmaDevice(address, wire="rocev1"), 7470)
    with bystander, RdmaListener(RdmaDevice(address, wire="rocev1"), 7471) as listener:
        requests = [bystander.get_request(), listener.get_request()]

        def serve() -> None:
            requests[1].wait(PATIENCE_S).accept(b"here")

        server = threading.Thread(target=serve)
        server.start()
        with RdmaConnector(RdmaDevice(address, wire="rocev1"), address, 7471) as connection:
            assert connection.private_data.rstrip(b"\0") == b"here"
            slots = [end.port.slot for end in (bystander.device, listener.device, connection.device)]
            assert slots == [0, 1, 2]
            assert connection.qp.qp_num >> 16 == 2
        server.join(PATIENCE_S)
        for device in (bystander.device, listener.device, connection.device):
            assert not device.nic.counters
        assert not requests[0].is_done


@NEEDS_PACKET_SOCKETS
def test_a_request_that_nobody_listens_for_is_refused_once() -> None:
    address = HERE.format(6)
    with RdmaDevice(address, wire="rocev1") as first, RdmaDevice(address, wire="rocev1") as second:
        managers = [Rendezvous(device)._manager for device in (first, second)]
        with pytest.raises(PeerError, match="nobody listens on this port"):
            RdmaConnector(RdmaDevice(address, wire="rocev1"), address, 7471).__enter__()
        assert [manager.counters["refused"] for manager in managers] == [1, 0]


@NEEDS_PACKET_SOCKETS
def test_a_service_has_one_process() -> None:
    first, second = EthernetPort(HERE.format(7)), EthernetPort(HERE.format(7))
    try:
        first.listen(7471)
        with pytest.raises(UsageError, match="found 7471, on which another process listens"):
            second.listen(7471)
        first.close()
        second.listen(7471)
    finally:
        first.close()
        second.close()


@NEEDS_PACKET_SOCKETS
def test_addresses_that_no_interface_has() -> None:
    with pytest.raises(UsageError, match=re.escape("found 203.0.113.9, wanted one of this machine")):
        EthernetPort("203.0.113.9")
    with pytest.raises(UsageError, match="wanted an IP address"):
        EthernetPort("localhost")


@NEEDS_PACKET_SOCKETS
def test_an_interface_that_is_no_ethernet(monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel = Interface(99, "tun0", 65534, b"", 1500)
    one = addresses()[0]._replace(interface=99, address=socket.inet_aton("198.51.100.1"), prefix_bits=24)
    monkeypatch.setattr(ethernet, "interfaces", lambda: [*interfaces(), tunnel])
    monkeypatch.setattr(ethernet, "addresses", lambda: [*addresses(), one])
    with pytest.raises(UsageError, match=re.escape("found 198.51.100.1 of tun0, wanted one of an Ethernet interface")):
        EthernetPort("198.51.100.1")


@NEEDS_PACKET_SOCKETS
def test_peers_behind_a_router(port: EthernetPort) -> None:
    far = socket.inet_aton("203.0.113.9")
    with pytest.raises(
        UsageError, match=re.escape("found 203.0.113.9, wanted one on the link of lo: RoCEv1 has no routers")
    ):
        port.path_mtu(far)
    port.send(packet(0, MINE, far))
    assert port.counters == {"send_refused": 1}
    assert port.last_error == "to 203.0.113.9: not on the link of lo"
    assert port.path_mtu(OTHERS) == 4096


def test_what_only_rocev2_has_is_refused() -> None:
    with pytest.raises(UsageError, match="checks_identification: found it for rocev1"):
        RdmaDevice(HERE.format(2), wire="rocev1", checks_identification=True)


PEER, MAC, OTHER_MAC = bytes((192, 0, 2, 7)), b"\2\0\0\0\0\7", b"\2\0\0\0\0\x66"


class Kernel:
    """The kernel's table of neighbours, its answer to a question, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table: dict[bytes, bytes] = {}
        self.answer: bytes | None = None
        self.asked = 0
        self.now_s = 0.0
        monkeypatch.setattr(neighbours_module, "neighbours", lambda _index: dict(self.table))
        monkeypatch.setattr(neighbours_module, "NeighbourWatch", lambda: self)
        link = Interface(1, "eth9", 1, b"\2\0\0\0\0\1", 1500)
        self.known = Neighbours(link, bytes((127, 0, 0, 1)), lambda: self.now_s)
        monkeypatch.setattr(self.known, "ask", self._take)

    def _take(self, _address: bytes) -> None:
        self.asked += 1

    def wait(self, timeout_s: float) -> bool:
        """News of a neighbour."""
        if self.answer is None:
            self.now_s += timeout_s
            return False
        self.table[PEER], self.answer = self.answer, None
        return True

    def close(self) -> None:
        pass


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_the_kernel_knows_a_neighbour(kernel: Kernel) -> None:
    kernel.table[PEER] = MAC
    assert kernel.known.mac_of(PEER) == MAC
    assert kernel.asked == 0


def test_an_unknown_neighbour_is_asked_for(kernel: Kernel) -> None:
    kernel.answer = MAC
    assert kernel.known.mac_of(PEER) == MAC
    assert (kernel.asked, kernel.now_s) == (1, 0.0)


def test_a_silent_neighbour_is_waited_for_once_a_second(kernel: Kernel) -> None:
    assert kernel.known.mac_of(PEER) is None
    assert (kernel.asked, kernel.now_s) == (1, 0.05)
    assert kernel.known.mac_of(PEER) is None
    assert kernel.asked == 1
    kernel.now_s += 1.0
    kernel.answer = MAC
    assert kernel.known.mac_of(PEER) == MAC


def test_a_neighbour_may_change_its_link_address(kernel: Kernel) -> None:
    kernel.table[PEER] = MAC
    kernel.known.mac_of(PEER)
    kernel.table[PEER] = OTHER_MAC
    assert kernel.known.mac_of(PEER) == MAC
    kernel.now_s += 30.0
    assert kernel.known.mac_of(PEER) == OTHER_MAC


def test_frames_teach_only_what_nobody_knows(kernel: Kernel) -> None:
    kernel.known.learn(PEER, MAC)
    assert kernel.known.mac_of(PEER) == MAC
    kernel.known.learn(PEER, OTHER_MAC)
    assert kernel.known.mac_of(PEER) == MAC
    kernel.now_s += 30.0  # the kernel knows nothing: what was learned stays
    assert kernel.known.mac_of(PEER) == MAC
    kernel.now_s += 1.0
    kernel.table[PEER] = OTHER_MAC
    assert kernel.known.mac_of(PEER) == OTHER_MAC


def test_the_number_of_known_neighbours_is_bounded(kernel: Kernel) -> None:
    for number in range(5000):
        kernel.known.learn(number.to_bytes(4), MAC)
    assert len(kernel.known._known) <= 4096
