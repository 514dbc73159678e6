"""DCTCP against RFC 8257, Linux and HPCC-ns3, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.tcp_sender import MTU, RTT_PS, Sender

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import Kind

G = 1 / 16
LINE_BPS = 10**11


def sender_of(**parameters: Any) -> Sender:
    return Sender("dctcp", **parameters)


def window_of_data(sender: Sender, *, marked: int, packets: int = 10) -> None:
    """ACKs of single packets to the end of a window of data, the first so many of them marked; it does not grow."""
    sender.state.arrived_bytes = sender.state.marked_bytes = 0
    sender.state.window_seq = sender.signal.seq + packets
    for number in range(packets):
        is_marked = number < marked
        sender.tell(
            Kind.ACK, seq=sender.signal.seq + 1, next_seq=sender.state.window_seq, inflight_bytes=0, arrived_bytes=MTU,
            marked_bytes=MTU if is_marked else 0, ecn=int(is_marked),
        )  # fmt: skip


@pytest.mark.parametrize(("marked", "share"), [(0, 0.0), (3, 0.3), (10, 1.0)])
def test_alpha_is_a_mean_of_the_shares_that_were_marked(marked: int, share: float) -> None:
    sender = sender_of(variant="rfc-8257")
    before = sender.state.alpha
    window_of_data(sender, marked=marked)
    assert sender.state.alpha == pytest.approx((1 - G) * before + G * share)


def test_the_window_falls_by_half_of_alpha_once_in_a_window_of_data() -> None:
    sender = sender_of()
    sender.state.window, sender.state.alpha = 40.0, 0.5
    sender.state.window_seq = sender.signal.next_seq = 40
    marked = {"arrived_bytes": MTU, "marked_bytes": MTU, "ecn": 1, "inflight_bytes": 0}
    sender.tell(Kind.ACK, seq=1, **marked)
    assert sender.window == 40 * (1 - 0.5 / 2)
    for seq in (2, 39):
        sender.tell(Kind.ACK, seq=seq, **marked)
        assert sender.window == 30
    sender.tell(Kind.ACK, seq=40, **marked)  # packet 39 was sent before the cut
    assert sender.window == 30
    alpha = sender.state.alpha
    sender.state.window_seq = 80  # alpha stays what it is
    sender.tell(Kind.ACK, seq=41, **marked)
    assert sender.window == 30 * (1 - alpha / 2)


@pytest.mark.parametrize(("variant", "grown"), [("linux", 0.0), ("rfc-8257", 1 / 7.5)])
def test_in_the_round_trip_after_a_cut_the_window_stands_still_or_grows(variant: str, grown: float) -> None:
    sender = sender_of(variant=variant)
    sender.state.alpha = 0.5
    sender.state.window_seq = sender.signal.next_seq = 10
    sender.tell(Kind.ACK, seq=1, arrived_bytes=MTU, marked_bytes=MTU, ecn=1, inflight_bytes=9 * MTU)
    assert sender.window == 7.5
    sender.tell(Kind.ACK, seq=2, arrived_bytes=MTU, inflight_bytes=8 * MTU)
    assert sender.window == pytest.approx(7.5 + grown)


def test_a_marked_ack_never_lets_the_window_grow() -> None:
    sender = sender_of(variant="rfc-8257")
    sender.state.alpha = 0.0
    sender.state.window_seq = sender.signal.next_seq = 10
    sender.tell(Kind.ACK, seq=1, arrived_bytes=MTU, marked_bytes=MTU, ecn=1, inflight_bytes=9 * MTU)
    assert sender.window == 10
    sender.tell(Kind.ACK, seq=2, arrived_bytes=MTU, inflight_bytes=9 * MTU)
    assert sender.window == 10.1


def test_without_marks_it_is_reno() -> None:
    dctcp, reno = sender_of(timeout_above_rtt=False), Sender("reno", timeout_above_rtt=False)
    for sender in (dctcp, reno):
        for _ in range(20):
            sender.hears(rtt_ps=RTT_PS)
        sender.loses()
        sender.hears(40, rtt_ps=2 * RTT_PS)
        for _ in range(20):
            sender.hears(rtt_ps=RTT_PS)
        sender.tell(Kind.TIMEOUT, lost_bytes=MTU)
        sender.tell(Kind.TIMEOUT, lost_bytes=MTU)
    assert (dctcp.window, dctcp.state.threshold) == (reno.window, reno.state.threshold)
    assert dctcp.state.timeout_ps == reno.state.timeout_ps == 800 * MS_PS


def test_a_loss_halves_and_hides_the_marks_of_its_window() -> None:
    sender = sender_of()
    sender.state.alpha = 0.1
    sender.loses()
    assert sender.window == 5
    sender.hears(marked_bytes=MTU, ecn=1)
    assert sender.window == 5


def test_whole_alpha_moves_in_units_of_a_1024th() -> None:
    sender = sender_of(whole_alpha=True)
    sender.state.alpha = 100 / 1024
    window_of_data(sender, marked=0, packets=1)
    assert sender.state.alpha * 1024 == 100 - 100 // 16
    window_of_data(sender, marked=1, packets=1)
    assert sender.state.alpha * 1024 == 94 - 94 // 16 + 64
    sender.state.alpha = 15 / 1024
    window_of_data(sender, marked=0, packets=1)
    assert sender.state.alpha == 0


def test_whole_alpha_forgets_shares_below_a_64th() -> None:
    """Of 100 packets one is marked; 64 / 100 of a unit is none (Linux, tcp_dctcp.c)."""
    for whole, alpha in ((True, 0.0), (False, G / 100)):
        sender = sender_of(whole_alpha=whole, alpha_initial=0)
        window_of_data(sender, marked=1, packets=100)
        assert sender.state.alpha == pytest.approx(alpha)


def test_an_ack_of_nothing_new_leaves_alpha_where_a_window_of_data_ends() -> None:
    sender = sender_of()
    sender.tell(Kind.ACK, seq=0, next_seq=10, inflight_bytes=10 * MTU)
    assert (sender.state.alpha, sender.window) == (1.0, 10)


class Paced(Sender):
    """The rate of HPCC-ns3."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__("dctcp", variant="hpcc-repo", **parameters)

    def ack(self, seq: int, next_seq: int, *, marked: bool) -> float:
        count = MTU if marked else 0
        self.tell(Kind.ACK, seq=seq, next_seq=next_seq, arrived_bytes=MTU, marked_bytes=count, ecn=int(marked))
        return float(self.state.rate_bps)


