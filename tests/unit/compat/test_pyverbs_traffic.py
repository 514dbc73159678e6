"""Messages, remote memory and datagrams through the API of pyverbs."""

from __future__ import annotations

import errno
from socket import htonl, ntohl

import pytest
from helpers.pyverbs_ends import QKEY, SIZE, End, pair

from weftwork.compat.pyverbs.addr import AH
from weftwork.compat.pyverbs.base import inc_rkey
from weftwork.compat.pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from weftwork.compat.pyverbs.libibverbs_enums import (
    IBV_WC_STANDARD_FLAGS,
    ibv_access_flags,
    ibv_event_type,
    ibv_mw_type,
    ibv_qp_attr_mask,
    ibv_qp_state,
    ibv_qp_type,
    ibv_send_flags,
    ibv_srq_attr_mask,
    ibv_wc_flags,
    ibv_wc_opcode,
    ibv_wc_status,
    ibv_wr_opcode,
)
from weftwork.compat.pyverbs.mem_alloc import free, posix_memalign, write
from weftwork.compat.pyverbs.mr import MW, MWBind, MWBindInfo
from weftwork.compat.pyverbs.pyverbs_error import PyverbsRDMAError
from weftwork.compat.pyverbs.qp import DataBuffer, QPAttr, QPEx, QPInitAttrEx
from weftwork.compat.pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from weftwork.compat.pyverbs.wr import SendWR

SUCCESS = ibv_wc_status.IBV_WC_SUCCESS


def test_a_message_arrives_and_both_ends_complete() -> None:
    client, server = pair()
    server.receive(wr_id=11)
    client.mr.write("hello", 5)
    client.qp.post_send(SendWR(wr_id=12, num_sge=1, sg=[client.piece(0, 5)]))
    sent, received = client.completion(), server.completion()
    assert (sent.wr_id, sent.status, sent.opcode) == (12, SUCCESS, ibv_wc_opcode.IBV_WC_SEND)
    assert (received.wr_id, received.byte_len, received.opcode) == (11, 5, ibv_wc_opcode.IBV_WC_RECV)
    assert received.qp_num == server.qp.qp_num
    assert server.mr.read(5, 0) == b"hello"


def test_immediate_data_is_in_network_order() -> None:
    client, server = pair()
    server.receive()
    request = SendWR(
        opcode=ibv_wr_opcode.IBV_WR_SEND_WITH_IMM, imm_data=htonl(0x01020304), num_sge=1, sg=[client.piece(0, 1)]
    )
    client.qp.post_send(request)
    received = server.completion()
    assert received.wc_flags & ibv_wc_flags.IBV_WC_WITH_IMM
    assert ntohl(received.imm_data) == 0x01020304


def test_write_and_read_move_memory_of_the_peer() -> None:
    client, server = pair()
    client.mr.write("to the server", 13)
    request = SendWR(opcode=ibv_wr_opcode.IBV_WR_RDMA_WRITE, num_sge=1, sg=[client.piece(0, 13)])
    request.set_wr_rdma(server.mr.rkey, server.mr.buf + 100)
    client.qp.post_send(request)
    assert client.completion().status == SUCCESS
    assert server.mr.read(13, 100) == b"to the server"
    server.mr.write("back", 4, 200)
    request = SendWR(opcode=ibv_wr_opcode.IBV_WR_RDMA_READ, num_sge=1, sg=[client.piece(300, 4)])
    request.set_wr_rdma(server.mr.rkey, server.mr.buf + 200)
    client.qp.post_send(request)
    assert client.completion().byte_len == 4
    assert client.mr.read(4, 300) == b"back"


def test_an_atomic_returns_the_value_before() -> None:
    client, server = pair()
    server.mr.write((40).to_bytes(8, "little"), 8)
    request = SendWR(opcode=ibv_wr_opcode.IBV_WR_ATOMIC_FETCH_AND_ADD, num_sge=1, sg=[client.piece(0, 8)])
    request.set_wr_atomic(server.mr.rkey, server.mr.buf, 2)
    client.qp.post_send(request)
    assert client.completion().status == SUCCESS
    assert int.from_bytes(client.mr.read(8, 0), "little") == 40
    assert int.from_bytes(server.mr.read(8, 0), "little") == 42


