"""What goes wrong in such an engine, on tiny plans in both engines; docs/models/packet-engine.md has the table."""

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import MS_PS, NS_PS, SECOND_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.spec.device import Nic, Switch
from weftwork.spec.transport import Transport

FIRST_BYTES = 4096 + 62 + 16


FULL_PS = (FIRST_BYTES + 20) * BYTE_PS


NEXT_PS = (4096 + 62 + 20) * BYTE_PS


ACK_PS = (66 + 20) * BYTE_PS


SILENCED = str(Path(__file__).parents[2] / "policies" / "silenced.py")


PAUSE_FRAME_PS = (64 + 20) * BYTE_PS


QUANTUM_PS = 64 * BYTE_PS


pytestmark = pytest.mark.sanitize


def one(size_bytes: int, **changes: int) -> list[Message]:
    return [Message(source=0, destination=1, size_bytes=size_bytes, **changes)]


@pytest.mark.parametrize("delays_ps", [(10 * NS_PS, 5 * MS_PS), (80 * NS_PS, 80 * NS_PS), (5 * NS_PS, 10 * NS_PS)])
def test_delays_and_packets_longer_than_a_window(delays_ps: tuple[int, int]) -> None:
    fabric = star(2, delays_ps=delays_ps, rates_bps=[RATE_BPS, RATE_BPS // 400])
    outcome = both(packet_input_of(fabric, sends(2, one(3 * 4096)), transport=Transport(lossless_priorities=())))
    last_ps = FULL_PS + sum(delays_ps) + 400 * (FULL_PS + 2 * NEXT_PS)  # the second link is the slow one
    assert outcome.messages["delivered_at_ps"].tolist() == [last_ps]


def test_two_thousand_packets_on_one_wire() -> None:
    fabric = pair(delays_ps=[5 * MS_PS])
    outcome = both(packet_input_of(fabric, sends(2, one(2_000 * 4096)), transport=Transport(ack_every=100)))
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + 1_999 * NEXT_PS + 5 * MS_PS]


def test_a_switch_of_more_than_64_ports() -> None:
    hosts = 70
    messages = [Message(source=s, destination=(s + 35) % hosts, size_bytes=4096) for s in range(hosts)]
    outcome = both(packet_input_of(star(hosts), sends(hosts, messages)))
    assert set(outcome.messages["delivered_at_ps"].tolist()) == {2 * (FULL_PS + DELAY_PS)}


@pytest.mark.parametrize("reserve_bytes", [0, 4_096, 10_000])
def test_nobody_stays_paused_for_ever(reserve_bytes: int) -> None:
    # The offset lies above the threshold: only the reserve can lift a pause, and only if all ingresses are tested.
    switch = Switch(
        forwarding_latency_ps=0,
        headroom_bytes=130_000,
        buffer_bytes=5 * 2 * reserve_bytes + 5 * 130_000 + 60_000,
        reserve_bytes=reserve_bytes,
        xon_offset_bytes=80_000,
    )
    messages = [Message(source=s, destination=4, size_bytes=100_000) for s in range(4)]
    outcome = both(packet_input_of(star(5, switch=switch), sends(5, messages), until_ps=MS_PS))
    assert outcome.ports["pauses_sent"].sum() > 0
    assert outcome.ports["drops"].sum() == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()


@pytest.mark.parametrize("recovery", ["go-back-n", "timeout"])
def test_half_of_all_packets_lost_and_all_delivered(recovery: str) -> None:
    transport = Transport.model_validate(
        {"recovery": recovery, "retransmission_timeout_ps": 10 * US_PS, "retry_limit": 1_000}
    )
    outcome = both(packet_input_of(pair(loss=0.5), sends(2, one(10 * 4096)), transport=transport))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert outcome.counters["drop_link_loss"] > 5


def test_several_ports_act_at_one_instant() -> None:
    # Four equal senders: every packet arrives with three others, by port, and all four ports are paused and resumed.
    switch = Switch(forwarding_latency_ps=0, headroom_bytes=130_000, buffer_bytes=5 * 2 * 4_096 + 5 * 130_000 + 50_000)
    messages = [Message(source=s, destination=4, size_bytes=100_000) for s in range(4)]
    outcome = both(packet_input_of(star(5, switch=switch), sends(5, messages), until_ps=MS_PS))
    towards = outcome.ports[5:9]
    assert (towards["pauses_sent"] > 0).all()
    assert (towards["resumes_sent"] == towards["pauses_sent"]).all()
    single = [Message(source=s, destination=4, size_bytes=4096) for s in range(4)]
    delivered = both(packet_input_of(star(5, switch=switch), sends(5, single))).messages["delivered_at_ps"].tolist()
    assert delivered == [2 * (FULL_PS + DELAY_PS) + place * FULL_PS for place in range(4)]


def test_a_pause_frame_waits_for_the_packet_in_flight_and_takes_wire_time() -> None:
    # Host 1 sends a packet just before its buffer asks for a pause; its ACKs come later, from the host.
    asked_ps = FULL_PS + NEXT_PS + DELAY_PS
    own = Message(source=1, destination=0, size_bytes=4096, at_ps=asked_ps - 1_000)
    nic = Nic(pcie_latency_ps=10 * US_PS, xoff_bytes=FIRST_BYTES, xon_bytes=0)
    pause_ps = asked_ps - 1_000 + FULL_PS + PAUSE_FRAME_PS + DELAY_PS
    engine_input = packet_input_of(pair(nic=nic), sends(2, [*one(2 * 4096), own]), until_ps=pause_ps + 1)
    outcome = both(engine_input)
    assert outcome.ports["pauses_sent"].tolist() == [0, 1]
    assert outcome.ports["paused_ps"].tolist() == [65_535 * QUANTUM_PS, 0]
    assert (
        both(packet_input_of(pair(nic=nic), sends(2, [*one(2 * 4096), own]), until_ps=pause_ps)).ports["paused_ps"][0]
        == 0
    )


def test_a_pause_shorter_than_the_wire_is_refreshed_until_it_is_lifted() -> None:
    # A slow host asks for 128 ns at a time, again every 64 ns, over a wire of 500 ns.
    nic = Nic(
        pcie_rate_bps=RATE_BPS // 8, receive_buffer_bytes=300_000, xoff_bytes=30_000, xon_bytes=20_000, pause_quanta=100
    )
    outcome = both(packet_input_of(pair(nic=nic), sends(2, one(40 * 4096))))
    assert outcome.ports["pauses_sent"][1] > 5 * outcome.ports["resumes_sent"][1] > 0
    assert outcome.counters["drop_receive_buffer"] == 0


@pytest.mark.parametrize("queue_pairs", [3, 130])
def test_queue_pairs_take_turns_however_many_there_are(queue_pairs: int) -> None:
    # Three packets each; the k-th packet of slot i is number k n + i on the wire.
    messages = [Message(source=0, destination=1, size_bytes=3 * 4096, channel=i) for i in range(queue_pairs)]
    outcome = both(packet_input_of(pair(), sends(2, messages)))
    start_ps = queue_pairs * (FULL_PS + NEXT_PS) + DELAY_PS
    expected = [start_ps + (i + 1) * NEXT_PS for i in range(queue_pairs)]
    assert outcome.messages["delivered_at_ps"].tolist() == expected


def test_a_timer_that_every_ack_moves_never_fires() -> None:
    # A message of ten timeouts; the deadline of each packet is a little above the round trip.
    timeout_ps = 2 * DELAY_PS + 3 * FULL_PS
    packets = 10 * timeout_ps // NEXT_PS
    transport = Transport(retransmission_timeout_ps=timeout_ps, retry_limit=0)
    outcome = both(packet_input_of(pair(), sends(2, one(packets * 4096)), transport=transport))
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["retransmissions"] == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_timers_of_an_idle_queue_pair_are_off() -> None:
    # Each packet sets a timer of 10 us that would close the window for good; each is acknowledged before.
    messages = [*one(4096), *one(4096, at_ps=20 * US_PS)]
    outcome = both(packet_input_of(pair(), sends(2, messages), congestion_control=SILENCED))
    assert outcome.messages["delivered_at_ps"].tolist() == [at + FULL_PS + DELAY_PS for at in (0, 20 * US_PS)]
    assert outcome.complete


@pytest.mark.parametrize("early_ps", [0, 1])
def test_a_run_until_an_instant_stops_before_its_events(early_ps: int) -> None:
    arrival_ps = FULL_PS + DELAY_PS
    outcome = both(packet_input_of(pair(), sends(2, one(4096)), until_ps=arrival_ps + 1 - early_ps))
    assert outcome.counters["packet_hops"] == 1 - early_ps
    assert outcome.messages["delivered_at_ps"].tolist() == [-1 if early_ps else arrival_ps]
    assert not outcome.complete


@pytest.mark.parametrize("late_ps", [0, 1])
def test_what_is_on_a_wire_that_goes_down_is_lost_up_to_the_very_instant_of_its_arrival(late_ps: int) -> None:
    arrival_ps = FULL_PS + DELAY_PS
    faults = [
        Fault(at_ps=arrival_ps + late_ps, event="down", link=0),
        Fault(at_ps=arrival_ps + late_ps + 1, event="up", link=0),
    ]
    transport = Transport(retransmission_timeout_ps=10 * US_PS)
    outcome = both(packet_input_of(pair(), sends(2, one(4096)), faults=faults, transport=transport))
    again_ps = 10 * US_PS + arrival_ps
    assert outcome.messages["delivered_at_ps"].tolist() == [arrival_ps if late_ps else again_ps]
    assert outcome.counters["drop_link_down"] == 1  # the packet, or its ACK that has just begun
    assert outcome.counters["timeouts"] == 1


def test_a_link_that_is_back_before_the_arrival_loses_the_packet_all_the_same() -> None:
    faults = [Fault(at_ps=FULL_PS + 1, event="down", link=0), Fault(at_ps=FULL_PS + 1, event="up", link=0)]
    outcome = both(
        packet_input_of(
            pair(), sends(2, one(4096)), faults=faults, transport=Transport(retransmission_timeout_ps=10 * US_PS)
        )
    )
    # Both events are of one instant, and the link is up again: the packet was sent before, so it is lost.
    assert outcome.counters["drop_link_down"] == 1


def test_times_past_what_32_bits_of_nanoseconds_hold() -> None:
    early, late = (
        both(packet_input_of(pair(), sends(2, one(30 * 4096, at_ps=at_ps)), congestion_control="fixed_window"))
        for at_ps in (0, 5 * SECOND_PS)
    )
    assert late.messages["acked_at_ps"].tolist() == [early.messages["acked_at_ps"][0] + 5 * SECOND_PS]


def test_a_host_interface_is_one_serial_server_for_all_queue_pairs() -> None:
    # Both packets pass an interface of a quarter of the rate, one after the other; two ports of a host share nothing.
    fabric = pair(nic=Nic(pcie_rate_bps=RATE_BPS // 4, pcie_latency_ps=US_PS))
    messages = [Message(source=0, destination=1, size_bytes=4096, channel=channel) for channel in range(2)]
    outcome = both(packet_input_of(fabric, sends(2, messages)))
    arrival_ps, transfer_ps = FULL_PS + DELAY_PS, 4 * FIRST_BYTES * BYTE_PS
    expected = [arrival_ps + count * transfer_ps + US_PS for count in (1, 2)]
    assert outcome.messages["delivered_at_ps"].tolist() == expected
