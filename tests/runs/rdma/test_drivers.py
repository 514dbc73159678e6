"""Ports and devices: real sockets of this machine, threads, asyncio, and several processes behind one port."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers.rdma_devices import PATIENCE_S, SIZE, DeviceEnd, exchange, join

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import BTH, Datagram
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.drivers.loopback import LoopbackWire
from weftwork.rdma.drivers.raw import RawPort
from weftwork.rdma.drivers.steering import SharedUdpPort
from weftwork.rdma.drivers.udp import UdpPort, largest_path_mtu
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.turns import FairLock
from weftwork.rdma.verbs import WcStatus, WrOpcode
from weftwork.rdma.work import Work
from weftwork.wire.cm import CmDisconnectRequest
from weftwork.wire.ip import ECN_CE
from weftwork.wire.opcodes import Opcode
from weftwork.wire.udp import ROCE_V2_PORT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Addresses of this process alone, since tests run side by side and processes share a port.
HERE = "127.{}.{}.".format(*divmod(os.getpid() % 60_000, 250)) + "{}"


def is_raw_allowed() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP).close()
    except PermissionError:
        return False
    return True


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            return False
    return True


needs_raw = pytest.mark.skipif(not is_raw_allowed(), reason="raw sockets take root or CAP_NET_RAW")
needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@needs_ipv6
def test_an_ipv6_packet_without_a_udp_checksum_is_taken() -> None:
    """Linux drops it unless told otherwise; rxe and hardware send such packets (RFC 6935)."""
    port = SharedUdpPort("::1")
    packet = BTH.pack(Opcode.SEND_ONLY, 0, 0xFFFF, port.slot << 16 | 2, 0)  # for this process, of those on ::1
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as peer:
            peer.setsockopt(socket.IPPROTO_UDP, 101, 1)  # UDP_NO_CHECK6_TX in Linux include/uapi/linux/udp.h
            peer.sendto(packet, ("::1", ROCE_V2_PORT))
        poll = select.poll()
        poll.register(port.fileno(), select.POLLIN)
        assert poll.poll(PATIENCE_S * 1000)
        received = port.receive()
        assert received is not None
        assert bytes(received.payload()) == packet
    finally:
        port.close()


@pytest.fixture
def ends() -> Iterator[Callable[..., DeviceEnd]]:
    made: list[DeviceEnd] = []

    def make(address: str, **device: object) -> DeviceEnd:
        made.append(DeviceEnd(address, **device))
        return made[-1]

    yield make
    for end in made:
        end.device.close()


def move(a: DeviceEnd, b: DeviceEnd) -> None:
    """Let the second end move packets by a thread of its own."""
    b.device.__enter__()
    exchange(a, b)


def test_two_addresses_of_this_machine(ends: Callable[..., DeviceEnd]) -> None:
    move(*join(ends(HERE.format(2)), ends(HERE.format(3))))


def test_without_offload_each_packet_goes_by_itself(ends: Callable[..., DeviceEnd]) -> None:
    a, b = join(ends(HERE.format(2), offload=False), ends(HERE.format(3), offload=False), path_mtu=1024)
    assert not a.port.makes_trains
    move(a, b)


@needs_ipv6
def test_ipv6(ends: Callable[..., DeviceEnd]) -> None:
    move(*join(ends("::1"), ends("::1")))


def test_a_thread_at_each_end_and_threads_that_post(ends: Callable[..., DeviceEnd]) -> None:
    a, b = join(ends(HERE.format(2)), ends(HERE.format(3)))
    with a.device, b.device:
        exchange(a, b)
        rounds = 40

        def write(first: int) -> None:
            for at in range(first, first + rounds):
                a.post(WrOpcode.RDMA_WRITE, a.memory[at : at + 1], b, SIZE + at)

        a.buffer[: 4 * rounds] = np.arange(4 * rounds) % 251
        threads = [threading.Thread(target=write, args=(at * rounds,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert [a.next().status for _ in range(4 * rounds)] == [WcStatus.SUCCESS] * 4 * rounds
        assert (b.buffer[SIZE : SIZE + 4 * rounds] == a.buffer[: 4 * rounds]).all()


def test_a_wire_in_memory(ends: Callable[..., DeviceEnd]) -> None:
    wire = LoopbackWire()
    a, b = join(*(ends(text, port=wire.open(text)) for text in ("10.0.0.1", "10.0.0.2")))
    move(a, b)
    with pytest.raises(UsageError, match=r"10\.0\.0\.1, which another port of this wire has"):
        wire.open("10.0.0.1")
    b.device.close()
    a.post(WrOpcode.RDMA_WRITE, a.memory[:8], b)
    assert a.port.counters["send_refused"] == 1
    assert a.port.last_error == "to 10.0.0.2: no port of this wire"


class MarkingPort(UdpPort):
    """Sends every packet as if a switch had marked it."""

    def send(self, datagram: Datagram) -> None:
        super().send(datagram._replace(ecn=ECN_CE))


def test_marks_on_real_packets_bring_cnps_that_slow_the_sender(
    ends: Callable[..., DeviceEnd], monkeypatch: pytest.MonkeyPatch
) -> None:
    line_rate_bps = 10_000_000_000
    how = {"congestion_control": "dcqcn", "line_rate_bps": line_rate_bps}
    a = ends(HERE.format(2), port=MarkingPort(HERE.format(2)), **how)
    b = ends(HERE.format(3), **how)
    rate = a.qp.rate
    assert rate is not None
    rates_bps = [rate.rate_bps]
    take_cnp = rate.take_cnp

    def note(now_ps: int) -> None:
        take_cnp(now_ps)
        rates_bps.append(rate.rate_bps)

    monkeypatch.setattr(rate, "take_cnp", note)
    move(*join(a, b))
    for _ in range(100):  # how many marks one CNP answers depends on when the peer's thread runs
        if min(rates_bps) < line_rate_bps:
            break
        a.post(WrOpcode.RDMA_WRITE, a.memory, b)
        assert a.next().status is WcStatus.SUCCESS
    a.device.wait(lambda: a.qp.counters["rp_cnp_handled"] == b.qp.counters["np_cnp_sent"], PATIENCE_S)
    assert rates_bps[0] == line_rate_bps
    assert len(rates_bps) == 1 + a.qp.counters["rp_cnp_handled"] == 1 + b.qp.counters["np_cnp_sent"] > 1
    assert min(rates_bps) < line_rate_bps


def test_asyncio_moves_packets_of_both_ends(ends: Callable[..., DeviceEnd]) -> None:
    async def talk() -> None:
        a, b = join(ends(HERE.format(2)), ends(HERE.format(3)))
        async with a.device, b.device:
            a.buffer[:SIZE] = 7
            done: Work[WcStatus] = Work(a.device)
            a.device.on_completion(a.cq, lambda: done.succeed(a.cq.poll()[0].status))
            a.post(WrOpcode.RDMA_WRITE, a.memory[:SIZE], b)
            assert await asyncio.wait_for(done, PATIENCE_S) is WcStatus.SUCCESS
            assert (b.buffer[:SIZE] == 7).all()
            with pytest.raises(UsageError, match="wanted await"):
                a.device.wait_cq(a.cq)

    asyncio.run(talk())


def test_processes_share_a_port_by_the_numbers_of_their_queue_pairs(ends: Callable[..., DeviceEnd]) -> None:
    first, second, third = (ends(HERE.format(4)) for _ in range(3))
    assert [end.port.slot for end in (first, second, third)] == [0, 1, 2]
    assert [end.qp.qp_num >> 16 for end in (first, second, third)] == [0, 1, 2]
    peer = ends(HERE.format(5))
    move(*join(peer, third))
    assert not first.port.counters
    assert not second.port.counters


@pytest.mark.parametrize("wires", [("rocev2", "rocev2"), ("rocev2-udp", "rocev2-udp"), ("rocev2", "rocev2-udp")])
def test_processes_of_a_user_hand_packets_over_where_their_wire_does(
    wires: tuple[str, str], ends: Callable[..., DeviceEnd]
) -> None:
    a, b = (ends(HERE.format(number), wire=wire) for number, wire in zip((6, 7), wires, strict=True))
    move(*join(a, b))
    for end, wire in zip((a, b), wires, strict=True):
        assert (end.port.counters["by_line"] > 0) == (wire == "rocev2")


def test_what_comes_to_the_wrong_process_is_handed_on(ends: Callable[..., DeviceEnd]) -> None:
    first, second, third = (ends(HERE.format(4)) for _ in range(3))
    first.device.close()  # the system moves the socket of the third process to the place of the first
    late = ends(HERE.format(4))
    assert late.port.slot == 0
    third.device.__enter__()
    second.device.__enter__()
    peer = ends(HERE.format(5), wire="rocev2-udp")
    move(*join(peer, late))
    assert third.port.counters["handed_on"] > 0


def test_a_service_belongs_to_one_process(ends: Callable[..., DeviceEnd]) -> None:
    first, second = ends(HERE.format(4)), ends(HERE.format(4))
    first.port.listen(4444)
    with pytest.raises(UsageError, match="4444, on which another process listens"):
        second.port.listen(4444)


def test_a_datagram_that_is_handed_on_comes_behind_those_that_were_sent_before(
    ends: Callable[..., DeviceEnd],
) -> None:
    first, second = ends(HERE.format(4)).port, ends(HERE.format(4)).port
    far = ends(HERE.format(5), wire="rocev2-udp").port
    assert isinstance(first, SharedUdpPort)
    assert isinstance(second, SharedUdpPort)
    assert isinstance(far, SharedUdpPort)
    close = BTH.pack(Opcode.UD_SEND_ONLY, 0, 0xFFFF, 1, 0) + bytes(24) + CmDisconnectRequest.ATTRIBUTE.to_bytes(2)
    close += bytes(10) + bytes([second.slot]) + bytes(20)
    ack = BTH.pack(Opcode.ACKNOWLEDGE, 0, 0xFFFF, second.slot << 16 | 5, 0)
    for sender, payload in ((far, ack), (first, close)):
        sender.send(Datagram(sender.address, first.address, 50_000, (payload,)))
    found = [second.receive() for _ in range(3)]
    assert [bytes(one.payload()) for one in found if one is not None] == [ack, close]


def test_a_listener_may_listen_again_in_its_process(ends: Callable[..., DeviceEnd]) -> None:
    port = ends(HERE.format(4)).port
    for _ in range(2):
        port.listen(4444)


def test_a_forked_process_leaves_devices_to_its_parent(ends: Callable[..., DeviceEnd]) -> None:
    end = ends(HERE.format(4))
    ready, release = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:  # a process with copies of all sockets, which reads none of them
        os.write(ready[1], b"closed" if end.device.is_closed else b"open")
        os.read(release[0], 1)
        os._exit(0)
    try:
        assert os.read(ready[0], 6) == b"closed"
        end.device.close()
        # with a socket of the child the system would still count three, and give slot 1 to the second
        a, b = (ends(HERE.format(4), wire="rocev2-udp") for _ in range(2))
        assert (a.port.slot, b.port.slot) == (0, 1)
        move(*join(a, b))
        assert a.port.counters["handed_on"] == b.port.counters["handed_on"] == 0
    finally:
        os.write(release[1], b"x")
        os.waitpid(child, 0)
        for descriptor in (*ready, *release):
            os.close(descriptor)


def raw_packet(source: str, to: str, source_port: int, payload: bytes, identification: int) -> bytes:
    """An IPv4 packet whose checksum the system fills in."""
    udp = struct.pack(">HHHH", source_port, ROCE_V2_PORT, 8 + len(payload), 0) + payload
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), identification, 0x4000, 64, 17, 0) + addresses + udp


@needs_raw
def test_a_raw_port_sees_what_a_udp_socket_hides(ends: Callable[..., DeviceEnd]) -> None:
    a, raw = join(ends(HERE.format(2), offload=False), ends(HERE.format(3), checks_identification=True))
    assert isinstance(raw.port, RawPort)
    move(a, raw)
    udp = ends(HERE.format(4))
    forger = RdmaNic(socket.inet_aton(HERE.format(6)))  # of an address that no device has
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as wire:
        for victim in (raw, udp):
            flow = forger.flow(victim.port.address, 50_000, 0)
            header = BTH.pack(Opcode.SEND_ONLY, 0, 0xFFFF, victim.qp.qp_num, 0)
            payload = bytes(flow.close(header).payload())
            text = socket.inet_ntoa(victim.port.address)
            for identification in (0, 5):
                wire.sendto(raw_packet(HERE.format(6), text, 50_000, payload, identification), (text, 0))
            seen = victim.device.nic.counters
            victim.device.wait(lambda end=victim: (end.qp.counters + end.device.nic.counters).total() >= 2, PATIENCE_S)
            # The one with 0 is right and comes from a stranger. Of the other the raw port alone knows that it is wrong.
            assert seen["rx_icrc_encapsulated"] == (1 if victim is raw else 0)
            assert victim.qp.counters["stranger"] + victim.qp.counters["not_accepted"] == (1 if victim is raw else 2)


@needs_raw
def test_a_raw_port_is_for_ipv4() -> None:
    with pytest.raises(UsageError, match="wanted IPv4"):
        RawPort("::1")


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match=r"192\.0\.2\.1, wanted one of this machine"):
        UdpPort("192.0.2.1")


def test_a_port_that_another_program_has_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((HERE.format(9), ROCE_V2_PORT))
        with pytest.raises(UsageError, match="whose UDP port 4791 another program has"):
            SharedUdpPort(HERE.format(9))


def test_the_path_mtu_is_that_of_the_way() -> None:
    assert largest_path_mtu("127.0.0.1", "127.0.0.2") == 4096
    with pytest.raises(UsageError, match=r"203\.0\.113\.1, to which 127\.0\.0\.1 has no way"):
        largest_path_mtu("127.0.0.1", "203.0.113.1")


def test_a_peer_that_is_not_there_is_told(ends: Callable[..., DeviceEnd]) -> None:
    a, b = join(ends(HERE.format(2)), ends(HERE.format(3)), timeout=1, retry_cnt=2)
    b.device.close()
    a.post(WrOpcode.RDMA_WRITE, a.memory[:8], b)
    assert a.next().status is WcStatus.RETRY_EXC_ERR


def test_a_closed_device_takes_no_work(ends: Callable[..., DeviceEnd]) -> None:
    a, b = join(ends(HERE.format(2)), ends(HERE.format(3)))
    a.device.close()
    a.device.close()
    assert not a.mr.is_pinned
    with pytest.raises(UsageError, match="closed"):
        a.post(WrOpcode.RDMA_WRITE, a.memory[:8], b)
    with pytest.raises(UsageError, match="closed"), a.device:
        pass


def test_work_that_takes_longer_than_the_wait_goes_on() -> None:
    with RdmaDevice(HERE.format(2)) as device:
        work: Work[int] = Work(device)
        with pytest.raises(TimeoutError, match="not done after 0"):
            work.wait(0)
        with pytest.raises(UsageError, match="on its way"):
            work.result()
        work.succeed(3)
        work.fail(UsageError("late"))
        assert work.wait() == 3


def test_what_the_system_refuses_is_lost_and_told() -> None:
    port = UdpPort(HERE.format(2))
    try:
        payload = bytes(1000)
        port.send(Datagram(port.address, port.address, 50_000, (payload,), segment_bytes=2))  # more than 64 segments
        assert port.counters["send_refused"] == 1
        assert port.last_error.endswith("Invalid argument")
    finally:
        port.close()


def test_sockets_that_send_are_bounded() -> None:
    port = UdpPort(HERE.format(2))
    try:
        before = len(list(Path("/proc/self/fd").iterdir()))
        for source_port in range(50_000, 50_600):
            port.send(Datagram(port.address, port.address, source_port, (bytes(16),)))
        assert len(list(Path("/proc/self/fd").iterdir())) - before <= 256
        assert not port.counters
    finally:
        port.close()


def test_an_address_is_no_name() -> None:
    with pytest.raises(UsageError, match="found 'localhost', wanted an IP address"):
        RdmaDevice("localhost")


@needs_ipv6
def test_two_ways_to_write_an_address_share_its_slots(ends: Callable[..., DeviceEnd]) -> None:
    first, second = ends("::1"), ends("0:0:0:0:0:0:0:1")
    assert first.port.slot != second.port.slot


def test_a_signal_while_the_lock_is_waited_for_blocks_nobody() -> None:
    class InterruptedByTestError(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise InterruptedByTestError

    lock = FairLock()
    inside = threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            end_s = time.monotonic() + PATIENCE_S
            while not lock.waiting and time.monotonic() < end_s:
                pass
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            while lock.waiting and time.monotonic() < end_s:
                pass

    before = signal.signal(signal.SIGUSR1, interrupt)
    thread = threading.Thread(target=hold)
    try:
        thread.start()
        assert inside.wait(PATIENCE_S)
        with pytest.raises(InterruptedByTestError), lock:
            pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    thread.join(PATIENCE_S)
    with lock:
        assert lock.depth == 1


def test_the_lock_is_given_in_order() -> None:
    lock = FairLock()
    order: list[int] = []
    inside = threading.Event()

    def enter(number: int) -> None:
        with lock, lock:
            order.append(number)
            inside.set()

    with lock:
        threads = []
        for number in range(5):
            threads.append(threading.Thread(target=enter, args=(number,)))
            threads[-1].start()
            end_s = time.monotonic() + PATIENCE_S
            while len(lock.waiting) <= number and time.monotonic() < end_s:
                pass
    for thread in threads:
        thread.join(PATIENCE_S)
    assert order == [0, 1, 2, 3, 4]
