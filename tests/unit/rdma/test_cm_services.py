"""Datagram services: who answers at a port, one rule at a time, in virtual time."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

import pytest
from helpers.cm_pair import CmPair
from helpers.rdma_devices import PATIENCE_S
from helpers.rdma_pair import SECOND_PS, BadWire

from weftwork.base.errors import UsageError
from weftwork.rdma.cm_records import CmEventType, CmServiceEvent, CmServiceStatus
from weftwork.rdma.cm_services import UDP_QUEUE_KEY, CmServiceId, ServiceState
from weftwork.rdma.connection_manager import ConnectionManager
from weftwork.rdma.device import RdmaDevice
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import QpType
from weftwork.wire.cm import CmServiceReply, CmServiceRequest
from weftwork.wire.rdma_ip_cm import IpCmHeader, PortSpace

E, S = CmEventType, CmServiceStatus
PORT = 7471


# Addresses of this process alone, since tests run side by side.
HERE, THERE = ("127.{}.{}.{}".format(*divmod(os.getpid() % 60_000, 250), last) for last in (51, 52))


def taken(manager: ConnectionManager) -> list[CmServiceEvent]:
    """Events since the last call."""
    found = []
    while (event := manager.services.next_event()) is not None:
        found.append(event)
    return found


def events(pair: CmPair, end: int) -> list[CmServiceEvent]:
    return taken(pair.cms[end])


def ask(pair: CmPair, private_data: bytes = b"", space: PortSpace = PortSpace.UDP) -> tuple[CmServiceId, CmServiceId]:
    """A question that waits at end 1, and both ends of the resolution."""
    mine = pair.cms[0].services.ask(pair.addresses[1], PORT, private_data, space)
    pair.soon()
    (event,) = events(pair, 1)
    assert event.event_type is E.CONNECT_REQUEST
    return mine, event.id


def listening(space: PortSpace = PortSpace.UDP, backlog: int = 64, **more: Any) -> CmPair:
    pair = CmPair(**more)
    pair.cms[1].listen(PORT, backlog, space)
    return pair


@pytest.mark.parametrize("space", [PortSpace.UDP, PortSpace.IPOIB])
@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_port_is_resolved_to_a_queue_pair(ip_version: int, space: PortSpace) -> None:
    pair = listening(space, ipv6=ip_version == 6)
    mine = pair.cms[0].services.ask(pair.addresses[1], PORT, b"who", space)
    pair.soon()
    (request,) = events(pair, 1)
    theirs = request.id
    assert (request.private_data, theirs.port, theirs.space) == (b"who".ljust(180, b"\0"), PORT, space)
    assert theirs.address == pair.addresses[0]
    qp = pair.qp(1, QpType.UD)
    theirs.accept(qp.qp_num, private_data=b"me")
    pair.soon()
    (answer,) = events(pair, 0)
    assert answer == CmServiceEvent(
        event_type=E.ESTABLISHED,
        id=mine,
        private_data=b"me".ljust(136, b"\0"),
        qp_num=qp.qp_num,
        queue_key=UDP_QUEUE_KEY,
    )
    assert pair.names() == ["SIDR_REQ", "SIDR_REP"]
    assert pair.run()
    assert pair.left_over() == []
    assert events(pair, 0) == events(pair, 1) == []
    assert not pair.cms[0].counters + pair.cms[1].counters


@pytest.mark.parametrize("lost", [{0}, {1}, {0, 2, 3}], ids=["question", "answer", "both"])
def test_a_question_that_gets_no_answer_goes_again(lost: set[int]) -> None:
    pair = listening()
    pair.wire.drop = lost
    mine = pair.cms[0].services.ask(pair.addresses[1], PORT)
    found: list[tuple[int, CmEventType]] = []
    for _ in range(20):
        pair.run(pair.wire.now_ps + SECOND_PS // 4)
        for end in (0, 1):
            for event in events(pair, end):
                found.append((end, event.event_type))
                if event.event_type is E.CONNECT_REQUEST:
                    event.id.accept(77)
    assert found == [(1, E.CONNECT_REQUEST), (0, E.ESTABLISHED)]  # the user hears of it once
    assert mine.state is ServiceState.IDLE
    assert pair.run()
    assert pair.left_over() == []


def test_a_peer_that_is_not_there_is_unreachable_after_all_retries() -> None:
    pair = listening(wire=BadWire(loss=1.0), manager={"response_timeout": 14, "cm_retries": 3})
    mine = pair.cms[0].services.ask(pair.addresses[1], PORT)
    assert pair.run()
    assert pair.names() == ["SIDR_REQ"] * 4
    (event,) = events(pair, 0)
    assert (event.id, event.event_type) == (mine, E.UNREACHABLE)
    assert pair.left_over() == []


def test_a_refusal_brings_its_status_and_data() -> None:
    pair = listening()
    mine, theirs = ask(pair)
    theirs.reject(b"no")
    pair.soon()
    (event,) = events(pair, 0)
    assert (event.id, event.event_type, event.status) == (mine, E.REJECTED, S.REJECT)
    assert (event.private_data[:3], event.qp_num, event.queue_key) == (b"no\0", 0, 0)
    with pytest.raises(UsageError, match="state: found SIDR_REP sent, wanted a request that waits"):
        theirs.accept(5)


def wrong_version(message: CmServiceRequest) -> CmServiceRequest:
    header, _ = IpCmHeader.decode(message.private_data)
    return replace(message, private_data=replace(header, version=1).encode())


@pytest.mark.parametrize(
    ("status", "change"),
    [
        (S.UNSUPPORTED, lambda m: replace(m, service_id=m.service_id + 1)),
        (S.UNSUPPORTED, lambda m: replace(m, service_id=m.service_id & 0xFFFF)),
        (S.UNSUPPORTED, lambda m: replace(m, private_data=bytes(216))),
        (S.UNSUPPORTED_VERSION, wrong_version),
        (S.REJECT, lambda m: replace(m, partition_key=0x8001)),
        (S.REJECT, lambda m: replace(m, private_data=m.private_data[:8] + bytes(12) + m.private_data[20:])),
    ],
    ids=["no listener", "no port space", "no IP version", "other version", "other partition", "other address"],
)
def test_each_refusal_of_the_manager(status: CmServiceStatus, change: Any) -> None:
    pair = listening()
    pair.cms[0].services.ask(pair.addresses[1], PORT)
    pair.nics[0].datagrams_to_send(0)
    request = CmServiceRequest(
        request_id=5,
        partition_key=0xFFFF,
        service_id=PortSpace.UDP << 16 | PORT,
        private_data=IpCmHeader(
            source_port=1,
            source=ip_address(pair.addresses[0]),
            destination=ip_address(pair.addresses[1]),
        ).encode(),
    )
    pair.forge(1, change(request), 9)
    pair.soon()
    (reply,) = [message for _, _, message in pair.messages() if isinstance(message, CmServiceReply)]
    assert (reply.request_id, reply.status, reply.service_qpn) == (5, status, 0)
    assert events(pair, 1) == []
    assert pair.cms[1].counters == {"refused": 1}
    pair.forge(1, request, 10)
    assert [event.event_type for event in events(pair, 1)] == [E.CONNECT_REQUEST]  # unchanged, it is taken


def test_answers_of_strangers_are_dropped() -> None:
    pair = listening()
    mine, theirs = ask(pair)
    reply = CmServiceReply(request_id=mine.request_id, service_qpn=666)
    pair.forge(0, reply, mine.transaction, source=bytes((10, 0, 0, 9)))
    pair.forge(0, reply, mine.transaction + 1)
    pair.forge(0, replace(reply, request_id=mine.request_id ^ 1), mine.transaction)
    assert events(pair, 0) == []
    assert pair.cms[0].counters == {"stranger": 2, "no_conversation": 1}
    pair.forge(0, replace(reply, service_qpn=1), mine.transaction)
    (event,) = events(pair, 0)
    assert (event.event_type, event.status) == (E.REJECTED, S.NO_QP)  # 0 and 1 are for management
    theirs.accept(5)
    assert pair.run()
    assert pair.left_over() == []


def test_a_question_of_another_transaction_is_another_question_once_the_first_is_answered() -> None:
    pair = listening()
    mine, theirs = ask(pair)
    request = next(message for _, _, message in pair.messages())
    pair.forge(1, request, mine.transaction + 1)
    assert pair.cms[1].counters == {"stranger": 1}
    theirs.accept(5)
    pair.forge(1, request, mine.transaction + 1)
    (event,) = events(pair, 1)
    assert event.id is not theirs
    event.id.close()
    assert event.id.state is ServiceState.ANSWERED
    assert pair.run()
    assert pair.left_over() == []


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_question_that_nobody_answers_is_refused_in_the_end(is_seen: bool) -> None:  # noqa: FBT001
    pair = listening(managers=({"response_timeout": 25}, {}))
    mine = pair.cms[0].services.ask(pair.addresses[1], PORT)
    pair.soon()
    if is_seen:
        events(pair, 1)
    pair.run(69 * SECOND_PS)
    assert [event.event_type for event in events(pair, 1)] == ([E.CONNECT_ERROR] if is_seen else [])
    assert [(event.id, event.status) for event in events(pair, 0)] == [(mine, S.REJECT)]
    assert pair.run()
    assert pair.left_over() == []


def test_a_flood_of_questions_costs_bounded_memory() -> None:
    pair = listening(backlog=8, limits=NicLimits(max_cm_id=16, max_cm_pending=12))
    _, theirs = ask(pair)
    request = next(message for _, _, message in pair.messages())
    assert isinstance(request, CmServiceRequest)
    for number in range(200):
        pair.forge(1, replace(request, request_id=1000 + number), number)
    assert len(pair.cms[1].services.kept) == 8
    for event in events(pair, 1):
        event.id.accept(5)
    theirs.accept(5)
    for number in range(200):
        pair.forge(1, replace(request, request_id=2000 + number), number)
        (event,) = events(pair, 1)
        event.id.accept(5)
        assert len(pair.cms[1].services.kept) <= 16  # the oldest that is answered makes room
    assert pair.run()
    assert pair.left_over() == []


def test_mistakes_of_the_caller_change_nothing() -> None:
    pair = listening(limits=NicLimits(max_cm_id=1))
    services = pair.cms[0].services
    with pytest.raises(UsageError, match="private_data: found 181 bytes, wanted up to 180"):
        services.ask(pair.addresses[1], PORT, bytes(181))
    with pytest.raises(UsageError, match="address: found 16 bytes, wanted 4"):
        services.ask(bytes(16), PORT)
    mine, theirs = ask(pair)
    with pytest.raises(UsageError, match="datagram services: found 1, which is the limit"):
        services.ask(pair.addresses[1], PORT)
    for wrong in ({"qp_num": 1 << 24}, {"qp_num": 5, "queue_key": 1 << 32}, {"qp_num": 5, "private_data": bytes(137)}):
        with pytest.raises(UsageError, match=next(reversed(wrong))):
            theirs.accept(**wrong)
    assert theirs.state is ServiceState.ASKED
    mine.close()
    assert mine.state is ServiceState.IDLE
    theirs.accept(5)
    assert pair.run()
    assert events(pair, 0) == []  # an answer that comes after the close
    assert pair.left_over() == []


def test_the_port_spaces_count_separately() -> None:
    pair = CmPair()
    listeners = [pair.cms[1].listen(PORT, space=space) for space in PortSpace]
    with pytest.raises(UsageError, match="wanted a free port"):
        pair.cms[1].listen(PORT, space=PortSpace.UDP)
    assert ask(pair)[1].space is PortSpace.UDP
    listeners[-1].close()
    pair.cms[0].services.ask(pair.addresses[1], PORT)
    pair.soon()
    assert [event.status for event in events(pair, 0)] == [S.UNSUPPORTED]
    pair.cms[0].connect(pair.addresses[1], PORT, pair.qp(0))
    pair.soon()
    assert pair.types(1) == [E.CONNECT_REQUEST]


def open_two(address: str, *, wire: str = "rocev2") -> list[RdmaDevice]:
    return [RdmaDevice(address, wire=wire) for _ in range(2)]


def answer_of(asking: RdmaDevice, asker: ConnectionManager) -> CmServiceEvent:
    found: list[CmServiceEvent] = []
    assert asking.wait(lambda: bool(found.extend(taken(asker)) or found), PATIENCE_S)
    return found[0]


def test_a_question_finds_the_process_that_listens_and_its_answer_the_one_that_asked() -> None:
    # of each address the system gives management datagrams to slot 0, and slot 1 asks and listens
    devices = [*open_two(HERE, wire="rocev2-udp"), *open_two(THERE, wire="rocev2-udp")]
    try:
        here, there = devices[1], devices[3]
        asker, server = (ConnectionManager(device.nic, path_mtu=device.port.path_mtu) for device in (here, there))
        server.listen(PORT, space=PortSpace.UDP)
        there.port.listen(PORT, PortSpace.UDP)
        devices[2].port.listen(PORT)  # the same port of another space
        with here.lock:
            asker.services.ask(there.port.address, PORT)
            here.kick()
        with devices[0], devices[2]:
            question = answer_of(there, server)
            with there.lock:
                question.id.accept(77)
                there.kick()
            answer = answer_of(here, asker)
        assert (answer.event_type, answer.qp_num) == (E.ESTABLISHED, 77)
        assert devices[0].port.counters["handed_on"] == devices[2].port.counters["handed_on"] == 1
    finally:
        for device in devices:
            device.close()


def test_the_last_message_of_a_process_reaches_a_process_of_the_same_address() -> None:
    first, second = open_two(HERE)
    try:
        server, asker = (ConnectionManager(device.nic, path_mtu=device.port.path_mtu) for device in (first, second))
        server.listen(PORT, space=PortSpace.UDP)
        first.port.listen(PORT, PortSpace.UDP)
        with second.lock:
            asker.services.ask(first.port.address, PORT)
            second.kick()
        question = answer_of(first, server)
        with first.lock:
            question.id.accept(77)
            first.kick()
        first.close()  # by UDP the answer would have come to this one's socket, and ended with it
        assert answer_of(second, asker).event_type is E.ESTABLISHED
    finally:
        first.close()
        second.close()
