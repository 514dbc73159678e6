"""Messages that are delivered before those in front of them: an assembly and an inbox alone, a receiver, and runs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from helpers.by_hand import FLOW, MTU_BYTES, HandClock, HandInbox, HandLine, Tally, data, queue_pair_config
from helpers.tiny import BYTE_PS, DELAY_PS, job_of, packet_input_of, pair

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.message import Inbox, SendQueue
from weftwork.engine.reference.ordering import Assembly
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.receiver import Receiver
from weftwork.engine.reference.simulation import run
from weftwork.engine.rows.waits import WAIT_KINDS, WAIT_STATES
from weftwork.spec.job import Milestone, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport
from weftwork.wire.credits import credits_to_code

FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
MESSAGE_PACKETS = (2, 1, 3)  # of the messages of a receiver that is driven: packets 0 and 1, 2, 3 to 5
ANY_ORDER = ["message", "none"]


def packet(seq: int, **changes: Any) -> Packet:
    """One packet of the messages of `MESSAGE_PACKETS`, which asks for an ACK."""
    firsts = [sum(MESSAGE_PACKETS[:ordinal]) for ordinal in range(len(MESSAGE_PACKETS))]
    message = max(ordinal for ordinal, first in enumerate(firsts) if first <= seq)
    packets = MESSAGE_PACKETS[message]
    place = {
        "message": message,
        "message_packets": packets,
        "ends_message": seq == firsts[message] + packets - 1,
        "asks_ack": True,
    }
    return data(seq, **(place | changes))


def receiver_of(inbox: Any, **changes: Any) -> tuple[Receiver, HandLine]:
    line = HandLine(port=1)
    values = {"recovery": "selective-repeat", "ordering": "message"} | changes
    receiver = Receiver(
        FLOW,
        queue_pair_config(**values),
        clock=HandClock(),
        line=line,
        destination=0,
        inbox=inbox,
        base_rtt_ps=US_PS,
        count=Tally(),
    )
    return receiver, line


def inbox_of(*, matches_any: bool) -> Inbox:
    queue = SendQueue(MTU_BYTES)
    for packets in MESSAGE_PACKETS:
        queue.append(packets * MTU_BYTES, 0, 0, lambda: None)
    return Inbox(HandClock(), queue.messages, matches_any=matches_any)


# An assembly


def test_a_message_is_whole_with_the_last_of_its_packets_whichever_that_is() -> None:
    assembly = Assembly()
    assert [assembly.completes(packet(seq)) for seq in (5, 1, 2, 3, 0, 4)] == [False, False, True, False, True, True]


# An inbox


def test_the_nth_receive_waits_for_the_nth_message_though_a_later_one_is_there() -> None:
    inbox, told = inbox_of(matches_any=False), list[str]()
    assert not inbox.claim(lambda: told.append("first"))
    inbox.deliver(1)
    assert (told, inbox.delivered, inbox.claimed, inbox.delivered_bytes) == ([], 1, 0, MTU_BYTES)
    assert inbox.claim(lambda: told.append("second"))  # its message is there
    assert (inbox.claimed, inbox.has(0), inbox.has(1), inbox.has(2)) == (1, False, True, False)
    inbox.deliver(0)
    assert (told, inbox.delivered, inbox.claimed) == (["first"], 2, 2)


def test_where_any_message_will_do_the_nth_receive_takes_the_nth_that_comes() -> None:
    inbox, told = inbox_of(matches_any=True), list[str]()
    assert not inbox.claim(lambda: told.append("first"))
    assert not inbox.claim(lambda: told.append("second"))
    inbox.deliver(2)
    assert (told, inbox.claimed, inbox.has(0), inbox.has(1)) == (["first"], 1, True, False)
    inbox.deliver(0)
    assert (told, inbox.claimed) == (["first", "second"], 2)
    inbox.deliver(1)
    assert (inbox.delivered, inbox.claimed) == (3, 2)
    assert inbox.claim(lambda: told.append("third"))
    assert (told, inbox.claimed) == (["first", "second"], 3)


# A receiver


@pytest.mark.parametrize("ordering", ANY_ORDER)
@pytest.mark.parametrize("keeps", [{}, {"recovery": "go-back-n", "reorder_tolerant": True}])
def test_a_message_is_delivered_when_all_of_it_is_there_whatever_came_before(
    ordering: str, keeps: dict[str, Any]
) -> None:
    inbox = HandInbox()
    receiver, _ = receiver_of(inbox, ordering=ordering, **keeps)
    delivered = []
    for seq in (4, 2, 1, 3, 5, 0):
        receiver.handle(packet(seq))
        delivered.append(list(inbox.order))
    assert delivered == [[], [1], [1], [1], [1, 2], [1, 2, 0]]


def test_in_the_order_of_the_connection_they_wait_for_each_other() -> None:
    inbox = HandInbox()
    receiver, _ = receiver_of(inbox, ordering="connection")
    for seq in (4, 2, 1, 3, 5):
        receiver.handle(packet(seq))
    assert inbox.order == []
    receiver.handle(packet(0))
    assert inbox.order == [0, 1, 2]


def test_copies_packets_that_were_cut_and_what_is_discarded_complete_nothing() -> None:
    inbox = HandInbox()
    receiver, _ = receiver_of(inbox, reorder_window_packets=2)
    receiver.handle(packet(1))
    receiver.handle(packet(1, attempt=1))
    receiver.handle(packet(2))  # 2 - 0 is the window itself
    receiver.handle_cut(packet(0, is_cut=True))
    assert inbox.order == []
    receiver.handle(packet(0))
    receiver.handle(packet(0, attempt=1))
    assert inbox.order == [0]
    receiver.handle(packet(2))
    assert inbox.order == [0, 1]


@pytest.mark.parametrize("ordering", ANY_ORDER)
@pytest.mark.parametrize("seed", range(4))
def test_in_whatever_order_packets_come_each_message_is_delivered_once(ordering: str, seed: int) -> None:
    source = random.Random(seed)
    arrivals = [seq for seq in range(sum(MESSAGE_PACKETS)) for _ in range(source.randrange(1, 4))]
    source.shuffle(arrivals)
    inbox = HandInbox()
    receiver, _ = receiver_of(inbox, ordering=ordering)
    for seq in arrivals:
        receiver.handle(packet(seq))
    assert sorted(inbox.order) == [0, 1, 2]
    assert receiver.expected == sum(MESSAGE_PACKETS)


def test_an_answer_counts_the_message_that_its_packet_completes_and_acknowledges_what_is_in_order() -> None:
    receiver, line = receiver_of(HandInbox())
    receiver.handle(packet(2))
    (nak,) = line.control
    assert (nak.kind.name, nak.seq, nak.msn) == ("NAK", 0, 1)


@pytest.mark.parametrize(
    ("ordering", "free", "free_later"),
    [
        ("message", 3, 4),  # the RECEIVE asks for message 0: message 1 keeps its buffer until a second one comes
        ("none", 4, 4),
    ],
)
def test_a_buffer_is_free_when_a_receive_claims_its_message(ordering: str, free: int, free_later: int) -> None:
    inbox = inbox_of(matches_any=ordering == "none")
    receiver, line = receiver_of(inbox, ordering=ordering, end_to_end_credits=4)
    inbox.claim(lambda: None)
    receiver.handle(packet(2))
    inbox.claim(lambda: None)
    receiver.probed()
    assert [(answer.msn, answer.credit_code) for answer in line.control] == [
        (1, credits_to_code(free)),
        (1, credits_to_code(free_later)),
    ]


# Runs: of two messages of one packet the first is lost once

FIRST_LOST = [Fault(at_ps=10, event="down", link=0), Fault(at_ps=11, event="up", link=0)]
SECOND_PS = 2 * FULL_PS + DELAY_PS  # the packet of the second message arrives, and its NAK goes back
FIRST_PS = SECOND_PS + ACK_PS + DELAY_PS + FULL_PS + DELAY_PS  # the packet of the first one, which was sent again


def two_messages(ordering: str, **settings: Any) -> Outcome:
    """A rank sends two at once; the other asks for each in a stream of its own, and marks the instant."""
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4096))
    receive = Receive(peer=Peer(rule="rank", shift=0))
    streams = [[receive, Wait(), Milestone(name=name)] for name in range(2)]
    transport = Transport.model_validate(
        {"recovery": "selective-repeat", "ordering": ordering, "retransmission_timeout_ps": MS_PS}
    )
    job = job_of([[[send, send, Wait()]], streams])
    return run(packet_input_of(pair(), job, transport=transport, faults=FIRST_LOST, **settings))


@pytest.mark.parametrize(
    ("ordering", "delivered_ps", "received_ps"),
    [
        ("connection", [FIRST_PS, FIRST_PS], [FIRST_PS, FIRST_PS]),
        ("message", [FIRST_PS, SECOND_PS], [FIRST_PS, SECOND_PS]),
        ("none", [FIRST_PS, SECOND_PS], [SECOND_PS, FIRST_PS]),
    ],
)
def test_what_a_lost_packet_holds_up(ordering: str, delivered_ps: list[int], received_ps: list[int]) -> None:
    outcome = two_messages(ordering)
    assert outcome.messages["delivered_at_ps"].tolist() == delivered_ps
    marks = outcome.milestones[np.argsort(outcome.milestones["name"])]
    assert marks["at_ps"].tolist() == received_ps
    assert outcome.messages["acked_at_ps"].tolist() == [FIRST_PS + ACK_PS + DELAY_PS] * 2  # in order, for all of them
    assert outcome.counters["naks_sent"] == 1
    assert outcome.complete


@pytest.mark.parametrize("ordering", ANY_ORDER)
def test_a_message_of_several_packets_is_there_when_the_first_of_them_has_come_again(ordering: str) -> None:
    # The first packet of the first message is lost, the second one and the next message are not.
    sent = [Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=each)) for each in (2 * 4096, 4096)]
    receive = Receive(peer=Peer(rule="rank", shift=0))
    job = job_of([[[*sent, Wait()]], [[receive, receive, Wait(), Milestone(name=0)]]])
    transport = Transport.model_validate({"recovery": "selective-repeat", "ordering": ordering})
    outcome = run(packet_input_of(pair(), job, transport=transport, faults=FIRST_LOST))
    nak_ps = FULL_PS + NEXT_PS + DELAY_PS + ACK_PS + DELAY_PS  # of the second packet, when the port is idle
    assert nak_ps > FULL_PS + NEXT_PS + FULL_PS
    whole_ps = nak_ps + FULL_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [whole_ps, FULL_PS + NEXT_PS + FULL_PS + DELAY_PS]
    assert outcome.milestones["at_ps"].tolist() == [whole_ps]


@pytest.mark.parametrize(
    ("ordering", "waits"),
    [
        ("connection", [(0, 0, "under way"), (1, 1, "under way")]),
        ("message", [(0, 0, "under way")]),
        ("none", [(1, 1, "arrived")]),
    ],
)
def test_who_still_waits_where_a_run_is_cut_between_the_two(ordering: str, waits: list[tuple[int, int, str]]) -> None:
    outcome = two_messages(ordering, until_ps=FIRST_PS)
    receives = [row for row in outcome.waits if row["kind"] == WAIT_KINDS.index("receive")]
    assert [(row["stream"], row["ordinal"], WAIT_STATES[row["state"]]) for row in receives] == waits


def test_messages_that_came_unasked_are_those_whose_own_receive_is_missing() -> None:
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4096))
    receive = Receive(peer=Peer(rule="rank", shift=0))
    job = job_of([[[send, send, Wait()]], [[receive, Wait()]]])
    missing = []
    for ordering in ANY_ORDER:
        transport = Transport.model_validate({"recovery": "selective-repeat", "ordering": ordering})
        outcome = run(packet_input_of(pair(), job, transport=transport, faults=FIRST_LOST, until_ps=FIRST_PS))
        missing.append([int(row["missing"]) for row in outcome.waits if row["kind"] == WAIT_KINDS.index("send")])
    assert missing == [[1, 1], [0, 0]]
