"""What the connection manager refuses and drops: wrong requests and answers, strangers, floods."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest
from helpers.cm_pair import PORT, CmPair
from helpers.cm_refusals import E, R, S, asked, bad_header, rejections

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmRejReason
from weftwork.rdma.queue_pair import NicLimits
from weftwork.wire.cm import (
    CmDisconnectReply,
    CmDisconnectRequest,
    CmReady,
    CmReject,
    CmReply,
    CmServiceReply,
    CmWait,
    encode_cm,
)
from weftwork.wire.rdma_ip_cm import service_of_port

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


def test_a_closed_connection_is_not_stale_for_a_program_that_starts_again() -> None:
    pair = CmPair()
    mine, theirs = pair.establish()
    mine.disconnect()
    pair.soon()
    assert pair.types(1) == [E.DISCONNECTED]
    assert theirs.state is S.TIMEWAIT
    request = replace(mine._request, local_comm_id=99)
    pair.forge(1, request, 5)
    pair.soon()
    assert [reject.reason for reject in rejections(pair)] == [R.STALE_CONN]  # a late REQ of the same adapter
    for comm_id in (99, mine.local_comm_id):
        pair.forge(1, replace(request, local_comm_id=comm_id, local_ca_guid=request.local_ca_guid ^ comm_id), comm_id)
        (event,) = pair.take(1)
        assert event.event_type is E.CONNECT_REQUEST
        event.id.reject()
    assert pair.run()
    assert pair.left_over() == []


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
    pair.forge(0, CmServiceReply(request_id=1), 7)
    pair.soon()
    (_, first, reject), (_, second, reply) = pair.messages()
    assert isinstance(reject, CmReject)
    assert (reject.local_comm_id, reject.remote_comm_id, reject.reason, first.transaction) == (6, 5, 6, 7)
    assert isinstance(reply, CmDisconnectReply)
    assert (reply.local_comm_id, reply.remote_comm_id, second.transaction) == (9, 8, 10)
    assert pair.cms[0].counters == {"no_conversation": 7}
    assert pair.left_over() == []


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
