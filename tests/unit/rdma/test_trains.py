"""Trains: what is made together is what would have been made packet by packet, and is taken as such."""

import random

import pytest
from helpers.rdma_pair import Pair

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.trains import most_segments
from weftwork.rdma.verbs import WcStatus, WrOpcode
from weftwork.wire.extended import Reth
from weftwork.wire.opcodes import SHAPES, Opcode

SIZE = 100_000
OPCODES = [WrOpcode.SEND, WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ, WrOpcode.RDMA_WRITE_WITH_IMM]


def talk(opcode: WrOpcode, *, trains: bool, ipv6: bool = False, cuts: float = 0.0) -> Pair:
    pair = Pair(path_mtu=1024, ipv6=ipv6, nic={"makes_trains": trains})
    pair.cuts = cuts
    for end in (0, 1):
        pair.buffers[end][:] = random.Random(end).randbytes(len(pair.buffers[end]))
    pair.post_recv(1, 7, 0, SIZE)
    pair.post(0, opcode, sg_list=(pair.sge(0, 0, SIZE),), **pair.remote(0, 0))
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.SUCCESS]
    assert pair.buffers[0][:SIZE] == pair.buffers[1][:SIZE]
    return pair


def data(pair: Pair) -> list[tuple[bytes, bytes]]:
    """Source and bytes of all packets but ACKs, without the request for an ACK addresses and the ICRC."""
    found = []
    for datagram in pair.sent:
        for packet in datagram.packets():
            payload = bytearray(packet.payload())
            payload[8] &= 0x7F
            if Reth in SHAPES[payload[0]].headers:
                payload[12:20] = bytes(8)  # the address, which the system gives
            if payload[0] != Opcode.ACKNOWLEDGE:
                found.append((packet.source, bytes(payload[:-4])))
    return found


@pytest.mark.parametrize("opcode", OPCODES)
@pytest.mark.parametrize("ipv6", [False, True])
def test_a_train_holds_the_packets_that_would_go_one_by_one(opcode: WrOpcode, *, ipv6: bool) -> None:
    together, single = talk(opcode, trains=True, ipv6=ipv6), talk(opcode, trains=False, ipv6=ipv6)
    assert len(together.sent) < len(single.sent) / 5
    assert data(together) == data(single)


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_train_that_is_cut_on_its_way_is_taken_by_packets(opcode: WrOpcode) -> None:
    pair = talk(opcode, trains=True, cuts=1.0)
    assert not any(datagram.segment_bytes for datagram in pair.sent)
    assert {datagram.identification for datagram in pair.sent} >= {0, 1, 10}
    assert not pair.nics[0].counters
    assert not pair.nics[1].counters


def test_a_hidden_identification_is_found() -> None:
    pair = talk(WrOpcode.RDMA_WRITE, trains=True)
    train = next(datagram for datagram in pair.sent if datagram.segment_bytes)
    packet = train.packets()[9]
    assert packet.identification == 9
    nic = pair.nics[1]
    nic.receive(packet._replace(identification=None), pair.now_ps)
    assert nic.counters["rx_icrc_encapsulated"] == 0
    nic.receive(packet._replace(identification=8), pair.now_ps)
    assert nic.counters["rx_icrc_encapsulated"] == 1
    changed = bytearray(packet.payload())
    changed[40] ^= 1
    nic.receive(packet._replace(parts=(bytes(changed),), identification=None), pair.now_ps)
    assert nic.counters["rx_icrc_encapsulated"] == 2


def test_a_changed_packet_in_a_train_stops_there_and_is_sent_again() -> None:
    pair = Pair(path_mtu=1024, nic={"makes_trains": True})
    pair.cuts = 0.0
    pair.buffers[0][:] = random.Random(3).randbytes(len(pair.buffers[0]))
    carry, done = pair.carry, []

    def change_one(to: int, datagram: Datagram) -> None:
        if datagram.segment_bytes and not done:
            done.append(1)
            payload = bytearray(datagram.payload())
            payload[5 * datagram.segment_bytes + 100] ^= 4
            datagram = datagram._replace(parts=(bytes(payload),))
        carry(to, datagram)

    pair.carry = change_one  # type: ignore[method-assign]
    pair.post(0, WrOpcode.RDMA_WRITE, sg_list=(pair.sge(0, 0, SIZE),), **pair.remote(0, 0))
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.SUCCESS]
    assert pair.buffers[0][:SIZE] == pair.buffers[1][:SIZE]
    assert pair.nics[1].counters["rx_icrc_encapsulated"] == 1
    assert pair.qps[0].counters["packet_seq_err"] == 1


def test_a_train_fits_one_datagram() -> None:
    for mtu in (256, 512, 1024, 2048, 4096):
        assert 1 < most_segments(mtu) <= 64
        assert most_segments(mtu) * (mtu + 16) <= 65_507