def test_the_rate_begins_at_the_line_rate_with_a_window_of_one_product() -> None:
    sender = Paced()
    assert sender.state.rate_bps == LINE_BPS
    assert sender.state.window_bytes == LINE_BPS * 100e-6 / 8 + MTU
    assert Paced(window_bdps=0).state.window_bytes == 2**53


def test_the_rate_falls_by_half_of_alpha_once_in_a_window_of_data_and_rises_once() -> None:
    sender = Paced()
    assert sender.ack(1, 10, marked=True) == LINE_BPS / 2  # alpha is 1
    assert sender.state.window_bytes == (LINE_BPS * 100e-6 / 8 + MTU) / 2
    for seq in range(2, 10):
        assert sender.ack(seq, 20, marked=True) == LINE_BPS / 2
    assert sender.ack(10, 20, marked=False) == LINE_BPS / 2  # the last packet before the cut
    assert sender.state.alpha == 1
    alpha = (1 - G) + G * 10 / 11
    rate_bps = sender.ack(11, 21, marked=True)
    assert rate_bps == pytest.approx(LINE_BPS / 2 * (1 - alpha / 2))
    for seq in range(12, 22):
        assert sender.ack(seq, 30, marked=False) == rate_bps
    assert sender.ack(22, 31, marked=False) == rate_bps + 615e6
    for seq in range(23, 32):
        assert sender.ack(seq, 40, marked=False) == rate_bps + 615e6
    assert sender.ack(32, 41, marked=False) == rate_bps + 2 * 615e6


def test_the_rate_stays_between_its_floor_and_the_line_rate() -> None:
    sender = Paced()
    seq = 1
    for _ in range(50):
        sender.ack(seq, seq + 1, marked=True)
        seq += 2
    assert sender.state.rate_bps == 1e9
    for _ in range(1_000):
        sender.ack(seq, seq + 1, marked=False)
        seq += 2
    assert sender.state.rate_bps == LINE_BPS


def test_the_rise_may_be_a_packet_in_a_base_rtt() -> None:
    sender = Paced(ai_rate_bps=0)
    sender.state.rate_bps = LINE_BPS / 2
    assert sender.ack(1, 2, marked=False) == LINE_BPS / 2 + MTU * 8 / (RTT_PS / 1e12)
    assert RTT_PS == 100 * US_PS
