"""Pause frames on the wire, their refresh and expiry, and the law of the reserve."""

import pytest
from helpers.reference_flow_control import incast, small
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.engine.instants import Fault
from weftwork.engine.reference.clock import Phase
from weftwork.engine.reference.simulation import Simulation
from weftwork.spec.device import Nic, Scheduling, Switch
from weftwork.spec.transport import Transport

PAUSE_FRAME_PS = (64 + 20) * BYTE_PS


QUANTUM_PS = 64 * BYTE_PS


DATA = 0  # class index: priority 3 comes before 6


FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS


IDLE = sends(2, [])


def test_a_pause_waits_for_the_packet_in_flight_and_then_goes_first() -> None:
    messages = [Message(source=0, destination=1, size_bytes=2 * 4096)]
    simulation = Simulation(
        packet_input_of(pair(), sends(2, messages), until_ps=FULL_PS + PAUSE_FRAME_PS + DELAY_PS + 1)
    )
    simulation.clock.at(
        1, Phase.INSTANT, (0,), simulation.ports[0].ask_pause, DATA
    )  # the first packet is on the wire since 0
    simulation.run()
    arrival_ps = FULL_PS + PAUSE_FRAME_PS + DELAY_PS
    assert simulation.ports[1].pause_until_ps[DATA] == arrival_ps + 65_535 * QUANTUM_PS
    assert simulation.ports[1].counts["paused_ps"] == 65_535 * QUANTUM_PS


def test_a_pause_expires_and_the_port_goes_on_at_that_instant() -> None:
    simulation = Simulation(packet_input_of(pair(), sends(2, [Message(source=0, destination=1, size_bytes=4096)])))
    simulation.ports[0].obey(DATA, 100)
    simulation.run()
    assert simulation.outcome().messages["delivered_at_ps"].tolist() == [100 * QUANTUM_PS + FULL_PS + DELAY_PS]


def test_control_packets_pass_a_pause_of_data() -> None:
    simulation = Simulation(packet_input_of(pair(), sends(2, [Message(source=0, destination=1, size_bytes=4096)])))
    simulation.ports[1].obey(DATA, 60_000)
    simulation.run()
    ack_ps = FULL_PS + DELAY_PS + (66 + 20) * BYTE_PS + DELAY_PS
    assert simulation.outcome().messages["acked_at_ps"].tolist() == [ack_ps]


def test_a_pause_is_sent_again_every_half_pause_time_until_it_is_lifted() -> None:
    simulation = Simulation(packet_input_of(pair(nic=Nic(pause_quanta=1_000)), IDLE))
    port, half_ps = simulation.ports[0], 500 * QUANTUM_PS
    port.ask_pause(DATA)
    simulation.clock.at(3 * half_ps + 1, Phase.INSTANT, (0,), port.ask_resume, DATA)
    simulation.run()
    assert port.counts["pauses_sent"] == 4  # at 0 and three times again
    assert port.counts["resumes_sent"] == 1
    # from the first frame's arrival to the resume's, which had to wait for the last refresh
    assert simulation.ports[1].counts["paused_ps"] == 3 * half_ps + PAUSE_FRAME_PS


def test_an_incast_pauses_and_loses_nothing() -> None:
    simulation, outcome = incast(small())
    assert outcome.ports["pauses_sent"].sum() > 0
    assert outcome.ports["drops"].sum() == 0
    assert (outcome.messages["acked_at_ps"] >= 0).all()
    assert outcome.counters["retransmissions"] == 0
    assert not any(any(port.asked) for port in simulation.ports)


def test_without_flow_control_the_same_incast_loses_packets_and_sends_no_pause() -> None:
    messages = [Message(source=s, destination=4, size_bytes=200_000) for s in range(4)]
    switch = small(buffer_bytes=100_000)
    transport = Transport(lossless_priorities=(), retransmission_timeout_ps=50_000_000, retry_limit=50)
    simulation = Simulation(packet_input_of(star(5, switch=switch), sends(5, messages), transport=transport))
    simulation.run()
    outcome = simulation.outcome()
    assert outcome.ports["pauses_sent"].sum() == 0
    assert outcome.counters["drop_egress_threshold"] > 0
    assert (outcome.messages["acked_at_ps"] >= 0).all()


@pytest.mark.parametrize("reserve_bytes", [0, 4_096, 10_000])
def test_nobody_at_or_below_its_reserve_stays_paused(reserve_bytes: int) -> None:
    # An offset above the threshold would never let the second rule lift a pause; the reserve has to.
    switch = small(
        reserve_bytes=reserve_bytes, xon_offset_bytes=80_000, buffer_bytes=5 * 2 * 10_000 + 5 * 130_000 + 40_000
    )
    simulation, outcome = incast(switch)
    assert outcome.ports["pauses_sent"].sum() > 0
    assert not any(any(port.asked) for port in simulation.ports)
    assert (outcome.messages["acked_at_ps"] >= 0).all()


def test_a_link_that_goes_down_forgets_its_pauses_and_frees_the_buffer() -> None:
    simulation, outcome = incast(small(), faults=[Fault(at_ps=6_000_000, event="down", link=4)])
    assert outcome.counters["drop_link_down"] > 0
    switch = simulation.switches[5]
    assert switch.buffer.shared_used_bytes == 0
    assert not any(any(port.asked) for port in simulation.ports)


def test_a_full_receive_buffer_pushes_back() -> None:
    nic = Nic(pcie_rate_bps=50_000_000_000, receive_buffer_bytes=300_000, xoff_bytes=100_000, xon_bytes=50_000)
    simulation = Simulation(
        packet_input_of(pair(nic=nic), sends(2, [Message(source=0, destination=1, size_bytes=1_000_000)]))
    )
    simulation.run()
    outcome = simulation.outcome()
    assert outcome.ports["pauses_sent"][1] > 0
    assert outcome.counters["drop_receive_buffer"] == 0
    assert outcome.counters["retransmissions"] == 0
    assert simulation.nics[1].buffer_bytes == 0
    assert not any(simulation.ports[1].asked)


def test_weighted_classes_share_a_port_by_their_weights() -> None:
    scheduling = Scheduling(weights=(1, 3, 1, 1, 1, 1, 0, 0))
    messages = [Message(source=s, destination=2, size_bytes=400_000, channel=s, priority=s) for s in (0, 1)]
    fabric = star(3, switch=Switch(forwarding_latency_ps=0, scheduling=scheduling))
    transport = Transport(lossless_priorities=(), data_priority=0)
    engine_input = packet_input_of(
        fabric, sends(3, messages), transport=transport, until_ps=2 * DELAY_PS + 100 * FULL_PS
    )
    simulation = Simulation(engine_input)
    simulation.run()
    delivered = [simulation.queue_pairs[s, 2, s].receiver.expected for s in (0, 1)]
    assert delivered[1] / delivered[0] == pytest.approx(3, rel=0.15)


def test_a_strict_class_goes_before_weighted_ones() -> None:
    messages = [Message(source=s, destination=2, size_bytes=200_000, channel=s, priority=3 + 4 * s) for s in (0, 1)]
    simulation = Simulation(packet_input_of(star(3), sends(3, messages), transport=Transport(lossless_priorities=())))
    simulation.run()
    weighted_ps, strict_ps = simulation.outcome().messages["delivered_at_ps"].tolist()
    assert strict_ps < weighted_ps * 0.6
