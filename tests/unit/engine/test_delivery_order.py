"""In which order messages are delivered, and which RECEIVE each completes, worked out on paper.

Three messages of two packets go over one short wire, and the second packet is lost. The packet behind it tells so while
the next one leaves: on the wire there are 0, 1 (lost), 2, 3, 1 again, 4, 5. The second message is whole before the
first.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, job_of, packet_input_of, pair

from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.rows.waits import WAIT_KINDS, WAIT_STATES
from weftwork.spec.job import At, Milestone, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

FIRST_PS = (4096 + 62 + 16 + 20) * BYTE_PS  # of the first packet of a message


NEXT_PS = (4096 + 62 + 20) * BYTE_PS


NEAR_PS = 10_000  # a wire so short that one packet is on it


BACK_PS = (66 + 20) * BYTE_PS + NEAR_PS  # of an ACK


SECOND_PS = 2 * FIRST_PS + 2 * NEXT_PS + NEAR_PS  # packet 3 is there, and with it the second message


FIRST_WHOLE_PS = SECOND_PS + NEXT_PS  # packet 1, sent again


THIRD_PS = FIRST_WHOLE_PS + FIRST_PS + NEXT_PS


ORDERS = ("connection", "message", "none")


pytestmark = pytest.mark.sanitize


def receives(mark: int, at_ps: int = 0, count: int = 1) -> list[Operation]:
    """A stream that receives from rank 0 and records when it has what it asked for."""
    asks: list[Operation] = [Receive(peer=Peer(rule="rank", shift=0)) for _ in range(count)]
    return [At(at_ps=at_ps), *asks, Wait(), Milestone(name=mark)]


def ran(ordering: str, *streams: list[Operation], until_ps: int | None = None, **changes: Any) -> Outcome:
    message = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=2 * 4096))
    lost_ps = FIRST_PS + 40_000
    faults = [Fault(at_ps=lost_ps, event="down", link=0), Fault(at_ps=lost_ps + 1, event="up", link=0)]
    transport = Transport.model_validate({"recovery": "selective-repeat", "ordering": ordering} | changes)
    settings: dict[str, Any] = {} if until_ps is None else {"until_ps": until_ps}
    job = job_of([[[message, message, message, Wait()]], list(streams)])
    engine_input = packet_input_of(pair(delays_ps=[NEAR_PS]), job, transport=transport, faults=faults, **settings)
    outcome = both(engine_input)
    assert outcome.counters["drop_link_down"] == 1
    return outcome


def marks(outcome: Outcome) -> dict[int, int]:
    return {int(row["name"]): int(row["at_ps"]) for row in outcome.milestones}


@pytest.mark.parametrize(
    ("ordering", "second_ps"), [("connection", FIRST_WHOLE_PS), ("message", SECOND_PS), ("none", SECOND_PS)]
)
def test_a_message_that_is_whole_does_not_wait_for_the_one_before(ordering: str, second_ps: int) -> None:
    outcome = ran(ordering)
    assert outcome.messages["delivered_at_ps"].tolist() == [FIRST_WHOLE_PS, second_ps, THIRD_PS]


@pytest.mark.parametrize("ordering", ORDERS)
def test_it_is_acknowledged_with_all_before_it(ordering: str) -> None:
    acked_ps = FIRST_WHOLE_PS + BACK_PS
    assert ran(ordering).messages["acked_at_ps"].tolist() == [acked_ps, acked_ps, THIRD_PS + BACK_PS]


@pytest.mark.parametrize(
    ("ordering", "marks_ps"),
    [
        ("connection", [FIRST_WHOLE_PS, FIRST_WHOLE_PS]),
        ("message", [FIRST_WHOLE_PS, SECOND_PS]),  # each its own message
        ("none", [SECOND_PS, FIRST_WHOLE_PS]),  # each the next one that comes
    ],
)
def test_which_message_completes_a_receive_that_waits(ordering: str, marks_ps: list[int]) -> None:
    assert marks(ran(ordering, receives(0), receives(1))) == dict(enumerate(marks_ps))


@pytest.mark.parametrize(
    ("ordering", "marks_ps"),
    [
        ("connection", [FIRST_WHOLE_PS, FIRST_WHOLE_PS]),
        ("message", [FIRST_WHOLE_PS, SECOND_PS + 1]),
        ("none", [SECOND_PS + 1, FIRST_WHOLE_PS]),
    ],
)
def test_which_message_completes_a_receive_that_comes_later(ordering: str, marks_ps: list[int]) -> None:
    late = [receives(mark, SECOND_PS + 1) for mark in (0, 1)]
    assert marks(ran(ordering, *late)) == dict(enumerate(marks_ps))


@pytest.mark.parametrize(
    ("ordering", "middle_ps"), [("connection", FIRST_WHOLE_PS), ("message", SECOND_PS), ("none", FIRST_WHOLE_PS)]
)
def test_receives_of_a_channel_are_numbered_whichever_stream_asks(ordering: str, middle_ps: int) -> None:
    ask = Receive(peer=Peer(rule="rank", shift=0))
    outer: list[Operation] = [ask, At(at_ps=2), ask, Wait(), Milestone(name=0)]  # numbers 0 and 2
    assert marks(ran(ordering, outer, receives(1, at_ps=1))) == {0: THIRD_PS, 1: middle_ps}


@pytest.mark.parametrize(
    ("ordering", "third_ps"),
    [
        ("connection", FIRST_WHOLE_PS + BACK_PS),
        ("message", FIRST_WHOLE_PS + BACK_PS),  # the receive is for the first message, so the second keeps its buffer
        ("none", FIRST_WHOLE_PS - NEAR_PS),  # the second message has completed the receive; the wire is free then
    ],
)
def test_a_message_keeps_its_buffer_until_its_receive_claims_it(ordering: str, third_ps: int) -> None:
    outcome = ran(ordering, receives(0), end_to_end_credits=2)
    assert outcome.messages["delivered_at_ps"][2] == third_ps + FIRST_PS + NEXT_PS + NEAR_PS
    assert outcome.counters["probes_sent"] == 0


@pytest.mark.parametrize(
    ("ordering", "rows"),
    [
        ("connection", [(0, "under way"), (1, "under way"), (2, "under way"), (3, "not posted")]),
        ("message", [(0, "under way"), (2, "under way"), (3, "not posted")]),
        ("none", [(1, "arrived"), (2, "under way"), (3, "not posted")]),
    ],
)
def test_what_the_receives_wait_for(ordering: str, rows: list[tuple[int, str]]) -> None:
    outcome = ran(ordering, receives(0, count=4), until_ps=SECOND_PS + 1)
    found = outcome.waits[outcome.waits["kind"] == WAIT_KINDS.index("receive")]
    assert [(int(row["ordinal"]), WAIT_STATES[row["state"]]) for row in found] == rows
    assert [int(size) for size in found["size_bytes"]] == [2 * 4096] * (len(rows) - 1) + [-1]


def test_a_send_tells_of_messages_that_came_unasked() -> None:
    for ordering, unasked in (("connection", 0), ("message", 1), ("none", 0)):
        outcome = ran(ordering, receives(0), until_ps=SECOND_PS + 1)
        found = outcome.waits[outcome.waits["kind"] == WAIT_KINDS.index("send")]
        assert found["missing"].tolist() == [unasked] * 3
