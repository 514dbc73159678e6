"""The choice of a port alone: candidates, what port selection is told, and what a packet takes along from it.

`helpers.hand_switch` says which ports and classes the switch has; NIC port 1, the destination, hangs at attachment 1.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.by_hand import FLOW, FRAME_BYTES, RATE_BPS, answer, data
from helpers.hand_switch import IN, LOSSLESS, NODE, OTHER_IN, OUT, SEED, SPARE, Driven, HandRoutes, HandSelection

from weftwork.base.random import draw
from weftwork.engine.reference.forwarding import NextHop
from weftwork.engine.reference.packet import PacketKind
from weftwork.policies.interface import OFF

HERE, THERE, AWAY, NOWHERE = 0, 1, 2, 3  # attachments: this switch where a test says so, the destination, and others


def minimal(*ports: int) -> list[NextHop]:
    return [NextHop(port=port) for port in ports]


def longer(*ports: int) -> list[NextHop]:
    return [NextHop(port=port, is_minimal=False) for port in ports]


def driven_by(*needs: str, routes: HandRoutes | None = None, always: bool = False, **changes: Any) -> Driven:
    selection = HandSelection(*needs, always=always, at_delivery=changes.pop("at_delivery", False))
    return Driven(routes=routes or HandRoutes(OUT, SPARE), selection=selection, **changes)


def shown_ports(driven: Driven) -> list[tuple[int, int]]:
    """Port and whether it is minimal, of each candidate of the last call."""
    return [(one.port, one.minimal) for one in driven.selection.candidates[-1]]


def test_a_packet_without_a_route_is_dropped_where_it_came_in() -> None:
    driven = driven_by(routes=HandRoutes())
    driven.takes(1)
    assert driven.counted == {"drop_no_route": 1}
    assert driven.ports[IN].counts["drops"] == 1


def test_a_packet_all_of_whose_ways_are_down_is_dropped_at_the_first_of_them() -> None:
    driven = driven_by("non-minimal", always=True)
    driven.routes.ways[THERE] = minimal(SPARE, OUT) + longer(OTHER_IN)
    for port in (SPARE, OUT, OTHER_IN):
        driven.ports[port].go_down()
    driven.takes(1)
    assert driven.counted == {"drop_link_down": 1}
    assert driven.ports[SPARE].counts["drops"] == 1
    assert driven.selection.signals == []


def test_a_port_that_is_down_is_no_candidate() -> None:
    driven = driven_by()
    driven.routes.ways[THERE] = minimal(OTHER_IN, OUT, SPARE)
    driven.ports[OTHER_IN].go_down()
    driven.takes(1)
    assert shown_ports(driven) == [(OUT, 1), (SPARE, 1)]
    assert driven.selection.signals[-1].stride == 10 + OUT  # of the first that is left
    driven.ports[SPARE].go_down()
    driven.takes(1)
    assert len(driven.selection.signals) == 1  # there was but one
    assert driven.queued() + len(driven.sent()) == 2


def test_the_other_ways_stand_behind_the_shortest_where_they_are_asked_for() -> None:
    driven = driven_by("non-minimal")
    driven.routes.ways[THERE] = minimal(SPARE) + longer(OTHER_IN, OUT)
    driven.selection.choice = 2
    driven.takes(1)
    assert shown_ports(driven) == [(SPARE, 1), (OTHER_IN, 0), (OUT, 0)]
    assert len(driven.sent()) == 1
    driven.ports[SPARE].go_down()
    driven.selection.choice = 0
    driven.takes(1)
    assert shown_ports(driven) == [(OTHER_IN, 0), (OUT, 0)]
    assert len(driven.wires[OTHER_IN].packets) == 1


def test_who_does_not_ask_for_other_ways_takes_none_even_where_the_shortest_are_down() -> None:
    driven = driven_by(always=True)
    driven.routes.ways[THERE] = minimal(SPARE) + longer(OUT)
    driven.takes(1)
    assert shown_ports(driven) == [(SPARE, 1)]
    driven.ports[SPARE].go_down()
    driven.takes(1)
    assert driven.counted == {"drop_link_down": 1}


@pytest.mark.parametrize(("always", "calls"), [(False, 0), (True, 1)])
def test_one_candidate_alone_is_asked_about_where_the_policy_says_always(always: bool, calls: int) -> None:  # noqa: FBT001
    driven = driven_by(routes=HandRoutes(OUT), always=always)
    driven.takes(1)
    assert len(driven.selection.signals) == calls
    assert len(driven.sent()) == 1


@pytest.mark.parametrize(("at_delivery", "calls"), [(False, 0), (True, 1)])
def test_at_the_last_switch_it_is_asked_where_it_says_so_whatever_else_it_says(at_delivery: bool, calls: int) -> None:  # noqa: FBT001
    driven = driven_by(routes=HandRoutes(OUT, edge=THERE), always=True, at_delivery=at_delivery)
    driven.takes(1)
    assert [signal.delivered for signal in driven.selection.signals] == [1] * calls
    assert len(driven.wires[SPARE].packets) == 1  # the port to the destination


def test_it_is_told_of_the_packet_the_switch_and_the_choice() -> None:
    driven = driven_by(tier=2, group=5, virtual_channels=2, weights=(0,) * 4, lossless=(False,) * 4)
    driven.routes.edge = driven.switch.choice.edge = AWAY
    driven.clock.go_to(77)
    packet = data(0, traffic_class=3, word=-9, hop_count=4)
    driven.ports[OTHER_IN].receive(packet)
    told = driven.selection.signals[-1]
    assert (told.now_ps, told.bytes, told.is_data, told.candidates, told.delivered) == (77, FRAME_BYTES, 1, 2, 0)
    assert (told.node, told.tier, told.group, told.in_port, told.ports) == (NODE, 2, 5, OTHER_IN, 4)
    assert (told.edge, told.from_edge, told.to_edge, told.edges) == (AWAY, HERE, THERE, 4)
    assert (told.destination, told.stride, told.hops) == (101, 10 + OUT, 4)
    assert driven.selection.shown == [(1, -9, OFF)]
    assert told.draw == packet.draw(SEED, 6, NODE) >> 2  # PORT_CHOICE
    assert told.queue_pair_hash == draw(SEED, 10, FLOW.id, 0, 0) >> 2  # QUEUE_PAIR


def test_packets_of_a_flow_hash_alike_and_those_with_another_entropy_do_not() -> None:
    driven = driven_by()
    for seq, entropy in enumerate((50_000, 50_000, 50_001)):
        driven.ports[IN].receive(data(seq, entropy=entropy))
    one, two, other = driven.selection.signals
    assert one.hash == two.hash != other.hash
    assert one.queue_pair_hash == two.queue_pair_hash == other.queue_pair_hash
    assert one.draw != two.draw


def test_a_reply_goes_the_other_way_and_is_no_data() -> None:
    driven = driven_by()
    driven.routes.ways[HERE] = minimal(OUT, SPARE)
    driven.ports[IN].receive(answer(PacketKind.ACK, 1))
    told = driven.selection.signals[-1]
    assert (told.is_data, told.from_edge, told.to_edge, told.destination) == (0, THERE, HERE, 100)


def test_it_sees_candidates_by_what_it_needs_and_0_for_the_rest() -> None:
    for needs, queued, left in (((), False, False), (("queue",), True, False), (("hops-left",), False, True)):
        driven = driven_by(*needs)
        driven.holds()
        driven.selection.choice = 0
        driven.takes(2)
        driven.routes.ways[THERE] = [NextHop(port=OUT, weight=3), NextHop(port=SPARE, weight=5)]
        driven.routes.left = {OUT: 2, SPARE: 3}
        driven.ports[SPARE].rate_bps = RATE_BPS // 2
        driven.takes(1)
        out, spare = driven.selection.candidates[-1]
        assert (out.port, out.rate_bps, out.weight) == (OUT, RATE_BPS, 3)
        assert (spare.port, spare.rate_bps, spare.weight) == (SPARE, RATE_BPS // 2, 5)
        assert (out.queue_bytes, out.paused) == ((2 * FRAME_BYTES, 1) if queued else (0, 0))
        assert (spare.queue_bytes, spare.paused) == (0, 0)
        assert (out.hops_left, spare.hops_left) == ((12, 13) if left else (0, 0))


def test_a_pause_counts_up_to_the_instant_at_which_it_ends() -> None:
    driven = driven_by("queue")
    driven.ports[OUT].pause_until_ps[LOSSLESS] = 100
    for now_ps in (99, 100):
        driven.clock.go_to(now_ps)
        driven.takes(1)
    assert [rows[0].paused for rows in driven.selection.candidates] == [1, 0]


def test_the_records_of_the_ports_are_those_of_the_whole_switch_and_stay() -> None:
    driven = driven_by()

    def count(signal: Any, candidates: Any, ports: Any) -> None:
        ports[candidates[signal.choice].port].seen += 1

    driven.selection.on_step = count
    driven.takes(2)
    driven.selection.choice = 1
    driven.takes(1)
    states = driven.switch.choice.port_states or []
    assert [state.seen for state in states] == [0, 0, 2, 1]


def test_a_word_goes_with_the_packet() -> None:
    driven = driven_by(always=True)
    driven.selection.on_step = lambda signal, _candidates, _ports: setattr(signal, "word", signal.word - 5)
    (packet,) = driven.takes(1)
    assert (packet.word, packet.via) == (-5, OFF)
    driven.ports[IN].receive(packet)
    assert packet.word == -10


def writes_via(driven: Driven, *values: int) -> None:
    """The n-th call writes the n-th value."""

    def write(signal: Any, _candidates: Any, _ports: Any) -> None:
        signal.via = values[len(driven.selection.signals) - 1]

    driven.selection.on_step = write


def test_a_packet_with_a_via_goes_there_first() -> None:
    driven = driven_by("hops-left", always=True)
    driven.routes.ways = {THERE: minimal(SPARE), AWAY: minimal(OUT)}
    packet = data(0, via=AWAY)
    driven.ports[IN].receive(packet)
    assert driven.sent() == [packet]
    assert packet.via == AWAY
    assert driven.selection.shown == [(0, 0, AWAY)]
    assert driven.selection.candidates[0][0].hops_left == 10 * AWAY
    assert driven.selection.signals[0].to_edge == THERE


def test_at_the_switch_that_is_via_it_is_off_and_the_packet_goes_on() -> None:
    driven = driven_by(routes=HandRoutes(OUT, edge=AWAY), always=True)
    packet = data(0, via=AWAY)
    driven.ports[IN].receive(packet)
    assert packet.via == OFF
    assert driven.selection.shown == [(0, 0, OFF)]
    assert driven.sent() == [packet]


def test_with_a_via_it_passes_the_destinations_switch_by() -> None:
    driven = driven_by(routes=HandRoutes(edge=THERE), at_delivery=True)
    driven.routes.ways[AWAY] = minimal(OUT)
    packet = data(0, via=AWAY)
    driven.ports[IN].receive(packet)
    assert driven.sent() == [packet]
    assert driven.selection.signals == []


def test_after_a_change_of_via_it_is_asked_once_more_about_the_ways_there() -> None:
    driven = driven_by(virtual_channels=2, weights=(0,) * 4, lossless=(False,) * 4)
    driven.routes.ways = {THERE: minimal(SPARE, OTHER_IN), AWAY: minimal(OUT)}
    writes_via(driven, AWAY, AWAY)
    first = driven.selection.on_step

    def step(signal: Any, candidates: Any, ports: Any) -> None:
        first(signal, candidates, ports)
        signal.word += 1
        signal.virtual_channel = 1

    driven.selection.on_step = step
    (packet,) = driven.takes(1)
    assert [signal.candidates for signal in driven.selection.signals] == [2, 1]  # also where one way is left
    assert driven.selection.shown == [(0, 0, OFF), (1, 1, AWAY)]
    assert driven.selection.kept == [0, 1]
    assert driven.sent() == [packet]
    assert (packet.word, packet.via, packet.traffic_class) == (2, AWAY, 1)


def test_a_via_that_it_has_set_may_be_turned_down() -> None:
    driven = driven_by()
    driven.routes.ways = {THERE: minimal(SPARE, OTHER_IN), AWAY: minimal(OUT)}
    writes_via(driven, AWAY, OFF, OFF)
    (packet,) = driven.takes(1)
    assert driven.selection.shown == [(0, 0, OFF), (0, 0, AWAY), (0, 0, OFF)]
    assert driven.selection.kept == [0, 1, 2]
    assert packet.via == OFF


def test_a_via_to_which_no_way_leads_is_given_up() -> None:
    driven = driven_by()
    driven.routes.ways = {THERE: minimal(SPARE, OTHER_IN)}
    writes_via(driven, AWAY, OFF)
    (packet,) = driven.takes(1)
    assert driven.selection.shown == [(0, 0, OFF), (0, 0, OFF)]
    assert packet.via == OFF


def test_it_is_told_of_channels_and_detours_where_it_asks() -> None:
    driven = driven_by("channel", "detour", "hops-left")
    driven.routes.ways = {THERE: minimal(SPARE, OTHER_IN), AWAY: minimal(OUT)}
    writes_via(driven, AWAY, AWAY)
    driven.takes(1)
    first, second = driven.selection.signals
    assert (first.from_group, first.via_group, first.hops_after_via) == (7, -1, 0)
    assert (second.via_group, second.hops_after_via) == (7 + AWAY, 100 * AWAY + THERE)
    assert first.detour == first.draw % 4
    assert first.queue_pair_detour == first.queue_pair_hash % 4
    told = [(row.channel, row.turn_channel) for row in driven.selection.candidates[0]]
    assert told == [(0, IN + SPARE), (0, IN + OTHER_IN)]


def test_a_via_may_be_taken_back() -> None:
    driven = driven_by(always=True)
    driven.routes.ways = {THERE: minimal(OUT), AWAY: minimal(SPARE)}
    writes_via(driven, OFF, OFF)
    packet = data(0, via=AWAY)
    driven.ports[IN].receive(packet)
    assert driven.selection.shown == [(0, 0, AWAY), (0, 0, OFF)]
    assert driven.sent() == [packet]


def test_this_switch_as_via_is_no_way_around_and_no_change() -> None:
    driven = driven_by(routes=HandRoutes(OUT, SPARE, edge=AWAY))
    writes_via(driven, AWAY)
    (packet,) = driven.takes(1)
    assert driven.selection.shown == [(0, 0, OFF)]
    assert packet.via == OFF
    assert driven.sent() == [packet]


def test_a_via_that_becomes_this_switch_is_taken_back() -> None:
    driven = driven_by(routes=HandRoutes(OUT, SPARE, edge=NOWHERE), always=True)
    driven.routes.ways[AWAY] = minimal(SPARE)
    writes_via(driven, NOWHERE, NOWHERE)
    packet = data(0, via=AWAY)
    driven.ports[IN].receive(packet)
    assert driven.selection.shown == [(0, 0, AWAY), (0, 0, OFF)]
    assert packet.via == OFF
    assert driven.sent() == [packet]


def channelled(**changes: Any) -> Driven:
    values: dict[str, Any] = {"virtual_channels": 2, "weights": (0,) * 4, "lossless": (True, True, False, False)}
    driven = driven_by("queue", **(values | changes))
    driven.selection.on_step = lambda signal, _candidates, _ports: setattr(signal, "virtual_channel", 1)
    return driven


def test_the_queue_is_that_of_the_new_class_and_the_buffer_that_of_the_one_by_which_it_came() -> None:
    driven = channelled()
    driven.holds()
    (packet,) = driven.takes(1)
    assert (packet.arrival_class, packet.traffic_class) == (0, 1)
    assert [driven.queued(c) for c in range(4)] == [0, 1, 0, 0]
    assert [driven.ingress(IN, c).held_bytes for c in range(4)] == [FRAME_BYTES, 0, 0, 0]
    assert driven.selection.candidates[-1][0].queue_bytes == 0
    driven.takes(1, traffic_class=1)
    assert driven.selection.candidates[-1][0].queue_bytes == FRAME_BYTES  # of the class in which it comes
    driven.lets_go(2)
    assert driven.switch.buffer.shared_used_bytes == 0
    assert all(driven.ingress(IN, c).held_bytes == 0 for c in range(4))


def test_the_far_end_of_the_class_of_arrival_is_paused_and_resumed() -> None:
    driven = channelled(shared_bytes=10 * FRAME_BYTES, headroom_bytes=dict.fromkeys(range(4), 10**6))
    driven.holds()
    driven.takes(6)  # six of ten frames: more than what is free
    assert driven.ports[IN].asked == [True, False, False, False]
    driven.takes(1)
    assert driven.ingress(IN, 0).headroom_used_bytes == FRAME_BYTES
    driven.lets_go(1)
    assert (driven.ingress(IN, 0).headroom_used_bytes, driven.ports[IN].asked[0]) == (0, True)
    driven.lets_go(1)
    assert driven.ports[IN].asked == [False] * 4
    assert [traffic_class for _, traffic_class, _ in driven.wires[IN].pauses] == [0, 0]


def test_a_pause_of_the_new_class_holds_the_packet_and_one_of_the_old_does_not() -> None:
    driven = channelled()
    driven.holds(0)
    driven.takes(1)
    assert len(driven.sent()) == 1
    driven.clock.go_to(driven.out.busy_until_ps)
    driven.holds(1)
    driven.takes(1)
    assert len(driven.sent()) == 1


def test_a_lossy_queue_is_full_by_the_new_class() -> None:
    # S is nine frames: the fifth packet of one queue is the last that fits (test_switch.py); another queue is empty.
    driven = channelled(shared_bytes=9 * FRAME_BYTES)
    driven.holds()
    driven.takes(6, traffic_class=2)
    assert [driven.queued(c) for c in range(4)] == [0, 0, 0, 5]
    assert driven.counted == {"drop_egress_threshold": 1}
    driven.selection.on_step = lambda signal, _candidates, _ports: setattr(signal, "virtual_channel", 0)
    driven.takes(1, traffic_class=2)  # four frames are free
    assert [driven.queued(c) for c in range(4)] == [0, 0, 1, 5]


def test_a_port_that_goes_down_frees_the_buffer_of_the_classes_of_arrival() -> None:
    driven = channelled()
    driven.holds()
    driven.takes(3)
    driven.takes(2, OTHER_IN, traffic_class=2)
    driven.out.go_down()
    assert driven.counted == {"drop_link_down": 5}
    assert driven.switch.buffer.shared_used_bytes == 0
    held = [driven.ingress(port, c).held_bytes for port in (IN, OTHER_IN) for c in range(4)]
    assert held == [0] * 8
