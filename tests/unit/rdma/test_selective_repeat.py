"""Selective repeat: what is lost is sent again, and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from helpers.rdma_pair import ALL, Pair
from helpers.selective_repeat import MTU, OK, W, packets

from weftwork.base.errors import UsageError
from weftwork.rdma.datagram import Datagram
from weftwork.rdma.verbs import QpState, QpType, WcStatus
from weftwork.wire.extended import Aeth, AethKind, Reth
from weftwork.wire.ib import Bth, psn_compare
from weftwork.wire.opcodes import Opcode
from weftwork.wire.selective_nak import SelectiveNak


def bring(pair: Pair, end: int, datagrams: list[Datagram]) -> None:
    """Let the other end receive what an end has made."""
    for datagram in datagrams:
        pair.nics[1 - end].receive(datagram._replace(parts=(bytes(datagram.payload()),)), 0)


def forge(pair: Pair, aeth: Aeth) -> None:
    """Tell the first end something about its first packet, in the name of the second."""
    bth = Bth(Opcode.ACKNOWLEDGE, pair.qps[0].qp_num, pair.qps[0].attr.sq_psn)
    bring(pair, 1, [pair.nics[1].flow(pair.nics[0].address, 50_000, 0).close(bth.encode() + aeth.encode())])


def psns(pair: Pair, end: int) -> list[int]:
    return [psn_compare(packet.bth.psn, pair.qps[0].attr.sq_psn) for packet in packets(pair, end)]


def test_the_nak_names_what_is_kept_and_only_the_gap_is_sent_again() -> None:
    pair = Pair(selective_repeat=True)
    pair.drop = {2, 3, 6}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 9 * MTU),), **pair.remote(0, 0))
    assert pair.run()
    assert psns(pair, 0) == [*range(9), 2, 3, 6]
    answers = packets(pair, 1)
    told = [SelectiveNak.of_aeth(header) for packet in answers for header in packet.headers if isinstance(header, Aeth)]
    assert told == [SelectiveNak(2, 2), SelectiveNak(5, 2), None]
    assert psns(pair, 1) == [2, 2, 8]
    assert [packet.headers[0] for packet in answers[:2]] == [
        Aeth(AethKind.RESERVED, 0, 2 << 12 | 2),
        Aeth(AethKind.RESERVED, 0, 5 << 12 | 2),
    ]
    assert pair.now_ps < 68_000_000_000  # no timeout was waited for


def test_a_read_asks_again_for_the_missing_responses_alone() -> None:
    pair = Pair(selective_repeat=True)
    pair.buffers[1][: 9 * MTU] = data = random.Random(6).randbytes(9 * MTU)
    pair.drop = {3, 4, 7}  # request, then nine responses
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, 9 * MTU - 5),), **pair.remote(0, 0))
    assert pair.run()
    base, key = pair.mrs[1].addr, pair.mrs[1].rkey
    assert [packet.find(Reth) for packet in packets(pair, 0)] == [
        Reth(base, key, 9 * MTU - 5),
        Reth(base + 2 * MTU, key, 2 * MTU),
        Reth(base + 6 * MTU, key, MTU),
    ]
    assert psns(pair, 1) == [*range(9), 2, 3, 6]
    assert pair.buffers[0][: 9 * MTU] == data[:-5] + bytes(5)


def test_a_repeat_that_is_lost_is_known_by_what_was_first_sent_after_it() -> None:
    pair = Pair(selective_repeat=True, timeout=0)  # no timer helps
    pair.drop = {1, 257}  # a window of 256 packets and the NAK, then the repeat
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 300 * MTU),), **pair.remote(0, 0))
    assert pair.run()
    assert psns(pair, 0) == [*range(256), 1, 256, 1, *range(257, 300)]
    assert [wc.status for wc in pair.poll(0)] == [OK]


@pytest.mark.parametrize("late", [1, 2])
def test_a_late_train_is_taken_together_with_what_waits_for_it(late: int) -> None:
    pair = Pair(selective_repeat=True, nic={"makes_trains": True})
    size_bytes = 200 * MTU
    pair.buffers[0][:size_bytes] = data = random.Random(8).randbytes(size_bytes)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, size_bytes),), **pair.remote(0, 0))
    made = [one._replace(parts=(bytes(one.payload()),)) for one in pair.nics[0].datagrams_to_send(0)]
    assert made[late].segment_bytes
    for datagram in (*made[:late], *made[late + 1 :]):
        pair.nics[1].receive(datagram, 0)
    assert pair.qps[1].out_of_order_bytes > 0
    pair.nics[1].receive(made[late], 0)
    assert pair.qps[1].out_of_order_bytes == 0
    assert pair.buffers[1][:size_bytes] == data


def test_requests_behind_a_refused_one_are_kept() -> None:
    pair = Pair(selective_repeat=True, min_rnr_timer=1)
    pair.post(0, W.SEND, 0, sg_list=(pair.sge(0, 0, 8),))
    pair.post(0, W.RDMA_WRITE, 1, sg_list=(pair.sge(0, 0, 8 * MTU),), **pair.remote(0, 1024))
    assert not pair.run(limit_ps=5_000_000)
    assert pair.qps[1].out_of_order_bytes > 8 * MTU
    pair.post_recv(1, 7, 0, 8)
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [OK, OK]
    assert psns(pair, 0) == [*range(9), 0]


def test_an_error_frees_what_is_kept() -> None:
    pair = Pair(selective_repeat=True)
    pair.drop = {0}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 4 * MTU),), **pair.remote(0, 0))
    assert not pair.run(limit_ps=1_500_000)
    assert pair.qps[1].out_of_order_bytes > 3 * MTU - 1
    pair.qps[1].modify(QpState.ERR)
    assert pair.qps[1].out_of_order_bytes == 0


def test_a_nak_of_what_was_never_sent_changes_nothing() -> None:
    pair = Pair(selective_repeat=True, timeout=0)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    pair.nics[0].datagrams_to_send(0)
    for aeth in (SelectiveNak(1, 1).aeth(), Aeth(AethKind.RESERVED, 9, 0)):
        forge(pair, aeth)
    assert pair.qps[0].counters == {"unexpected_response": 2}
    assert pair.nics[0].datagrams_to_send(0) == []


def test_a_forged_nak_that_names_lost_packets_as_kept_costs_time_alone() -> None:
    """Possible on the path. What the receiver waits for is never taken as kept, so each timeout frees a packet."""
    pair = Pair(selective_repeat=True)
    pair.drop = {1, 2, 3}
    pair.buffers[0][: 4 * MTU] = data = random.Random(9).randbytes(4 * MTU)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 4 * MTU),), **pair.remote(0, 0))
    for datagram in pair.nics[0].datagrams_to_send(0):
        pair.carry(1, datagram)
    forge(pair, SelectiveNak(1, 3).aeth())
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [OK]
    assert pair.buffers[1][: 4 * MTU] == data
    assert pair.qps[0].counters["local_ack_timeout_err"] > 1


@pytest.mark.parametrize("lost", [None, 1])
def test_a_read_whose_key_is_taken_back_is_refused(lost: int | None) -> None:
    pair = Pair(selective_repeat=True)
    region = pair.nics[1].memory.register(pair.pds[1], bytearray(8 * MTU), ALL)
    place = {"remote_addr": region.addr, "rkey": region.rkey}
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, 8 * MTU),), **place)
    bring(pair, 0, pair.nics[0].datagrams_to_send(0))
    answers = pair.nics[1].datagrams_to_send(0, 4 if lost is None else 8)
    bring(pair, 1, [answer for index, answer in enumerate(answers) if index != lost])
    bring(pair, 0, pair.nics[0].datagrams_to_send(0))  # asks for the lost one
    pair.nics[1].memory.deregister(region)
    assert pair.run()
    assert [wc.status for wc in pair.poll(0)] == [WcStatus.REM_ACCESS_ERR]


def test_the_option_is_for_reliable_connections_that_are_not_connected_yet() -> None:
    with pytest.raises(UsageError, match="wanted RC"):
        Pair(qp_type=QpType.UC, selective_repeat=True)
    pair = Pair()
    with pytest.raises(UsageError, match="by RTR"):
        pair.qps[0].modify(QpState.RTS, replace(pair.qps[0].attr, selective_repeat=True))
    assert not pair.qps[0].attr.selective_repeat