def test_chained_requests_are_posted_in_order() -> None:
    client, server = pair()
    server.receive(0, 8)
    server.receive(8, 8)
    client.mr.write("onetwo", 6)
    second = SendWR(wr_id=2, num_sge=1, sg=[client.piece(3, 3)])
    client.qp.post_send(SendWR(wr_id=1, num_sge=1, sg=[client.piece(0, 3)], next_wr=second))
    assert [client.completion().wr_id, client.completion().wr_id] == [1, 2]
    assert (server.mr.read(3, 0), server.mr.read(3, 8)) == (b"one", b"two")


def test_inline_data_needs_no_region() -> None:
    client, server = pair()
    server.receive()
    address = posix_memalign(5)
    write(address, "plain", 5)
    piece = client.piece(0, 5)
    piece.addr, piece.lkey = address, 0
    client.qp.post_send(
        SendWR(num_sge=1, sg=[piece], send_flags=ibv_send_flags.IBV_SEND_SIGNALED | ibv_send_flags.IBV_SEND_INLINE)
    )
    free(address)
    assert server.completion().byte_len == 5
    assert server.mr.read(5, 0) == b"plain"


def test_a_datagram_is_answered_by_a_handle_from_its_completion() -> None:
    client, server = pair(qp_type=ibv_qp_type.IBV_QPT_UD)
    server.receive()
    client.mr.write("ask", 3)
    question = SendWR(num_sge=1, sg=[client.piece(0, 3)])
    question.set_wr_ud(AH(client.pd, attr=client.route(server)), server.qp.qp_num, QKEY)
    client.qp.post_send(question)
    client.completion()
    received = server.completion()
    assert received.wc_flags & ibv_wc_flags.IBV_WC_GRH
    assert (received.src_qp, received.byte_len) == (client.qp.qp_num, 43)
    assert server.mr.read(3, 40) == b"ask"
    client.receive()
    answer = SendWR(num_sge=1, sg=[server.piece(40, 3)])
    answer.set_wr_ud(AH(server.pd, wc=received, grh=server.mr.buf, port_num=1), received.src_qp, QKEY)
    server.qp.post_send(answer)
    assert client.completion().src_qp == server.qp.qp_num


def test_receives_of_a_shared_queue_run_low_and_the_context_is_told() -> None:
    client, server = pair(srq=lambda pd: SRQ(pd, SrqInitAttr(SrqAttr(max_wr=8))))
    for _ in range(3):
        server.receive()
    server.shared.modify(SrqAttr(srq_limit=3), ibv_srq_attr_mask.IBV_SRQ_LIMIT)
    client.qp.post_send(SendWR(num_sge=1, sg=[client.piece(0, 1)]))
    server.completion()
    event = server.context.get_async_event()
    event.ack()
    assert event.event_type == ibv_event_type.IBV_EVENT_SRQ_LIMIT_REACHED
    assert server.shared.query().srq_limit == 0
    server.shared.modify(SrqAttr(max_wr=16), ibv_srq_attr_mask.IBV_SRQ_MAX_WR)
    assert server.shared.query().max_wr == 16


def test_a_channel_tells_of_the_queue_that_asked() -> None:
    channels = []

    def make_cq(context: object) -> CQ:
        channels.append(CompChannel(context))
        return CQ(context, 16, None, channels[-1])

    client, server = pair(make_cq=make_cq)
    server.cq.req_notify()
    server.receive()
    client.qp.post_send(SendWR(num_sge=1, sg=[client.piece(0, 1)]))
    channels[1].get_cq_event(server.cq)
    server.cq.ack_events(1)
    assert server.cq.poll()[0] == 1


def test_an_extended_queue_is_read_field_by_field() -> None:
    client, server = pair(make_cq=lambda context: CQEX(context, CqInitAttrEx(wc_flags=IBV_WC_STANDARD_FLAGS)))
    assert server.cq.start_poll(PollCqAttr()) == errno.ENOENT
    server.receive(wr_id=5)
    client.qp.post_send(SendWR(num_sge=1, sg=[client.piece(0, 9)]))
    assert server.context.nic.device.wait_cq(server.cq.queue, 60.0)
    assert server.cq.start_poll(PollCqAttr()) == 0
    assert (server.cq.wr_id, server.cq.status, server.cq.read_byte_len()) == (5, SUCCESS, 9)
    assert server.cq.poll_next() == errno.ENOENT
    server.cq.end_poll()
    with pytest.raises(PyverbsRDMAError) as refused:
        server.cq.read_timestamp()
    assert refused.value.error_code == errno.EOPNOTSUPP


