"""One direction of a link alone: when what it carries is there, and what it loses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from helpers.by_hand import HandClock, data

from weftwork.base.random import Stream, uniform
from weftwork.engine.reference.clock import Phase
from weftwork.engine.reference.link import LinkConfig, OneWayLink
from weftwork.engine.reference.packet import Packet

PORT, FAR, SEED, DELAY_PS = 3, 8, 5, 500_000


class HandFarEnd:
    """What arrived, and when."""

    def __init__(self, clock: HandClock) -> None:
        self.id = FAR
        self.clock = clock
        self.there: list[tuple[int, Any]] = []
        self.given_back_bytes = Counter[int]()  # by class

    def receive(self, packet: Packet) -> None:
        self.there.append((self.clock.now_ps, packet.seq))

    def obey(self, traffic_class: int, quanta: int) -> None:
        self.there.append((self.clock.now_ps, (traffic_class, quanta)))

    def take_credit(self, traffic_class: int, credit_bytes: int) -> None:
        self.there.append((self.clock.now_ps, ("credit", traffic_class, credit_bytes)))

    def give_back(self, traffic_class: int, size_bytes: int) -> None:
        self.given_back_bytes[traffic_class] += size_bytes

    def drop(self, reason: str) -> None:
        self.there.append((self.clock.now_ps, reason))


class Driven:
    def __init__(self, *, loss: float = 0.0, corruption: float = 0.0) -> None:
        self.clock = HandClock()
        self.far_end = HandFarEnd(self.clock)
        config = LinkConfig(port_id=PORT, delay_ps=DELAY_PS, loss=loss, corruption=corruption, seed=SEED)
        self.link = OneWayLink(config, self.clock, self.far_end)

    def there(self) -> list[Any]:
        self.clock.run()
        return [what for _, what in self.far_end.there]


def test_a_packet_is_there_a_delay_after_its_last_bit_has_left() -> None:
    driven = Driven()
    driven.link.carry(data(7), 1_000)
    assert driven.clock.calls == [(1_000 + DELAY_PS, Phase.PACKET, (FAR,))]
    driven.clock.run()
    assert driven.far_end.there == [(1_000 + DELAY_PS, 7)]
    assert driven.link.last_arrival_ps == 1_000 + DELAY_PS
    assert driven.link.arrivals == 1


def test_flow_control_is_there_before_a_packet_of_the_same_instant_and_is_no_arrival() -> None:
    driven = Driven()
    driven.link.carry(data(7), 1_000)
    driven.link.carry_pause(1, 65_535, 1_000)
    assert driven.there() == [(1, 65_535), 7]
    assert driven.link.arrivals == 1


def test_a_cut_loses_what_is_under_way_and_nothing_that_starts_later() -> None:
    driven = Driven()
    driven.link.carry(data(0), 1_000)
    driven.link.carry_pause(0, 9, 1_500)
    driven.link.cut()
    driven.link.carry(data(1), 2_000)
    driven.link.carry_pause(0, 0, 2_500)
    assert driven.there() == ["link_down", 1, (0, 0)]
    assert driven.link.arrivals == 2  # a packet that is lost has come to the end of the link as well


def test_every_cut_loses_what_is_under_way_then() -> None:
    driven = Driven()
    for seq in range(3):
        driven.link.carry(data(seq), 1_000 + seq)
        driven.link.cut()
    driven.link.carry(data(3), 2_000)
    assert driven.there() == ["link_down", "link_down", "link_down", 3]


def test_packets_are_lost_by_a_draw_of_their_own_at_the_port_that_sends() -> None:
    driven = Driven(loss=0.3, corruption=0.2)
    packets = [data(seq) for seq in range(200)]
    wanted: list[Any] = []
    for packet in packets:
        driven.link.carry(packet, packet.seq)
        is_lost = uniform(packet.draw(SEED, Stream.LINK_LOSS, PORT)) < 0.3
        is_corrupted = uniform(packet.draw(SEED, Stream.LINK_CORRUPTION, PORT)) < 0.2
        wanted.append("link_loss" if is_lost else "corrupted" if is_corrupted else packet.seq)
    assert driven.there() == wanted
    assert {"link_loss", "corrupted"} < set(wanted)


def test_another_attempt_of_a_packet_has_luck_of_its_own() -> None:
    driven = Driven(loss=0.5)
    for attempt in range(100):
        driven.link.carry(data(0, attempt=attempt), attempt)
    assert 30 < driven.there().count("link_loss") < 70


def test_no_luck_loses_flow_control() -> None:
    driven = Driven(loss=1.0, corruption=1.0)
    driven.link.carry_pause(0, 9, 0)
    driven.link.carry(data(0), 10)
    assert driven.there() == [(0, 9), "link_loss"]


def test_a_loss_that_changes_holds_for_packets_that_arrive_from_then_on() -> None:
    driven = Driven()
    driven.link.carry(data(0), 0)
    driven.link.loss = 1.0
    assert driven.there() == ["link_loss"]


# Credit


def test_a_frame_with_credit_is_there_with_flow_control_and_only_a_cut_loses_it() -> None:
    driven = Driven(loss=1.0, corruption=1.0)
    driven.link.carry_credit(1, 500, 1_000)
    assert driven.clock.calls == [(1_000 + DELAY_PS, Phase.FLOW_CONTROL, (FAR,))]
    driven.link.cut()
    driven.link.carry_credit(0, 700, 2_000)
    assert driven.there() == [("credit", 0, 700)]


def test_a_packet_that_is_lost_under_way_is_given_back_where_it_would_have_come_in() -> None:
    for chances in ({"loss": 1.0}, {"corruption": 1.0}):
        driven = Driven(**chances)
        driven.link.carry(data(0, traffic_class=1, size_bytes=900), 0)
        driven.clock.run()
        assert driven.far_end.given_back_bytes == {1: 900}


def test_a_packet_that_a_cut_has_lost_is_not_given_back_for_who_comes_up_begins_anew() -> None:
    driven = Driven()
    driven.link.carry(data(0), 0)
    driven.link.cut()
    assert driven.there() == ["link_down"]
    assert driven.far_end.given_back_bytes == {}
