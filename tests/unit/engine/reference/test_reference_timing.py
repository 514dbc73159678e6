"""One packet to the picosecond, and who comes first at one instant."""

from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.engine.instants import Fault
from weftwork.engine.reference.simulation import Simulation, run
from weftwork.spec.device import Nic, Switch
from weftwork.spec.transport import Transport

FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS  # first packet of a message, with what follows a frame


NEXT_PS = (4096 + 62 + 20) * BYTE_PS


ACK_PS = (66 + 20) * BYTE_PS


def test_one_packet_between_two_hosts_takes_its_serialisation_and_the_delay() -> None:
    outcome = run(packet_input_of(pair(), sends(2, [Message(source=0, destination=1, size_bytes=4096)])))
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + DELAY_PS]
    assert outcome.messages["acked_at_ps"].tolist() == [FULL_PS + DELAY_PS + ACK_PS + DELAY_PS]
    assert outcome.complete
    assert outcome.counters["packet_hops"] == 2
    assert outcome.counters["end_ps"] == outcome.messages["acked_at_ps"][0]
    assert outcome.ports["bytes"].tolist() == [4096 + 62 + 16, 66]


def test_a_switch_stores_forwards_and_adds_its_latency() -> None:
    fabric = star(2, switch=Switch(forwarding_latency_ps=300_000), nic=Nic(receive_latency_ps=7_000))
    outcome = run(packet_input_of(fabric, sends(2, [Message(source=0, destination=1, size_bytes=4096)])))
    assert outcome.messages["delivered_at_ps"].tolist() == [2 * (FULL_PS + DELAY_PS) + 300_000 + 7_000]


def test_a_rate_that_does_not_divide_rounds_up_each_time() -> None:
    rate_bps = 7_770_000_000
    outcome = run(
        packet_input_of(pair(rates_bps=[rate_bps]), sends(2, [Message(source=0, destination=1, size_bytes=1000)]))
    )
    exact_ps = -(-(1000 + 62 + 16 + 20) * 8 * 10**12 // rate_bps)
    assert outcome.messages["delivered_at_ps"].tolist() == [exact_ps + DELAY_PS]


def test_an_empty_message_is_one_packet() -> None:
    outcome = run(packet_input_of(pair(), sends(2, [Message(source=0, destination=1, size_bytes=0)])))
    assert outcome.messages["delivered_at_ps"].tolist() == [(62 + 16 + 20) * BYTE_PS + DELAY_PS]


def test_base_rtt_is_a_full_packet_there_and_an_ack_back() -> None:
    simulation = Simulation(packet_input_of(star(2), sends(2, [Message(source=0, destination=1, size_bytes=1)])))
    simulation.run()
    assert simulation.queue_pairs[0, 1, 0].base_rtt_ps == 2 * (NEXT_PS + DELAY_PS) + 2 * (ACK_PS + DELAY_PS)


def test_a_fixed_window_of_two_packets_sends_two_per_round_trip() -> None:
    engine_input = packet_input_of(
        pair(),
        sends(2, [Message(source=0, destination=1, size_bytes=4 * 4096)]),
        congestion_control="fixed_window",
        parameters={"window_bytes": 2 * 4096},
    )
    outcome = run(engine_input)
    # The third packet leaves when the ACK of the first is there, the fourth follows it on the wire.
    third_ps = FULL_PS + DELAY_PS + ACK_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [third_ps + 2 * NEXT_PS + DELAY_PS]


def test_a_cap_of_two_packets_sends_two_per_round_trip_without_any_window() -> None:
    messages = [Message(source=0, destination=1, size_bytes=4 * 4096)]
    transport = Transport(inflight_cap_bytes=2 * 4096 + 4095, ack_every=1_000)
    outcome = run(packet_input_of(pair(), sends(2, messages), transport=transport))
    # The second packet asks for an ACK, since the cap holds back the third one; both then go back to back.
    third_ps = FULL_PS + NEXT_PS + DELAY_PS + ACK_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [third_ps + 2 * NEXT_PS + DELAY_PS]
    assert outcome.counters["acks_sent"] == 2


def test_a_packet_that_starts_at_the_instant_of_a_fault_is_lost_and_one_posted_then_waits() -> None:
    fault = Fault(at_ps=FULL_PS, event="down", link=0)
    transport = Transport(retransmission_timeout_ps=10**9, retry_limit=0)
    two_packets = [Message(source=0, destination=1, size_bytes=2 * 4096)]
    started = run(packet_input_of(pair(), sends(2, two_packets), faults=[fault], transport=transport))
    assert started.ports["frames"].tolist() == [2, 0]  # departures come before faults
    assert started.counters["drop_link_down"] == 2  # the first was still on the wire
    posted_then = [Message(source=0, destination=1, size_bytes=1, at_ps=FULL_PS)]
    waits = run(packet_input_of(pair(), sends(2, posted_then), faults=[fault], transport=transport))
    assert waits.ports["frames"].tolist() == [0, 0]  # the job comes after faults


def test_arrivals_of_one_instant_are_handled_by_port() -> None:
    fabric = star(3)
    same_time = [Message(source=1, destination=2, size_bytes=4096), Message(source=0, destination=2, size_bytes=4096)]
    outcome = run(packet_input_of(fabric, sends(3, same_time)))
    first, second = outcome.messages["delivered_at_ps"].tolist()  # by source
    assert first == 2 * (FULL_PS + DELAY_PS)
    assert second == first + FULL_PS


def test_queue_pairs_of_a_port_take_turns() -> None:
    messages = [Message(source=0, destination=1, size_bytes=2 * 4096, channel=channel) for channel in (0, 1)]
    outcome = run(packet_input_of(pair(), sends(2, messages)))
    assert outcome.messages["delivered_at_ps"].tolist() == [
        2 * FULL_PS + NEXT_PS + DELAY_PS,  # channel 0, 1, 0
        2 * FULL_PS + 2 * NEXT_PS + DELAY_PS,
    ]


def test_a_run_ends_before_the_first_event_at_until() -> None:
    messages = [Message(source=0, destination=1, size_bytes=4096)]
    arrival_ps = FULL_PS + DELAY_PS
    before = run(packet_input_of(pair(), sends(2, messages), until_ps=arrival_ps))
    assert before.messages["delivered_at_ps"].tolist() == [-1]
    assert not before.complete
    assert before.simulated_ps == arrival_ps
    after = run(packet_input_of(pair(), sends(2, messages), until_ps=arrival_ps + 1))
    assert after.messages["delivered_at_ps"].tolist() == [arrival_ps]


def test_the_host_interface_delays_and_its_delay_is_told() -> None:
    nic = Nic(pcie_rate_bps=100_000_000_000, pcie_latency_ps=200_000)
    outcome = run(packet_input_of(pair(nic=nic), sends(2, [Message(source=0, destination=1, size_bytes=4096)])))
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + DELAY_PS + (4096 + 62 + 16) * 80 + 200_000]
