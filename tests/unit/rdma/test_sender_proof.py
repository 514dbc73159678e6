"""The source port of a peer on this machine: who names it, and what becomes of packets from other ports."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from helpers.rdma_pair import Pair

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.verbs import QpState, QpType, WcStatus, WrOpcode
from weftwork.wire.extended import Aeth, AethKind
from weftwork.wire.ib import CNP_BODY, Bth, cnp_bth
from weftwork.wire.opcodes import Opcode

PORTS = 50_001, 50_002
OTHER = 50_003


class Ports:
    """Source ports of one end, on a machine that has both addresses."""

    def __init__(self, port: int) -> None:
        self._port = port

    def draw(self, qp_num: int) -> int:
        del qp_num
        return self._port

    def is_here(self, address: bytes) -> bool:
        return bool(address)


def local_pair(qp_type: QpType = QpType.RC) -> Pair:
    """Two queue pairs of one machine, joined by hand."""
    pair = Pair(qp_type=qp_type)
    pair.qps = []
    for end, port in zip(pair.nics, PORTS, strict=True):
        end.source_ports = Ports(port)  # type: ignore[misc, assignment]
    pair.qps = pair.connect(qp_type)
    return pair


def forged(pair: Pair, qp: RdmaQueuePair, opcode: int, psn: int, payload: bytes, port: int) -> Datagram:
    """A packet that says it comes from end 0."""
    bth = Bth(opcode, qp.qp_num, psn % (1 << 24), ack_request=True)
    made = RdmaNic(pair.nics[0].address).flow(pair.nics[1].address, port, 0).close(bth.encode(), (payload,))
    return made._replace(parts=(bytes(made.payload()),))


def deliver(pair: Pair, made: Datagram) -> list[Datagram]:
    """What end 1 sends because of a packet."""
    pair.nics[1].receive(made, pair.now_ps)
    return pair.nics[1].datagrams_to_send(pair.now_ps)


@pytest.mark.parametrize("qp_type", [QpType.RC, QpType.UC])
def test_the_first_packet_in_its_turn_names_the_port(qp_type: QpType) -> None:
    pair = local_pair(qp_type)
    pair.post_recv(1, 1, 0, 100)
    pair.post(0, WrOpcode.SEND, 5, sg_list=(pair.sge(0, 0, 10),))
    assert pair.run()
    assert [wc.status for wc in pair.poll(0) + pair.poll(1)] == [WcStatus.SUCCESS] * 2
    assert pair.qps[1].proof.port == PORTS[0]
    if qp_type is QpType.RC:
        assert pair.qps[0].proof.port == PORTS[1]


@pytest.mark.parametrize("ahead", [-1, 1, 5, -(1 << 22), 1 << 22])
def test_a_packet_out_of_turn_names_nothing_and_is_not_answered(ahead: int) -> None:
    pair = local_pair()
    psn = pair.qps[1].attr.rq_psn
    assert deliver(pair, forged(pair, pair.qps[1], Opcode.SEND_ONLY, psn + ahead, b"data", OTHER)) == []
    assert (pair.qps[1].proof.port, pair.qps[1].counters) == (None, {"stranger": 1})


@pytest.mark.parametrize("ahead", [-1, 0, 1])
def test_once_the_port_is_named_no_other_port_counts(ahead: int) -> None:
    pair = local_pair()
    pair.post_recv(1, 1, 0, 100)
    pair.post(0, WrOpcode.SEND, 5, sg_list=(pair.sge(0, 0, 10),))
    assert pair.run()
    qp = pair.qps[1]
    before = dict(qp.counters)
    for opcode in (Opcode.SEND_ONLY, Opcode.SEND_MIDDLE, Opcode.WRITE_MIDDLE, 0xFF):
        assert deliver(pair, forged(pair, qp, opcode, qp.attr.rq_psn + 1 + ahead, b"data", OTHER)) == []
    assert dict(qp.counters - Counter(before)) == {"stranger": 4}


def test_answers_and_notifications_from_another_port_are_passed_over() -> None:
    pair = local_pair()
    pair.post(0, WrOpcode.RDMA_WRITE, 5, sg_list=(pair.sge(0, 0, 10),), **pair.remote(0, 0))
    (request,) = pair.nics[0].datagrams_to_send(pair.now_ps)
    assert request.source_port == PORTS[0]
    qp = pair.qps[0]
    sender = RdmaNic(pair.nics[1].address).flow(pair.nics[0].address, OTHER, 0)
    ack = Bth(Opcode.ACKNOWLEDGE, qp.qp_num, qp.attr.sq_psn).encode() + Aeth(AethKind.ACK, 31, 1).encode()
    far = Bth(Opcode.ACKNOWLEDGE, qp.qp_num, (qp.attr.sq_psn + 9) % (1 << 24)).encode()
    for front in (cnp_bth(qp.qp_num).encode() + CNP_BODY, far + Aeth(AethKind.ACK, 31, 1).encode()):
        made = sender.close(front)
        pair.nics[0].receive(made._replace(parts=(bytes(made.payload()),)), pair.now_ps)
        assert (qp.proof.port, len(qp.requester.entries)) == (None, 1)
    made = sender.close(ack)  # what remains: who knows every number, before the peer has said a word
    pair.nics[0].receive(made._replace(parts=(bytes(made.payload()),)), pair.now_ps)
    assert (qp.proof.port, len(qp.requester.entries)) == (OTHER, 0)


def test_a_reset_forgets_the_port() -> None:
    pair = local_pair()
    pair.qps[1].proof.name(OTHER)
    pair.qps[1].modify(QpState.RESET)
    assert pair.qps[1].proof.port is None


def test_a_connected_queue_pair_sends_from_another_port_as_soon_as_it_is_named() -> None:
    pair = Pair()
    pair.qps[0].send_from(0xC123)
    pair.post(0, WrOpcode.SEND, 1, sg_list=(pair.sge(0, 0, 4),))
    (datagram,) = pair.nics[0].datagrams_to_send(0)
    assert datagram.source_port == 0xC123


def test_a_drained_queue_pair_sends_to_another_address() -> None:
    pair = Pair()
    moved = bytes([10, 0, 0, 7])
    pair.qps[0].modify(QpState.SQD)
    with pytest.raises(UsageError, match="address"):
        pair.qps[0].modify(QpState.SQD, replace(pair.qps[0].attr, remote_address=b""))
    pair.qps[0].modify(QpState.SQD, replace(pair.qps[0].attr, remote_address=moved))
    pair.qps[0].modify(QpState.RTS)
    pair.post(0, WrOpcode.SEND, 1, sg_list=(pair.sge(0, 0, 4),))
    (datagram,) = pair.nics[0].datagrams_to_send(0)
    assert datagram.destination == moved
