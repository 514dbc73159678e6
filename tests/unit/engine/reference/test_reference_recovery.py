"""Losses, NAKs, timeouts, reordering and end-to-end credits."""

from pathlib import Path

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, Message, job_of, packet_input_of, pair, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.simulation import run
from weftwork.spec.device import Switch
from weftwork.spec.job import Compute, Loop, Milestone, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS


def blink(at_ps: int) -> list[Fault]:
    """Lose what is on the wire at one instant, and nothing else."""
    return [Fault(at_ps=at_ps, event="down", link=0), Fault(at_ps=at_ps + 1, event="up", link=0)]


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout"])
def test_half_of_all_packets_lost_and_the_run_ends_with_everything_delivered(recovery: str) -> None:
    transport = Transport.model_validate(
        {"recovery": recovery, "retransmission_timeout_ps": 10 * US_PS, "retry_limit": 1_000}
    )
    messages = [Message(source=0, destination=1, size_bytes=10 * 4096)]
    outcome = run(packet_input_of(pair(loss=0.5), sends(2, messages), transport=transport))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert outcome.counters["drop_link_loss"] > 5
    assert outcome.counters["retransmissions"] > 5
    assert (outcome.counters["naks_sent"] > 0) == (recovery == "go-back-n")


def blinked(transport: Transport) -> Outcome:
    messages = [Message(source=0, destination=1, size_bytes=20 * 4096)]
    # In the gap after the second packet has started: two packets are lost, those behind arrive with a gap before them.
    return run(packet_input_of(pair(), sends(2, messages), faults=blink(FULL_PS + 10), transport=transport))


def test_a_gap_is_told_once_and_the_sender_goes_back_to_it() -> None:
    outcome = blinked(Transport())
    assert outcome.counters["drop_link_down"] == 2
    assert outcome.counters["naks_sent"] == 1
    assert outcome.counters["timeouts"] == 0
    # The third packet finds the gap; the NAK arrives, and all twenty go again from the start.
    nak_at_ps = FULL_PS + 2 * NEXT_PS + DELAY_PS + ACK_PS + DELAY_PS
    in_flight_until_ps = FULL_PS + 14 * NEXT_PS  # the NAK finds the fifteenth packet on the way out of the port
    assert FULL_PS + 13 * NEXT_PS < nak_at_ps <= in_flight_until_ps
    last_ps = in_flight_until_ps + FULL_PS + 19 * NEXT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [last_ps]
    assert outcome.counters["out_of_order_discards"] == 13
    assert outcome.counters["retransmissions"] == 15
    assert outcome.counters["data_sent"] == 35


def test_without_naks_the_timer_repairs_the_gap() -> None:
    outcome = blinked(Transport(recovery="timeout", retransmission_timeout_ps=20 * US_PS))
    assert outcome.counters["naks_sent"] == 0
    assert outcome.counters["timeouts"] == 1
    assert outcome.messages["delivered_at_ps"].tolist() == [20 * US_PS + FULL_PS + 19 * NEXT_PS + DELAY_PS]


def test_a_dead_link_ends_in_an_error_after_the_last_retry() -> None:
    transport = Transport(retransmission_timeout_ps=10 * US_PS, retry_limit=2)
    messages = [Message(source=0, destination=1, size_bytes=4096)]
    outcome = run(packet_input_of(pair(loss=1.0), sends(2, messages), transport=transport))
    assert outcome.counters["timeouts"] == 3
    assert outcome.counters["queue_pair_errors"] == 1
    assert outcome.counters["data_sent"] == 3
    assert outcome.messages["delivered_at_ps"].tolist() == [-1]
    assert outcome.messages["acked_at_ps"].tolist() == [-1]


def two_paths(transport: Transport) -> Outcome:
    """Two hosts, two leaves, two spines, one of them a packet and a half further away; every packet sprayed."""
    links = [(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)]
    far_ps = DELAY_PS + 3 * FULL_PS // 2
    fabric = wired(links, hosts=2, delays_ps=[DELAY_PS] * 4 + [far_ps, DELAY_PS])
    messages = [Message(source=0, destination=1, size_bytes=40 * 4096)]
    return run(packet_input_of(fabric, sends(2, messages), transport=transport, port_selection="spray"))


def test_a_receiver_that_reorders_needs_no_retransmission() -> None:
    outcome = two_paths(Transport(reorder_tolerant=True))
    assert outcome.counters["out_of_order_discards"] == 0
    assert outcome.counters["retransmissions"] == 0
    assert outcome.counters["acks_sent"] == 40


