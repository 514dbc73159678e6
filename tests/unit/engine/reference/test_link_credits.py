"""Credits between links, part by part: the accounts of a port, and when a switch and a NIC return what came in."""

from __future__ import annotations

from typing import Any

from helpers.by_hand import (
    BYTE_PS,
    CONTROL_CLASS,
    FLOW,
    FRAME_BYTES,
    FRAME_PS,
    MTU_BYTES,
    HandClock,
    HandWire,
    Tally,
    answer,
    data,
    hand_port,
)
from helpers.driven_sender import drive
from helpers.hand_switch import IN, LOSSLESS, LOSSY, OTHER_IN, OUT, SPARE, HandRoutes, HandSelection
from helpers.hand_switch import Driven as DrivenSwitch

from weftwork.base.clock import US_PS
from weftwork.engine.reference.nic import NicConfig, NicPort
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.port import Port

CREDIT_FRAME_PS = (64 + 20) * BYTE_PS
DATA, OTHER = 0, 1  # classes


class HandNode:
    """A node that has these packets to send, as far as credit goes."""

    def __init__(self, packets: int) -> None:
        self.queue = [data(seq) for seq in range(packets)]

    def send_next(self, port: Port) -> None:
        if self.queue and not port.is_held(DATA, self.queue[0].size_bytes):
            port.transmit(self.queue.pop(0))

    def receive(self, port: Port, packet: Packet) -> None:
        """Keep it."""

    def port_went_down(self, port: Port) -> None:
        """Nothing waits."""


class DrivenPort:
    def __init__(self, packets: int = 0, *, room_ahead_bytes: int = 10**6, quantum_bytes: int = 1) -> None:
        self.clock, self.counted, self.wire = HandClock(), Tally(), HandWire()
        self.port = hand_port(self.clock, self.counted, room_ahead_bytes=room_ahead_bytes, quantum_bytes=quantum_bytes)
        self.port.join(HandNode(packets), self.wire)

    def left_at_ps(self) -> list[int]:
        self.clock.run()
        return [left_at_ps for left_at_ps, _ in self.wire.packets]

    def holds(self, packets: int) -> None:
        """So many packets have come in and are still here."""
        for seq in range(packets):
            self.port.receive(data(seq))


# The port that sends


def test_a_packet_takes_its_credit_and_the_next_waits_for_all_of_its_own() -> None:
    driven = DrivenPort(packets=3, room_ahead_bytes=2 * FRAME_BYTES - 1)
    driven.port.start()
    assert driven.left_at_ps() == [FRAME_PS]
    driven.clock.go_to(3 * FRAME_PS)
    driven.port.take_credit(DATA, 1)
    assert driven.left_at_ps() == [FRAME_PS, 4 * FRAME_PS]
    driven.port.take_credit(OTHER, 10**9)
    assert driven.port.credits is not None
    assert driven.port.credits.credit_bytes == [0, 2 * FRAME_BYTES - 1 + 10**9]
    assert len(driven.left_at_ps()) == 2
    assert driven.port.counts["paused_ps"] == 0


# The port that receives


def test_what_is_owed_goes_back_in_one_frame_once_it_is_a_quantum() -> None:
    driven = DrivenPort(quantum_bytes=2 * FRAME_BYTES)
    driven.holds(4)
    driven.port.free(DATA, FRAME_BYTES)
    driven.port.free(OTHER, 2 * FRAME_BYTES - 1)
    assert driven.wire.credits == []
    driven.port.free(DATA, FRAME_BYTES)
    driven.port.free(DATA, FRAME_BYTES)
    assert driven.wire.credits == [(CREDIT_FRAME_PS, DATA, 2 * FRAME_BYTES)]
    assert driven.port.credits is not None
    assert driven.port.credits.owed_bytes == [FRAME_BYTES, 2 * FRAME_BYTES - 1]
    assert driven.port.credits.used_bytes[DATA] == FRAME_BYTES
    assert (driven.port.counts["credit_frames"], driven.port.counts["frames"]) == (1, 0)


