"""Selective repeat, worked out on paper: what is sent again, when, and what spraying does to it."""

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, wired

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.spec.device import Nic
from weftwork.spec.transport import Transport

FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
NEAR_PS = 10_000  # a wire so short that one packet is on it
TIMEOUT_PS = 10 * US_PS
HALVING = str(Path(__file__).parents[2] / "policies" / "halving.py")

pytestmark = pytest.mark.sanitize


def transport(**changes: object) -> Transport:
    given = {"recovery": "selective-repeat", "retransmission_timeout_ps": TIMEOUT_PS}
    return Transport.model_validate(given | changes)


def start_ps(place: int) -> int:
    """When the packet of this place on the wire starts, the first one being longer than the rest."""
    return FULL_PS + (place - 1) * NEXT_PS if place else 0


def lose(*places: int, packets: int = 20, control: str = "none", **changes: object) -> Outcome:
    """Lose what starts at these places of the wire, in a message from host 0 to host 1, and nothing else."""
    at_ps = [start_ps(place) + 40_000 for place in places]
    faults = [fault for at in at_ps for fault in
              (Fault(at_ps=at, event="down", link=0), Fault(at_ps=at + 1, event="up", link=0))]  # fmt: skip
    job = sends(2, [Message(source=0, destination=1, size_bytes=packets * 4096)])
    wire = pair(delays_ps=[NEAR_PS])
    outcome = both(
        packet_input_of(wire, job, transport=transport(**changes), faults=faults, congestion_control=control)
    )
    assert outcome.counters["drop_link_down"] == len(places)
    assert outcome.counters["retransmissions"] == outcome.counters["data_sent"] - packets
    return outcome


@pytest.mark.parametrize("threshold", [0, 1, 5])
def test_one_lost_packet_costs_exactly_one_retransmission(threshold: int) -> None:
    # Packet 2 is lost. 3 + threshold overtakes it by more than the threshold; its NAK finds the next one on the way
    # out of the port, which leads to a last NAK; then 2 goes again.
    outcome = lose(2, reorder_threshold_packets=threshold)
    assert outcome.counters["retransmissions"] == 1
    assert outcome.counters["naks_sent"] == 2 + threshold
    assert outcome.counters["acks_sent"] == 20 - (2 + threshold)  # 19 arrive, and 2 once more
    assert outcome.counters["out_of_order_discards"] == outcome.counters["duplicates"] == 0
    assert outcome.messages["delivered_at_ps"].tolist() == [start_ps(21) + NEAR_PS]


def test_a_packet_that_is_overtaken_by_no_more_than_the_threshold_is_not_lost() -> None:
    # The last packet overtakes packet 2 by 17: the timer of the last advance, the ACK of packet 1, has to bring it.
    outcome = lose(2, reorder_threshold_packets=17)
    advanced_ps = start_ps(2) + NEAR_PS + ACK_PS + NEAR_PS
    assert outcome.counters["timeouts"] == outcome.counters["retransmissions"] == 1
    assert outcome.messages["delivered_at_ps"].tolist() == [advanced_ps + TIMEOUT_PS + NEXT_PS + NEAR_PS]


def test_a_lost_retransmission_is_known_when_a_packet_that_was_sent_after_it_arrives() -> None:
    # Packet 2 goes again at place 5 of the wire and is lost there too. Packet 5 at place 6 tells, while 6 leaves.
    outcome = lose(2, 5)
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["retransmissions"] == 2
    assert outcome.counters["duplicates"] == outcome.counters["out_of_order_discards"] == 0
    assert outcome.messages["delivered_at_ps"].tolist() == [start_ps(22) + NEAR_PS]


def test_a_lost_retransmission_behind_which_nothing_goes_waits_for_the_timeout_and_goes_alone() -> None:
    outcome = lose(2, 5, packets=5)
    advanced_ps = start_ps(2) + NEAR_PS + ACK_PS + NEAR_PS
    assert outcome.counters["timeouts"] == 1
    assert outcome.counters["retransmissions"] == 2
    assert outcome.messages["delivered_at_ps"].tolist() == [advanced_ps + TIMEOUT_PS + NEXT_PS + NEAR_PS]


