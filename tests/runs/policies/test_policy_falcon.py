"""Falcon's control against its law, worked out by hand, and in a network: a target, fair shares, slow hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.told_sender import ToldSender, long_flow, plan, probe_rtts_ps, probes, run, shares, star, watched

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import Kind
from weftwork.policies.load import load
from weftwork.spec.device import Nic
from weftwork.spec.transport import Transport

G = 1_000_000_000
LEVEL_US = 1.25  # of the receiving host: 40 us are 32 levels


class Sender(ToldSender):
    """A queue pair on a path of 10 us and one switch, with windows of packets of 1,000 bytes."""

    def __init__(self, variant: str | None = None, **parameters: Any) -> None:
        super().__init__("falcon", variant, line_bps=100 * G, **{"scaling_ps": 0, **parameters})

    def hears(self, fabric_us: float, *, level: int = 0, packets: float = 1, later_us: float = 100) -> None:
        """An acknowledgement; with this delay in the fabric and this level of the receiving NIC's buffer."""
        host_ps = round(level * LEVEL_US * US_PS)
        self.tell(
            Kind.ACK, now_ps=self.signal.now_ps + round(later_us * US_PS), arrived_bytes=round(1_000 * packets), hops=1,
            rtt_ps=round(fabric_us * US_PS) + host_ps, host_delay_ps=host_ps, fabric_delay_ps=round(fabric_us * US_PS),
        )  # fmt: skip

    def at(self, fabric: float, nic: float = 200.0) -> Sender:
        self.state.fabric_packets, self.state.nic_packets = fabric, nic
        return self


def test_it_starts_at_line_rate_with_the_smaller_of_two_windows() -> None:
    state = Sender().state
    assert (state.fabric_packets, state.nic_packets, state.window_bytes) == (32, 64, 32_000)
    assert (state.rate_bps, state.timeout_ps) == (100 * G, MS_PS)


@pytest.mark.parametrize(("window", "grown"), [(10, 10.1), (1, 2), (0.25, 1.25)])
def test_below_the_target_the_fabric_window_grows_by_a_packet_in_a_round_trip(window: float, grown: float) -> None:
    sender = Sender().at(window)
    sender.hears(10)
    assert sender.state.fabric_packets == pytest.approx(grown)


@pytest.mark.parametrize(("delay_us", "left"), [(26, 1), (40, 1 - 0.8 * 14 / 40), (400, 0.5)])
def test_at_and_above_the_target_it_is_cut_once_in_a_round_trip(delay_us: float, left: float) -> None:
    sender = Sender().at(100)
    sender.hears(delay_us)
    assert sender.state.fabric_packets == pytest.approx(100 * left)
    sender.hears(400, later_us=399)
    assert sender.state.fabric_packets == pytest.approx(100 * left if left < 1 else 50)


def test_small_windows_switches_and_long_paths_raise_the_target() -> None:
    sender = Sender(scaling_ps="100us").at(0.1)
    sender.hears(10, packets=0)
    assert sender.state.target_ps == pytest.approx(126 * US_PS)
    sender.signal.hops = 5
    sender.at(4).tell(Kind.ACK)
    span = 1 / 0.1**0.5 - 1 / 16
    assert sender.state.target_ps == pytest.approx((30 + 100 * (1 / 2 - 1 / 16) / span) * US_PS)
    sender.signal.base_rtt_ps = 40 * US_PS
    sender.at(256).tell(Kind.ACK)
    assert sender.state.target_ps == 50 * US_PS


def test_the_delay_may_be_smoothed() -> None:
    sender = Sender(old_delay_weight=0.5).at(100)
    sender.hears(10)
    sender.hears(36)
    assert sender.state.delay_ps == 23 * US_PS
    assert sender.state.fabric_packets > 100