def test_a_frame_with_credit_waits_for_the_packet_on_the_wire_and_goes_before_the_next() -> None:
    driven = DrivenPort(packets=2)
    driven.holds(2)
    driven.port.start()
    driven.port.free(DATA, FRAME_BYTES)
    driven.port.free(DATA, FRAME_BYTES)
    assert driven.port.counts["credit_frames"] == 0  # it counts when it starts
    assert driven.left_at_ps() == [FRAME_PS, 2 * FRAME_PS + 2 * CREDIT_FRAME_PS]
    assert driven.wire.credits == [
        (FRAME_PS + CREDIT_FRAME_PS, DATA, FRAME_BYTES),
        (FRAME_PS + 2 * CREDIT_FRAME_PS, DATA, FRAME_BYTES),
    ]


def test_a_port_that_is_down_returns_nothing_and_one_that_comes_up_begins_anew() -> None:
    driven = DrivenPort(room_ahead_bytes=5 * FRAME_BYTES, quantum_bytes=2 * FRAME_BYTES)
    driven.holds(5)
    driven.port.free(DATA, FRAME_BYTES)
    driven.port.go_down()
    driven.port.free(DATA, FRAME_BYTES)
    driven.port.free(DATA, FRAME_BYTES)
    account = driven.port.credits
    assert account is not None
    assert (account.owed_bytes[DATA], account.used_bytes[DATA]) == (FRAME_BYTES, 2 * FRAME_BYTES)
    account.restart([2 * FRAME_BYTES, 0])
    driven.port.come_up()
    assert (account.owed_bytes, account.credit_bytes) == ([0, 0], [3 * FRAME_BYTES, 5 * FRAME_BYTES])
    driven.port.free(DATA, 2 * FRAME_BYTES)
    assert driven.wire.credits == [(CREDIT_FRAME_PS, DATA, 2 * FRAME_BYTES)]


# A switch


def switch(
    *, room_ahead_bytes: int, routes: HandRoutes | None = None, selection: HandSelection | None = None, **changes: Any
) -> DrivenSwitch:
    """Each of its links has so much room in each class, and returns at once what left."""
    return DrivenSwitch(
        routes=routes, selection=selection, room_ahead_bytes=room_ahead_bytes, quantum_bytes=1, **changes
    )


def returned(driven: DrivenSwitch, port: int = IN) -> list[tuple[int, int]]:
    """Class and bytes of each credit frame that a port has sent."""
    driven.clock.run()
    return [(traffic_class, credit_bytes) for _, traffic_class, credit_bytes in driven.wires[port].credits]


def credit_of(port: Port) -> list[int]:
    assert port.credits is not None
    return port.credits.credit_bytes


def test_a_switch_takes_all_that_comes_and_returns_it_when_it_starts_to_leave() -> None:
    driven = switch(room_ahead_bytes=2 * FRAME_BYTES, shared_bytes=0, egress_alpha=0.0)  # nobody asks the shared buffer
    driven.takes(3)
    driven.takes(2, traffic_class=LOSSY)
    # The first leaves at once; of those that wait the higher class goes first, and then one more has credit.
    assert returned(driven) == [(c, FRAME_BYTES) for c in (LOSSLESS, LOSSY, LOSSY, LOSSLESS)]
    assert (len(driven.sent()), driven.queued(LOSSLESS)) == (4, 1)
    driven.out.take_credit(LOSSLESS, FRAME_BYTES)
    assert returned(driven)[4:] == [(LOSSLESS, FRAME_BYTES)]
    assert driven.queued(LOSSLESS) == 0
    assert driven.counted == {}
    assert driven.ports[IN].counts["max_ingress_bytes"] == 2 * FRAME_BYTES
    assert driven.ports[IN].counts["pauses_sent"] == 0


def test_a_class_without_credit_lets_a_lower_one_go() -> None:
    driven = switch(room_ahead_bytes=FRAME_BYTES)
    credit_of(driven.out)[LOSSY] = FRAME_BYTES - 1
    driven.takes(1, traffic_class=LOSSY)
    driven.takes(1, traffic_class=LOSSLESS)
    assert [packet.traffic_class for packet in driven.sent()] == [LOSSLESS]
    assert driven.queued(LOSSY) == 1


def test_what_the_switch_writes_into_a_packet_takes_credit_and_is_not_returned() -> None:
    driven = switch(room_ahead_bytes=FRAME_BYTES + 41, has_telemetry=True, telemetry_hop_bytes=42)
    driven.takes(1)
    driven.ports[IN].receive(answer(PacketKind.REQUEST, 0, origin=0, destination=1))  # into which nobody writes
    assert [packet.kind for packet in driven.sent()] == [PacketKind.REQUEST]
    driven.out.take_credit(LOSSLESS, 1)
    driven.clock.run()
    assert [packet.size_bytes for packet in driven.sent()] == [66, FRAME_BYTES + 42]
    assert credit_of(driven.out) == [0, FRAME_BYTES + 41 - 66]
    assert returned(driven) == [(CONTROL_CLASS, 66), (LOSSLESS, FRAME_BYTES)]