def test_two_gaps_are_two_retransmissions_in_their_order() -> None:
    # 2 and 3 are lost; 4 tells of both while 5 leaves; then 2 and 3 go.
    outcome = lose(2, 3)
    assert outcome.counters["retransmissions"] == 2
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["naks_sent"] == 2
    assert outcome.messages["delivered_at_ps"].tolist() == [start_ps(22) + NEAR_PS]


def test_policies_hear_of_a_loss_once_however_many_packets_tell_of_it() -> None:
    # 2 and 3 are lost; the NAK of 4 tells of both, which halves the rate, and that of 5 comes while 3 is still to go.
    outcome = lose(2, 3, control=HALVING)
    first_ps = start_ps(6)  # 2 goes at the rate at which 5 was sent; 3 and 6 to 19 follow at half of it
    assert outcome.counters["naks_sent"] == 2
    assert outcome.messages["delivered_at_ps"].tolist() == [first_ps + 15 * 2 * NEXT_PS + NEXT_PS + NEAR_PS]


def test_the_last_packet_lost_waits_for_the_timeout() -> None:
    outcome = lose(19)
    advanced_ps = start_ps(19) + NEAR_PS + ACK_PS + NEAR_PS
    assert outcome.counters["naks_sent"] == 0
    assert outcome.counters["retransmissions"] == 1
    assert outcome.messages["delivered_at_ps"].tolist() == [advanced_ps + TIMEOUT_PS + NEXT_PS + NEAR_PS]


def test_what_the_receiver_cannot_keep_is_discarded_and_comes_with_the_timeout() -> None:
    # A window of three: 3 and 4 are kept behind the gap at 2, everything from 5 on that comes before 2 is not.
    outcome = lose(2, 5, packets=8, reorder_window_packets=3)
    assert outcome.counters["out_of_order_discards"] == 3  # 5, 6 and 7
    assert outcome.counters["naks_sent"] == 2
    # The timeout at place 0 sends 2, 5, 6 and 7 again, all in order.
    assert outcome.counters["timeouts"] == 1
    assert outcome.counters["retransmissions"] == 1 + 4
    advanced_ps = start_ps(2) + NEAR_PS + ACK_PS + NEAR_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [advanced_ps + TIMEOUT_PS + 4 * NEXT_PS + NEAR_PS]


def test_a_gap_does_not_shut_the_window() -> None:
    # A window of four packets; 2 is lost. What arrives behind it is not in flight any more.
    job = sends(2, [Message(source=0, destination=1, size_bytes=12 * 4096)])
    faults = [
        Fault(at_ps=start_ps(2) + 40_000, event="down", link=0),
        Fault(at_ps=start_ps(2) + 40_001, event="up", link=0),
    ]
    engine_input = packet_input_of(
        pair(delays_ps=[NEAR_PS]),
        job,
        transport=transport(reorder_threshold_packets=2),
        congestion_control="fixed_window",
        parameters={"window_bytes": 4 * 4096},
        faults=faults,
    )
    outcome = both(engine_input)
    # 5 overtakes 2 by three, which is told while 6 leaves; then 2 goes, and 7 to 11.
    assert outcome.counters["retransmissions"] == 1
    assert outcome.counters["timeouts"] == 0
    assert outcome.messages["delivered_at_ps"].tolist() == [start_ps(13) + NEAR_PS]


@pytest.mark.parametrize(("threshold", "is_patient"), [(0, False), (100, True)])
def test_spraying_costs_retransmissions_without_a_threshold_and_none_with_one(
    threshold: int, *, is_patient: bool
) -> None:
    # Two ways of which one is 3 us longer: 36 packets at this rate.
    fabric = wired([(0, 2), (1, 3), (2, 4), (4, 3), (2, 5), (5, 3)], hosts=2,
                   delays_ps=[NEAR_PS, NEAR_PS, NEAR_PS, NEAR_PS, 3 * US_PS, NEAR_PS])  # fmt: skip
    job = sends(2, [Message(source=0, destination=1, size_bytes=200 * 4096)])
    outcome = both(
        packet_input_of(
            fabric,
            job,
            transport=transport(reorder_threshold_packets=threshold, reorder_tolerant=True),
            path_selection="spray",
        )
    )
    assert outcome.counters["naks_sent"] > 50
    assert (outcome.counters["retransmissions"] == 0) == is_patient
    assert outcome.counters["duplicates"] == outcome.counters["retransmissions"]  # each of them for nothing
    assert outcome.complete
    assert outcome.counters["timeouts"] == 0