def test_a_reorder_window_of_one_discards_what_comes_early() -> None:
    outcome = two_paths(
        Transport(reorder_tolerant=True, reorder_window_packets=1, retransmission_timeout_ps=MS_PS // 20)
    )
    assert outcome.counters["out_of_order_discards"] > 0
    assert outcome.counters["naks_sent"] == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_every_fourth_packet_is_acknowledged_and_the_last() -> None:
    messages = [Message(source=0, destination=1, size_bytes=10 * 4096)]
    outcome = run(packet_input_of(pair(), sends(2, messages), transport=Transport(ack_every=4)))
    assert outcome.counters["acks_sent"] == 3  # 4, 8 and the last


def test_a_window_that_closes_asks_for_an_ack() -> None:
    messages = [Message(source=0, destination=1, size_bytes=10 * 4096)]
    engine_input = packet_input_of(
        pair(),
        sends(2, messages),
        transport=Transport(ack_every=100),
        congestion_control="fixed_window",
        parameters={"window_bytes": 3 * 4096},
    )
    assert run(engine_input).counters["acks_sent"] == 4  # 3, 6, 9 and the last


def late_receiver(transport: Transport, *, busy_ps: int, messages: int = 2) -> Outcome:
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4096))
    receive = Receive(peer=Peer(rule="rank", shift=0))
    sender: list[Operation] = [Loop(count=messages, body=(send,)), Wait()]
    receiver: list[Operation] = [
        Compute(duration_ps=busy_ps),
        Loop(count=messages, body=(receive,)),
        Wait(),
        Milestone(name=0),
    ]
    return run(packet_input_of(pair(), job_of([[sender], [receiver]]), transport=transport))


def test_a_message_without_credit_waits_for_the_receive() -> None:
    outcome = late_receiver(Transport(end_to_end_credits=1), busy_ps=100 * US_PS)
    claimed_ps = 100 * US_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [
        FULL_PS + DELAY_PS,
        claimed_ps + ACK_PS + DELAY_PS + FULL_PS + DELAY_PS,
    ]
    assert outcome.counters["probes_sent"] == 0
    assert outcome.counters["acks_sent"] == 3


def test_without_credits_the_receiver_takes_everything() -> None:
    outcome = late_receiver(Transport(), busy_ps=100 * US_PS)
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + DELAY_PS, 2 * FULL_PS + DELAY_PS]
    assert outcome.milestones["at_ps"].tolist() == [100 * US_PS]


def test_a_sender_without_credit_probes_until_there_is_one() -> None:
    transport = Transport(end_to_end_credits=1, retransmission_timeout_ps=10 * US_PS)
    outcome = late_receiver(transport, busy_ps=100 * US_PS)
    assert outcome.counters["probes_sent"] == 9
    assert outcome.counters["queue_pair_errors"] == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_a_packet_that_had_to_wait_for_credit_has_the_whole_timeout() -> None:
    # The credit arrives one picosecond before the next probe was due; what is left of that time is not the packet's.
    acked_ps = FULL_PS + DELAY_PS + ACK_PS + DELAY_PS
    probe_ps = acked_ps + 10 * US_PS
    transport = Transport(end_to_end_credits=1, retransmission_timeout_ps=10 * US_PS, retry_limit=0)
    outcome = late_receiver(transport, busy_ps=probe_ps - 1 - ACK_PS - DELAY_PS)
    assert outcome.counters["probes_sent"] == 0
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["queue_pair_errors"] == 0
    assert outcome.messages["acked_at_ps"].tolist() == [acked_ps, probe_ps - 1 + acked_ps]


def test_a_receive_posted_before_its_message_gives_the_credit_back_at_delivery() -> None:
    outcome = late_receiver(Transport(end_to_end_credits=1), busy_ps=0, messages=5)
    round_trip_ps = FULL_PS + DELAY_PS + ACK_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [i * round_trip_ps + FULL_PS + DELAY_PS for i in range(5)]


def test_a_job_that_never_receives_takes_no_credit() -> None:
    messages = [Message(source=0, destination=1, size_bytes=4096) for _ in range(3)]
    outcome = run(packet_input_of(pair(), sends(2, messages), transport=Transport(end_to_end_credits=1)))
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_a_receiver_may_ask_for_anything_and_the_run_still_ends() -> None:
    policy = str(Path(__file__).parents[3] / "policies" / "outspoken.py")
    messages = [Message(source=0, destination=1, size_bytes=30 * 4096)]
    transport = Transport(retransmission_timeout_ps=20 * US_PS, retry_limit=100)
    fabric = pair(loss=0.1, switch=Switch(telemetry=True))
    outcome = run(packet_input_of(fabric, sends(2, messages), transport=transport, congestion_control=policy))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    for counter in ("cnps_sent", "credits_sent", "naks_sent"):
        assert outcome.counters[counter] > 0
    assert outcome.counters["acks_sent"] > 30
