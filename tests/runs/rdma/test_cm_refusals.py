"""What the connection manager refuses and drops: wrong requests and answers, strangers, floods."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Address

from helpers.cm_pair import CmPair
from helpers.cm_refusals import E, S, asked, bad_header, rejections

from weftwork.rdma.queue_pair import NicLimits
from weftwork.wire.cm import (
    CmReject,
)


def test_connections_that_come_and_go_never_meet_the_number_of_one_before() -> None:
    # 65,533 numbers of one prefix: drawn blindly, 500 pairs of them name one twice with a chance of 0.98
    pair = CmPair(nic={"number_prefix": 3})
    for _ in range(500):
        mine, theirs = pair.establish()
        mine.disconnect()
        pair.soon()
        assert pair.types(0) == pair.types(1) == [E.DISCONNECTED]
        for end, conversation in ((0, mine), (1, theirs)):
            assert conversation.state is S.TIMEWAIT  # the peer still remembers it
            assert conversation.qp is not None
            pair.nics[end].destroy_qp(conversation.qp)
    assert rejections(pair) == []


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
    assert len(pair.cms[1]._clocks._deadlines) <= 67
    assert pair.cms[1].next_timer_ps() == other.deadline_ps  # those that live are kept
    assert pair.take(1) == []
