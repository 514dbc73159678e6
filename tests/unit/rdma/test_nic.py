"""The NIC, one rule at a time: two ends, virtual time, and what the completions say."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pytest
from helpers.rdma_nic import OK, W, opcodes, statuses
from helpers.rdma_pair import ALL, BadWire, Pair

from weftwork.base.errors import UsageError
from weftwork.policies.load import load
from weftwork.rdma.completion import CompletionChannel
from weftwork.rdma.encapsulation import ROCE_V2
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import EventType, NicLimits
from weftwork.rdma.states import AFTER, MODIFY
from weftwork.rdma.verbs import (
    AccessFlags,
    AddressHandle,
    QpAttr,
    QpState,
    QpType,
    RecvWr,
    SendFlags,
    SendWr,
    Sge,
    WcOpcode,
    WcStatus,
)
from weftwork.wire.extended import Reth
from weftwork.wire.ib import Bth
from weftwork.wire.icrc import check_icrc
from weftwork.wire.opcodes import Opcode
from weftwork.wire.rocev2 import rocev2_packet
from weftwork.wire.transport import TransportPacket


def test_the_bytes_are_those_of_the_codec() -> None:
    pair = Pair()
    pair.buffers[0][:5] = b"hello"
    pair.post_recv(1, 1, 0, 64)
    pair.post(0, W.SEND, 7, sg_list=(pair.sge(0, 0, 5),))
    assert pair.run()
    request = pair.sent[0]
    bth = Bth(Opcode.SEND_ONLY, pair.qps[1].qp_num, pair.qps[0].attr.sq_psn, ack_request=True, pad_bytes=3)
    whole = rocev2_packet(
        source=IPv4Address(request.source),
        destination=IPv4Address(request.destination),
        source_port=request.source_port,
        bth=bth,
        body=b"hello\0\0\0",
    ).encode()
    assert request.parts[0] == whole[28:]
    assert opcodes(pair) == [Opcode.SEND_ONLY, Opcode.ACKNOWLEDGE]
    assert bytes(pair.buffers[1][:8]) == b"hello\0\0\0"
    assert [(wc.wr_id, wc.byte_len, wc.opcode) for wc in pair.poll(1)] == [(1, 5, WcOpcode.RECV)]
    assert [(wc.wr_id, wc.status) for wc in pair.poll(0)] == [(7, OK)]


@pytest.mark.parametrize(
    "buffer", [bytearray(64), mmap.mmap(-1, 4096), np.zeros(16, np.int32), (ctypes.c_char * 64)()], ids=type
)
def test_any_writable_buffer_is_registered_at_its_address_without_a_copy(buffer: Any) -> None:
    nic = RdmaNic(bytes(4))
    region = nic.memory.register(nic.alloc_pd(), buffer, AccessFlags.LOCAL_WRITE)
    ctypes.memset(region.addr, 0x5A, 4)
    assert bytes(memoryview(buffer).cast("B")[:5]) == b"ZZZZ\0"
    nic.memory.deregister(region)
    with pytest.raises(UsageError, match="not registered"):
        nic.memory.deregister(region)


def test_what_cannot_be_registered_is_refused() -> None:
    nic = RdmaNic(bytes(4), limits=NicLimits(max_mr=1))
    pd = nic.alloc_pd()
    with pytest.raises(UsageError, match="read-only"):
        nic.memory.register(pd, memoryview(b"fixed"), AccessFlags.LOCAL_WRITE)
    with pytest.raises(UsageError, match="local write"):
        nic.memory.register(pd, bytearray(8), AccessFlags.REMOTE_WRITE)
    nic.memory.register(pd, bytearray(8), AccessFlags.LOCAL_WRITE)
    with pytest.raises(UsageError, match="max_mr"):
        nic.memory.register(pd, bytearray(8), AccessFlags.LOCAL_WRITE)


@pytest.mark.parametrize("wanted", list(QpState))
@pytest.mark.parametrize("state", list(QpState))
def test_every_pair_of_states_obeys_the_table(state: QpState, wanted: QpState) -> None:
    nic = RdmaNic(bytes(4))
    cq = nic.create_cq(8)
    qp = nic.create_qp(nic.alloc_pd(), QpType.RC, (cq, cq))
    qp.attr = QpAttr(remote_address=bytes(4))
    qp.state = state
    if wanted in MODIFY[state]:
        qp.modify(wanted)
        assert qp.state is wanted
    else:
        with pytest.raises(UsageError, match=f"{state.name} to {wanted.name}"):
            qp.modify(wanted)
        assert qp.state is state


def test_the_tables_have_every_state_and_a_way_out_of_each() -> None:
    assert set(MODIFY) == set(QpState)
    assert all({QpState.RESET, QpState.ERR} <= wanted for state, wanted in MODIFY.items() if state is not QpState.RESET)
    assert {service for service, _ in AFTER} == set(QpType)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"rkey": 1}, WcStatus.REM_ACCESS_ERR),
        ({"remote_addr": -1}, WcStatus.REM_ACCESS_ERR),
        ({"remote_addr": (1 << 20) - 7}, WcStatus.REM_ACCESS_ERR),
        ({"opcode": W.RDMA_READ, "rkey": 1}, WcStatus.REM_ACCESS_ERR),
        ({"opcode": W.ATOMIC_FETCH_AND_ADD, "rkey": 1}, WcStatus.REM_ACCESS_ERR),
        ({"opcode": W.ATOMIC_FETCH_AND_ADD, "remote_addr": 4}, WcStatus.REM_INV_REQ_ERR),
        ({"opcode": W.FLUSH, "flush_placement": 2}, WcStatus.REM_INV_REQ_ERR),
    ],
)
def test_a_refused_request_changes_no_byte_and_ends_both_ends(more: dict[str, Any], status: WcStatus) -> None:
    pair = Pair()
    canary = random.Random(3).randbytes(1 << 20)
    pair.buffers[1][:] = canary
    offset = more.pop("remote_addr", 0)
    wr = {"opcode": W.RDMA_WRITE, "sg_list": (pair.sge(0, 0, 8),)} | pair.remote(0, offset) | more
    if wr["opcode"] is W.FLUSH:
        wr["sg_list"] = ()
    pair.post(0, wr_id=1, **wr)
    pair.post(0, W.RDMA_WRITE, 2, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 64))
    assert pair.run()
    assert statuses(pair, 0) == [status, WcStatus.WR_FLUSH_ERR]
    assert pair.buffers[1] == canary
    assert [qp.state for qp in pair.qps] == [QpState.ERR, QpState.ERR]
    event = pair.nics[1].next_event()
    assert event is not None
    assert event.event_type is EventType.QP_FATAL


@pytest.mark.parametrize("missing", [AccessFlags.REMOTE_WRITE, AccessFlags.REMOTE_READ, AccessFlags.REMOTE_ATOMIC])
def test_a_right_that_the_region_does_not_give_is_refused(missing: AccessFlags) -> None:
    pair = Pair()
    extra = bytearray(64)
    region = pair.nics[1].memory.register(pair.pds[1], extra, ALL & ~missing)
    cases = {
        W.RDMA_WRITE: AccessFlags.REMOTE_WRITE,
        W.RDMA_READ: AccessFlags.REMOTE_READ,
        W.ATOMIC_CMP_AND_SWP: AccessFlags.REMOTE_ATOMIC,
    }
    for opcode, right in cases.items():
        if right is not missing:
            pair.post(0, opcode, sg_list=(pair.sge(0, 0, 8),), remote_addr=region.addr, rkey=region.rkey)
    assert pair.run()
    assert statuses(pair, 0) == [OK, OK]
    (refused,) = (opcode for opcode, right in cases.items() if right is missing)
    pair.post(0, refused, sg_list=(pair.sge(0, 0, 8),), remote_addr=region.addr, rkey=region.rkey)
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.REM_ACCESS_ERR]


def test_memory_of_another_domain_does_not_exist() -> None:
    pair = Pair()
    other = pair.nics[1].memory.register(pair.nics[1].alloc_pd(), bytearray(64), ALL)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), remote_addr=other.addr, rkey=other.rkey)
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.REM_ACCESS_ERR]


def test_nothing_is_written_with_no_bytes_and_any_key() -> None:
    pair = Pair()
    pair.post(0, W.RDMA_WRITE, rkey=5, remote_addr=99)
    pair.post(0, W.RDMA_READ, rkey=5, remote_addr=99)
    assert pair.run()
    assert statuses(pair, 0) == [OK, OK]


def test_a_local_error_comes_after_what_was_posted_before_it() -> None:
    pair = Pair()
    pair.post(0, W.RDMA_WRITE, 1, sg_list=(pair.sge(0, 0, 5000),), **pair.remote(0, 0))
    pair.post(0, W.RDMA_WRITE, 2, sg_list=(Sge(pair.mrs[0].addr, 8, 12345),), **pair.remote(0, 0))
    pair.post(0, W.RDMA_WRITE, 3, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    assert pair.run()
    assert statuses(pair, 0) == [OK, WcStatus.LOC_PROT_ERR, WcStatus.WR_FLUSH_ERR]


def test_a_send_waits_for_a_receive_as_long_as_it_may() -> None:
    pair = Pair(rnr_retry=2, min_rnr_timer=1)
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    assert pair.run()
    assert opcodes(pair).count(Opcode.SEND_ONLY) == 3
    assert statuses(pair, 0) == [WcStatus.RNR_RETRY_EXC_ERR]


def test_a_receive_that_comes_late_is_used() -> None:
    pair = Pair(min_rnr_timer=14)
    pair.buffers[0][:8] = b"patience"
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    assert not pair.run(limit_ps=500_000_000)
    pair.post_recv(1, 1, 0, 8)
    assert pair.run()
    assert pair.now_ps >= 1_000_000_000  # code 14 is 1.28 ms; the wait was not cut short
    assert (statuses(pair, 0), statuses(pair, 1)) == ([OK], [OK])
    assert pair.buffers[1][:8] == b"patience"


def test_a_message_longer_than_its_receive_ends_both_ends() -> None:
    pair = Pair()
    pair.post_recv(1, 1, 0, 300)
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 301),))
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.REM_INV_REQ_ERR]
    assert statuses(pair, 1) == [WcStatus.LOC_LEN_ERR]
    assert pair.buffers[1][300] == 0


def test_a_dead_peer_is_noticed_after_all_retries() -> None:
    pair = Pair(BadWire(loss=1.0), timeout=1, retry_cnt=3)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    assert pair.run()
    assert len(pair.sent) == 4
    assert pair.now_ps == 4 * 8_192_000
    assert statuses(pair, 0) == [WcStatus.RETRY_EXC_ERR]


def test_inline_data_is_that_of_the_moment_of_posting() -> None:
    pair = Pair()
    pair.buffers[0][:4] = b"then"
    pair.post(
        0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 4),), flags=SendFlags.INLINE | SendFlags.SIGNALED, **pair.remote(0, 0)
    )
    pair.buffers[0][:4] = b"now!"
    assert pair.run()
    assert pair.buffers[1][:4] == b"then"


def test_scattered_memory_is_gathered_and_scattered_again() -> None:
    pair = Pair()
    pair.buffers[0][:2000] = data = random.Random(4).randbytes(2000)
    receive = tuple(pair.sge(1, at, size) for at, size in ((0, 100), (5000, 0), (1000, 700), (3000, 1200)))
    pair.qps[1].post_recv(RecvWr(wr_id=1, sg_list=receive))
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 3), pair.sge(0, 3, 997), pair.sge(0, 1000, 1000)))
    assert pair.run()
    got = pair.buffers[1][:100] + pair.buffers[1][1000:1700] + pair.buffers[1][3000:4200]
    assert got == data
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 8000, 50), pair.sge(0, 9000, 650)), **pair.remote(0, 1000))
    assert pair.run()
    assert pair.buffers[0][8000:8050] + pair.buffers[0][9000:9650] == data[100:800]


def test_compare_and_swap_swaps_what_it_expects_and_returns_what_it_found() -> None:
    pair = Pair()
    pair.buffers[1][:8] = (5).to_bytes(8, "little")
    for wr_id, compare in enumerate((4, 5)):
        place = (pair.sge(0, 8 * wr_id, 8),)
        pair.post(0, W.ATOMIC_CMP_AND_SWP, wr_id, sg_list=place, compare_add=compare, swap=9, **pair.remote(0, 0))
    assert pair.run()
    assert np.frombuffer(pair.buffers[0], np.uint64)[:2].tolist() == [5, 5]
    assert int.from_bytes(pair.buffers[1][:8], "little") == 9


def test_a_fence_waits_for_reads_and_reads_keep_to_their_number() -> None:
    pair = Pair(max_rd_atomic=1, max_dest_rd_atomic=1)
    for index in range(4):
        pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 1024 * index, 600),), **pair.remote(0, 0))
    flags = SendFlags.FENCE | SendFlags.SIGNALED
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), flags=flags, **pair.remote(0, 0))
    assert pair.run()
    assert statuses(pair, 0) == [OK] * 5
    read = [Opcode.READ_REQUEST, Opcode.READ_RESPONSE_FIRST, Opcode.READ_RESPONSE_MIDDLE, Opcode.READ_RESPONSE_LAST]
    assert opcodes(pair) == read * 4 + [Opcode.WRITE_ONLY, Opcode.ACKNOWLEDGE]


def test_more_reads_than_agreed_are_refused() -> None:
    pair = Pair(max_dest_rd_atomic=1)
    for _ in range(3):
        pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, 5000),), **pair.remote(0, 0))
    assert pair.run()
    assert WcStatus.REM_INV_REQ_ERR in statuses(pair, 0)


def test_psns_wrap() -> None:
    pair = Pair(sq_psn=0xFFFFFD, rq_psn=0xFFFFFD)
    pair.buffers[0][:3000] = data = random.Random(5).randbytes(3000)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 3000),), **pair.remote(0, 0))
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 4000, 3000),), **pair.remote(0, 0))
    assert pair.run()
    assert statuses(pair, 0) == [OK, OK]
    assert pair.buffers[0][4000:7000] == data


def test_a_stranger_a_wrong_key_and_a_changed_byte_are_dropped() -> None:
    pair = Pair()
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    (datagram,) = pair.nics[0].datagrams_to_send(0)
    whole = bytes(datagram.payload())
    victim = pair.nics[1]
    victim.receive(datagram._replace(parts=(whole[:-5] + b"?" + whole[-4:],)), 0)
    victim.receive(datagram._replace(parts=(whole[:10],)), 0)
    victim.receive(datagram._replace(parts=(whole,), identification=7), 0)
    assert victim.counters == {"rx_icrc_encapsulated": 2, "malformed": 1}
    pair.qps[1].attr = replace(pair.qps[1].attr, remote_address=bytes((10, 0, 0, 9)))
    victim.receive(datagram._replace(parts=(whole,)), 0)
    assert pair.qps[1].counters == {"stranger": 1}
    assert victim.datagrams_to_send(0) == []


def test_an_ack_of_what_was_never_sent_is_dropped() -> None:
    pair = Pair(timeout=0)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    pair.nics[0].datagrams_to_send(0)
    flow = pair.nics[1].flow(pair.nics[0].address, 50_000, 0)
    ghost = Bth(Opcode.ACKNOWLEDGE, pair.qps[0].qp_num, (pair.qps[0].attr.sq_psn + 5) % (1 << 24)).encode()
    made = flow.close(ghost + b"\x1f\0\0\0")
    pair.nics[0].receive(made._replace(parts=(made.payload(),)), 0)
    assert pair.poll(0) == []
    assert pair.qps[0].counters["unexpected_response"] == 1


def test_windows_give_a_range_and_take_it_back() -> None:
    pair = Pair()
    memory, region = pair.nics[1].memory, pair.mrs[1]
    window = memory.allocate_window(pair.pds[1], 2)
    assert memory.bind(window, region, (region.addr + 64, 64), AccessFlags.REMOTE_WRITE, pair.qps[1].qp_num)
    with pytest.raises(UsageError, match="1 window bound"):
        memory.deregister(region)
    write = {"sg_list": (pair.sge(0, 0, 8),), "rkey": window.rkey}
    pair.post(0, W.RDMA_WRITE, 1, remote_addr=region.addr + 64, **write)
    pair.post_recv(1, 9, 512, 8)
    pair.post(0, W.SEND_WITH_INV, 2, sg_list=(pair.sge(0, 0, 8),), invalidate_rkey=window.rkey)
    assert pair.run()
    assert statuses(pair, 0) == [OK, OK]
    assert [wc.invalidated_rkey for wc in pair.poll(1)] == [window.rkey]
    pair.post(0, W.RDMA_WRITE, 3, remote_addr=region.addr + 64, **write)
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.REM_ACCESS_ERR]


@pytest.mark.parametrize(
    ("offset", "length", "access", "other_qp"), [(63, 8, 2, 0), (121, 8, 2, 0), (64, 8, 4, 0), (64, 8, 2, 1)]
)
def test_a_window_gives_no_more_than_its_range_to_its_queue_pair(
    offset: int, length: int, access: int, other_qp: int
) -> None:
    pair = Pair()
    region = pair.mrs[1]
    window = pair.nics[1].memory.allocate_window(pair.pds[1], 2)
    qp_num = pair.qps[1].qp_num + other_qp
    assert pair.nics[1].memory.bind(window, region, (region.addr + 64, 64), AccessFlags(access), qp_num)
    place = {"remote_addr": region.addr + offset, "rkey": window.rkey}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, length),), **place)
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.REM_ACCESS_ERR]


def test_flush_and_atomic_write_are_answered() -> None:
    pair = Pair()
    pair.buffers[0][:8] = b"eight888"
    pair.post(0, W.ATOMIC_WRITE, 1, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 16))
    pair.post(0, W.FLUSH, 2, flush_bytes=64, **pair.remote(0, 0))
    assert pair.run()
    assert [(wc.status, wc.opcode) for wc in pair.poll(0)] == [(OK, WcOpcode.ATOMIC_WRITE), (OK, WcOpcode.FLUSH)]
    assert pair.buffers[1][16:24] == b"eight888"


def test_an_unreliable_connection_drops_a_message_with_a_gap_whole() -> None:
    pair = Pair(qp_type=QpType.UC)
    for index in range(3):
        pair.buffers[0][1024 * index : 1024 * (index + 1)] = bytes([index + 1]) * 1024
        pair.post_recv(1, index, 2048 * index, 1024)
        pair.post(0, W.SEND_WITH_IMM, index, sg_list=(pair.sge(0, 1024 * index, 1024),), imm_data=index)
    made = pair.nics[0].datagrams_to_send(0)
    assert statuses(pair, 0) == [OK] * 3
    for datagram in made[:5] + made[6:]:
        pair.nics[1].receive(datagram._replace(parts=(datagram.payload(),)), 0)
    assert [(wc.wr_id, wc.imm_data) for wc in pair.poll(1)] == [(0, 0), (1, 2)]
    assert pair.buffers[1][2048:3072] == bytes([3]) * 1024


def test_a_datagram_brings_its_ip_header_and_sender() -> None:
    pair = Pair(qp_type=QpType.UD)
    pair.buffers[0][:6] = b"packet"
    pair.post_recv(1, 1, 0, 200)
    pair.post_recv(1, 2, 200, 200)
    to = {"ah": AddressHandle(address=pair.nics[1].address), "remote_qpn": pair.qps[1].qp_num}
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 6),), remote_qkey=0x9999, **to)  # the wrong key
    pair.post(0, W.SEND_WITH_IMM, sg_list=(pair.sge(0, 0, 6),), imm_data=3, remote_qkey=0x1234, **to)
    assert pair.run()
    assert statuses(pair, 0) == [OK, OK]
    (wc,) = pair.poll(1)
    assert (wc.wr_id, wc.byte_len, wc.imm_data, wc.src_qp, wc.has_grh) == (1, 46, 3, pair.qps[0].qp_num, True)
    assert pair.buffers[1][32:36] == pair.nics[0].address
    assert pair.buffers[1][40:46] == b"packet"
    assert pair.qps[1].counters["qkey_violation"] == 1
    pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 257),), remote_qkey=0x1234, **to)
    assert pair.run()
    assert statuses(pair, 0) == [WcStatus.LOC_LEN_ERR]
    assert pair.qps[0].state is QpState.SQE


def test_a_shared_receive_queue_serves_in_order_and_tells_its_limit() -> None:
    pair = Pair(srq=True)
    queue = pair.srqs[1]
    assert queue is not None
    for index in range(3):
        queue.post(RecvWr(wr_id=index, sg_list=(pair.sge(1, 64 * index, 64),)))
    queue.limit = 2
    for _ in range(3):
        pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),))
    assert pair.run()
    assert [wc.wr_id for wc in pair.poll(1)] == [0, 1, 2]
    events = list(iter(pair.nics[1].next_event, None))
    assert [event.event_type for event in events] == [EventType.SRQ_LIMIT_REACHED]


def test_a_channel_is_told_once_and_of_solicited_messages_alone_where_asked() -> None:
    pair = Pair()
    channel = CompletionChannel()
    cq = pair.nics[1].create_cq(8, channel)
    pair.qps[1].recv_cq = cq
    cq.request_notify(solicited_only=True)
    told = []
    for flags in (SendFlags(0), SendFlags.SOLICITED, SendFlags.SOLICITED):
        pair.post_recv(1, 1, 0, 8)
        pair.post(0, W.SEND, sg_list=(pair.sge(0, 0, 8),), flags=flags)
        assert pair.run()
        told.append(channel.get_event())
    assert told == [None, cq, None]
    assert pair.poll(0) == []  # none was signaled


def test_an_overrun_completion_queue_is_told_and_ends_the_queue_pair() -> None:
    pair = Pair()
    pair.qps[0].send_cq = small = pair.nics[0].create_cq(1)
    pair.post_recv(0, 5, 0, 8)
    for _ in range(3):
        pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    assert pair.run()
    assert small.is_overrun
    assert [(wc.wr_id, wc.status) for wc in pair.poll(0)] == [(5, WcStatus.WR_FLUSH_ERR)]
    assert pair.qps[0].state is QpState.ERR
    first = pair.nics[0].next_event()
    assert first is not None
    assert first.event_type is EventType.CQ_ERR


def test_drained_requests_are_told_and_new_ones_wait() -> None:
    pair = Pair()
    pair.post(0, W.RDMA_WRITE, 1, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    for datagram in pair.nics[0].datagrams_to_send(0):
        pair.carry(1, datagram)
    pair.qps[0].modify(QpState.SQD)
    pair.post(0, W.RDMA_WRITE, 2, sg_list=(pair.sge(0, 0, 8),), **pair.remote(0, 0))
    assert pair.run()
    assert [wc.wr_id for wc in pair.poll(0)] == [1]
    event = pair.nics[0].next_event()
    assert event is not None
    assert event.event_type is EventType.SQ_DRAINED
    pair.qps[0].modify(QpState.RTS)
    assert pair.run()
    assert [wc.wr_id for wc in pair.poll(0)] == [2]


@pytest.mark.parametrize("selective_repeat", [False, True])
def test_a_lost_packet_leaves_the_window_that_it_filled(selective_repeat: bool) -> None:  # noqa: FBT001 - a case
    pair = Pair(
        nic={"congestion_control": load("congestion_control", "fixed-window")}, selective_repeat=selective_repeat
    )
    pair.drop = {0}  # the window holds one packet, so nothing else can go until this one is sent again
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 2000),), **pair.remote(0, 0))
    assert pair.run()
    assert statuses(pair, 0) == [OK]


def test_a_control_that_needs_more_than_marks_is_refused() -> None:
    nic = RdmaNic(bytes(4), congestion_control=load("congestion_control", "hpcc"))
    cq = nic.create_cq(1)
    with pytest.raises(UsageError, match="hpcc"):
        nic.create_qp(nic.alloc_pd(), QpType.RC, (cq, cq))


def test_numbers_and_keys_cannot_be_guessed_from_each_other() -> None:
    nic = RdmaNic(bytes(4))
    pd, cq = nic.alloc_pd(), nic.create_cq(1)
    numbers = [nic.create_qp(pd, QpType.RC, (cq, cq)).qp_num for _ in range(50)]
    keys = [nic.memory.register(pd, bytearray(8), AccessFlags.LOCAL_WRITE).rkey for _ in range(50)]
    for drawn in (numbers, keys):
        steps = {after - before for before, after in itertools.pairwise(drawn)}
        assert len(steps) == 49


@pytest.mark.parametrize("service", [QpType.UC, QpType.UD])
def test_what_a_service_does_not_have_is_refused_when_it_is_posted(service: QpType) -> None:
    pair = Pair(qp_type=service)
    for opcode in (W.RDMA_READ, W.ATOMIC_FETCH_AND_ADD, W.SEND_WITH_INV, W.FLUSH):
        with pytest.raises(UsageError, match=opcode.name):
            pair.qps[0].post_send(SendWr(wr_id=1, opcode=opcode))


def test_a_read_is_encoded_as_the_codec_does() -> None:
    pair = Pair()
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, 700),), **pair.remote(0, 128))
    assert pair.run()
    asked, _ = TransportPacket.decode(pair.sent[0].parts[0][:-4])
    assert asked.headers == ((pair.mrs[1].addr + 128, pair.mrs[1].rkey, 700),)
    assert [TransportPacket.decode(one.parts[0][:-4])[0].bth.psn for one in pair.sent[1:]] == [
        (pair.qps[0].attr.sq_psn + index) % (1 << 24) for index in range(3)
    ]


def test_an_atomic_whose_answer_was_lost_happens_once() -> None:
    pair = Pair()
    pair.drop = {1}
    pair.post(0, W.ATOMIC_FETCH_AND_ADD, sg_list=(pair.sge(0, 0, 8),), compare_add=5, **pair.remote(0, 0))
    assert pair.run()
    assert opcodes(pair) == [Opcode.FETCH_ADD, Opcode.ATOMIC_ACKNOWLEDGE] * 2
    assert statuses(pair, 0) == [OK]
    assert (int.from_bytes(pair.buffers[0][:8], "little"), int.from_bytes(pair.buffers[1][:8], "little")) == (0, 5)


def test_what_a_nak_asks_for_is_sent_again_and_nothing_before_it() -> None:
    pair = Pair()
    pair.drop = {2}
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 5 * 256),), **pair.remote(0, 0))
    assert pair.run()
    first = pair.qps[0].attr.sq_psn
    psns = [int.from_bytes(one.parts[0][9:12], "big") - first for one in pair.sent if one.source[-1] == 1]
    assert psns == [0, 1, 2, 3, 4, 2, 3, 4]
    assert pair.now_ps < 68_000_000_000  # no timeout was waited for


def test_a_read_goes_on_behind_what_has_arrived() -> None:
    pair = Pair()
    pair.buffers[1][: 5 * 256] = data = random.Random(6).randbytes(5 * 256)
    pair.drop = {3}  # request, then five responses
    pair.post(0, W.RDMA_READ, sg_list=(pair.sge(0, 0, 5 * 256),), **pair.remote(0, 0))
    assert pair.run()
    asked = [TransportPacket.decode(one.parts[0][:-4])[0] for one in pair.sent if one.source[-1] == 1]
    assert [packet.find(Reth) for packet in asked] == [
        Reth(pair.mrs[1].addr + 256 * done, pair.mrs[1].rkey, 256 * (5 - done)) for done in (0, 2)
    ]
    assert pair.buffers[0][: 5 * 256] == data


def test_ipv6_carries_the_same() -> None:
    pair = Pair(ipv6=True)
    pair.buffers[0][:700] = data = random.Random(7).randbytes(700)
    pair.post(0, W.RDMA_WRITE, sg_list=(pair.sge(0, 0, 700),), **pair.remote(0, 0))
    assert pair.run()
    assert statuses(pair, 0) == [OK]
    assert pair.buffers[1][:700] == data
    request = pair.sent[0]
    check_icrc(ROCE_V2.front(request, len(request.parts[0])) + request.parts[0])  # raises where it is wrong
