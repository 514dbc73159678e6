"""Reno, CUBIC and DCTCP in a network: sawtooth, long-run throughput, the cube, the queue at K, and both engines.

The path of every case is two links with one slow queue between them (tests/helpers/long_flows.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from helpers.both import both
from helpers.tcp_flows import FRAME_BYTES, HEADER_BYTES, PAYLOAD_BYTES, Seen, SlowLink, long_flows, watched
from helpers.tcp_sender import Sender

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.load import load

if TYPE_CHECKING:
    from numpy.typing import NDArray

S_PS = 1_000 * MS_PS
G = 10**9
CONTROLS = [
    (name, variant)
    for name in ("reno", "cubic", "dctcp")
    for variant in load("congestion_control", name).plugin.variants
]


def base_rtt_s(path: SlowLink) -> float:
    """Of a full packet and its ACK on an empty path."""
    rates = (path.rate_bps, path.access_bps)
    return 4 * path.delay_ps / S_PS + sum(8 * (FRAME_BYTES + HEADER_BYTES) / rate for rate in rates)


def product_packets(path: SlowLink) -> float:
    """Bandwidth times base RTT."""
    return path.rate_bps * base_rtt_s(path) / (8 * FRAME_BYTES)


def cuts(seen: Seen, from_ps: int, below: float) -> NDArray[np.intp]:
    """Samples before which the first sender's window has fallen to this share of itself or less."""
    window = seen.windows[:, 0]
    return np.flatnonzero((window[1:] < below * window[:-1]) & (seen.at_ps[1:] > from_ps)) + 1


@pytest.mark.parametrize(("name", "variant"), CONTROLS)
def test_both_engines_agree_where_packets_are_marked_lost_and_dropped(name: str, variant: str) -> None:
    path = SlowLink(
        rate_bps=G, access_bps=10 * G, delay_ps=10 * US_PS, queue_packets=40, mark_packets=15, loss=0.002, senders=3,
        start_ps=100 * US_PS,
    )  # fmt: skip
    outcome = both(long_flows(path, name, variant=variant, until_ps=3 * MS_PS))
    assert outcome.counters["retransmissions"] > 0
    assert outcome.counters["drop_link_loss"] > 0
    assert outcome.ports["marks"].sum() > 0


@pytest.mark.parametrize("name", ["reno", "cubic", "dctcp"])
def test_timeouts_double_until_an_ack_comes(name: str) -> None:
    """All is lost; ten packets leave at once, and one is sent again after 1, 3, 7, 15 and 31 ms."""
    path = SlowLink(rate_bps=G, access_bps=G, delay_ps=US_PS, queue_packets=100, mark_packets=50, loss=0.999_999_999)
    for until_us, timeouts in ((30_900, 4), (31_100, 5), (62_900, 5), (63_100, 6)):
        outcome = both(long_flows(path, name, until_ps=until_us * US_PS, first_timeout_ps="1ms"))
        assert (outcome.counters["timeouts"], outcome.counters["retransmissions"]) == (timeouts, timeouts), until_us


def test_renos_sawtooth_is_that_of_a_full_queue() -> None:
    """Half of (product + queue) to all of it, a packet in each round trip of W packets at the rate of the link."""
    path = SlowLink(rate_bps=50_000_000, access_bps=G, delay_ps=MS_PS, queue_packets=100)
    seen = watched(long_flows(path, "reno", until_ps=6 * S_PS), every_ps=MS_PS)
    falls = cuts(seen, S_PS, 0.7)
    highest = product_packets(path) + path.queue_packets
    assert seen.windows[falls - 1, 0] == pytest.approx(highest, abs=2)
    assert seen.windows[falls, 0] == pytest.approx(highest / 2, abs=1)
    packet_s = 8 * FRAME_BYTES / path.rate_bps
    climb_s = sum(window * packet_s for window in range(round(highest / 2), round(highest)))
    recovery_s = highest * packet_s  # a round trip from the drop to the NAK, in which the queue is full
    assert np.diff(seen.at_ps[falls]) / S_PS == pytest.approx(climb_s + recovery_s, rel=0.03)


def test_renos_throughput_is_that_of_the_square_root_law() -> None:
    """With a loss after each 1 / p packets, MSS / RTT x sqrt(3 / (2 p)) (Mathis et al., CCR 27(3), 1997)."""
    for period in (200, 800):
        sender = Sender("reno")
        times = packets = 0.0
        for turn in range(20):
            sender.loses()
            sender.signal.seq = sender.signal.next_seq  # recovery is over
            for _ in range(period):
                sender.hears()
                if turn >= 10:
                    packets += 1
                    times += 1 / sender.window
        assert packets / times == pytest.approx(math.sqrt(1.5 * period), rel=0.02)


