"""The port alone, between a node and a wire that the test holds: transmission, pause, refresh and faults."""

from __future__ import annotations

from helpers.by_hand import BYTE_PS, FRAME_BYTES, FRAME_PS, RATE_BPS, HandClock, HandWire, Tally, data, hand_port

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.port import Port

QUANTUM_PS = 64 * BYTE_PS
PAUSE_FRAME_PS = (64 + 20) * BYTE_PS


class HandNode:
    """A node that has these packets to send, and remembers when it was asked."""

    def __init__(self, clock: HandClock, packets: int = 0) -> None:
        self.clock = clock
        self.queue = [data(seq) for seq in range(packets)]
        self.asked_at_ps: list[int] = []
        self.received: list[Packet] = []
        self.times_down = 0

    def send_next(self, port: Port) -> None:
        self.asked_at_ps.append(self.clock.now_ps)
        if self.queue and not port.is_paused(self.queue[0].traffic_class):
            port.transmit(self.queue.pop(0))

    def receive(self, port: Port, packet: Packet) -> None:
        del port
        self.received.append(packet)

    def port_went_down(self, port: Port) -> None:
        assert not port.is_up
        self.times_down += 1


class Driven:
    def __init__(self, packets: int = 0, *, pause_quanta: int = 65_535) -> None:
        self.clock, self.counted, self.wire = HandClock(), Tally(), HandWire()
        self.node = HandNode(self.clock, packets)
        self.port = hand_port(self.clock, self.counted, pause_quanta=pause_quanta)
        self.port.join(self.node, self.wire)

    def left_at_ps(self) -> list[int]:
        return [left_at_ps for left_at_ps, _ in self.wire.packets]


# Transmission


def test_a_packet_occupies_the_port_for_its_bytes_and_the_gap_and_the_next_follows_at_once() -> None:
    driven = Driven(packets=3)
    driven.port.start()
    driven.port.start()  # harmless
    driven.clock.run()
    assert driven.left_at_ps() == [FRAME_PS, 2 * FRAME_PS, 3 * FRAME_PS]
    assert driven.node.asked_at_ps == [0, FRAME_PS, 2 * FRAME_PS, 3 * FRAME_PS]
    assert (driven.port.counts["frames"], driven.port.counts["bytes"]) == (3, 3 * FRAME_BYTES)


def test_the_next_departure_is_the_first_thing_of_its_instant() -> None:
    driven = Driven(packets=1)
    driven.port.start()
    assert driven.clock.calls == [(FRAME_PS, Phase.DEPARTURE, (0,))]


