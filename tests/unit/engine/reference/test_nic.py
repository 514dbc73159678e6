"""The NIC port alone: turns among senders, control packets, and the host interface that can push back."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.by_hand import (
    BYTE_PS,
    CONTROL_CLASS,
    FRAME_BYTES,
    FRAME_PS,
    HandClock,
    HandWire,
    Tally,
    answer,
    data,
    hand_port,
)

from weftwork.base.clock import US_PS
from weftwork.engine.reference.flow import Flow
from weftwork.engine.reference.nic import NicConfig, NicPort
from weftwork.engine.reference.packet import Packet, PacketKind

HOST_PS_PER_BYTE = 80  # of 100 Gb/s
HOST_PS = FRAME_BYTES * HOST_PS_PER_BYTE
SLOW = {"host_packet_ps": 200_000, "host_byte_ps": 10_000}
COST_PS = 240_960  # 200,000 and 10 for each of 4,096 bytes: longer than a frame takes


class HandSender:
    """A sender with so many packets, which may not leave before an instant."""

    def __init__(self, channel: int, packets: int, *, next_send_at_ps: int = 0, clock: HandClock) -> None:
        self.flow = Flow.of(0, 1, channel, seed=1)
        self.left = packets
        self.next_send_at_ps = next_send_at_ps
        self.clock = clock
        self.heard: list[Packet] = []

    def wants_to_send(self) -> bool:
        return self.left > 0

    def next_packet(self) -> int | None:
        return 0 if self.left > 0 and self.next_send_at_ps <= self.clock.now_ps else None

    def send(self, seq: int) -> Packet:
        self.left -= 1
        return data(seq, flow=self.flow)

    def receive(self, packet: Packet) -> None:
        self.heard.append(packet)


class HandReceiver:
    """What was handed to it, and when."""

    def __init__(self, clock: HandClock, channel: int = 0) -> None:
        self.flow = Flow.of(0, 1, channel, seed=1)
        self.clock = clock
        self.handled: list[tuple[int, int]] = []
        self.cut: list[tuple[int, int]] = []
        self.requests: list[tuple[int, int]] = []
        self.probes = 0

    def handle(self, packet: Packet) -> None:
        self.handled.append((self.clock.now_ps, packet.seq))

    def handle_cut(self, packet: Packet) -> None:
        self.cut.append((self.clock.now_ps, packet.seq))

    def requested(self, packet: Packet) -> None:
        self.requests.append((self.clock.now_ps, packet.seq))

    def probed(self) -> None:
        self.probes += 1


class Driven:
    """A NIC port with the id 1."""

    def __init__(self, **changes: Any) -> None:
        self.clock, self.counted, self.wire = HandClock(), Tally(), HandWire()
        values: dict[str, Any] = {
            "pcie_rate_bps": 0,
            "pcie_latency_ps": 0,
            "receive_buffer_bytes": 10**9,
            "xoff_bytes": 10**9,
            "xon_bytes": 0,
            "lossless": (True, False),
            "control_class": CONTROL_CLASS,
        }
        self.port = hand_port(self.clock, self.counted, 1)
        self.nic = NicPort(self.port, NicConfig(**(values | changes)), self.clock)
        self.port.join(self.nic, self.wire)
        self.receiver = HandReceiver(self.clock)
        self.nic.attach_receiver(self.receiver)

    def sender(self, channel: int, packets: int, *, next_send_at_ps: int = 0) -> HandSender:
        made = HandSender(channel, packets, next_send_at_ps=next_send_at_ps, clock=self.clock)
        self.nic.attach(made)
        return made

    def channels(self) -> list[int]:
        """Of the data packets in the order in which they left."""
        self.clock.run()
        return [packet.flow.id & 0xFFFF for _, packet in self.wire.packets if packet.kind == PacketKind.DATA]

    def asked(self) -> list[int]:
        return [quanta for _, _, quanta in self.wire.pauses]


# Sending


def test_senders_take_turns_from_the_first_slot_on() -> None:
    driven = Driven()
    for channel, packets in enumerate((3, 1, 2)):
        driven.sender(channel, packets)
    driven.nic.start()
    assert driven.channels() == [0, 1, 2, 0, 2, 0]


def test_a_sender_that_was_passed_over_does_not_lose_its_turn_to_one_served_before() -> None:
    driven = Driven()
    driven.sender(0, 3)
    driven.sender(1, 2, next_send_at_ps=FRAME_PS + 1)
    driven.sender(2, 3)
    driven.nic.start()
    assert driven.channels() == [0, 2, 0, 1, 2, 0, 1, 2]


def test_an_idle_port_wakes_when_the_first_of_its_senders_may_send() -> None:
    driven = Driven()
    driven.sender(0, 1, next_send_at_ps=9 * US_PS)
    driven.sender(1, 1, next_send_at_ps=5 * US_PS)
    driven.nic.start()
    driven.clock.run()
    assert [left_at_ps for left_at_ps, _ in driven.wire.packets] == [5 * US_PS + FRAME_PS, 9 * US_PS + FRAME_PS]


def test_a_sender_that_has_left_is_not_asked_and_still_hears_what_comes_late() -> None:
    driven = Driven()
    sender = driven.sender(0, 1)
    driven.nic.detach(0)
    driven.sender(1, 1)
    driven.nic.start()
    assert driven.channels() == [1]
    late = answer(PacketKind.ACK, 1, destination=1, flow=sender.flow)
    driven.port.receive(late)
    assert sender.heard == [late]


def test_control_packets_go_first_in_their_order() -> None:
    driven = Driven()
    driven.sender(0, 2)
    driven.nic.start()
    for seq in (5, 4):
        driven.nic.queue_control(answer(PacketKind.ACK, seq))
    driven.clock.run()
    assert [(packet.kind.name, packet.seq) for _, packet in driven.wire.packets] == [
        ("DATA", 0),
        ("ACK", 5),
        ("ACK", 4),
        ("DATA", 0),
    ]


def test_what_a_sender_hands_over_with_its_packet_goes_behind_it() -> None:
    driven = Driven()
    sender = driven.sender(0, 2)
    plain_send = sender.send

    def send_and_ask(seq: int) -> Packet:
        driven.nic.queue_control(answer(PacketKind.REQUEST, sender.left))
        return plain_send(seq)

    sender.send = send_and_ask
    driven.nic.start()
    driven.clock.run()
    assert [packet.kind.name for _, packet in driven.wire.packets] == ["DATA", "REQUEST", "DATA", "REQUEST"]


def test_control_packets_that_are_paused_do_not_hold_up_data() -> None:
    driven = Driven()
    driven.port.obey(CONTROL_CLASS, 65_535)
    driven.nic.queue_control(answer(PacketKind.ACK, 1))
    driven.sender(0, 1)
    driven.nic.start()
    driven.clock.go_to(2 * FRAME_PS)
    assert [packet.kind.name for _, packet in driven.wire.packets] == ["DATA"]


def test_the_line_of_a_sender_tells_the_rate_and_the_pause_of_the_port() -> None:
    driven = Driven()
    driven.port.rate_bps = 123
    driven.port.obey(0, 1)
    assert (driven.nic.id, driven.nic.rate_bps) == (1, 123)
    assert (driven.nic.is_held(0, 1), driven.nic.is_held(1, 1)) == (True, False)


# Receiving


def test_packets_come_to_the_queue_pair_of_their_flow() -> None:
    driven = Driven()
    other = HandReceiver(driven.clock, channel=7)
    driven.nic.attach_receiver(other)
    driven.clock.go_to(3)
    driven.port.receive(data(4))
    driven.port.receive(data(6, flow=other.flow))
    driven.port.receive(answer(PacketKind.PROBE, 0, destination=1))
    assert (driven.receiver.handled, other.handled) == ([(3, 4)], [(3, 6)])
    assert (driven.receiver.probes, other.probes) == (1, 0)


def test_a_host_does_not_forward() -> None:
    driven = Driven()
    driven.port.receive(data(0, destination=2))
    assert driven.counted == {"drop_no_route": 1}
    assert driven.receiver.handled == []


def test_receivers_are_numbered_as_they_ask() -> None:
    driven = Driven()
    assert [driven.nic.new_receiver_slot() for _ in range(3)] == [0, 1, 2]


# The host interface


def test_data_passes_the_host_interface_one_after_the_other_and_control_passes_by() -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000, pcie_latency_ps=200_000)
    packets = [data(seq) for seq in range(3)]
    for packet in packets:
        driven.port.receive(packet)
    driven.port.receive(answer(PacketKind.PROBE, 0, destination=1))
    assert driven.receiver.probes == 1
    driven.clock.run()
    assert driven.receiver.handled == [(HOST_PS + 200_000, 0), (2 * HOST_PS + 200_000, 1), (3 * HOST_PS + 200_000, 2)]
    assert [packet.arrived_at_ps for packet in packets] == [0, 0, 0]
    driven.clock.go_to(10 * HOST_PS)
    driven.port.receive(data(3))
    driven.clock.run()
    assert driven.receiver.handled[-1] == (11 * HOST_PS + 200_000, 3)


def test_what_was_cut_and_requests_pass_by_the_host_interface() -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000, receive_buffer_bytes=FRAME_BYTES)
    driven.port.receive(data(0))
    driven.clock.go_to(5)
    driven.port.receive(data(1, is_cut=True, size_bytes=64))
    driven.port.receive(answer(PacketKind.REQUEST, 2, destination=1))
    assert (driven.receiver.cut, driven.receiver.requests) == ([(5, 1)], [(5, 2)])
    driven.clock.run()
    assert driven.receiver.handled == [(HOST_PS, 0)]
    assert driven.counted == {}


def test_a_host_interface_of_latency_alone_takes_no_time_for_bytes() -> None:
    driven = Driven(pcie_latency_ps=200_000)
    for seq in range(2):
        driven.port.receive(data(seq))
    driven.clock.run()
    assert driven.receiver.handled == [(200_000, 0), (200_000, 1)]


@pytest.mark.parametrize(("spare_bytes", "kept"), [(0, 3), (-1, 2)])
def test_the_buffer_takes_what_fits_to_the_byte(spare_bytes: int, kept: int) -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000, receive_buffer_bytes=3 * FRAME_BYTES + spare_bytes)
    for seq in range(4):
        driven.port.receive(data(seq))
    assert driven.nic.buffer_bytes == kept * FRAME_BYTES
    assert driven.counted == {"drop_receive_buffer": 4 - kept}


def test_above_xoff_every_lossless_class_is_paused_and_at_xon_it_goes_on() -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000, xoff_bytes=3 * FRAME_BYTES, xon_bytes=FRAME_BYTES)
    for seq in range(3):
        driven.port.receive(data(seq))
    assert driven.asked() == []
    driven.port.receive(data(3))
    assert driven.port.asked == [True, False]
    driven.clock.go_to(3 * HOST_PS - 1)
    assert driven.asked() == [65_535]
    driven.clock.go_to(3 * HOST_PS)
    assert driven.asked() == [65_535, 0]
    assert driven.port.asked == [False, False]


def test_a_rate_of_the_host_that_changes_holds_for_what_comes_then() -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000)
    driven.port.receive(data(0))
    driven.nic.pcie_rate_bps //= 2
    driven.port.receive(data(1))
    driven.clock.run()
    assert driven.receiver.handled == [(HOST_PS, 0), (3 * HOST_PS, 1)]


# The host's processor


def test_data_packets_leave_as_fast_as_the_processor_makes_them() -> None:
    driven = Driven(**SLOW)
    driven.sender(0, 2)
    driven.sender(1, 1)
    driven.nic.start()
    assert driven.channels() == [0, 1, 0]
    assert [at_ps for at_ps, _ in driven.wire.packets] == [FRAME_PS, COST_PS + FRAME_PS, 2 * COST_PS + FRAME_PS]


@pytest.mark.parametrize("host_packet_ps", [1, FRAME_PS])
def test_a_processor_that_keeps_up_is_not_seen(host_packet_ps: int) -> None:
    driven = Driven(host_packet_ps=host_packet_ps)
    driven.sender(0, 3)
    driven.nic.start()
    driven.clock.run()
    assert [at_ps for at_ps, _ in driven.wire.packets] == [FRAME_PS, 2 * FRAME_PS, 3 * FRAME_PS]


def test_nothing_leaves_a_port_whose_processor_is_busy_and_then_flow_control_and_control_packets_go_first() -> None:
    driven = Driven(**SLOW)
    driven.sender(0, 2)
    driven.nic.start()
    driven.clock.go_to(FRAME_PS + 1)
    driven.nic.queue_control(answer(PacketKind.ACK, 1))
    driven.port.ask_resume(0)
    driven.clock.run()
    pause_ps, ack_ps = (64 + 20) * BYTE_PS, (66 + 20) * BYTE_PS
    assert driven.wire.pauses == [(COST_PS + pause_ps, 0, 0)]
    assert [(at_ps, packet.kind.name) for at_ps, packet in driven.wire.packets] == [
        (FRAME_PS, "DATA"),
        (COST_PS + pause_ps + ack_ps, "ACK"),
        (COST_PS + pause_ps + ack_ps + FRAME_PS, "DATA"),
    ]


def test_data_that_arrives_waits_for_the_processor_and_all_else_passes_by() -> None:
    driven = Driven(**SLOW)
    for seq in range(2):
        driven.port.receive(data(seq))
    driven.port.receive(data(2, is_cut=True, size_bytes=64))
    driven.port.receive(answer(PacketKind.REQUEST, 2, destination=1))
    assert (driven.receiver.cut, driven.receiver.requests) == ([(0, 2)], [(0, 2)])
    driven.clock.run()
    assert driven.receiver.handled == [(COST_PS, 0), (2 * COST_PS, 1)]  # what was cut has cost nothing
    driven.clock.go_to(9 * COST_PS)
    driven.port.receive(data(3, payload_bytes=1_000))
    driven.clock.run()
    assert driven.receiver.handled[-1] == (9 * COST_PS + 210_000, 3)


def test_a_host_without_a_host_interface_has_room_for_all_and_pauses_nobody() -> None:
    driven = Driven(**SLOW, receive_buffer_bytes=1, xoff_bytes=0, xon_bytes=0)
    for seq in range(4):
        driven.port.receive(data(seq))
    assert driven.nic.buffer_bytes == 4 * FRAME_BYTES
    driven.clock.run()
    assert len(driven.receiver.handled) == 4
    assert (driven.counted, driven.asked(), driven.nic.buffer_bytes) == ({}, [], 0)


def test_behind_a_host_interface_the_cost_is_added_to_its_time_and_its_buffer_is_what_it_was() -> None:
    driven = Driven(**SLOW, pcie_rate_bps=100_000_000_000, pcie_latency_ps=5_000, receive_buffer_bytes=2 * FRAME_BYTES)
    for seq in range(3):
        driven.port.receive(data(seq))
    assert driven.counted == {"drop_receive_buffer": 1}
    driven.clock.run()
    each_ps = HOST_PS + COST_PS
    assert driven.receiver.handled == [(each_ps + 5_000, 0), (2 * each_ps + 5_000, 1)]


# What connections take


def test_every_slot_that_was_ever_in_use_takes_the_state_of_a_connection() -> None:
    driven = Driven(connection_state_bytes=375)
    assert driven.port.counts["nic_state_bytes"] == 0
    driven.sender(0, 1)
    driven.sender(1, 1)
    driven.nic.detach(0)
    assert driven.port.counts["nic_state_bytes"] == 2 * 375
    driven.nic.attach_receiver(HandReceiver(driven.clock, channel=7))  # no slot before its first packet
    assert driven.port.counts["nic_state_bytes"] == 2 * 375
    driven.nic.new_receiver_slot()
    assert driven.port.counts["nic_state_bytes"] == 3 * 375


# Faults


def test_with_its_link_control_packets_are_lost_and_what_is_in_the_host_goes_on() -> None:
    driven = Driven(pcie_rate_bps=100_000_000_000)
    driven.port.obey(CONTROL_CLASS, 65_535)
    driven.nic.queue_control(answer(PacketKind.ACK, 1))
    driven.nic.queue_control(answer(PacketKind.ACK, 2))
    driven.port.receive(data(0))
    driven.port.go_down()
    assert driven.counted == {"drop_link_down": 2}
    driven.clock.run()
    assert driven.receiver.handled == [(HOST_PS, 0)]