def extended() -> tuple[End, End]:
    return pair(make_qp=QPEx, init_attr=QPInitAttrEx)


def test_a_batch_posts_its_requests_together() -> None:
    client, server = extended()
    server.receive()
    client.mr.write("batch", 5)
    client.qp.wr_start()
    client.qp.wr_id, client.qp.wr_flags = 1, 0
    client.qp.wr_rdma_write(server.mr.rkey, server.mr.buf + 2000)
    client.qp.wr_set_sge(client.piece(0, 5))
    client.qp.wr_id, client.qp.wr_flags = 2, ibv_send_flags.IBV_SEND_SIGNALED
    client.qp.wr_send_imm(77)
    address = posix_memalign(4)
    write(address, "data", 4)
    client.qp.wr_set_inline_data_list(2, [DataBuffer(address, 2), DataBuffer(address + 2, 2)])
    client.qp.wr_complete()
    free(address)
    assert client.completion().wr_id == 2
    received = server.completion()
    assert ntohl(received.imm_data) == 77
    assert (server.mr.read(4, 0), server.mr.read(5, 2000)) == (b"data", b"batch")


def test_a_batch_with_a_mistake_posts_nothing() -> None:
    client, _ = extended()
    client.qp.wr_start()
    client.qp.wr_send()
    client.qp.wr_set_sge(client.piece(0, 1))
    client.qp.wr_send()
    client.qp.wr_set_sge_list(2, [client.piece(0, 1), client.piece(1, 1)])
    with pytest.raises(PyverbsRDMAError) as refused:
        client.qp.wr_complete()
    assert refused.value.error_code == errno.EINVAL
    assert len(client.qp.pair.requester.entries) == 0
    with pytest.raises(PyverbsRDMAError):
        client.qp.wr_complete()


def written(client: End, server: End, rkey: int) -> int:
    request = SendWR(opcode=ibv_wr_opcode.IBV_WR_RDMA_WRITE, num_sge=1, sg=[client.piece(0, 8)])
    request.set_wr_rdma(rkey, server.mr.buf)
    client.qp.post_send(request)
    return int(client.completion().status)


def test_a_window_of_type_1_opens_and_closes() -> None:
    client, server = pair()
    window = MW(server.pd, ibv_mw_type.IBV_MW_TYPE_1)
    before = window.rkey
    info = MWBindInfo(server.mr, server.mr.buf, 8, ibv_access_flags.IBV_ACCESS_REMOTE_WRITE)
    server.qp.bind_mw(window, MWBind(info, ibv_send_flags.IBV_SEND_SIGNALED))
    assert server.completion().opcode == ibv_wc_opcode.IBV_WC_BIND_MW
    assert window.rkey != before
    assert written(client, server, window.rkey) == SUCCESS
    window.close()
    assert written(client, server, window.rkey) == ibv_wc_status.IBV_WC_REM_ACCESS_ERR


def test_a_window_of_type_2_is_bound_by_a_request() -> None:
    client, server = pair()
    window = MW(server.pd, ibv_mw_type.IBV_MW_TYPE_2)
    request = SendWR(opcode=ibv_wr_opcode.IBV_WR_BIND_MW)
    request.set_bind_wr(window, MWBindInfo(server.mr, server.mr.buf, 8, ibv_access_flags.IBV_ACCESS_REMOTE_WRITE))
    assert request.rkey == inc_rkey(window.rkey)
    server.qp.post_send(request)
    assert server.completion().status == SUCCESS
    assert written(client, server, request.rkey) == SUCCESS


def test_a_reset_drops_completions_and_the_pair_serves_again() -> None:
    client, server = pair()
    client.receive()
    assert written(client, server, server.mr.rkey ^ 1) == ibv_wc_status.IBV_WC_REM_ACCESS_ERR
    for end in (client, server):
        end.qp.modify(QPAttr(qp_state=ibv_qp_state.IBV_QPS_RESET), ibv_qp_attr_mask.IBV_QP_STATE)
    assert client.cq.poll()[0] == 0
    client.connect(server)
    server.connect(client)
    assert written(client, server, server.mr.rkey) == SUCCESS
    assert server.mr.length == SIZE
