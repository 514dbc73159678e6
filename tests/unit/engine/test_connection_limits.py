"""What one connection may have under way, and what it takes at the NICs of its ends, worked out on paper."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine.outcome import Outcome
from weftwork.spec.transport import Transport

FIRST_PS = (4096 + 62 + 16 + 20) * BYTE_PS


NEXT_PS = (4096 + 62 + 20) * BYTE_PS


ACK_PS = (66 + 20) * BYTE_PS


STATE_BYTES = 375


pytestmark = pytest.mark.sanitize


def four_packets(cap_bytes: int, **changes: Any) -> Outcome:
    transport = Transport.model_validate({"inflight_cap_bytes": cap_bytes, "ack_every": 1_000} | changes)
    job = sends(2, [Message(source=0, destination=1, size_bytes=4 * 4096)])
    return both(packet_input_of(pair(), job, transport=transport))


@pytest.mark.parametrize(
    ("cap_bytes", "acks", "rounds"),
    [
        (0, 1, 0),
        (4 * 4096, 1, 0),
        (4 * 4096 - 1, 2, 1),  # the fourth waits for the ACK that the third has asked for
        (2 * 4096, 2, 1),
        (2 * 4096 - 1, 4, 3),
        (1, 4, 3),  # one packet may leave where none is in flight
    ],
)
def test_a_connection_waits_for_an_ack_that_its_last_packet_under_the_cap_asks_for(
    cap_bytes: int, acks: int, rounds: int
) -> None:
    outcome = four_packets(cap_bytes)
    assert outcome.counters["acks_sent"] == acks
    line_ps = FIRST_PS + 3 * NEXT_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [line_ps + DELAY_PS + rounds * (2 * DELAY_PS + ACK_PS)]


def test_the_cap_is_of_each_connection() -> None:
    messages = [Message(source=0, destination=1, size_bytes=4096, channel=channel) for channel in range(3)]
    transport = Transport(inflight_cap_bytes=4096)
    outcome = both(packet_input_of(pair(), sends(2, messages), transport=transport))
    assert outcome.messages["delivered_at_ps"].tolist() == [(1 + place) * FIRST_PS + DELAY_PS for place in range(3)]


@pytest.mark.parametrize(("window_bytes", "rounds"), [(4096, 3), (2 * 4096, 1), (16 * 4096, 1)])
def test_the_smaller_of_window_and_cap_counts(window_bytes: int, rounds: int) -> None:
    job = sends(2, [Message(source=0, destination=1, size_bytes=4 * 4096)])
    outcome = both(
        packet_input_of(
            pair(),
            job,
            transport=Transport(inflight_cap_bytes=2 * 4096, ack_every=1_000),
            congestion_control="fixed-window",
            parameters={"window_bytes": window_bytes},
        )
    )
    line_ps = FIRST_PS + 3 * NEXT_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [line_ps + DELAY_PS + rounds * (2 * DELAY_PS + ACK_PS)]
    assert outcome.counters["acks_sent"] == rounds + 1


def test_each_end_of_a_connection_takes_state_at_its_nic() -> None:
    # Two channels to host 1, one to host 2, and one back; two messages of one channel are one connection.
    ends = [(0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 0, 0)]
    messages = [Message(source=a, destination=b, size_bytes=100, channel=channel) for a, b, channel in ends]
    for state_bytes in (STATE_BYTES, 0):
        transport = Transport(connection_state_bytes=state_bytes)
        outcome = both(packet_input_of(star(3), sends(3, messages), transport=transport))
        assert outcome.ports["nic_state_bytes"].tolist() == [places * state_bytes for places in (4, 3, 1, 0, 0, 0)]


def test_a_receiver_that_no_packet_has_reached_takes_nothing() -> None:
    message = [Message(source=0, destination=1, size_bytes=100)]
    transport = Transport(connection_state_bytes=STATE_BYTES)
    for until_ps, places in ((98 * 2 * BYTE_PS + DELAY_PS, [1, 0]), (US_PS, [1, 1])):
        outcome = both(packet_input_of(pair(), sends(2, message), transport=transport, until_ps=until_ps))
        assert outcome.ports["nic_state_bytes"].tolist() == [count * STATE_BYTES for count in places]