@pytest.mark.parametrize(
    ("host_us", "level"), [(0, 0), (1.2, 0), (1.25, 1), (18.7, 14), (18.75, 15), (39, 31), (90, 31)]
)
def test_the_delay_in_the_host_stands_for_the_level_of_the_buffer(host_us: float, level: int) -> None:
    sender = Sender()
    sender.tell(Kind.ACK, rtt_ps=round((10 + host_us) * US_PS), host_delay_ps=round(host_us * US_PS))
    assert sender.state.level == level


def test_the_window_of_the_nic_grows_once_in_a_round_trip_and_at_once_after_a_cut() -> None:
    sender = Sender().at(200, 64)
    sender.hears(10)
    assert sender.state.nic_packets == 65
    sender.hears(10, later_us=9)
    assert sender.state.nic_packets == 65
    sender.hears(10, later_us=1)
    assert sender.state.nic_packets == 66
    sender.hears(10, level=30)
    assert sender.state.nic_packets == 40  # 66 x (1 - 0.8 x 15 / 30) = 39.6
    sender.hears(10, level=30, later_us=40)
    assert sender.state.nic_packets == 40
    sender.hears(60, later_us=1)  # less than its round trip after the cut
    assert sender.state.nic_packets == 41
    sender.hears(60, later_us=1)
    assert sender.state.nic_packets == 41
    assert sender.state.window_bytes == 41_000


def test_old_news_and_other_packets_do_not_raise_the_window_of_the_nic() -> None:
    sender = Sender().at(200, 64)
    sender.hears(10, packets=0)
    assert (sender.state.nic_packets, sender.state.fabric_packets) == (64, 200)
    sender = Sender("isekai-gen2").at(200, 64)
    sender.hears(10, packets=0)
    assert sender.state.nic_packets == 64


def test_the_smallest_windows_count_as_cut() -> None:
    sender = Sender().at(0.01, 1)
    sender.state.nic_mark_at_ps = sender.signal.now_ps
    sender.hears(400, level=31, later_us=1)
    assert (sender.state.fabric_packets, sender.state.nic_packets) == (0.01, 1)
    sender.hears(10, later_us=1)
    assert (sender.state.fabric_packets, sender.state.nic_packets) == (1.01, 2)
    sender.hears(400, later_us=1)
    assert sender.state.fabric_packets == 1.01


def test_the_second_generation_grows_with_every_ack_and_keeps_fractions() -> None:
    sender = Sender("isekai-gen2").at(200, 64)
    for _ in range(3):
        sender.hears(10, later_us=1)
    assert sender.state.nic_packets == 67
    sender.hears(10, level=20)
    assert sender.state.nic_packets == pytest.approx(67 * (1 - 0.8 * 0.25))
    sender.hears(10, level=20, later_us=34)
    assert sender.state.nic_packets == pytest.approx(67 * 0.8)


def test_a_full_buffer_takes_half_at_most_and_leaves_a_packet() -> None:
    sender = Sender(nic_target_level=0).at(200, 64)
    seen = []
    for _ in range(8):
        sender.hears(10, level=31)
        seen.append(sender.state.nic_packets)
    assert seen == [32, 16, 8, 4, 2, 1, 1, 1]


def test_the_largest_window_of_the_nic_can_be_cut() -> None:
    sender = Sender().at(200, 256)
    for _ in range(100):
        sender.hears(10, later_us=1)
    sender.hears(10, level=31, later_us=49)
    assert sender.state.nic_packets < 256


def test_no_more_is_in_flight_than_the_bitmaps_hold() -> None:
    sender = Sender().at(256, 256)
    sender.tell(Kind.ACK)
    assert sender.state.window_bytes == 128_000
    sender = Sender(sequence_packets=0).at(256, 256)
    sender.tell(Kind.ACK)
    assert sender.state.window_bytes == 256_000


def test_below_a_packet_one_is_in_flight_and_the_next_leaves_an_rtt_over_window_later() -> None:
    sender = Sender().at(0.2)
    sender.hears(20, packets=0)
    assert sender.state.window_bytes == 1_000
    assert sender.state.rate_bps == pytest.approx(1_000 * 8 / (20e-6 / 0.2))


