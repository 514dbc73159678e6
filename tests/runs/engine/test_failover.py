"""Links that lose, hosts that slow down, and queue pairs that change their ports, worked out on paper."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, job_of, packet_input_of, pair, sends, wired

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.lower import lower
from weftwork.engine.outcome import Outcome
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import HashFunction, Nic, Switch
from weftwork.spec.job import At, Compute, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

FIRST_BYTES = 4096 + 62 + 16
FULL_PS = (FIRST_BYTES + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
BACK_PS = 2 * (ACK_PS + DELAY_PS)  # an ACK over two links
DOWN_PS, FAILOVER_PS = 30 * US_PS, 5 * US_PS
MOVED_PS = DOWN_PS + FAILOVER_PS
PACKETS = 600
LATE_START = str(Path(__file__).parents[2] / "policies" / "late_start.py")

pytestmark = pytest.mark.sanitize


def ready_ps(packets: int) -> int:
    """When the ACK of packet ``packets - 1`` is back, if nothing is in the way."""
    return 2 * FULL_PS + (packets - 1) * NEXT_PS + 2 * DELAY_PS + BACK_PS


ACKED = sum(ready_ps(packets) < DOWN_PS for packets in range(1, PACKETS))


def two_rails(
    *streams: list[Operation],
    answers: list[Operation] | None = None,
    faults: list[Fault],
    nics: tuple[tuple[int, int], tuple[int, int]] = ((0, 1), (0, 1)),
    until_ps: int = SECOND_PS,
    control: str = "none",
    **changes: object,
) -> Outcome:
    """Two hosts, each with a port at each of two switches: links 0 and 1 belong to host 0, 2 and 3 to host 1."""
    fabric = wired([(0, 2), (0, 3), (1, 2), (1, 3)], hosts=2)
    engine_input = lower(
        fabric=fabric,
        job=job_of([list(streams), [answers or []]], nics=nics),
        transport=Transport.model_validate({"retransmission_timeout_ps": MS_PS, "lossless_priorities": ()} | changes),
        congestion_control=load("congestion_control", control),
        settings=EngineSettings(
            port_selection=load("port_selection", "ecmp"),
            faults=tuple(faults),
            reconvergence_delay_ps=MS_PS,
            failover_delay_ps=FAILOVER_PS,
            until_ps=until_ps,
        ),
    )
    return both(engine_input)


def message(packets: int = PACKETS, channel: int = 0, rail: Literal["own", "peer"] = "own") -> Send:
    return Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=packets * 4096), channel=channel, rail=rail)


def down(link: int, at_ps: int = DOWN_PS) -> Fault:
    return Fault(at_ps=at_ps, event="down", link=link)


def up(link: int, at_ps: int) -> Fault:
    return Fault(at_ps=at_ps, event="up", link=link)


def test_what_is_not_acknowledged_goes_again_over_the_other_port_after_the_failover_delay() -> None:
    outcome = two_rails([message(), Wait()], faults=[down(0)])
    last_ps = MOVED_PS + (PACKETS - ACKED + 1) * NEXT_PS + 2 * DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [last_ps]
    assert outcome.messages["acked_at_ps"].tolist() == [last_ps + BACK_PS]
    assert outcome.counters["timeouts"] == 0
    sent_before = -(-(DOWN_PS - FULL_PS) // NEXT_PS) + 1
    assert outcome.ports["frames"][:2].tolist() == [sent_before, PACKETS - ACKED]
    assert outcome.counters["retransmissions"] == sent_before - ACKED


def test_it_returns_when_its_own_port_is_back() -> None:
    # Its link is back 20 us after it went, and the queue pair 5 us later. Pacing lets the next packet go when the one
    # that was begun at the other port would have ended; it is the first one that is not acknowledged by then.
    outcome = two_rails([message(), Wait()], faults=[down(0), up(0, DOWN_PS + 20 * US_PS)])
    begun = -(-20 * US_PS // NEXT_PS)
    again_ps = MOVED_PS + begun * NEXT_PS
    acked = sum(MOVED_PS + (count + 1) * NEXT_PS + 2 * DELAY_PS + BACK_PS < again_ps for count in range(1, PACKETS))
    last_ps = again_ps + (PACKETS - ACKED - acked + 1) * NEXT_PS + 2 * DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [last_ps]
    assert outcome.ports["frames"][1] == begun
    assert outcome.counters["timeouts"] == 0
    assert outcome.complete


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout", "selective-repeat"])
@pytest.mark.parametrize("rail", ["own", "peer"])
@pytest.mark.parametrize("link", [0, 2])
def test_every_message_is_delivered_exactly_once_and_in_order(
    recovery: str, rail: Literal["own", "peer"], link: int
) -> None:
    faults = [down(link), up(link, DOWN_PS + 11 * US_PS), down(link + 1, DOWN_PS + 30 * US_PS)]
    stream: list[Operation] = [message(100, rail=rail) for _ in range(6)]
    receives: list[Operation] = [Receive(peer=Peer(rule="rank", shift=0)) for _ in range(6)]
    outcome = two_rails([*stream, Wait()], answers=[*receives, Wait()], faults=faults, recovery=recovery)
    assert outcome.complete
    assert outcome.counters["timeouts"] == 0
    delivered = outcome.messages["delivered_at_ps"]
    assert (delivered > 0).all()
    assert delivered.tolist() == sorted(delivered.tolist())
    # Every packet that was sent is one of the 600, one of too many, or lost with a link (as some ACKs are).
    arrived = 600 + outcome.counters["duplicates"] + outcome.counters["out_of_order_discards"]
    assert 0 < outcome.counters["data_sent"] - arrived <= outcome.counters["drop_link_down"]
    assert (outcome.ports["frames"][:4] > 0).all()


def test_where_no_column_works_a_queue_pair_stays_and_its_timeouts_go_on() -> None:
    faults = [down(0), down(1), up(0, DOWN_PS + 2 * MS_PS)]
    outcome = two_rails([message(), Wait()], faults=faults)
    assert outcome.ports["frames"][1] == 0
    assert outcome.counters["timeouts"] >= 1
    assert outcome.complete


def test_ends_that_have_lost_ports_of_different_columns_meet_where_the_fabric_joins_them() -> None:
    """Host 0 has only its second switch left, host 1 only its first: by the cable between the two switches."""
    fabric = wired([(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], hosts=2)
    job = job_of([[[message(), Wait()]], [[]]], nics=((0, 1), (0, 1)))
    delays = {"reconvergence_delay_ps": 0, "failover_delay_ps": FAILOVER_PS}
    outcome = both(packet_input_of(fabric, job, faults=[down(0), down(3)], **delays))
    assert outcome.complete
    assert outcome.counters["timeouts"] == 0
    assert outcome.ports["frames"][1] == PACKETS - ACKED  # of host 0, to the second switch
    assert outcome.messages["delivered_at_ps"].tolist() == [MOVED_PS + (PACKETS - ACKED + 2) * NEXT_PS + 3 * DELAY_PS]


def test_a_queue_pair_that_opens_later_chooses_by_what_was_up_at_the_last_failover() -> None:
    later: list[Operation] = [At(at_ps=MOVED_PS), message(1, channel=1), Wait()]
    outcome = two_rails([message(1), Wait()], later, faults=[down(0)])
    assert outcome.messages["delivered_at_ps"].tolist()[1] == MOVED_PS + 2 * (FULL_PS + DELAY_PS)
    early: list[Operation] = [At(at_ps=MOVED_PS - 1), message(1, channel=1), Wait()]
    waits = two_rails([message(1), Wait()], early, faults=[down(0)])
    # It opened at the port that is down and moved a picosecond later.
    assert waits.messages["delivered_at_ps"].tolist()[1] == MOVED_PS + 2 * (FULL_PS + DELAY_PS)


def test_a_queue_pair_that_waits_for_credit_asks_at_its_time_from_its_new_port() -> None:
    # One buffer, and a receiver that is busy for 100 us: probes every 20 us after the first message was acknowledged.
    receive = Receive(peer=Peer(rule="rank", shift=0))
    busy = Compute(duration_ps=100 * US_PS)
    outcome = two_rails(
        [message(1), message(1), Wait()],
        answers=[busy, receive, receive, Wait()],
        faults=[down(0)],
        end_to_end_credits=1,
        retransmission_timeout_ps=20 * US_PS,
    )
    first_ps = 2 * (FULL_PS + DELAY_PS) + BACK_PS
    probes_ps = [first_ps + count * 20 * US_PS for count in range(1, 6)]
    credit_ps = 100 * US_PS + BACK_PS
    assert outcome.counters["probes_sent"] == sum(at < credit_ps for at in probes_ps)
    assert outcome.counters["timeouts"] == 0
    assert outcome.ports["frames"][:2].tolist() == [2, outcome.counters["probes_sent"]]
    assert outcome.complete


def test_timers_of_congestion_control_go_on_at_the_new_port() -> None:
    # The window opens 40 us after the message was posted, which is 5 us after the queue pair has moved.
    outcome = two_rails([message(1), Wait()], faults=[down(0)], control=LATE_START)
    assert outcome.messages["delivered_at_ps"].tolist() == [40 * US_PS + 2 * (FULL_PS + DELAY_PS)]
    assert outcome.ports["frames"][:2].tolist() == [0, 1]


def test_a_packet_on_its_way_is_hashed_by_the_ports_it_was_sent_with() -> None:
    # Two leaves with two ways between them, which the number of the source's port decides. The queue pair moves when a
    # link of host 1 goes down; what is on host 0's long cable then takes the way of the port it was sent from.
    by_port = Switch(forwarding_latency_ps=0, hash=HashFunction(algorithm="xor", fields=("src_ip",)))
    links = [(0, 2), (0, 2), (1, 3), (1, 3), (2, 4), (2, 5), (4, 3), (5, 3)]
    engine_input = packet_input_of(
        wired(links, hosts=2, switch=by_port, delays_ps=[5 * US_PS] * 2 + [DELAY_PS] * 6),
        job_of([[[message(400), Wait()]], []], nics=[[0, 1], [0, 1]]),
        transport=Transport(retransmission_timeout_ps=MS_PS, lossless_priorities=()),
        faults=[down(2)],
        failover_delay_ps=0,
    )
    frames = both(engine_input).ports["frames"].tolist()
    assert frames[0] == frames[6] > 300  # host 0's first port, and the way that it means
    assert frames[1] == frames[7] > 50
    assert 0 < frames[2] - frames[10] < 10  # the ACKs back from host 1, but for those on the cable that broke
    assert frames[3] == frames[11] > 50


@pytest.mark.parametrize("late_ps", [0, 1])
def test_a_lossy_link_loses_what_arrives_from_that_instant_on(late_ps: int) -> None:
    # Everything is lost for 1 us from the arrival of the second packet on; only the packets, ACKs of the first pass.
    arrival_ps = FULL_PS + NEXT_PS + DELAY_PS
    faults = [
        Fault(at_ps=arrival_ps + late_ps, event="lossy", link=0, loss=1.0),
        Fault(at_ps=arrival_ps + late_ps + 1, event="lossy", link=0, loss=0.0),
    ]
    job = sends(2, [Message(source=0, destination=1, size_bytes=2 * 4096)])
    transport = Transport(retransmission_timeout_ps=10 * US_PS, lossless_priorities=())
    outcome = both(packet_input_of(pair(), job, transport=transport, faults=faults))
    assert outcome.counters["drop_link_loss"] == 1 - late_ps
    first_ack_ps = FULL_PS + DELAY_PS + ACK_PS + DELAY_PS
    again_ps = first_ack_ps + 10 * US_PS + NEXT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [arrival_ps if late_ps else again_ps]


def test_a_host_without_an_interface_gets_one_that_is_slow() -> None:
    # From the arrival of the second of three packets on, each takes four times as long into the host as on the wire.
    second_ps = FULL_PS + NEXT_PS + DELAY_PS
    faults = [Fault(at_ps=second_ps, event="slow", nic=1, rate_bps=RATE_BPS // 4)]
    job = sends(2, [Message(source=0, destination=1, size_bytes=3 * 4096)])
    outcome = both(packet_input_of(pair(), job, faults=faults))
    transfer_ps = 4 * (4096 + 62) * BYTE_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [second_ps + 2 * transfer_ps]
    fast = both(
        packet_input_of(pair(), job, faults=[Fault(at_ps=second_ps, event="slow", nic=0, rate_bps=RATE_BPS // 4)])
    )
    assert fast.messages["delivered_at_ps"].tolist() == [
        second_ps + NEXT_PS
    ]  # the sender's own side is for what arrives


@pytest.mark.parametrize("nic", [Nic(pcie_latency_ps=US_PS), Nic(pcie_rate_bps=RATE_BPS, pcie_latency_ps=US_PS)])
def test_a_slow_nic_keeps_its_latency_and_what_arrived_before_its_rate(nic: Nic) -> None:
    before_ps = FIRST_BYTES * BYTE_PS if nic.pcie_rate_bps else 0
    slow = Fault(at_ps=FULL_PS + DELAY_PS + 1, event="slow", nic=1, rate_bps=RATE_BPS // 4)
    messages = [Message(source=0, destination=1, size_bytes=4096, at_ps=at_ps) for at_ps in (0, 10 * US_PS)]
    outcome = both(packet_input_of(pair(nic=nic), sends(2, messages), faults=[slow]))
    assert outcome.messages["delivered_at_ps"].tolist() == [
        FULL_PS + DELAY_PS + before_ps + US_PS,
        10 * US_PS + FULL_PS + DELAY_PS + 4 * FIRST_BYTES * BYTE_PS + US_PS,
    ]


def two_cables(operations: list[Operation], at_ps: int, failover_delay_ps: int) -> Outcome:
    """Ports 0 and 2 are joined by a cable that breaks, ports 1 and 3 by another."""
    job = job_of([[operations], []], nics=[[0, 1], [0, 1]])
    fabric = wired([(0, 1), (0, 1)], hosts=2)
    return both(packet_input_of(fabric, job, faults=[down(0, at_ps)], failover_delay_ps=failover_delay_ps))


def test_slots_at_the_new_port_are_in_the_order_of_identity() -> None:
    # Channel 5 is opened first and sends first; at the other port channel 2 has the first slot, and the first turn.
    outcome = two_cables([message(2, 5), message(2, 2), Wait()], 1, US_PS)
    assert outcome.messages["channel"].tolist() == [2, 5]
    there_ps = 1 + US_PS + 2 * FULL_PS + NEXT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [there_ps, there_ps + NEXT_PS]


def test_a_failover_at_the_instant_of_a_departure_comes_after_it() -> None:
    # The second packet starts when the cable breaks and queue pairs move: it is lost with the first one.
    outcome = two_cables([message(4), Wait()], FULL_PS, 0)
    assert outcome.ports["frames"].tolist() == [2, 4, 0, 4]
    # The second packet was to be paced: the new port starts when its time at the old one is over.
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + NEXT_PS + FULL_PS + 3 * NEXT_PS + DELAY_PS]


def test_queue_pairs_of_the_second_column_stay_when_the_first_one_fails() -> None:
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4 * 4096), nic=1)
    outcome = two_cables([send, Wait()], FULL_PS, US_PS)
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + 3 * NEXT_PS + DELAY_PS]
    assert outcome.ports["frames"][:2].tolist() == [0, 4]


def test_packets_on_their_way_are_handled_where_they_arrive_and_answered_from_the_new_port() -> None:
    # The packet is at the switch when the cable breaks. It arrives at port 2, its copy at port 3; both are answered
    # from port 3, where the receiver is by then.
    fabric = wired([(0, 2), (0, 2), (1, 2), (1, 2)], hosts=2)
    broken_ps = FULL_PS + DELAY_PS + 1
    job = job_of([[[message(1), Wait()]], []], nics=[[0, 1], [0, 1]])
    outcome = both(packet_input_of(fabric, job, faults=[down(0, broken_ps)], failover_delay_ps=0))
    there_ps = 2 * (FULL_PS + DELAY_PS)
    assert outcome.messages["delivered_at_ps"].tolist() == [there_ps]
    assert outcome.messages["acked_at_ps"].tolist() == [there_ps + BACK_PS]
    assert outcome.ports["frames"][:4].tolist() == [1, 1, 0, 2]
    assert outcome.counters["duplicates"] == outcome.counters["retransmissions"] == 1


def test_an_interface_that_is_fast_again_lets_nothing_overtake_what_waits_in_it() -> None:
    # Two packets enter a slow interface, which is rid of its rate while the second one waits there for its turn.
    second_ps = FULL_PS + NEXT_PS + DELAY_PS
    slow = Nic(pcie_rate_bps=RATE_BPS // 8, receive_buffer_bytes=100_000, xoff_bytes=99_000, xon_bytes=50_000)
    job = sends(2, [Message(source=0, destination=1, size_bytes=4 * 4096)])
    cure = Fault(at_ps=second_ps + 1, event="slow", nic=1, rate_bps=0)
    outcome = both(packet_input_of(pair(nic=slow), job, faults=[cure]))
    first_there_ps = FULL_PS + DELAY_PS + 8 * (FULL_PS - 20 * BYTE_PS)
    # The rest wait for it and for the second, whose time was set when it came, and pass with it.
    there_ps = first_there_ps + 8 * (NEXT_PS - 20 * BYTE_PS)
    assert second_ps + 2 * NEXT_PS < there_ps
    assert outcome.messages["delivered_at_ps"].tolist() == [there_ps]
    assert outcome.counters["out_of_order_discards"] == 0


def test_early_packets_go_along_to_the_other_port() -> None:
    # The first packet is lost on the way into the fabric, so that all others wait behind it when the link goes.
    arrival_ps = FULL_PS + DELAY_PS
    faults = [
        Fault(at_ps=arrival_ps, event="lossy", link=0, loss=1.0),
        Fault(at_ps=arrival_ps + 1, event="lossy", link=0, loss=0.0),
        down(2),
    ]
    outcome = two_rails([message(9), Wait()], faults=faults, reorder_tolerant=True)
    assert outcome.ports["max_early_packets"][:4].tolist() == [0, 0, 8, 8]
    assert outcome.messages["delivered_at_ps"][0] > MOVED_PS
