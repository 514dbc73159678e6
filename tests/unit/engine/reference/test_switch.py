"""The switch alone, between ports whose wires the test holds: buffer, pause, marks and scheduling.

`helpers.hand_switch` says which ports and classes it has.
"""

from __future__ import annotations

import random

import pytest
from helpers.by_hand import FRAME_BYTES, FRAME_PS, RATE_BPS, answer, data
from helpers.hand_switch import IN, LOSSLESS, LOSSY, OTHER_IN, OUT, SEED, SPARE, Driven

from weftwork.base.errors import ConfigError
from weftwork.base.random import Stream, uniform
from weftwork.engine.reference.forwarding import NextHop
from weftwork.engine.reference.packet import HopTelemetry, PacketKind
from weftwork.engine.reference.switch import QUANTUM_BYTES
from weftwork.policies.interface import HOPS


def test_a_packet_leaves_towards_its_next_hop_when_it_is_there_whole() -> None:
    driven = Driven()
    driven.clock.go_to(5)
    (packet,) = driven.takes(1)
    assert driven.wires[OUT].packets == [(5 + FRAME_PS, packet)]
    assert driven.selection.signals == []  # there was nothing to choose
    assert driven.switch.buffer.shared_used_bytes == 0


# Marks


def marks(driven: Driven, packets: int) -> list[bool]:
    driven.holds()
    return [packet.is_marked for packet in driven.takes(packets)]


def test_a_mark_begins_one_byte_above_kmin_and_is_certain_from_kmax_on() -> None:
    at_kmin = Driven(kmin_bytes=2 * FRAME_BYTES, kmax_bytes=2 * FRAME_BYTES + 1, pmax=0.0)
    assert marks(at_kmin, 5) == [False, False, False, True, True]  # the third finds exactly Kmin
    above = Driven(kmin_bytes=2 * FRAME_BYTES - 1, kmax_bytes=2 * FRAME_BYTES, pmax=0.0)
    assert marks(above, 5) == [False, False, True, True, True]
    assert above.out.counts["marks"] == 3


@pytest.mark.parametrize("pmax", [0.3, 1.0])
def test_between_kmin_and_kmax_luck_decides_by_the_line_between_them(pmax: float) -> None:
    kmin, kmax = FRAME_BYTES, 30 * FRAME_BYTES
    driven = Driven(kmin_bytes=kmin, kmax_bytes=kmax, pmax=pmax)
    driven.holds()
    found = driven.takes(30)
    for place, packet in enumerate(found):
        luck = uniform(packet.draw(SEED, Stream.ECN_MARK, OUT))
        assert packet.is_marked == (luck < pmax * max(0, place * FRAME_BYTES - kmin) / (kmax - kmin))
    assert 0 < sum(packet.is_marked for packet in found) < 30


def test_a_mark_at_dequeue_counts_what_stays_behind() -> None:
    driven = Driven(kmin_bytes=2 * FRAME_BYTES, kmax_bytes=2 * FRAME_BYTES + 1, pmax=0.0, marks_at_dequeue=True)
    assert marks(driven, 6) == [False] * 6
    driven.lets_go(6)
    assert [packet.is_marked for packet in driven.sent()] == [True, True, True, False, False, False]


def test_only_data_is_marked() -> None:
    driven = Driven(kmin_bytes=0, kmax_bytes=1)
    driven.holds()
    driven.takes(1)
    ack = answer(PacketKind.ACK, 1, destination=1, traffic_class=LOSSLESS)
    driven.ports[IN].receive(ack)
    assert driven.queued() == 2
    assert not ack.is_marked


# Lossy classes


@pytest.mark.parametrize(("spare_bytes", "held"), [(0, 5), (-1, 4)])
def test_a_lossy_queue_takes_its_share_of_what_is_free_and_not_a_byte_more(spare_bytes: int, held: int) -> None:
    # With q frames queued S - q frames are free: the (q + 1)-th fits if q + 1 <= S - q, in frames.
    driven = Driven(shared_bytes=9 * FRAME_BYTES + spare_bytes)
    driven.holds()
    driven.takes(12, traffic_class=LOSSY)
    assert driven.queued(LOSSY) == held
    assert driven.counted == {"drop_egress_threshold": 12 - held}
    assert driven.out.counts["drops"] == 12 - held
    assert driven.asked() == []  # nothing is asked of the sender of a lossy class


