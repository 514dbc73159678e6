"""The connection manager, one rule at a time: two ends, virtual time, and what their events say."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from helpers.cm_pair import PORT, CmPair
from helpers.rdma_pair import SECOND_PS, BadWire

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_host import timeout_ps
from weftwork.rdma.cm_id import CmId
from weftwork.rdma.cm_records import AgreedConnection, CmEventType, CmRejReason, ConnParam
from weftwork.rdma.cm_states import CmState
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.queue_pair import RdmaQueuePair
from weftwork.rdma.verbs import AccessFlags, QpAttr, QpState, QpType, RecvWr, SendFlags, SendWr, Sge, WrOpcode
from weftwork.wire.cm import CmReady, CmReply, CmRequest, CmWait
from weftwork.wire.ib import Bth
from weftwork.wire.opcodes import Opcode

E, R, S = CmEventType, CmRejReason, CmState


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


def test_each_message_names_the_first_psn_of_its_receiver() -> None:
    """As Linux does: cm_req_handler and cm_rep_handler in cm.c take starting_psn for sq_psn."""
    pair = CmPair()
    mine, theirs = pair.establish()
    first = [message.starting_psn for _, _, message in pair.messages() if isinstance(message, CmRequest | CmReply)]
    assert mine.qp is not None
    assert theirs.qp is not None
    assert first == [theirs.qp.attr.sq_psn, mine.qp.attr.sq_psn] == [mine.qp.attr.rq_psn, theirs.qp.attr.rq_psn]


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


@pytest.mark.parametrize("qp_type", [QpType.RC, QpType.UC], ids=lambda qp_type: qp_type.name)
def test_data_that_come_before_the_rtu_establish_the_connection(qp_type: QpType) -> None:
    """Its RTU is lost: the first packet of the peer says the same, at once, and no message goes again."""
    pair = CmPair()
    pair.wire.drop = {2}
    mine, theirs = pair.request(qp=pair.qp(0, qp_type))
    theirs.accept(pair.qp(1, qp_type))
    pair.soon()
    assert (pair.types(0), pair.types(1), theirs.state) == ([E.ESTABLISHED], [], S.REP_SENT)
    assert mine.qp is not None
    buffer = bytearray(8)
    region = pair.nics[0].memory.register(pair.pds[0], buffer, AccessFlags.LOCAL_WRITE)
    mine.qp.post_send(SendWr(wr_id=1, opcode=WrOpcode.SEND, sg_list=(Sge(region.addr, 8, region.lkey),)))
    pair.soon()
    assert (pair.types(1), theirs.state) == ([E.ESTABLISHED], S.ESTABLISHED)
    pair.forge(1, CmReady(local_comm_id=mine.local_comm_id, remote_comm_id=theirs.local_comm_id), mine._transaction)
    pair.soon()
    assert pair.types(1) == []
    assert pair.names() == ["REQ", "REP", "RTU"]


def test_a_stranger_establishes_no_connection() -> None:
    pair = CmPair()
    pair.wire.drop = {2}
    mine, theirs = pair.request()
    theirs.accept(pair.qp(1))
    pair.soon()
    assert theirs.qp is not None
    stranger = RdmaNic(bytes([192, 0, 2, 99]))
    bth = Bth(Opcode.SEND_ONLY, theirs.qp.qp_num, theirs.qp.attr.rq_psn)
    made = stranger.flow(pair.addresses[1], 0xC000, 0).close(bth.encode(), (b"data",))
    pair.nics[1].receive(made._replace(parts=(bytes(made.payload()),)), pair.wire.now_ps)
    assert (pair.types(1), theirs.state, theirs.qp.counters["stranger"]) == ([], S.REP_SENT, 1)
    assert mine.state is S.ESTABLISHED


def test_a_peer_that_is_not_there_is_unreachable_after_all_retries() -> None:
    pair = CmPair(BadWire(loss=1.0), manager={"response_timeout": 14, "cm_retries": 3})
    mine = pair.connect()
    assert pair.run()
    assert pair.names() == ["REQ"] * 4 + ["REJ"]
    (event,) = pair.take(0)
    assert (event.event_type, event.status) == (E.UNREACHABLE, R.TIMEOUT)
    assert pair.wire.last_sent_ps == 4 * (4_096_000 << 14)
    assert mine.state is S.IDLE


@pytest.mark.parametrize(
    ("wait_s", "retries", "tries"),
    [(1, None, 15), (10, None, 9), (0.001, None, 15), (1, 0, 1), (1, 3, 4), (None, 2, 3)],
)
def test_a_request_is_given_up_after_the_time_that_was_asked_for(
    wait_s: float | None, retries: int | None, tries: int
) -> None:
    pair = CmPair(BadWire(loss=1.0), manager={"response_timeout": 16})
    pair.connect(answer_wait_ps=None if wait_s is None else round(wait_s * SECOND_PS), cm_retries=retries)
    assert pair.run()
    assert pair.names() == ["REQ"] * tries + ["REJ"]
    wanted_ps = tries * timeout_ps(16) if wait_s is None else wait_s * SECOND_PS
    assert pair.wire.last_sent_ps == pytest.approx(wanted_ps, rel=0.07 if retries is None else 0.35)


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


def move(conversation: CmId, qp: RdmaQueuePair, agreed: AgreedConnection) -> None:
    """What a user does that moves the queue pair."""
    attr = QpAttr(
        remote_address=conversation.address,
        dest_qp_num=agreed.remote_qp_num,
        path_mtu=agreed.path_mtu,
        rq_psn=agreed.rq_psn,
        sq_psn=agreed.sq_psn,
        max_rd_atomic=agreed.max_rd_atomic,
        max_dest_rd_atomic=agreed.max_dest_rd_atomic,
    )
    for state in (QpState.INIT, QpState.RTR, QpState.RTS):
        qp.modify(state, attr)


def test_a_user_who_moves_the_queue_pairs_confirms() -> None:
    pair = CmPair()
    param = ConnParam(moves_qp=False, initiator_depth=3)
    qps = [pair.qp(0), pair.qp(1)]
    mine = pair.cms[0].connect(pair.addresses[1], PORT, qps[0], param)
    pair.soon()
    (request,) = pair.take(1)
    theirs = request.id
    offered = theirs.offered(param)
    move(theirs, qps[1], offered)
    theirs.accept(qps[1], param)
    assert theirs.agreed == offered
    pair.soon()
    (response,) = pair.take(0)
    assert (response.event_type, mine.state, qps[0].state) == (E.CONNECT_RESPONSE, S.REP_RCVD, QpState.RESET)
    with pytest.raises(UsageError, match="wanted an agreement that waits"):
        theirs.establish()
    assert mine.agreed is not None
    assert mine.agreed.max_rd_atomic == offered.max_dest_rd_atomic == 3
    move(mine, qps[0], mine.agreed)
    mine.establish()
    pair.soon()
    assert (pair.types(0), pair.types(1)) == ([], [E.ESTABLISHED])
    give_message(pair, mine, theirs)
    mine.disconnect()
    pair.soon()
    assert pair.types(0) == pair.types(1) == [E.DISCONNECTED]
    assert [qp.state for qp in qps] == [QpState.RTS] * 2  # the user moves them to ERR too
    assert pair.run()
    assert pair.left_over() == []


def test_a_peer_waits_until_the_user_confirms_and_not_for_ever() -> None:
    pair = CmPair()
    mine, theirs = pair.request(moves_qp=False)
    theirs.accept(pair.qp(1))
    pair.run(30 * SECOND_PS)  # 30 s are longer than all retries of the REP
    assert (mine.state, theirs.state) == (S.REP_RCVD, S.MRA_REP_RCVD)
    assert pair.names().count("MRA") == 1
    assert pair.run()
    assert pair.types(0)[:2] == [E.CONNECT_RESPONSE, E.CONNECT_ERROR]
    assert pair.types(1)[:1] == [E.REJECTED]
    assert pair.left_over() == []
