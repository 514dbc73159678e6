"""Cuts: a lossy data packet without room leaves its headers, which go on in a class of their own.

Class 0 is lossless, 1 lossy, 2 that of what was cut (`helpers.hand_switch` has the rest). A full frame is 4,158 bytes,
a cut one 64; S is the shared buffer, no ingress has a reserve.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.by_hand import FRAME_BYTES, answer, data
from helpers.hand_switch import IN, LOSSLESS, LOSSY, OUT, SPARE, Driven, HandRoutes

from weftwork.engine.reference.forwarding import NextHop
from weftwork.engine.reference.packet import HopTelemetry, PacketKind

CUT, CUT_BYTES = 2, 64


def cutting(**changes: Any) -> Driven:
    """Port 2 lets nothing go. With nine frames of buffer the sixth packet is the first without room."""
    values: dict[str, Any] = {
        "shared_bytes": 9 * FRAME_BYTES,
        "weights": (0, 0, 0),
        "lossless": (True, False, False),
        "trim_bytes": CUT_BYTES,
        "trim_class": CUT,
    }
    driven = Driven(**(values | changes))
    driven.holds()
    return driven


def test_what_finds_no_room_is_cut_and_counted_at_its_egress() -> None:
    driven = cutting()
    packets = driven.takes(7, traffic_class=LOSSY)
    assert [packet.is_cut for packet in packets] == [False] * 5 + [True] * 2
    assert [packet.size_bytes for packet in packets[5:]] == [CUT_BYTES] * 2
    assert [(packet.traffic_class, packet.arrival_class) for packet in packets[5:]] == [(CUT, CUT)] * 2
    assert (driven.queued(LOSSY), driven.queued(CUT)) == (5, 2)
    assert driven.counted == {"trims": 2}
    assert driven.out.counts["trims"] == 2
    assert driven.ports[IN].counts["trims"] == driven.out.counts["drops"] == 0
    assert packets[5].payload_bytes == 4096  # which it had: the receiver is told


def test_a_cut_packet_has_its_room_in_its_own_class_at_both_ends_and_gives_it_back() -> None:
    driven = cutting()
    driven.takes(6, traffic_class=LOSSY)
    assert [driven.ingress(IN, c).held_bytes for c in range(3)] == [0, 5 * FRAME_BYTES, CUT_BYTES]
    assert driven.switch.buffer.shared_used_bytes == 5 * FRAME_BYTES + CUT_BYTES
    driven.lets_go(6)
    assert driven.switch.buffer.shared_used_bytes == 0
    assert [packet.is_cut for packet in driven.sent()] == [True] + [False] * 5  # the higher strict class goes first


def test_headers_without_room_are_dropped_by_the_rule_of_their_own_class() -> None:
    # Behind five frames 16,632 bytes are free: for 4,000, then 8,000 of 12,632, but not for 12,000 of 8,632.
    driven = cutting(trim_bytes=4_000)
    packets = driven.takes(9, traffic_class=LOSSY)
    assert sum(packet.is_cut for packet in packets) == 4
    assert (driven.queued(LOSSY), driven.queued(CUT)) == (5, 2)
    assert driven.counted == {"trims": 4, "drop_egress_threshold": 2}
    assert (driven.out.counts["trims"], driven.out.counts["drops"]) == (4, 2)


def test_of_a_buffer_that_is_full_for_the_frame_there_may_be_room_for_its_headers() -> None:
    # Two frames of lossless traffic leave 100 bytes, and a share of 100 times that is enough for any queue.
    driven = cutting(shared_bytes=2 * FRAME_BYTES + 100, alpha=100.0, egress_alpha=100.0)
    driven.takes(2, traffic_class=LOSSLESS)
    (packet,) = driven.takes(1, traffic_class=LOSSY)
    assert packet.is_cut
    assert driven.queued(CUT) == 1
    (lost,) = driven.takes(1, traffic_class=LOSSY)  # 36 bytes are left
    assert lost.is_cut
    assert driven.counted == {"trims": 2, "drop_buffer_full": 1}
    assert driven.ports[IN].counts["drops"] == 1


@pytest.mark.parametrize(("trim_bytes", "is_cut"), [(0, False), (FRAME_BYTES, False), (FRAME_BYTES - 1, True)])
def test_only_what_becomes_smaller_is_cut(trim_bytes: int, is_cut: bool) -> None:  # noqa: FBT001
    driven = cutting(trim_bytes=trim_bytes)
    packets = driven.takes(6, traffic_class=LOSSY)
    assert packets[5].is_cut == is_cut
    assert driven.counted == {"trims": 1} if is_cut else {"drop_egress_threshold": 1}


def test_a_packet_is_cut_once() -> None:
    driven = cutting(trim_bytes=40)
    driven.takes(5, traffic_class=LOSSY)
    driven.ports[IN].receive(data(9, traffic_class=LOSSY, is_cut=True))
    assert driven.counted == {"drop_egress_threshold": 1}


def test_lossless_and_control_packets_are_not_cut() -> None:
    driven = cutting(alpha=100.0)
    driven.takes(10, traffic_class=LOSSLESS)
    assert driven.counted == {"drop_headroom_full": 1}  # the ninth has asked for a pause
    ack = answer(PacketKind.ACK, 1, destination=1, traffic_class=LOSSY, size_bytes=FRAME_BYTES)
    driven.ports[IN].receive(ack)
    assert not ack.is_cut
    assert driven.counted == {"drop_headroom_full": 1, "drop_egress_threshold": 1}


@pytest.mark.parametrize("marks_at_dequeue", [False, True])
def test_a_cut_packet_is_never_marked(marks_at_dequeue: bool) -> None:  # noqa: FBT001
    driven = cutting(kmin_bytes=0, kmax_bytes=1, marks_at_dequeue=marks_at_dequeue)
    packets = driven.takes(7, traffic_class=LOSSY)
    driven.lets_go(7)
    marked = [packet.is_marked for packet in packets]
    # The first of its queue finds none at enqueue; the last one leaves none at dequeue.
    assert marked == [marks_at_dequeue, True, True, True, not marks_at_dequeue, False, False]


def test_it_loses_its_telemetry_takes_none_and_counts_its_switches() -> None:
    driven = cutting(has_telemetry=True, telemetry_hop_bytes=8)
    driven.takes(5, traffic_class=LOSSY)
    told = HopTelemetry(queue_bytes=1, tx_bytes=2, rate_bps=3, at_ps=4, port=5)
    packet = data(9, traffic_class=LOSSY, hops=[told], hop_count=1)
    driven.ports[IN].receive(packet)
    driven.lets_go(1)
    assert driven.sent() == [packet]
    assert (packet.hops, packet.hop_count, packet.size_bytes) == ([], 2, CUT_BYTES)


@pytest.mark.parametrize("edge", [1, 2, -1])  # the destination hangs at attachment 1
def test_the_last_hop_is_the_switch_of_the_destination(edge: int) -> None:
    out = SPARE if edge == 1 else OUT
    driven = cutting(routes=HandRoutes(out, edge=edge))
    driven.ports[SPARE].pause_until_ps = [10**15] * 3
    packets = driven.takes(6, traffic_class=LOSSY)
    assert (packets[5].is_cut, packets[5].is_cut_at_last_hop) == (True, edge == 1)
    assert driven.ports[out].counts["trims"] == 1
    assert not packets[0].is_cut_at_last_hop


def test_a_class_of_cut_packets_that_is_lossless_is_paused_like_any_other() -> None:
    driven = cutting(lossless=(True, False, True), alpha=0.0)
    driven.takes(5, traffic_class=LOSSY)
    assert driven.asked() == []
    driven.takes(1, traffic_class=LOSSY)
    assert driven.ports[IN].asked == [False, False, True]
    assert driven.asked() == ["pause"]


def test_a_packet_that_was_cut_goes_its_way_with_word_and_via() -> None:
    driven = cutting()
    driven.takes(5, traffic_class=LOSSY)
    driven.routes.ways[3] = [NextHop(port=OUT)]
    packet = data(9, traffic_class=LOSSY, word=7, via=3)
    driven.ports[IN].receive(packet)
    assert (packet.is_cut, packet.word, packet.via) == (True, 7, 3)
