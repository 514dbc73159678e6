"""The connection manager, one rule at a time: two ends, virtual time, and what their events say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest
from helpers.cm_pair import PORT, CmPair
from helpers.rdma_pair import SECOND_PS, BadWire

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WrOpcode
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmReady,
    CmReject,
    CmReply,
    CmRequest,
    CmServiceRequest,
    CmWait,
    encode_cm,
)
from weftwork.wire.rdma_ip_cm import IpCmHeader, service_of_port

E, R, S = CmEventType, CmRejReason, CmState


def asked(pair: CmPair) -> tuple[CmRequest, int]:
    """A right REQ of end 0 that has not been sent, and its transaction."""
    mine = pair.connect()
    return mine._request, mine._transaction


def rejections(pair: CmPair) -> list[CmReject]:
    return [message for _, _, message in pair.messages() if isinstance(message, CmReject)]


# Making and closing


@pytest.mark.parametrize("ip_version", [4, 6])
@pytest.mark.parametrize("qp_type", [QpType.RC, QpType.UC], ids=lambda qp_type: qp_type.name)
def test_a_connection_is_made_used_and_closed(qp_type: QpType, ip_version: int) -> None:
    pair = CmPair(ipv6=ip_version == 6)
    mine, theirs = pair.request(
        qp=pair.qp(0, qp_type), private_data=b"hello", initiator_depth=5, responder_resources=3, retry_count=4
    )
    (request,) = pair.events[1]
    assert (request.private_data, theirs.port) == (b"hello".ljust(56, b"\0"), PORT)
    assert (theirs.address, mine.address) == pair.addresses
    theirs.accept(pair.qp(1, qp_type), ConnParam(private_data=b"welcome", rnr_retry_count=2, initiator_depth=2))
    pair.soon()
    (ready,) = pair.take(0)
    assert (ready.event_type, ready.private_data.rstrip(b"\0"), ready.status) == (E.ESTABLISHED, b"welcome", 0)
    assert pair.types(1) == [E.ESTABLISHED]
    for end, conversation in ((0, mine), (1, theirs)):
        qp, agreed, there = conversation.qp, conversation.agreed, (theirs, mine)[end].qp
        assert qp is not None
        assert agreed is not None
        assert there is not None
        assert qp.state is QpState.RTS
        want = QpAttr(
            remote_address=pair.addresses[1 - end],
            dest_qp_num=there.qp_num,
            path_mtu=1024,
            rq_psn=there.attr.sq_psn,
            sq_psn=agreed.sq_psn,
            max_rd_atomic=(5, 2)[end],
            max_dest_rd_atomic=(2, 5)[end],
            retry_cnt=4,
            rnr_retry=(2, 7)[end],
        )
        assert qp.attr == want  # the peer may do nothing, for nobody said so
    give_message(pair, mine, theirs)
    mine.disconnect()
    assert mine.qp is not None
    assert mine.qp.state is QpState.ERR
    assert pair.run()
    assert pair.types(0) == pair.types(1) == [E.DISCONNECTED, E.TIMEWAIT_EXIT]
    assert pair.names() == ["REQ", "REP", "RTU", "DREQ", "DREP"]
    assert pair.left_over() == []
    assert not pair.cms[0].counters + pair.cms[1].counters


def give_message(pair: CmPair, mine: CmId, theirs: CmId) -> None:
    """Send a message over the connection."""
    assert mine.qp is not None
    assert theirs.qp is not None
    buffers = [bytearray(b"abcdefgh"), bytearray(8)]
    regions = [
        end.memory.register(pd, buffer, AccessFlags.LOCAL_WRITE)
        for end, pd, buffer in zip(pair.nics, pair.pds, buffers, strict=True)
    ]
    pieces = [Sge(region.addr, 8, region.lkey) for region in regions]
    theirs.qp.post_recv(RecvWr(wr_id=1, sg_list=(pieces[1],)))
    mine.qp.post_send(SendWr(wr_id=2, opcode=WrOpcode.SEND, sg_list=(pieces[0],), flags=SendFlags.SIGNALED))
    pair.soon()
    assert buffers[1] == b"abcdefgh"


@pytest.mark.parametrize("lost", range(5), ids=["REQ", "REP", "RTU", "DREQ", "DREP"])
def test_a_message_that_is_lost_goes_again(lost: int) -> None:
    pair = CmPair()
    pair.wire.drop = {lost}
    mine = pair.connect()

    def react(_end: int, event: Any) -> None:
        if event.event_type is E.CONNECT_REQUEST:
            event.id.accept(pair.qp(1))

    assert pair.live(react)
    mine.disconnect()
    assert pair.live(react)
    # where nobody waits for a message that is lost, the message before it goes again first
    again = [{"REQ"}, {"REQ", "REP"}, {"REP", "RTU"}, {"DREQ"}, {"DREQ", "DREP"}][lost]
    assert Counter(pair.names()) == Counter(["REQ", "REP", "RTU", "DREQ", "DREP", *again])
    assert [event.event_type for event in pair.events[0]] == [E.ESTABLISHED, E.DISCONNECTED, E.TIMEWAIT_EXIT]
    assert pair.left_over() == []


def test_a_peer_that_is_not_there_is_unreachable_after_all_retries() -> None:
    pair = CmPair(BadWire(loss=1.0), manager={"response_timeout": 14, "cm_retries": 3})
    mine = pair.connect()
    assert pair.run()
    assert pair.names() == ["REQ"] * 4 + ["REJ"]
    (event,) = pair.take(0)
    assert (event.event_type, event.status) == (E.UNREACHABLE, R.TIMEOUT)
    assert pair.wire.last_sent_ps == 4 * (4_096_000 << 14)
    assert mine.state is S.IDLE


def test_a_rejection_brings_its_reason_and_data() -> None:
    pair = CmPair()
    mine, theirs = pair.request()
    theirs.reject(b"no room")
    pair.soon()
    (event,) = pair.take(0)
    assert (event.event_type, event.status) == (E.REJECTED, R.CONSUMER_DEFINED)
    assert event.private_data == b"no room".ljust(148, b"\0")
    assert mine.state is S.IDLE
    assert mine.qp is not None
    mine.qp.modify(QpState.RESET)
    pair.connect(qp=mine.qp)  # it is free again, at both ends
    pair.soon()
    assert pair.types(1) == [E.CONNECT_REQUEST]


def test_more_time_is_asked_for_and_given() -> None:
    pair = CmPair(manager={"response_timeout": 10, "cm_retries": 0})
    mine, theirs = pair.request()
    theirs.send_mra(20)
    pair.soon()
    assert mine.state is S.MRA_REQ_RCVD
    pair.wire.now_ps += SECOND_PS  # an answer is late after 4 ms
    theirs.accept(pair.qp(1))
    pair.soon()
    assert pair.types(0) == [E.ESTABLISHED]


def test_nobody_is_made_to_wait_for_longer_than_a_minute() -> None:
    pair = CmPair()
    mine = pair.connect()
    pair.forge(0, CmWait(remote_comm_id=mine.local_comm_id, service_timeout=31), mine._transaction)
    pair.nics[0].datagrams_to_send(0)
    assert mine.state is S.MRA_REQ_RCVD
    assert mine.deadline_ps == 4_096_000 << 24


def test_a_request_that_nobody_answers_ends() -> None:
    pair = CmPair()
    mine, theirs = pair.request()
    assert pair.run()
    assert [event.event_type for event in pair.take(1)] == [E.CONNECT_ERROR]
    (event,) = pair.take(0)
    assert event.status == R.TIMEOUT
    assert (mine.state, theirs.state) == (S.IDLE, S.IDLE)
    assert pair.listener.pending == 0
    with pytest.raises(UsageError, match="waits for an answer"):
        theirs.accept(pair.qp(1))


def test_a_request_that_is_withdrawn_before_anybody_saw_it_tells_nothing() -> None:
    pair = CmPair()
    mine = pair.connect()
    pair.soon()
    mine.disconnect()
    pair.soon()
    assert pair.take(1) == []
    assert pair.listener.pending == 0


def test_a_request_that_comes_late_again_is_not_answered_once_the_connection_is_closed() -> None:
    pair = CmPair()
    mine, theirs = pair.establish()
    mine.disconnect()
    pair.soon()
    assert theirs.state is S.TIMEWAIT
    pair.forge(1, mine._request, mine._transaction)
    pair.soon()
    assert pair.names() == ["REQ", "REP", "RTU", "DREQ", "DREP"]
    assert pair.types(1) == [E.DISCONNECTED]


def test_a_nic_connects_to_itself() -> None:
    pair = CmPair()
    nic, manager = pair.nics[1], pair.cms[1]
    mine = manager.connect(nic.address, PORT, pair.qp(1))

    def deliver() -> None:
        while made := nic.datagrams_to_send(0):
            for datagram in made:
                nic.receive(datagram._replace(parts=(bytes(datagram.payload()),)), 0)

    deliver()
    (request,) = pair.take(1)
    request.id.accept(pair.qp(1))
    deliver()
    assert pair.types(1) == [E.ESTABLISHED, E.ESTABLISHED]
    mine.disconnect()
    deliver()
    assert pair.types(1) == [E.DISCONNECTED, E.DISCONNECTED]


def test_closing_from_both_ends_at_once_closes_once() -> None:
    pair = CmPair()
    mine, theirs = pair.establish()
    mine.disconnect()
    theirs.disconnect()
    theirs.disconnect()
    assert pair.run()
    assert pair.types(0) == pair.types(1) == [E.DISCONNECTED, E.TIMEWAIT_EXIT]
    assert pair.names()[3:] == ["DREQ", "DREQ", "DREP", "DREP"]


# What is agreed


def test_the_path_mtu_is_the_smaller_one() -> None:
    pair = CmPair(managers=({"path_mtu": 4096}, {"path_mtu": 512}))
    mine, theirs = pair.establish()
    assert mine.agreed is not None
    assert mine.agreed.path_mtu == 512
    assert mine.qp is not None
    assert theirs.qp is not None
    assert mine.qp.attr.path_mtu == theirs.qp.attr.path_mtu == 512
    assert pair.names() == ["REQ", "REJ", "REQ", "REP", "RTU"]


@pytest.mark.parametrize("both", [(True, True), (True, False), (False, True)])
def test_selective_repeat_is_on_where_both_ask(both: tuple[bool, bool]) -> None:
    pair = CmPair()
    mine, theirs = pair.request(private_data=b"user", selective_repeat=both[0])
    assert pair.events[1][0].private_data == b"user".ljust(56, b"\0")  # of the option, nothing is seen
    theirs.accept(pair.qp(1), ConnParam(private_data=b"data", selective_repeat=both[1]))
    pair.soon()
    assert pair.take(0)[0].private_data == b"data".ljust(196, b"\0")
    assert mine.agreed is not None
    assert theirs.agreed is not None
    assert mine.agreed.selective_repeat is theirs.agreed.selective_repeat is all(both)


def test_private_data_has_a_limit_and_without_the_option_the_field_is_the_users() -> None:
    pair = CmPair()
    full = bytes(range(56))
    pair.request(private_data=full)
    assert pair.events[1][0].private_data == full
    for data, option in ((bytes(57), False), (bytes(49), True)):
        with pytest.raises(UsageError, match="private_data: found"):
            pair.connect(private_data=data, selective_repeat=option)
    theirs = pair.events[1][0].id
    with pytest.raises(UsageError, match="wanted up to 196"):
        theirs.accept(pair.qp(1), ConnParam(private_data=bytes(197)))
    with pytest.raises(UsageError, match="wanted up to 148"):
        theirs.reject(bytes(149))


def test_several_processes_of_a_machine_share_numbers_by_prefix() -> None:
    for prefix in (0, 7, 255):
        pair = CmPair(nic={"number_prefix": prefix})
        numbers = [pair.qp(0).qp_num for _ in range(300)]
        assert {number >> 16 for number in numbers} == {prefix}
        assert len(set(numbers)) == 300
        assert min(numbers) > 1
        mine, theirs = pair.establish()
        assert mine.local_comm_id >> 24 == theirs.local_comm_id >> 24 == prefix
    with pytest.raises(UsageError, match="number_prefix"):
        RdmaNic(bytes(4), number_prefix=256)


# Requests that are refused


def bad_header(request: CmRequest, **change: Any) -> CmRequest:
    header, user = IpCmHeader.decode(request.private_data)
    return replace(request, private_data=replace(header, **change).encode() + bytes(user))


STRANGE = IPv4Address("10.9.9.9")
REFUSED: dict[str, tuple[CmRejReason, Any]] = {
    "no listener": (R.INVALID_SERVICE_ID, lambda m: replace(m, service_id=service_of_port(1))),
    "no port": (R.INVALID_SERVICE_ID, lambda m: replace(m, service_id=PORT)),
    "reliable datagram": (R.INVALID_TRANSPORT_TYPE, lambda m: replace(m, transport_service=2)),
    "extended": (R.INVALID_TRANSPORT_TYPE, lambda m: replace(m, extended_transport=1)),
    "no IP header": (R.UNSUPPORTED, lambda m: replace(m, private_data=bytes(92))),
    "version of the header": (R.UNSUPPORTED, lambda m: bad_header(m, version=1)),
    "partition": (R.UNSUPPORTED, lambda m: replace(m, partition_key=0x8001)),
    "other source": (R.INVALID_GID, lambda m: bad_header(m, source=STRANGE)),
    "other destination": (R.INVALID_GID, lambda m: bad_header(m, destination=STRANGE)),
    "source GID": (R.INVALID_GID, lambda m: replace(m, primary=replace(m.primary, local_gid=1))),
    "destination GID": (R.INVALID_GID, lambda m: replace(m, primary=replace(m.primary, remote_gid=1))),
    "no MTU": (R.INVALID_MTU, lambda m: replace(m, path_mtu=0)),
    "unknown MTU": (R.INVALID_MTU, lambda m: replace(m, path_mtu=6)),
    "MTU too large": (R.INVALID_MTU, lambda m: replace(m, path_mtu=4)),
    "management queue pair": (R.NO_QP, lambda m: replace(m, local_qpn=1)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_request_is_refused_with_its_reason_and_leaves_nothing(case: str) -> None:
    reason, change = REFUSED[case]
    pair = CmPair()
    request, transaction = asked(CmPair())
    pair.forge(1, request, transaction)
    assert pair.types(1) == [E.CONNECT_REQUEST]  # unchanged, it is taken
    pair = CmPair()
    pair.forge(1, change(request), transaction)
    pair.soon()
    assert [reject.reason for reject in rejections(pair)] == [reason]
    assert (rejections(pair)[0].remote_comm_id, rejections(pair)[0].message_rejected) == (request.local_comm_id, 0)
    assert pair.cms[1].counters["refused"] == 1
    assert pair.take(1) == []
    assert pair.left_over() == []


def test_a_queue_pair_that_has_a_connection_is_stale_and_the_old_one_is_closed() -> None:
    pair = CmPair()
    mine, theirs = pair.establish()
    request = replace(mine._request, local_comm_id=99)  # the peer has started again and forgotten
    pair.forge(1, request, 5)
    pair.soon()
    assert [reject.reason for reject in rejections(pair)] == [R.STALE_CONN]
    assert pair.types(1) == [E.DISCONNECTED]
    assert theirs.state is S.TIMEWAIT
    assert pair.types(0) == [E.DISCONNECTED]


def test_a_full_backlog_refuses_and_a_listener_that_closes_takes_no_more() -> None:
    pair = CmPair(backlog=1)
    _, first = pair.request()
    second = pair.connect()
    pair.soon()
    assert [(event.id, event.status) for event in pair.take(0)] == [(second, R.NO_RESOURCES)]
    first.reject()
    pair.soon()
    pair.request()
    pair.listener.close()
    pair.listener.close()
    pair.cms[1].listen(PORT).close()
    third = pair.connect()
    pair.soon()
    assert [event.status for event in pair.take(0) if event.id is third] == [R.INVALID_SERVICE_ID]


def test_a_flood_of_requests_costs_bounded_memory() -> None:
    limits = NicLimits(max_cm_pending=20, max_cm_id=50)
    pair = CmPair(limits=limits, backlog=1000)
    request, _ = asked(CmPair())
    for index in range(1500):
        source = IPv4Address(0x0A000100 + index)
        address = source.packed
        primary = replace(request.primary, local_gid=0xFFFF_0000_0000 | int(source))
        forged = replace(bad_header(request, source=source), local_comm_id=index + 1, primary=primary)
        pair.forge(1, forged, index, source=address)
    manager = pair.cms[1]
    assert pair.listener.pending == len(manager._pending) == len(manager._ids) == len(manager._events) == 20
    assert len(manager._outgoing) == 1024
    assert manager.counters == {"refused": 1480, "queue_full": 456}
    assert pair.run()
    assert pair.take(1) == []  # nobody has seen them, so nobody hears of their end
    assert pair.left_over() == []
    assert pair.listener.pending == 0


def test_requests_that_come_and_go_leave_no_clocks_behind() -> None:
    pair = CmPair()
    request, transaction = asked(CmPair())
    _, other = pair.request()
    guid = int.from_bytes(request.local_ca_guid.to_bytes(8).ljust(72, b"\0"))
    for comm_id in range(1, 1000):
        pair.forge(1, replace(request, local_comm_id=comm_id, local_qpn=77), transaction)
        assert len(pair.cms[1]._ids) == 2
        pair.nics[1].datagrams_to_send(pair.wire.now_ps + comm_id)
        pair.forge(1, CmReject(local_comm_id=comm_id, rejected_info_bytes=8, rejected_info=guid), transaction)
    assert list(pair.cms[1]._ids.values()) == [other]
    assert len(pair.cms[1]._deadlines) <= 67
    assert pair.cms[1].next_timer_ps() == other.deadline_ps  # those that live are kept
    assert pair.take(1) == []


def test_the_oldest_in_time_wait_makes_room() -> None:
    pair = CmPair(limits=NicLimits(max_cm_id=2))
    first, _ = pair.establish()
    first.disconnect()
    pair.soon()
    for end in (0, 1):
        assert pair.types(end) == [E.DISCONNECTED]
    second, _ = pair.establish()
    pair.connect()
    with pytest.raises(UsageError, match="connections: found 2, which is the limit"):
        pair.connect()
    assert first.state is S.IDLE
    assert second.state is S.ESTABLISHED


# Answers that are refused


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        (R.NO_QP, {"local_qpn": 1}),
        (R.INSUFFICIENT_RESP_RESOURCES, {"initiator_depth": 4}),
    ],
)
def test_a_rep_that_asks_for_too_much_is_refused(reason: CmRejReason, change: dict[str, int]) -> None:
    pair = CmPair()
    mine = pair.connect(responder_resources=3)
    reply = CmReply(local_comm_id=5, remote_comm_id=mine.local_comm_id, local_qpn=77, initiator_depth=3)
    pair.forge(0, replace(reply, **change), mine._transaction)
    (event,) = pair.take(0)
    assert (event.event_type, event.status, mine.state) == (E.CONNECT_ERROR, reason, S.TIMEWAIT)
    pair.soon()
    assert [(reject.reason, reject.message_rejected) for reject in rejections(pair)[:1]] == [(reason, 1)]


def test_a_rep_is_refused_where_its_queue_pair_is_gone_or_taken() -> None:
    pair = CmPair()
    first = pair.connect()
    assert first.qp is not None
    pair.nics[0].destroy_qp(first.qp)
    reply = CmReply(local_comm_id=5, remote_comm_id=first.local_comm_id, local_qpn=77)
    pair.forge(0, reply, first._transaction)
    second, third = pair.connect(), pair.connect()
    for conversation in (second, third):
        pair.forge(0, replace(reply, remote_comm_id=conversation.local_comm_id), conversation._transaction)
    found = [(event.id, event.event_type, event.status) for event in pair.take(0)]
    assert found == [
        (first, E.CONNECT_ERROR, R.NO_QP),
        (second, E.ESTABLISHED, 0),
        (third, E.CONNECT_ERROR, R.STALE_CONN),
    ]
    assert second.state is S.DREQ_SENT


def test_what_belongs_to_no_conversation_is_answered_and_forgotten() -> None:
    pair = CmPair()
    pair.forge(0, CmReply(local_comm_id=5, remote_comm_id=6), 7)
    pair.forge(0, CmDisconnectRequest(local_comm_id=8, remote_comm_id=9, remote_qpn=3), 10)
    for silent in (CmReady, CmReject, CmWait, CmDisconnectReply):
        pair.forge(0, silent(local_comm_id=5, remote_comm_id=6), 7)
    pair.forge(0, CmServiceRequest(request_id=1), 7)
    pair.soon()
    (_, first, reject), (_, second, reply) = pair.messages()
    assert isinstance(reject, CmReject)
    assert (reject.local_comm_id, reject.remote_comm_id, reject.reason, first.transaction) == (6, 5, 6, 7)
    assert isinstance(reply, CmDisconnectReply)
    assert (reply.local_comm_id, reply.remote_comm_id, second.transaction) == (9, 8, 10)
    assert pair.cms[0].counters == {"no_conversation": 6, "unsupported": 1}
    assert pair.left_over() == []


# Strangers


@pytest.mark.parametrize(
    "more",
    [
        {"source": bytes((10, 9, 9, 9))},
        {"queue_key": 0x1234},
        {"source_qp": 5},
        {"pkey": 0x8001},
        {"opcode": 4},
        {"transaction": 1},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_message_from_a_stranger_changes_nothing(more: dict[str, Any]) -> None:
    pair = CmPair()
    mine, theirs = pair.request()
    theirs.accept(pair.qp(1))
    ids = {"local_comm_id": theirs.local_comm_id, "remote_comm_id": mine.local_comm_id}
    transaction = more.pop("transaction", mine._transaction)
    for message in (CmReply(**ids, local_qpn=77), CmReject(**ids, reason=28), CmWait(**ids)):
        pair.forge(0, message, transaction, **more)
    assert mine.state is S.REQ_SENT
    assert pair.cms[0].counters.total() == 3
    pair.soon()
    assert pair.types(0) == pair.types(1) == [E.ESTABLISHED]


def test_a_ready_of_another_conversation_is_not_taken() -> None:
    pair = CmPair()
    _, theirs = pair.request()
    theirs.accept(pair.qp(1))
    pair.forge(1, CmReady(local_comm_id=1, remote_comm_id=theirs.local_comm_id), theirs._transaction)
    assert (theirs.state, pair.cms[1].counters) == (S.REP_SENT, {"stranger": 1})


def test_a_stranger_closes_no_connection() -> None:
    pair = CmPair()
    mine, theirs = pair.establish()
    assert mine.qp is not None
    right = CmDisconnectRequest(
        local_comm_id=theirs.local_comm_id, remote_comm_id=mine.local_comm_id, remote_qpn=mine.qp.qp_num
    )
    pair.forge(0, replace(right, local_comm_id=1), 3)
    pair.forge(0, replace(right, remote_qpn=1), 3)
    pair.forge(0, right, 3, source=bytes((10, 9, 9, 9)))
    pair.forge(0, CmReject(local_comm_id=1, remote_comm_id=mine.local_comm_id), mine._transaction)
    pair.forge(0, CmDisconnectReply(local_comm_id=theirs.local_comm_id, remote_comm_id=mine.local_comm_id), 3)
    assert (mine.state, pair.cms[0].counters) == (S.ESTABLISHED, {"stranger": 5})
    pair.forge(0, right, 3)
    assert mine.state is S.TIMEWAIT


def test_an_early_rejection_needs_the_identity_of_the_adapter() -> None:
    pair = CmPair()
    mine, theirs = pair.request()
    info = pair.cms[0].ca_guid.to_bytes(8).ljust(72, b"\0")
    reject = CmReject(local_comm_id=mine.local_comm_id, reason=4, rejected_info_bytes=8)
    pair.forge(1, replace(reject, rejected_info=1), mine._transaction)
    assert theirs.state is S.REQ_RCVD
    pair.forge(1, replace(reject, rejected_info=int.from_bytes(info)), mine._transaction)
    assert theirs.state is S.IDLE


@pytest.mark.parametrize("cut", [0, 23, 24, 255])
def test_a_datagram_that_is_no_message_is_counted_and_dropped(cut: int) -> None:
    pair = CmPair()
    whole = encode_cm(asked(CmPair())[0], 1)
    pair.forge(1, whole[: cut // 4 * 4])
    for at, value in ((0, 2), (1, 3), (2, 1), (3, 1), (5, 1), (7, 1), (17, 0xFF), (19, 1), (23, 1)):
        changed = bytearray(whole)
        changed[at] = value
        pair.forge(1, bytes(changed))
    assert pair.cms[1].counters == {"malformed": 10}
    assert pair.take(1) == []


# Mistakes of the caller


def test_mistakes_of_the_caller_are_refused_and_change_nothing() -> None:
    pair = CmPair()
    with pytest.raises(UsageError, match="which has an owner"):
        ConnectionManager(pair.nics[0])
    for keywords in ({"path_mtu": 1500}, {"response_timeout": 32}, {"cm_retries": 16}):
        with pytest.raises(UsageError, match=next(iter(keywords))):
            ConnectionManager(RdmaNic(bytes(4)), **keywords)
    for port, backlog in ((PORT, 1), (0, 1), (1, 0), (65_536, 1)):
        with pytest.raises(UsageError, match="port"):
            pair.cms[1].listen(port, backlog)
    for param in (
        {"responder_resources": 129},
        {"initiator_depth": -1},
        {"retry_count": 8},
        {"rnr_retry_count": 8},
        {"timeout": 32},
        {"path_mtu": 1500},
        {"port": 1 << 16},
    ):
        with pytest.raises(UsageError, match=next(iter(param))):
            pair.connect(**param)
    with pytest.raises(UsageError, match="address"):
        pair.cms[0].connect(bytes(16), PORT, pair.qp(0))
    with pytest.raises(UsageError, match="found UD in RESET"):
        pair.connect(qp=pair.qp(0, QpType.UD))
    with pytest.raises(UsageError, match="selective_repeat: found it for UC"):
        pair.connect(qp=pair.qp(0, QpType.UC), selective_repeat=True)
    assert pair.left_over() == []
    mine, theirs = pair.request()
    with pytest.raises(UsageError, match="in use by another"):
        pair.connect(qp=mine.qp)
    with pytest.raises(UsageError, match="wanted the other type"):
        theirs.accept(pair.qp(1, QpType.UC))
    with pytest.raises(UsageError, match="wanted `reject`"):
        theirs.disconnect()
    with pytest.raises(UsageError, match="service_timeout"):
        theirs.send_mra(32)
    assert (mine.state, theirs.state) == (S.REQ_SENT, S.REQ_RCVD)
    theirs.accept(pair.qp(1))
    for call in (theirs.reject, theirs.send_mra):
        with pytest.raises(UsageError, match="waits for an answer"):
            call()