def test_a_rate_that_divides_no_frame_rounds_up() -> None:
    driven = Driven(packets=1)
    driven.port.rate_bps = 7_770_000_000
    driven.port.start()
    assert driven.left_at_ps() == [-(-(FRAME_BYTES + 20) * 8 * 10**12 // 7_770_000_000)]


def test_a_rate_that_changes_holds_from_the_next_packet_on() -> None:
    driven = Driven(packets=2)
    driven.port.start()
    driven.port.rate_bps = RATE_BPS // 4
    driven.clock.run()
    assert driven.left_at_ps() == [FRAME_PS, 5 * FRAME_PS]


def test_what_arrives_is_the_nodes_and_a_drop_counts_here_and_by_its_reason() -> None:
    driven = Driven()
    packet = data(0)
    driven.port.receive(packet)
    assert driven.node.received == [packet]
    driven.port.drop("no_route")
    assert (driven.counted, driven.port.counts["drops"]) == ({"drop_no_route": 1}, 1)


# The pause that it asks for


def test_a_pause_waits_for_the_packet_on_the_wire_and_goes_before_the_next() -> None:
    driven = Driven(packets=2, pause_quanta=1_000)
    driven.port.start()
    driven.port.ask_pause(1)
    driven.clock.go_to(2 * FRAME_PS)
    assert driven.wire.pauses == [(FRAME_PS + PAUSE_FRAME_PS, 1, 1_000)]
    assert driven.left_at_ps() == [FRAME_PS, 2 * FRAME_PS + PAUSE_FRAME_PS]
    assert driven.port.counts["frames"] == 2  # a pause is none


def test_a_pause_is_asked_for_again_every_half_of_its_time_until_it_is_lifted() -> None:
    driven = Driven(pause_quanta=1_001)
    half_ps = 1_001 * QUANTUM_PS // 2
    driven.port.ask_pause(0)
    assert (half_ps, Phase.AGENDA, (Agenda.REFRESH, 0, 0)) in driven.clock.calls
    driven.clock.go_to(3 * half_ps)
    assert [left_at_ps - PAUSE_FRAME_PS for left_at_ps, _, _ in driven.wire.pauses] == [
        0,
        half_ps,
        2 * half_ps,
        3 * half_ps,
    ]
    driven.clock.go_to(3 * half_ps + PAUSE_FRAME_PS)
    driven.port.ask_resume(0)
    driven.clock.run()
    assert [quanta for _, _, quanta in driven.wire.pauses] == [1_001] * 4 + [0]
    assert (driven.port.counts["pauses_sent"], driven.port.counts["resumes_sent"]) == (4, 1)


def test_a_pause_that_is_lifted_and_asked_for_anew_has_one_refresh_of_its_own() -> None:
    driven = Driven(pause_quanta=1_000)
    half_ps = 500 * QUANTUM_PS
    driven.port.ask_pause(0)
    driven.clock.go_to(half_ps // 2)
    driven.port.ask_resume(0)
    driven.port.ask_pause(0)
    driven.clock.go_to(half_ps)
    assert driven.port.counts["pauses_sent"] == 2
    driven.clock.go_to(half_ps // 2 + half_ps)
    assert driven.port.counts["pauses_sent"] == 3


def test_classes_are_paused_each_for_itself() -> None:
    driven = Driven(pause_quanta=1_000)
    driven.port.ask_pause(0)
    driven.port.ask_pause(1)
    driven.port.ask_resume(0)
    assert driven.port.asked == [False, True]
    driven.clock.go_to(10 * PAUSE_FRAME_PS)
    assert [(c, quanta) for _, c, quanta in driven.wire.pauses] == [(0, 1_000), (1, 1_000), (0, 0)]


# The pause that it obeys


def test_a_pause_holds_for_its_quanta_and_then_the_port_goes_on() -> None:
    driven = Driven(packets=1)
    driven.port.obey(0, 100)
    driven.port.start()
    driven.clock.go_to(100 * QUANTUM_PS - 1)
    assert driven.port.is_paused(0)
    assert not driven.port.is_paused(1)
    driven.clock.go_to(100 * QUANTUM_PS)
    assert not driven.port.is_paused(0)
    assert driven.left_at_ps() == [100 * QUANTUM_PS + FRAME_PS]


def test_a_resume_lets_it_go_on_at_once() -> None:
    driven = Driven(packets=1)
    driven.port.obey(0, 65_535)
    driven.clock.go_to(70)
    driven.port.obey(0, 0)
    assert driven.left_at_ps() == [70 + FRAME_PS]
    assert driven.port.counts["paused_ps"] == 70


def test_time_under_two_pauses_counts_once() -> None:
    driven = Driven()
    driven.port.obey(0, 100)
    driven.clock.go_to(40 * QUANTUM_PS)
    driven.port.obey(0, 100)
    driven.clock.go_to(500 * QUANTUM_PS)
    driven.port.obey(0, 10)
    assert driven.port.counts["paused_ps"] == 150 * QUANTUM_PS


def test_a_pause_does_not_stop_the_packet_on_the_wire_nor_flow_control() -> None:
    driven = Driven(packets=2)
    driven.port.start()
    driven.port.obey(0, 65_535)
    driven.port.ask_pause(1)
    driven.clock.go_to(FRAME_PS + PAUSE_FRAME_PS)
    assert driven.left_at_ps() == [FRAME_PS]
    assert len(driven.wire.pauses) == 1


# Faults


def test_a_link_that_goes_down_loses_the_wire_the_frames_that_wait_and_every_pause() -> None:
    driven = Driven(packets=5, pause_quanta=1_000)
    driven.port.obey(1, 1_000)
    driven.port.start()
    driven.port.ask_pause(0)
    driven.clock.go_to(10)
    driven.port.go_down()
    assert (driven.wire.cuts, driven.node.times_down) == (1, 1)
    assert driven.port.asked == [False, False]
    assert not driven.port.is_paused(1)
    assert driven.port.counts["paused_ps"] == 10  # not what was still to come
    driven.clock.go_to(5 * FRAME_PS + 1_000 * QUANTUM_PS)
    assert driven.left_at_ps() == [FRAME_PS]
    assert driven.wire.pauses == []


def test_a_link_that_comes_up_goes_on_when_the_port_is_free() -> None:
    driven = Driven(packets=3)
    driven.port.start()
    driven.port.go_down()
    driven.clock.go_to(FRAME_PS // 2)
    driven.port.come_up()
    driven.clock.go_to(4 * FRAME_PS)
    assert driven.left_at_ps() == [FRAME_PS, 2 * FRAME_PS, 3 * FRAME_PS]