def test_of_a_full_buffer_no_share_is_left() -> None:
    driven = Driven(shared_bytes=4 * FRAME_BYTES, egress_alpha=100.0)
    driven.holds()
    driven.takes(6, traffic_class=LOSSY)
    assert driven.queued(LOSSY) == 4
    assert driven.counted == {"drop_egress_threshold": 2}


def test_a_lossy_packet_above_the_reserve_of_its_ingress_is_dropped_where_the_buffer_is_full() -> None:
    driven = Driven(shared_bytes=FRAME_BYTES, reserve_bytes=2 * FRAME_BYTES, alpha=100.0)
    driven.holds()
    driven.takes(3, OTHER_IN)  # its reserve, and all that is shared
    driven.ports[SPARE].pause_until_ps = driven.out.pause_until_ps
    driven.routes.ways[1] = [NextHop(port=SPARE)]
    driven.takes(2, traffic_class=LOSSY)  # the reserve of this ingress
    driven.routes.ways[1] = [NextHop(port=OUT)]
    driven.takes(1, traffic_class=LOSSY)  # whose queue is empty
    assert driven.counted == {"drop_buffer_full": 1}
    assert driven.ports[IN].counts["drops"] == 1


# Pauses, which begin with Xoff and end with Xon


@pytest.mark.parametrize(("spare_bytes", "first"), [(0, 6), (1, 6), (-1, 5)])
def test_xoff_is_sent_by_the_first_packet_above_the_share_of_what_is_free(spare_bytes: int, first: int) -> None:
    # With n frames in use S - n are free; S is ten frames: n > 10 - n from the sixth on, by a byte less from the fifth.
    driven = Driven(shared_bytes=10 * FRAME_BYTES + spare_bytes)
    driven.holds()
    driven.takes(first - 1)
    assert driven.asked() == []
    driven.takes(1)
    assert driven.asked() == ["pause"]
    assert driven.asked(OTHER_IN) == []


def test_the_reserve_counts_before_the_shared_buffer() -> None:
    driven = Driven(shared_bytes=10 * FRAME_BYTES, reserve_bytes=2 * FRAME_BYTES)
    driven.holds()
    driven.takes(7)
    assert driven.switch.buffer.shared_used_bytes == 5 * FRAME_BYTES
    assert driven.asked() == []
    driven.takes(1)
    assert driven.asked() == ["pause"]


@pytest.mark.parametrize(
    ("offset_bytes", "left"),
    [(0, 5), (1, 4), (2 * FRAME_BYTES, 4), (2 * FRAME_BYTES + 1, 3), (4 * FRAME_BYTES, 3), (10 * FRAME_BYTES, 0)],
)
def test_xon_is_sent_at_the_offset_below_the_share_of_what_is_free(offset_bytes: int, left: int) -> None:
    # n frames are in use and 10 - n free: n <= 10 - n - offset; the last one by the rule of the reserve.
    driven = Driven(
        shared_bytes=10 * FRAME_BYTES, xon_offset_bytes=offset_bytes, headroom_bytes=dict.fromkeys(range(4), 10**6)
    )
    driven.holds()
    driven.takes(6)
    assert driven.asked() == ["pause"]
    driven.lets_go(6 - left - 1)
    assert "resume" not in driven.asked()
    driven.lets_go(1)
    assert driven.asked()[-1] == "resume"
    assert not driven.ports[IN].asked[LOSSLESS]


def test_what_another_ingress_holds_is_not_free() -> None:
    driven = Driven(shared_bytes=10 * FRAME_BYTES)
    driven.holds()
    driven.takes(4, OTHER_IN)
    driven.takes(3, IN)
    assert driven.asked(IN) == []
    driven.takes(1, IN)
    assert (driven.asked(IN), driven.asked(OTHER_IN)) == (["pause"], [])  # four each, two free: whoever sends next
    driven.takes(1, OTHER_IN)
    assert driven.asked(OTHER_IN) == ["pause"]


# Headroom


def paused(headroom_bytes: int) -> Driven:
    """Six frames of ten in use, the ingress paused."""
    driven = Driven(shared_bytes=10 * FRAME_BYTES, headroom_bytes=dict.fromkeys(range(4), headroom_bytes))
    driven.holds()
    driven.takes(6)
    assert driven.ports[IN].asked[LOSSLESS]
    return driven