def test_a_lost_packet_that_is_paused_does_not_hold_up_another_class() -> None:
    # Packet 0 is lost. Those behind it fill the host interface, which asks class 3 to pause until it is empty; that is
    # after the second message, of a class without pauses, has passed. Only then packet 0 goes.
    latency_ps, packets = 10 * US_PS, 300
    nic = Nic(pcie_latency_ps=latency_ps, xoff_bytes=5_000, xon_bytes=0)
    messages = [
        Message(source=0, destination=1, size_bytes=3 * 4096, priority=3),
        Message(source=0, destination=1, size_bytes=packets * 4096, priority=4),
    ]
    at_ps = 40_000
    engine_input = packet_input_of(
        pair(delays_ps=[NEAR_PS], nic=nic),
        sends(2, messages),
        transport=transport(retransmission_timeout_ps=1_000 * US_PS),
        faults=[Fault(at_ps=at_ps, event="down", link=0), Fault(at_ps=at_ps + 1, event="up", link=0)],
    )
    outcome = both(engine_input)
    empty_ps = 2 * FULL_PS + (packets + 1) * NEXT_PS + NEAR_PS + latency_ps
    resumed_ps = empty_ps + (64 + 20) * BYTE_PS + NEAR_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [resumed_ps + FULL_PS + NEAR_PS + latency_ps] * 2
    assert outcome.counters["retransmissions"] == 1
    assert outcome.ports["pauses_sent"].tolist() == outcome.ports["resumes_sent"].tolist() == [0, 1]


def test_half_of_all_packets_lost_and_all_delivered() -> None:
    job = sends(
        2, [Message(source=0, destination=1, size_bytes=30 * 4096), Message(source=0, destination=1, size_bytes=1)]
    )
    outcome = both(packet_input_of(pair(loss=0.5), job, transport=transport(retry_limit=1_000)))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert outcome.counters["drop_link_loss"] > 20


def test_a_long_wire_is_told_of_every_packet_that_is_kept() -> None:
    # Packets 0 and 1 are lost. The NAK of 2 finds the fifteenth on the way out; then the two go, then the last five.
    blink = [Fault(at_ps=FULL_PS + 10, event="down", link=0), Fault(at_ps=FULL_PS + 11, event="up", link=0)]
    job = sends(2, [Message(source=0, destination=1, size_bytes=20 * 4096)])
    outcome = both(packet_input_of(pair(), job, faults=blink, transport=transport()))
    nak_at_ps = start_ps(3) + DELAY_PS + ACK_PS + DELAY_PS
    assert start_ps(14) < nak_at_ps <= start_ps(15)
    again_ps = start_ps(15)
    assert outcome.messages["delivered_at_ps"].tolist() == [again_ps + FULL_PS + 6 * NEXT_PS + DELAY_PS]
    counted = ("data_sent", "retransmissions", "naks_sent", "acks_sent", "out_of_order_discards", "duplicates")
    assert [outcome.counters[name] for name in counted] == [22, 2, 13, 7, 0, 0]


def test_a_dead_link_ends_in_an_error_after_the_last_retry() -> None:
    job = sends(2, [Message(source=0, destination=1, size_bytes=4096)])
    outcome = both(packet_input_of(pair(loss=1.0), job, transport=transport(retry_limit=2)))
    assert [outcome.counters[name] for name in ("timeouts", "queue_pair_errors", "data_sent")] == [3, 1, 3]
    assert outcome.messages["acked_at_ps"].tolist() == [-1]