def test_renos_throughput_over_a_lossy_path_follows_the_law() -> None:
    """Losses at random: the mean window of sqrt(3 / (2 p)), within what 250 losses and their recoveries leave."""
    path = SlowLink(rate_bps=50_000_000, access_bps=G, delay_ps=5 * MS_PS, queue_packets=1_000, loss=0.001)
    seen = watched(long_flows(path, "reno", until_ps=100 * S_PS), every_ps=S_PS)
    packets_per_s = seen.payload_bytes(0, 5 * S_PS) / PAYLOAD_BYTES / 95
    assert packets_per_s * base_rtt_s(path) == pytest.approx(math.sqrt(1.5 / (2 * path.loss)), rel=0.12)


@pytest.mark.parametrize("variant", ["linux", "rfc-9438"])
def test_cubics_window_after_a_loss_is_the_cube(variant: str) -> None:
    """W(t) = C (t - K)^3 + W_max, until the queue is full a packet below W_max; K is 6.1 s, a round trip 0.2 s."""
    path = SlowLink(rate_bps=10_000_000, access_bps=100_000_000, delay_ps=50 * MS_PS, queue_packets=60)
    parameters = {"fast_convergence": False, "hystart": False}
    seen = watched(long_flows(path, "cubic", variant=variant, until_ps=30 * S_PS, **parameters), every_ps=50 * MS_PS)
    fall, next_fall = cuts(seen, 12 * S_PS, 0.8)[:2]
    window = seen.windows[:, 0]
    peak, left = window[fall - 1], window[fall]
    assert left == pytest.approx(0.7 * peak, abs=2)
    plateau_s = ((peak - left) / 0.4) ** (1 / 3)
    growing = fall + int(np.argmax(window[fall:] > left))  # the epoch begins with the first growth after recovery
    time_s = (seen.at_ps[growing:next_fall] - seen.at_ps[growing]) / S_PS
    assert time_s[-1] > 4
    assert window[growing:next_fall] == pytest.approx(peak + 0.4 * (time_s - plateau_s) ** 3, abs=3)


@pytest.mark.parametrize("variant", ["linux", "rfc-8257"])
@pytest.mark.parametrize("senders", [1, 2])
def test_dctcps_sawtooth_is_that_of_the_papers_analysis(senders: int, variant: str) -> None:
    """SIGCOMM 2010, section 3.3: W* = (C RTT + K) / N, alpha = sqrt(2 / W*), a fall of (W* + 1) alpha / 2."""
    path = SlowLink(
        rate_bps=G, access_bps=10 * G, delay_ps=50 * US_PS, queue_packets=1_000, mark_packets=40, senders=senders
    )
    seen = watched(
        long_flows(path, "dctcp", variant=variant, until_ps=150 * MS_PS), every_ps=20 * US_PS, senders=senders
    )
    settled = seen.at_ps > 40 * MS_PS
    critical = (product_packets(path) + path.mark_packets) / senders
    fall = (critical + 1) * math.sqrt(2 / critical) / 2
    window, queue = seen.windows[settled, 0], seen.queue[settled]
    assert window.max() == pytest.approx(critical + 1, abs=1)
    assert window.max() - window.min() == pytest.approx(fall, rel=0.15)
    round_s = (product_packets(path) + path.mark_packets) * 8 * FRAME_BYTES / path.rate_bps
    falls = cuts(seen, 40 * MS_PS, 0.97)
    assert np.diff(seen.at_ps[falls]).mean() / S_PS == pytest.approx(fall * round_s, rel=0.1)
    assert queue.max() == path.mark_packets + senders  # the paper's K + N
    assert queue.min() == pytest.approx(path.mark_packets + senders - senders * fall, abs=1)


def test_dctcp_keeps_the_link_busy_with_a_threshold_of_a_seventh_of_the_product() -> None:
    """SIGCOMM 2010, equation 13: K > C RTT / 7; a tenth of that lets the queue run empty."""
    shares = {}
    for mark_packets in (15, 2):
        path = SlowLink(
            rate_bps=G, access_bps=10 * G, delay_ps=200 * US_PS, queue_packets=1_000, mark_packets=mark_packets
        )
        assert product_packets(path) / 7 == pytest.approx(14, abs=1)
        seen = watched(long_flows(path, "dctcp", until_ps=200 * MS_PS), every_ps=MS_PS)
        sent_bits = seen.payload_bytes(0, 50 * MS_PS) / PAYLOAD_BYTES * FRAME_BYTES * 8
        shares[mark_packets] = sent_bits / (path.rate_bps * 0.15)
    assert shares[15] > 0.999
    assert shares[2] < 0.97


def test_dctcp_holds_a_queue_that_reno_fills() -> None:
    path = SlowLink(rate_bps=G, access_bps=10 * G, delay_ps=50 * US_PS, queue_packets=100, mark_packets=20, senders=4)
    highest = {}
    for name in ("reno", "dctcp"):
        seen = watched(long_flows(path, name, until_ps=60 * MS_PS), every_ps=50 * US_PS, senders=4)
        highest[name] = seen.queue[seen.at_ps > 20 * MS_PS].max()
    assert highest["reno"] > 95
    assert highest["dctcp"] < 20 + 2 * 4