@pytest.mark.parametrize(("cuts", "left"), [(False, 64), (True, 32)])
def test_a_loss_that_is_told_cuts_only_where_asked(*, cuts: bool, left: float) -> None:
    sender = Sender(loss_cuts=cuts).at(64)
    sender.tell(Kind.NAK)
    sender.tell(Kind.NAK, now_ps=24 * US_PS)
    assert sender.state.fabric_packets == left


@pytest.mark.parametrize(("variant", "wanted"), [("isekai", [32, 32, 0.01]), ("spec", [32, 16, 0.01])])
def test_timeouts_in_a_row(variant: str, wanted: list[float]) -> None:
    sender = Sender(variant).at(64)
    seen = []
    for _ in range(3):
        sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
        seen.append(sender.state.fabric_packets)
    assert seen == wanted
    sender.at(64).hears(10)
    sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
    assert sender.state.fabric_packets == pytest.approx(32, rel=1e-3)


def test_the_timeout_is_twice_the_smoothed_rtt() -> None:
    sender = Sender()
    sender.hears(3_975)
    assert sender.state.smoothed_rtt_ps == pytest.approx((0.75 * 25 + 0.25 * 3_975) * US_PS)
    assert sender.state.timeout_ps == pytest.approx(2 * (0.75 * 25 + 0.25 * 3_975) * US_PS)


# In a network


def test_the_delay_settles_at_the_target() -> None:
    messages = [one for flow in range(4) for one in long_flow(flow, 4, 0, 7_000_000)]
    messages += probes(5, 4, range(MS_PS, 2 * MS_PS, 10 * US_PS))
    policy = load("congestion_control", "falcon", {"scaling_ps": 0})
    rtts_ps = probe_rtts_ps(run(star(6, 100 * G), messages, policy, transport=Transport()))
    assert np.mean(rtts_ps) == pytest.approx(26 * US_PS, rel=0.04)


def test_two_flows_share_within_tens_of_round_trips() -> None:
    messages = [*long_flow(0, 2, 0, 25_000_000), *long_flow(1, 2, MS_PS, 25_000_000)]
    policy = load("congestion_control", "falcon")
    outcome = run(star(3, 100 * G), messages, policy, transport=Transport(), until_ps=2 * MS_PS)
    pair = shares(outcome, 2, MS_PS + 800 * US_PS, 2 * MS_PS)
    assert sum(pair) ** 2 / (2 * sum(one * one for one in pair)) > 0.98


@pytest.mark.parametrize("variant", ["isekai", "isekai-gen2"])
def test_a_slow_host_holds_its_buffer_at_the_target_level(variant: str) -> None:
    nic = Nic(pcie_rate_bps=50 * G, receive_buffer_bytes=400_000, xoff_bytes=200_000, xon_bytes=180_000)
    engine_input = plan(
        star(2, 100 * G, nic=nic), long_flow(0, 1, 0, 25_000_000), load("congestion_control", "falcon", {}, variant),
        transport=Transport(),
    )  # fmt: skip
    seen = watched(engine_input, "fabric_packets", "nic_packets", "level", every_ps=20 * US_PS)
    late = slice(100, None)
    assert seen["level"][late].mean() == pytest.approx(15, abs=2)
    assert seen["nic_packets"][late].mean() < 0.6 * seen["fabric_packets"][late].mean()
    assert (np.diff(seen["fabric_packets"][:, 0]) >= 0).all()


@pytest.mark.parametrize("variant", [None, "isekai-gen2", "spec"])
def test_both_engines_agree(variant: str | None) -> None:
    messages = [one for flow in range(6) for one in long_flow(flow, 6, flow * 7 * US_PS, 200_000)]
    policy = load("congestion_control", "falcon", {"initial_packets": 0.5}, variant)
    outcome = both(plan(star(7, 10 * G, nic=Nic(pcie_rate_bps=8 * G)), messages, policy))
    assert (outcome.messages["delivered_at_ps"] >= 0).all()
