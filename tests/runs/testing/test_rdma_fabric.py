"""Software NICs on simulated fabrics: exact times, marks, drops, pauses, and messages that arrive whole."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from helpers.rdma_ends import MIB, Connection, RdmaEnd, connect, ends_of
from helpers.rdma_wires import RecordingNic, recording_nics
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, sends, star, wired

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS, serialisation_ps
from weftwork.base.errors import UsageError
from weftwork.engine.capture import CaptureRequest
from weftwork.engine.instants import Fault
from weftwork.engine.reference import simulation as reference
from weftwork.engine.reference.packet import PacketKind
from weftwork.engine.reference.tap import Tap
from weftwork.policies.load import load
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import AddressHandle, QpAttr, QpState, QpType, SendWr, WcStatus, WrOpcode
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport
from weftwork.testing.rdma_fabric import RdmaFabric
from weftwork.wire.ip import ECN_NOT_ECT

W = WrOpcode
WITHOUT_PFC = Transport(lossless_priorities=())
PREAMBLE_AND_GAP = 20
# leaves 4 and 5 with two hosts each, spines 6 and 7
LEAF_SPINE = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (4, 7), (5, 6), (5, 7)]


def fabric_of(shape: Fabric, **more: Any) -> RdmaFabric:
    return RdmaFabric(packet_input_of(shape, sends(len(shape.hosts), []), **more))


def incast(fabric: RdmaFabric, senders: int, size_bytes: int, **attr: Any) -> list[Connection]:
    """Connections of hosts that each WRITE into their part of the memory of the last host, all posted now."""
    *sources, target = ends_of([fabric.add_nic(host) for host in range(senders + 1)], senders * size_bytes)
    connections = [connect(source, target, **attr) for source in sources]
    for number, connection in enumerate(connections):
        connection.post(W.RDMA_WRITE, 0, size_bytes, number * size_bytes)
    return connections


def arrived_whole(connections: list[Connection], size_bytes: int) -> bool:
    target = connections[0].peer.buffer
    return all(
        target[i * size_bytes : (i + 1) * size_bytes] == connection.end.buffer[:size_bytes]
        for i, connection in enumerate(connections)
    )


def all_done(connections: list[Connection]) -> bool:
    return all(connection.are_done(1) for connection in connections)


def recording(fabric: RdmaFabric, hosts: int, seed: int = 1, **more: Any) -> list[RecordingNic]:
    """NICs 10.1.0.0 and so on, in place of those that the fabric makes."""
    nics = recording_nics([bytes((10, 1, 0, host)) for host in range(hosts)], seed, **more)
    for host, nic in enumerate(nics):
        fabric.attach(host, nic)
    return nics


def frame_ps(payload_bytes: int, extended_bytes: int, rate_bps: int) -> int:
    """Ethernet 14 + 4, IPv4 20, UDP 8, BTH 12, ICRC 4, preamble and gap 20."""
    return serialisation_ps(62 + extended_bytes + payload_bytes + PREAMBLE_AND_GAP, rate_bps)


@pytest.mark.parametrize("mtu_bytes", [1024, 4096])
@pytest.mark.parametrize(("links", "hosts", "target", "hops"), [([(0, 2), (1, 2)], 2, 1, 2), (LEAF_SPINE, 4, 3, 4)])
@pytest.mark.parametrize("rate_bps", [100_000_000_000, 400_000_000_000])
def test_a_lone_write_takes_the_time_of_the_closed_form(
    links: list[tuple[int, int]], hosts: int, target: int, hops: int, mtu_bytes: int, rate_bps: int
) -> None:
    latency_ps = 300_000
    shape = wired(
        links, hosts=hosts, switch=Switch(forwarding_latency_ps=latency_ps), rates_bps=[rate_bps] * len(links)
    )
    fabric = fabric_of(shape)
    limits = NicLimits(max_inflight=MIB // mtu_bytes)  # a window that never closes
    nics = [fabric.add_nic(0, limits=limits), fabric.add_nic(target)]
    write = connect(*ends_of(nics), path_mtu=mtu_bytes)
    write.post(W.RDMA_WRITE, 0, MIB)
    assert fabric.wait_for(lambda: write.are_done(1))
    assert write.peer.buffer == write.end.buffer
    first_ps, other_ps, ack_ps = (
        frame_ps(mtu_bytes, 16, rate_bps),
        frame_ps(mtu_bytes, 0, rate_bps),
        frame_ps(0, 4, rate_bps),
    )
    one_way_ps = hops * DELAY_PS + (hops - 1) * latency_ps
    # The first frame is the longest by its RETH, so at each hop the others follow it without a gap.
    there_ps = hops * first_ps + (MIB // mtu_bytes - 1) * other_ps + one_way_ps
    assert fabric.now_ps == there_ps + hops * ack_ps + one_way_ps


def test_the_nic_of_the_engine_delivers_at_the_same_picosecond() -> None:
    shape = wired(LEAF_SPINE, hosts=4, switch=Switch())
    native = reference.run(packet_input_of(shape, sends(4, [Message(source=0, destination=3, size_bytes=MIB)])))
    fabric = fabric_of(shape)
    write = connect(*ends_of([fabric.add_nic(0), fabric.add_nic(3)]))
    write.post(W.RDMA_WRITE, 0, MIB)
    assert fabric.wait_for(lambda: write.peer.buffer[-1024:] == write.end.buffer[-1024:])
    assert fabric.now_ps == native.messages["delivered_at_ps"][0]


def test_a_read_goes_there_and_comes_back() -> None:
    fabric = fabric_of(star(2))
    read = connect(*ends_of([fabric.add_nic(0), fabric.add_nic(1)]))
    read.post(W.RDMA_READ, 0, 4096, 8192)
    assert fabric.wait_for(lambda: read.are_done(1))
    assert read.end.buffer[:4096] == read.peer.buffer[8192 : 8192 + 4096]
    request_ps, response_ps = frame_ps(0, 16, 400_000_000_000), frame_ps(4096, 4, 400_000_000_000)
    assert fabric.now_ps == 2 * request_ps + 2 * response_ps + 4 * DELAY_PS


def test_a_sender_takes_packets_from_the_core_as_its_line_is_free() -> None:
    fabric = fabric_of(star(2))
    nics = recording(fabric, 2)
    write = connect(*ends_of(nics))
    write.post(W.RDMA_WRITE, 0, MIB)
    assert fabric.wait_for(lambda: write.are_done(1))
    instants = [at_ps for at_ps, _ in nics[0].handed_out]
    gaps = [after - before for before, after in itertools.pairwise(instants)]
    assert gaps[0] == (4096 + 62 + 16 + PREAMBLE_AND_GAP) * BYTE_PS
    assert set(gaps[1:]) == {(4096 + 62 + PREAMBLE_AND_GAP) * BYTE_PS}


def test_two_senders_share_a_port_and_dcqcn_lowers_their_rates() -> None:
    ecn = Ecn(kmin_bytes=20_000, kmax_bytes=80_000)
    fabric = fabric_of(star(3, switch=Switch(ecn=ecn)), congestion_control="dcqcn")
    size_bytes = 4 * MIB
    connections = incast(fabric, 2, size_bytes)
    port = fabric.simulation.ports[5]  # of the switch, towards the receiver
    port.tap = Tap(CaptureRequest(ports=(5,), packet_limit=0), fabric.simulation.clock)
    lowest = [float("inf")] * 2

    def are_done() -> bool:
        for i, connection in enumerate(connections):
            lowest[i] = min(lowest[i], connection.qp.rate.rate_bps if connection.qp.rate is not None else 0)
        return all_done(connections)

    assert fabric.wait_for(are_done)
    assert arrived_whole(connections, size_bytes)
    assert fabric.total("marks") > 0
    assert fabric.total("drops") == 0
    target = connections[0].peer_qp, connections[1].peer_qp
    for qp, connection in zip(target, connections, strict=True):
        assert connection.qp.counters["rp_cnp_handled"] == qp.counters["np_cnp_sent"] > 0
    assert max(lowest) < 200_000_000_000  # each had the line's 400 Gb/s at first, and has given way to the other
    # What the port towards the receiver sent is all data, each byte once, and headers.
    packets = 2 * (size_bytes // 4096)
    assert fabric.simulation.ports[5].counts["bytes"] == 2 * size_bytes + packets * 62 + 2 * 16
    assert {row[3] for row in port.tap.rows} == {fabric.data_class}
    together_ps = serialisation_ps(2 * size_bytes, 400_000_000_000)
    assert fabric.now_ps > together_ps


def test_an_incast_without_control_takes_the_time_of_the_closed_form() -> None:
    fabric = fabric_of(star(4))
    connections = incast(fabric, 3, MIB)
    assert fabric.wait_for(lambda: all_done(connections))
    assert arrived_whole(connections, MIB)
    rate_bps = 400_000_000_000
    first_ps, other_ps = frame_ps(4096, 16, rate_bps), frame_ps(4096, 0, rate_bps)
    # From the first frame on, the port towards the receiver is never idle.
    queued_ps = first_ps + DELAY_PS + 3 * (first_ps + (MIB // 4096 - 1) * other_ps) + DELAY_PS
    assert fabric.now_ps == queued_ps + 2 * frame_ps(0, 4, rate_bps) + 2 * DELAY_PS


def test_an_incast_goes_as_by_the_nics_of_the_engine() -> None:
    """Not to the bit: a mark is drawn by the identity of its packet, and the two have other identities."""
    size_bytes = 4 * MIB
    shape = star(3, switch=Switch(ecn=Ecn(kmin_bytes=100_000, kmax_bytes=400_000)))
    messages = [Message(source=host, destination=2, size_bytes=size_bytes) for host in (0, 1)]
    native = reference.run(packet_input_of(shape, sends(3, messages), congestion_control="dcqcn"))
    fabric = fabric_of(shape, congestion_control="dcqcn")
    connections = incast(fabric, 2, size_bytes)
    assert fabric.wait_for(lambda: all_done(connections))
    assert fabric.now_ps == pytest.approx(native.messages["acked_at_ps"].max(), rel=0.03)
    assert fabric.total("marks") == pytest.approx(native.ports["marks"].sum(), rel=0.2)


def test_cnps_travel_in_the_control_class_and_answers_with_the_data() -> None:
    fabric = fabric_of(star(3, switch=Switch(ecn=Ecn(kmin_bytes=0, kmax_bytes=1))), congestion_control="dcqcn")
    port = fabric.simulation.ports[2]
    port.tap = Tap(CaptureRequest(ports=(2,), packet_limit=0), fabric.simulation.clock)
    connections = incast(fabric, 2, MIB)
    assert fabric.wait_for(lambda: all_done(connections))
    classes = {(row[2], row[3]) for row in port.tap.rows}
    assert classes == {(PacketKind.CNP, fabric.control_class), (PacketKind.DATA, fabric.data_class)}
    assert fabric.control_class != fabric.data_class


def test_a_full_buffer_drops_and_go_back_n_delivers_all() -> None:
    small = Switch(buffer_bytes=200_000, reserve_bytes=0)
    rates_bps = [rate * 1_000_000_000 for rate in (400, 300, 250, 400)]  # unlike, so that none always comes second
    fabric = fabric_of(star(4, switch=small, rates_bps=rates_bps), transport=WITHOUT_PFC)
    connections = incast(fabric, 3, MIB, timeout=6)
    assert fabric.wait_for(lambda: all_done(connections), SECOND_PS)
    assert arrived_whole(connections, MIB)
    assert fabric.total("drops") > 0
    assert fabric.total("pauses_sent") == 0
    assert sum(connection.qp.counters["packet_seq_err"] for connection in connections) > 0
    assert fabric.simulation.ports[7].counts["frames"] > 3 * MIB // 4096  # some came twice


def test_pauses_keep_a_small_buffer_from_dropping() -> None:
    small = Switch(buffer_bytes=1_000_000, reserve_bytes=0, headroom_bytes=150_000)
    fabric = fabric_of(star(4, switch=small))
    nics = recording(fabric, 4)
    *sources, target = ends_of(nics, 3 * MIB)
    connections = [connect(source, target, timeout=6) for source in sources]
    for number, connection in enumerate(connections):
        connection.post(W.RDMA_WRITE, 0, MIB, number * MIB)
    assert fabric.wait_for(lambda: all_done(connections), SECOND_PS)
    assert arrived_whole(connections, MIB)
    assert fabric.total("drops") == 0
    assert fabric.total("pauses_sent") > 0
    assert all(connection.qp.counters.total() == 0 for connection in connections)
    assert fabric.simulation.ports[7].counts["frames"] == 3 * MIB // 4096
    # A paused NIC takes nothing from the core: at most the packet that waits for the end of the pause.
    packet_ps = (4096 + 62 + PREAMBLE_AND_GAP) * BYTE_PS
    for nic in nics[:3]:
        instants = [at_ps for at_ps, _ in nic.handed_out]
        assert max(b - a for a, b in itertools.pairwise(instants)) > 10 * packet_ps


def test_lost_packets_are_sent_again() -> None:
    fabric = fabric_of(star(2, loss=0.02))
    connections = incast(fabric, 1, MIB, timeout=6)
    assert fabric.wait_for(lambda: all_done(connections), SECOND_PS)
    assert arrived_whole(connections, MIB)
    assert fabric.simulation.counters["drop_link_loss"] > 0


def test_a_link_that_comes_back_carries_the_rest() -> None:
    faults = (Fault(at_ps=10 * US_PS, event="down", link=0), Fault(at_ps=MS_PS, event="up", link=0))
    fabric = fabric_of(star(2), faults=faults)
    connections = incast(fabric, 1, MIB, timeout=6)  # 262 us: three times before the link is back
    assert not fabric.wait_for(lambda: all_done(connections), MS_PS)
    assert fabric.now_ps == MS_PS
    assert connections[0].qp.counters["local_ack_timeout_err"] == 3
    assert fabric.wait_for(lambda: all_done(connections), SECOND_PS)
    assert arrived_whole(connections, MIB)


def test_a_link_that_stays_down_ends_the_connection() -> None:
    fabric = fabric_of(star(2), faults=(Fault(at_ps=10 * US_PS, event="down", link=0),))
    (write,) = incast(fabric, 1, MIB, timeout=6, retry_cnt=2)
    assert fabric.wait_for(lambda: len(write.end.cq) > 0, SECOND_PS)
    assert [wc.status for wc in write.end.cq.poll()] == [WcStatus.RETRY_EXC_ERR]
    assert 3 * 262_144_000 < fabric.now_ps < 3 * 262_144_000 + 50 * US_PS  # 4.096 us x 2^6 after the last answer


def _history(seed: int) -> tuple[list[list[tuple[int, bytes]]], int, list[tuple[int, ...]]]:
    """All that three NICs handed out, when it ended, and the counters of every port."""
    shape = star(3, switch=Switch(ecn=Ecn(kmin_bytes=10_000, kmax_bytes=400_000)), loss=0.001)
    control = load("congestion_control", "dcqcn")
    fabric = fabric_of(shape, congestion_control=control, seed=seed)
    nics = recording(fabric, 3, congestion_control=control, line_rate_bps=400_000_000_000)
    buffers = _history_buffers
    *sources, target = [RdmaEnd(nic, buffer) for nic, buffer in zip(nics, buffers, strict=True)]
    connections = [connect(source, target, timeout=6) for source in sources]
    for number, connection in enumerate(connections):
        connection.post(W.RDMA_WRITE, 0, MIB, number * MIB)
    assert fabric.wait_for(lambda: all_done(connections), SECOND_PS)
    counts = [tuple(port.counts.values()) for port in fabric.simulation.ports]
    return [nic.handed_out for nic in nics], fabric.now_ps, counts


_history_buffers = [bytearray(2 * MIB) for _ in range(3)]  # at one place in every run: addresses are in the packets


def test_the_same_seed_gives_the_same_bits() -> None:
    once, again, other = _history(7), _history(7), _history(8)
    assert once == again
    assert once[1:] != other[1:]


def test_the_default_keys_follow_from_the_seed() -> None:
    shape = star(2)
    first, again, other = (fabric_of(shape, seed=seed).add_nic(0) for seed in (1, 1, 2))
    psn = first.random_psn()
    assert psn == again.random_psn() != other.random_psn()
    assert first.address == bytes((10, 0, 0, 0))


def test_a_datagram_to_nobody_is_counted() -> None:
    fabric = fabric_of(star(2))
    sender = RdmaEnd(fabric.add_nic(0), bytearray(64))
    qp = sender.nic.create_qp(sender.pd, QpType.UD, (sender.cq, sender.cq))
    qp.modify(QpState.INIT, QpAttr())
    qp.modify(QpState.RTR)
    qp.modify(QpState.RTS)
    handle = AddressHandle(address=bytes((10, 9, 9, 9)))
    qp.post_send(SendWr(wr_id=1, opcode=W.SEND, sg_list=(sender.sge(0, 8),), ah=handle, remote_qpn=2))
    fabric.run_until(MS_PS)
    assert fabric.now_ps == MS_PS
    assert fabric.simulation.counters["drop_no_route"] == 1
    assert fabric.total("frames") == 0


def test_what_is_not_ecn_capable_is_not_marked() -> None:
    class Plain(RecordingNic):
        def datagrams_to_send(self, now_ps: int, most: int = 256) -> list[Datagram]:
            return [one._replace(ecn=ECN_NOT_ECT) for one in super().datagrams_to_send(now_ps, most)]

    marks = []
    for kind in (RecordingNic, Plain):
        fabric = fabric_of(star(3, switch=Switch(ecn=Ecn(kmin_bytes=0, kmax_bytes=1))))
        nics = [kind(bytes((10, 1, 0, host)), random=random.Random(host)) for host in range(3)]
        for host, nic in enumerate(nics):
            fabric.attach(host, nic)
        *sources, target = ends_of(nics)
        connections = [connect(source, target) for source in sources]
        for connection in connections:
            connection.post(W.RDMA_WRITE, 0, 16_384)
        assert fabric.wait_for(lambda connections=connections: all_done(connections))
        marks.append(fabric.total("marks"))
    assert marks[0] > 0 == marks[1]


def test_frames_over_ipv6_are_twenty_bytes_longer() -> None:
    fabric = fabric_of(star(2))
    nics = [RdmaNic(b"\xfd" + bytes(14) + bytes((host,)), random=random.Random(host)) for host in (1, 2)]
    for host, nic in enumerate(nics):
        fabric.attach(host, nic)
    write = connect(*ends_of(nics))
    write.post(W.RDMA_WRITE, 0, 4096)
    assert fabric.wait_for(lambda: write.are_done(1))
    assert [port.counts["bytes"] for port in fabric.simulation.ports[:2]] == [4096 + 62 + 16 + 20, 62 + 4 + 20]


def test_what_has_no_meaning_here_is_refused() -> None:
    fabric = fabric_of(star(2))
    nic = fabric.add_nic(0)
    with pytest.raises(UsageError, match="a NIC on it already"):
        fabric.add_nic(0)
    with pytest.raises(UsageError, match="0a000000 at port 0"):
        fabric.attach(1, RdmaNic(nic.address))
    with pytest.raises(UsageError, match="host: found 2, wanted 0 to 1"):
        fabric.add_nic(2)
    with pytest.raises(UsageError, match="nic_port: found 1, wanted 0 to 0"):
        fabric.add_nic(1, nic_port=1)
    with pytest.raises(UsageError, match="marks"):
        fabric.total("sheep")
    with pytest.raises(UsageError, match="telemetry"):
        fabric_of(star(2, switch=Switch(telemetry=True)), congestion_control="hpcc")
    lone = fabric_of(star(2), congestion_control="swift").add_nic(0)
    cq = lone.create_cq(1)
    with pytest.raises(UsageError, match="swift, which needs"):
        lone.create_qp(lone.alloc_pd(), QpType.RC, (cq, cq))