def test_what_is_dropped_is_returned_at_once() -> None:
    driven = switch(room_ahead_bytes=10**6, routes=HandRoutes())
    driven.takes(1)
    assert driven.counted == {"drop_no_route": 1}
    assert returned(driven) == [(LOSSLESS, FRAME_BYTES)]
    driven = switch(room_ahead_bytes=10**6)
    driven.out.go_down()
    driven.takes(1)
    assert driven.counted == {"drop_link_down": 1}
    assert returned(driven) == [(LOSSLESS, FRAME_BYTES)]
    assert driven.ports[IN].counts["max_ingress_bytes"] == 0


def test_what_waits_for_a_link_that_goes_down_is_returned_where_it_came_in() -> None:
    driven = switch(room_ahead_bytes=0)
    driven.takes(2)
    driven.takes(1, OTHER_IN, first=2)
    driven.ports[OTHER_IN].is_up = False
    driven.out.go_down()
    assert driven.counted == {"drop_link_down": 3}
    assert returned(driven) == [(LOSSLESS, FRAME_BYTES)] * 2
    assert returned(driven, OTHER_IN) == []
    assert [driven.switch.held_bytes(port, LOSSLESS) for port in driven.ports] == [0, 0, 0, 0]


def test_a_packet_that_goes_back_where_it_came_from_goes_before_its_credit() -> None:
    driven = switch(room_ahead_bytes=10**6, routes=HandRoutes(IN))
    driven.takes(1)
    assert returned(driven) == [(LOSSLESS, FRAME_BYTES)]
    assert [left_at_ps for left_at_ps, _ in driven.wires[IN].packets] == [FRAME_PS]
    assert driven.wires[IN].credits[0][0] == FRAME_PS + CREDIT_FRAME_PS


def test_a_candidate_whose_class_has_less_credit_than_the_frame_is_paused() -> None:
    selection = HandSelection("queue")
    driven = switch(room_ahead_bytes=FRAME_BYTES, routes=HandRoutes(OUT, SPARE), selection=selection)
    credit_of(driven.ports[SPARE])[LOSSLESS] -= 1
    driven.takes(1)
    assert [row.paused for row in selection.candidates[-1]] == [0, 1]


def test_a_packet_that_changes_its_channel_takes_credit_of_the_new_one_and_returns_that_of_the_old() -> None:
    selection = HandSelection(always=True)
    selection.on_step = lambda signal, _candidates, _ports: setattr(signal, "virtual_channel", 1)
    driven = switch(room_ahead_bytes=10**6, selection=selection, virtual_channels=2)
    driven.takes(1, traffic_class=0)
    assert credit_of(driven.out) == [10**6, 10**6 - FRAME_BYTES]
    assert returned(driven) == [(0, FRAME_BYTES)]


# A NIC


class AnsweringReceiver:
    """Answers each data packet at once."""

    def __init__(self, nic: NicPort) -> None:
        self.nic = nic
        self.flow = FLOW

    def handle(self, packet: Packet) -> None:
        self.nic.queue_control(answer(PacketKind.ACK, packet.seq + 1))

    def handle_cut(self, packet: Packet) -> None:
        raise AssertionError(packet)

    def requested(self, packet: Packet) -> None:
        raise AssertionError(packet)

    def probed(self) -> None:
        self.nic.queue_control(answer(PacketKind.ACK, 0))


class DrivenNic:
    """A NIC port with the id 1, whose link returns at once what it took."""

    def __init__(self, *, room_ahead_bytes: int = 10**6, **changes: int) -> None:
        self.clock, self.counted, self.wire = HandClock(), Tally(), HandWire()
        self.port = hand_port(self.clock, self.counted, 1, room_ahead_bytes=room_ahead_bytes)
        values: dict[str, Any] = {
            "pcie_rate_bps": 0,
            "pcie_latency_ps": 0,
            "receive_buffer_bytes": 10**9,
            "xoff_bytes": 10**9,
            "xon_bytes": 0,
            "lossless": (False, False),
            "control_class": CONTROL_CLASS,
        }
        self.nic = NicPort(self.port, NicConfig(**(values | changes)), self.clock)
        self.port.join(self.nic, self.wire)
        self.nic.attach_receiver(AnsweringReceiver(self.nic))