@pytest.mark.parametrize(("spare_bytes", "kept"), [(0, 3), (-1, 2)])
def test_what_comes_after_xoff_fills_the_headroom_to_the_byte_and_the_rest_is_lost(spare_bytes: int, kept: int) -> None:
    driven = paused(3 * FRAME_BYTES + spare_bytes)
    driven.takes(5)
    assert driven.ingress().headroom_used_bytes == kept * FRAME_BYTES
    assert driven.switch.buffer.shared_used_bytes == 6 * FRAME_BYTES
    assert driven.counted == {"drop_headroom_full": 5 - kept}
    assert driven.ports[IN].counts["max_ingress_bytes"] == (6 + kept) * FRAME_BYTES


def test_a_departure_frees_the_headroom_first() -> None:
    driven = paused(10**6)
    driven.takes(2)
    ingress = driven.ingress()
    seen = []
    for _ in range(3):
        driven.lets_go(1)
        seen.append((ingress.headroom_used_bytes // FRAME_BYTES, ingress.used_bytes // FRAME_BYTES))
    assert seen == [(1, 6), (0, 6), (0, 5)]


def test_a_packet_that_the_shared_buffer_does_not_hold_goes_to_the_headroom_and_asks_for_a_pause() -> None:
    driven = Driven(shared_bytes=2 * FRAME_BYTES, alpha=100.0, headroom_bytes=dict.fromkeys(range(4), FRAME_BYTES))
    driven.holds()
    driven.takes(1)
    assert driven.asked() == []
    driven.takes(1, OTHER_IN)
    driven.takes(1)
    assert driven.ingress().headroom_used_bytes == FRAME_BYTES
    assert driven.asked() == ["pause"]


def test_without_headroom_such_a_packet_is_lost_as_of_a_full_buffer() -> None:
    driven = Driven(shared_bytes=2 * FRAME_BYTES, alpha=100.0)
    driven.holds()
    driven.takes(1)
    driven.takes(1, OTHER_IN)
    driven.takes(1)
    assert driven.counted == {"drop_buffer_full": 1}


def test_nobody_at_its_reserve_stays_paused_and_what_is_in_the_headroom_counts_as_used_then() -> None:
    driven = Driven(
        shared_bytes=FRAME_BYTES,
        reserve_bytes=2 * FRAME_BYTES,
        xon_offset_bytes=10**9,  # by the threshold it could never go on
        headroom_bytes=dict.fromkeys(range(4), 10**6),
    )
    driven.holds()
    driven.takes(5)
    ingress = driven.ingress()
    assert ingress.headroom_used_bytes > 0
    while driven.ports[IN].asked[LOSSLESS]:
        driven.lets_go(1)
    assert (ingress.used_bytes, ingress.headroom_used_bytes) == (2 * FRAME_BYTES, 0)
    assert driven.queued() == 2


def test_what_is_in_the_headroom_of_an_ingress_at_its_reserve_counts_as_used() -> None:
    driven = Driven(
        shared_bytes=FRAME_BYTES - 2_000,
        reserve_bytes=2_000,
        alpha=100.0,
        headroom_bytes=dict.fromkeys(range(4), 10**6),
    )
    driven.holds()
    for seq, size_bytes in enumerate((200, 200, 1_500)):
        driven.ports[IN].receive(data(seq, size_bytes=size_bytes))
    driven.takes(1, OTHER_IN)  # all that is shared
    driven.ports[IN].receive(data(3, size_bytes=500))
    ingress = driven.ingress()
    assert (ingress.used_bytes, ingress.headroom_used_bytes) == (1_900, 500)
    driven.lets_go(1)
    assert driven.ports[IN].asked[LOSSLESS]
    driven.lets_go(1)  # 1,900 and 100 are its reserve
    assert (ingress.used_bytes, ingress.headroom_used_bytes) == (2_000, 0)
    assert not driven.ports[IN].asked[LOSSLESS]


def test_xon_counts_what_is_above_the_reserve() -> None:
    driven = Driven(shared_bytes=10 * FRAME_BYTES, reserve_bytes=2 * FRAME_BYTES)
    driven.holds()
    driven.takes(8)
    driven.lets_go(1)
    assert driven.asked() == ["pause", "resume"]


def test_a_port_remembers_its_longest_queue_and_the_largest_use_of_an_ingress() -> None:
    driven = Driven()
    driven.holds()
    driven.takes(4)
    driven.lets_go(2)
    driven.takes(1)
    assert driven.out.counts["max_queue_bytes"] == 4 * FRAME_BYTES
    assert driven.ports[IN].counts["max_ingress_bytes"] == 4 * FRAME_BYTES


@pytest.mark.parametrize("seed", range(8))
def test_whatever_comes_and_goes_the_buffer_adds_up(seed: int) -> None:
    source = random.Random(seed)
    driven = Driven(
        shared_bytes=source.randrange(2, 30) * FRAME_BYTES,
        reserve_bytes=source.choice([0, 1_000, 3 * FRAME_BYTES]),
        alpha=source.choice([0.125, 1.0, 8.0]),
        egress_alpha=source.choice([0.5, 4.0]),
        xon_offset_bytes=source.choice([0, FRAME_BYTES]),
        headroom_bytes=dict.fromkeys(range(4), 5 * FRAME_BYTES),
        weights=(1, 2),
    )
    driven.holds()
    switch = driven.switch
    for seq in range(200):
        if source.random() < 0.6:
            size_bytes = source.randrange(64, FRAME_BYTES)
            packet = data(seq, size_bytes=size_bytes, traffic_class=source.randrange(2))
            driven.ports[source.randrange(2)].receive(packet)
        else:
            driven.lets_go(1)
        queued = [packet for queue in switch.egress[OUT].queues for packet in queue]
        for port in (IN, OTHER_IN):
            for c in (LOSSLESS, LOSSY):
                held_bytes = sum(
                    packet.size_bytes for packet in queued if (packet.ingress, packet.traffic_class) == (port, c)
                )
                ingress = driven.ingress(port, c)
                assert ingress.used_bytes + ingress.headroom_used_bytes == held_bytes
        reserve_bytes = switch.buffer.config.reserve_bytes
        over_reserve = [max(0, i.used_bytes - reserve_bytes) for own in switch.buffer.ingress.values() for i in own]
        assert switch.buffer.shared_used_bytes == sum(over_reserve) <= switch.buffer.config.shared_bytes
    driven.lets_go(len(queued))
    assert switch.buffer.shared_used_bytes == 0
    assert not any(any(port.asked) for port in driven.ports)


# Scheduling


def shares(driven: Driven, packets: int) -> list[int]:
    """Classes in the order in which packets of them leave."""
    driven.lets_go(packets)
    return [packet.traffic_class for packet in driven.sent()]


def test_a_strict_class_goes_first_and_among_strict_ones_the_highest() -> None:
    driven = Driven(weights=(1, 0, 0), lossless=(False,) * 3)
    driven.holds()
    for c in (0, 1, 2):
        driven.takes(2, traffic_class=c)
    assert shares(driven, 6) == [2, 2, 1, 1, 0, 0]


def test_a_class_that_is_paused_is_passed_over() -> None:
    driven = Driven(weights=(0, 0), lossless=(False,) * 2)
    driven.holds()
    for c in (0, 1):
        driven.takes(2, traffic_class=c)
    driven.out.pause_until_ps = [0, 10**15]
    driven.out.start()
    assert [packet.traffic_class for packet in driven.sent()] == [0]


@pytest.mark.parametrize("weights", [(1, 1), (1, 3), (5, 2)])
def test_weighted_classes_share_bytes_by_their_weights_whatever_their_packets(weights: tuple[int, int]) -> None:
    driven = Driven(weights=weights, lossless=(False,) * 2)
    driven.holds()
    for seq in range(400):
        driven.ports[IN].receive(data(seq, traffic_class=0, size_bytes=FRAME_BYTES))
        driven.ports[IN].receive(data(seq, traffic_class=1, size_bytes=FRAME_BYTES // 3))
    sent = {0: 0, 1: 0}
    while min(driven.queued(0), driven.queued(1)) > 20:
        driven.lets_go(1)
        packet = driven.sent()[-1]
        sent[packet.traffic_class] += packet.size_bytes
        # Deficit round robin: at any time nobody is ahead by more than a packet and a quantum for each of weight.
        ahead = sent[0] / weights[0] - sent[1] / weights[1]
        assert abs(ahead) <= 2 * QUANTUM_BYTES + FRAME_BYTES / min(weights)


def test_equal_classes_of_equal_packets_take_turns() -> None:
    driven = Driven(weights=(4, 4), lossless=(False,) * 2)
    driven.holds()
    for c in (0, 1):
        driven.takes(6, traffic_class=c)
    order = shares(driven, 12)
    assert sorted(order[:2]) == sorted(order[2:4]) == [0, 1]


def test_a_class_whose_queue_becomes_empty_loses_its_deficit() -> None:
    driven = Driven(weights=(8, 1), lossless=(False,) * 2)
    driven.holds()
    driven.takes(1, traffic_class=0)
    driven.takes(3, traffic_class=1)
    driven.lets_go(4)
    assert driven.switch.egress[OUT].deficit_bytes == [0, 0]


# Telemetry, and a port that goes down


def hop(**changes: int) -> HopTelemetry:
    values = {"queue_bytes": 0, "tx_bytes": 0, "rate_bps": RATE_BPS, "at_ps": 0, "port": OUT}
    return HopTelemetry(**values | changes)


def test_a_switch_writes_what_is_behind_a_packet_and_by_which_port_it_goes() -> None:
    driven = Driven(has_telemetry=True)
    driven.holds()
    first, second = driven.takes(2)
    second.hops = [hop(port=77)]
    driven.lets_go(2)
    assert first.hops == [hop(queue_bytes=FRAME_BYTES)]
    assert second.hops == [hop(port=77), hop(tx_bytes=FRAME_BYTES, at_ps=FRAME_PS)]


def test_a_hop_lengthens_the_frame_on_the_wire_and_in_what_the_port_has_sent_and_nowhere_else() -> None:
    driven = Driven(has_telemetry=True, telemetry_hop_bytes=8)
    driven.holds()
    first, second = driven.takes(2)
    assert driven.ingress().held_bytes == 2 * FRAME_BYTES
    driven.lets_go(1)
    assert driven.switch.egress[OUT].queue_bytes[LOSSLESS] == driven.ingress().held_bytes == FRAME_BYTES
    driven.lets_go(1)
    assert driven.ingress().held_bytes == driven.switch.buffer.shared_used_bytes == 0
    assert [packet.size_bytes for packet in (first, second)] == [FRAME_BYTES + 8] * 2
    longer_ps = FRAME_PS + 8 * 20
    assert [left_ps for left_ps, _ in driven.wires[OUT].packets] == [longer_ps, 2 * longer_ps]
    assert second.hops == [hop(tx_bytes=FRAME_BYTES + 8, at_ps=longer_ps)]
    assert driven.out.counts["bytes"] == 2 * (FRAME_BYTES + 8)


def test_control_packets_have_no_telemetry_and_keep_their_size() -> None:
    driven = Driven(has_telemetry=True, telemetry_hop_bytes=8)
    ack = answer(PacketKind.ACK, 1, destination=1)
    driven.ports[IN].receive(ack)
    assert (ack.size_bytes, ack.hops) == (66, [])


def test_a_ninth_switch_that_would_write_ends_the_run() -> None:
    driven = Driven(has_telemetry=True)
    driven.ports[IN].receive(data(0, hops=[hop()] * (HOPS - 1)))
    driven.clock.go_to(driven.out.busy_until_ps)
    with pytest.raises(ConfigError, match="a packet has come to a ninth switch"):
        driven.ports[IN].receive(data(1, hops=[hop()] * HOPS))


def test_a_data_packet_and_a_request_count_the_switches_that_they_have_passed() -> None:
    driven = Driven()
    kinds = (PacketKind.DATA, PacketKind.REQUEST, PacketKind.ACK, PacketKind.CNP)
    packets = [data(seq, kind=kind, hop_count=4) for seq, kind in enumerate(kinds)]
    driven.holds()
    for packet in packets:
        driven.ports[IN].receive(packet)
    assert [packet.hop_count for packet in packets] == [4, 4, 4, 4]
    driven.lets_go(4)
    assert [packet.hop_count for packet in packets] == [5, 5, 4, 4]


def test_with_a_port_its_queue_is_lost_the_buffer_is_free_and_senders_go_on() -> None:
    driven = paused(10**6)
    driven.takes(2)
    driven.out.go_down()
    assert driven.counted == {"drop_link_down": 8}
    assert (driven.queued(), driven.switch.buffer.shared_used_bytes) == (0, 0)
    assert driven.asked() == ["pause", "resume"]
    assert driven.wires[OUT].cuts == 1