ACK_PS = (66 + 20) * BYTE_PS


def test_a_host_returns_a_packet_when_the_receiver_has_handled_it_so_that_the_answer_goes_first() -> None:
    driven = DrivenNic()
    driven.port.receive(data(0))
    driven.clock.run()
    assert [left_at_ps for left_at_ps, _ in driven.wire.packets] == [ACK_PS]
    assert driven.wire.credits == [(ACK_PS + CREDIT_FRAME_PS, DATA, FRAME_BYTES)]


def test_behind_a_host_interface_it_is_returned_when_it_leaves_that_and_goes_before_the_answer() -> None:
    driven = DrivenNic(pcie_latency_ps=US_PS)
    driven.port.receive(data(0))
    driven.port.receive(answer(PacketKind.PROBE, 0, origin=0, destination=1))  # which passes by
    driven.clock.go_to(US_PS - 1)
    assert driven.wire.credits == [(ACK_PS + CREDIT_FRAME_PS, CONTROL_CLASS, 66)]
    assert driven.port.credits is not None
    assert driven.port.credits.used_bytes == [FRAME_BYTES, 0]
    driven.clock.run()
    assert driven.wire.credits[1:] == [(US_PS + CREDIT_FRAME_PS, DATA, FRAME_BYTES)]
    assert driven.wire.packets[1][0] == US_PS + CREDIT_FRAME_PS + ACK_PS
    assert driven.port.credits.used_bytes == [0, 0]


def test_what_finds_no_room_in_the_receive_buffer_or_is_for_another_port_is_returned_at_once() -> None:
    driven = DrivenNic(pcie_latency_ps=US_PS, receive_buffer_bytes=FRAME_BYTES)
    driven.port.receive(data(0))
    driven.port.receive(data(1))
    driven.port.receive(data(2, destination=7))
    driven.clock.go_to(US_PS - 1)
    assert driven.counted == {"drop_receive_buffer": 1, "drop_no_route": 1}
    assert [credit_bytes for _, _, credit_bytes in driven.wire.credits] == [FRAME_BYTES, FRAME_BYTES]


def test_a_control_packet_without_credit_waits() -> None:
    driven = DrivenNic(room_ahead_bytes=66)
    driven.nic.queue_control(answer(PacketKind.ACK, 1))
    driven.nic.queue_control(answer(PacketKind.ACK, 2))
    driven.clock.run()
    assert len(driven.wire.packets) == 1
    driven.port.take_credit(DATA, 1_000)
    driven.port.take_credit(CONTROL_CLASS, 65)
    driven.clock.run()
    assert len(driven.wire.packets) == 1
    driven.port.take_credit(CONTROL_CLASS, 1)
    assert len(driven.wire.packets) == 2


# A sender

UNDER_CREDITS: dict[str, Any] = {"link_credits": True, "lossless_priorities": ()}


def test_a_packet_of_a_queue_pair_waits_until_its_whole_frame_has_credit() -> None:
    driven = drive(2 * MTU_BYTES, first_extra_bytes=16, telemetry_bytes=4, **UNDER_CREDITS)
    driven.line.credit_bytes = FRAME_BYTES + 19
    assert driven.holds_back()
    driven.line.credit_bytes = FRAME_BYTES + 20
    assert driven.sends(1)[0].size_bytes == FRAME_BYTES + 20
    driven.line.credit_bytes = FRAME_BYTES + 4  # what only the first packet carries is not asked of the second
    assert driven.sends(1)[0].size_bytes == FRAME_BYTES + 4


def test_a_lost_packet_waits_for_credit_also_where_it_may_go_at_once() -> None:
    recovery: dict[str, Any] = {"recovery": "selective-repeat", "reorder_threshold_packets": 0, "resend": "at-once"}
    driven = drive(3 * MTU_BYTES, **recovery, **UNDER_CREDITS)
    driven.sends(3)
    driven.hears(PacketKind.NAK, 0, echo=data(1))
    driven.line.credit_bytes = FRAME_BYTES - 1
    assert driven.holds_back()
    driven.line.credit_bytes = FRAME_BYTES
    assert driven.sends(1)[0].seq == 0
