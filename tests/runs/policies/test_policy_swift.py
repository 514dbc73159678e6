"""Swift against its algorithm, worked out by hand, and what it does in a network: targets, incasts, slow hosts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import wired
from helpers.told_sender import ToldSender, long_flow, plan, probe_rtts_ps, probes, run, shares, star, watched

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import Kind
from weftwork.policies.load import load
from weftwork.spec.device import Nic
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

G = 1_000_000_000
RTT_US = 10.0


class Sender(ToldSender):
    """A queue pair on a path of 10 us and one switch, with windows of packets of 1,000 bytes."""

    def __init__(self, variant: str | None = None, **parameters: Any) -> None:
        super().__init__("swift", variant, line_bps=100 * G, **parameters)

    def hears(self, fabric_us: float, *, host_us: float = 0, packets: float = 1, later_us: float = 100) -> None:
        """An acknowledgement; of these packets, with these delays, so long after the one before."""
        self.tell(
            Kind.ACK, now_ps=self.signal.now_ps + round(later_us * US_PS), arrived_bytes=round(1_000 * packets), hops=1,
            rtt_ps=round((fabric_us + host_us) * US_PS), host_delay_ps=round(host_us * US_PS),
            fabric_delay_ps=round(fabric_us * US_PS),
        )  # fmt: skip

    def at(self, fabric: float, host: float = 200.0) -> Sender:
        self.state.fabric_packets, self.state.host_packets = fabric, host
        return self


def scaling_us(window: float, low: float = 0.1, high: float = 256.0) -> float:
    """Section 3.5: A / sqrt(window) + B, from 100 us at the low window to 0 at the high one."""
    a = 100 / (1 / math.sqrt(low) - 1 / math.sqrt(high))
    return a / math.sqrt(window) - a / math.sqrt(high)


@pytest.mark.parametrize(("variant", "packets"), [("isekai", 32), ("htsim", 12)])
def test_it_starts_at_line_rate_with_a_window_of_packets(variant: str, packets: int) -> None:
    state = Sender(variant).state
    assert (state.rate_bps, state.window_bytes, state.timeout_ps) == (100 * G, packets * 1_000, MS_PS)


@pytest.mark.parametrize(("window", "grown"), [(10, 10.1), (1, 2), (0.25, 1.25)])
def test_below_the_target_a_window_grows_by_a_packet_in_a_round_trip(window: float, grown: float) -> None:
    sender = Sender().at(window)
    sender.hears(RTT_US)
    assert sender.state.fabric_packets == pytest.approx(grown)
    sender = Sender().at(window)
    sender.hears(RTT_US, packets=0.5)
    assert sender.state.fabric_packets == pytest.approx(window + (grown - window) / 2)


@pytest.mark.parametrize(("delay_us", "left"), [(40, 1 - 0.8 * 14 / 40), (32.5, 1 - 0.8 * 0.2), (400, 0.5)])
def test_above_the_target_it_is_cut_by_the_excess_and_never_by_more_than_half(delay_us: float, left: float) -> None:
    sender = Sender(scaling_ps=0).at(100)  # the target is 25 us and 1 us for the switch
    sender.hears(delay_us)
    assert sender.state.fabric_packets == pytest.approx(100 * left)


@pytest.mark.parametrize(("delay_us", "window"), [(25.99, 100.01), (26, 100), (26.01, 100 * (1 - 0.8 * 0.01 / 26.01))])
def test_the_target_itself_is_too_much(delay_us: float, window: float) -> None:
    sender = Sender(scaling_ps=0).at(100)
    sender.hears(delay_us)
    assert sender.state.fabric_packets == pytest.approx(window, rel=1e-9)


def test_it_is_cut_once_in_a_round_trip_and_grows_in_between() -> None:
    sender = Sender(scaling_ps=0).at(100)
    sender.hears(400)
    sender.hears(400, later_us=399)
    assert sender.state.fabric_packets == 50
    sender.hears(RTT_US, later_us=0)
    assert sender.state.fabric_packets == 50.02
    sender.hears(400, later_us=1)
    assert sender.state.fabric_packets == 25.01


@pytest.mark.parametrize("window", [0.05, 0.1, 0.5, 1, 4, 100, 256])
def test_small_windows_and_switches_raise_the_target(window: float) -> None:
    sender = Sender().at(window)
    sender.hears(RTT_US, packets=0)
    assert sender.state.target_ps == pytest.approx((26 + min(scaling_us(window), 100)) * US_PS)
    sender.signal.hops = 5
    sender.at(window).tell(Kind.ACK)
    assert sender.state.target_ps == pytest.approx((30 + min(scaling_us(window), 100)) * US_PS)


def test_the_target_by_htsim() -> None:
    sender = Sender("htsim").at(4)
    sender.hears(RTT_US, packets=0)
    assert sender.state.target_ps == pytest.approx((20 + 20 / 6.55 + scaling_us(4, high=100)) * US_PS, rel=1e-6)


@pytest.mark.parametrize(("variant", "target_us"), [("isekai", 50), ("htsim", 20 + 20 / 6.55)])
def test_the_target_is_above_what_the_empty_path_takes_unless_told_otherwise(variant: str, target_us: float) -> None:
    sender = Sender(variant, base_rtt_ps=40 * US_PS, scaling_ps=0).at(4)
    sender.hears(40, packets=0)
    assert sender.state.target_ps == pytest.approx(target_us * US_PS, rel=1e-6)


def test_the_host_has_a_window_of_its_own_and_the_smaller_one_holds() -> None:
    sender = Sender(scaling_ps=0).at(100, 100)
    sender.hears(RTT_US, host_us=50)
    assert sender.state.host_packets == pytest.approx(100 * (1 - 0.8 * 0.5))
    assert sender.state.fabric_packets == pytest.approx(100.01)
    assert sender.state.window_bytes == 60_000
    sender.hears(400, host_us=0)
    assert sender.state.host_packets == pytest.approx(60 + 1 / 60)
    assert sender.state.window_bytes == 1_000 * sender.state.fabric_packets == pytest.approx(50_005)


def test_windows_stay_between_the_smallest_and_the_largest() -> None:
    sender = Sender(max_packets=50, min_packets=0.5)
    for _ in range(2_000):
        sender.hears(RTT_US)
    assert (sender.state.fabric_packets, sender.state.host_packets) == (50, 50)
    for _ in range(20):
        sender.hears(900, host_us=900, later_us=2_000)
    assert (sender.state.fabric_packets, sender.state.host_packets) == (0.5, 0.5)


def test_below_a_packet_one_is_in_flight_and_the_next_leaves_an_rtt_over_window_later() -> None:
    sender = Sender()
    for window in (0.2, 0.9):
        sender.at(window).hears(20, packets=0)
        assert sender.state.window_bytes == 1_000
        assert sender.state.rate_bps == pytest.approx(1_000 * 8 / (20e-6 / window))
    sender.at(0.2).hears(20, packets=1)
    assert sender.state.rate_bps == 100 * G
    assert sender.state.window_bytes == pytest.approx(1_200)


@pytest.mark.parametrize("kind", [Kind.NAK, Kind.TIMEOUT])
def test_a_loss_halves_the_fabric_window_once_in_a_round_trip(kind: Kind) -> None:
    sender = Sender().at(64, 200)
    sender.hears(RTT_US, packets=0)
    sender.tell(kind)
    sender.tell(kind, now_ps=sender.signal.now_ps + 9 * US_PS)
    assert (sender.state.fabric_packets, sender.state.host_packets) == (32, 200)
    sender.tell(Kind.NAK, now_ps=sender.signal.now_ps + US_PS)
    assert sender.state.fabric_packets == 16


@pytest.mark.parametrize(("variant", "most"), [("isekai", 3), ("htsim", 5)])
def test_some_timeouts_in_a_row_leave_the_smallest_window(variant: str, most: int) -> None:
    sender = Sender(variant, min_packets=0.01).at(64, 200)
    sender.hears(RTT_US)
    before = sender.state.fabric_packets
    for turn in range(1, most):
        sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
        assert sender.state.fabric_packets == pytest.approx(before / 2**turn)
    sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
    assert sender.state.fabric_packets == 0.01


def test_news_ends_the_row_of_timeouts() -> None:
    sender = Sender().at(64, 200)
    for _ in range(2):
        sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
    sender.hears(RTT_US)
    sender.tell(Kind.TIMEOUT, now_ps=sender.signal.now_ps + MS_PS)
    assert sender.state.fabric_packets > 1


def test_the_timeout_is_twice_the_smoothed_rtt_and_doubles() -> None:
    sender = Sender()
    sender.hears(1_000)
    assert sender.state.timeout_ps == 2 * MS_PS
    sender.hears(3_000)
    assert sender.state.timeout_ps == 3 * MS_PS  # 0.75 x 1 ms + 0.25 x 3 ms
    waits = []
    for _ in range(8):
        sender.tell(Kind.TIMEOUT)
        waits.append(sender.state.timeout_ps // (3 * MS_PS))
    assert waits == [2, 4, 8, 16, 32, 64, 64, 64]
    sender.hears(10)
    assert sender.state.timeout_ps == round(2 * (0.75 * 1.5 + 0.25 * 0.01) * MS_PS)


# In a network


def chain(switches: int, senders: int) -> Fabric:
    """Hosts at the first of some switches in a row, one host and one more at the last one; 100 Gb/s, 1 us."""
    hosts = senders + 2
    links = [(host, hosts) for host in range(hosts) if host != senders]
    links += [(hosts + at, hosts + at + 1) for at in range(switches - 1)] + [(senders, hosts + switches - 1)]
    return wired(links, hosts=hosts, rates_bps=[100 * G] * len(links), delays_ps=[US_PS] * len(links))


@pytest.mark.parametrize("switches", [1, 3])
def test_the_delay_settles_at_the_target_which_grows_with_switches(switches: int) -> None:
    """Round trips of probes, which are those of long flows within a packet's time."""
    messages = [one for flow in range(4) for one in long_flow(flow, 4, 0, 7_000_000)]
    messages += probes(5, 4, range(MS_PS, 2 * MS_PS, 10 * US_PS))
    policy = load("congestion_control", "swift", {"scaling_ps": 0})
    rtts_ps = probe_rtts_ps(run(chain(switches, 4), messages, policy, transport=Transport()))
    assert np.mean(rtts_ps) == pytest.approx((25 + switches) * US_PS, rel=0.04)
    assert np.std(rtts_ps) < 0.1 * np.mean(rtts_ps)


@pytest.mark.parametrize("flows", [2, 8])
def test_the_delay_settles_at_the_target_that_the_windows_scale(flows: int) -> None:
    """N windows of packets of 4,178 bytes on the wire are what the target of such a window holds."""
    messages = [one for flow in range(flows) for one in long_flow(flow, flows, 0, 24_000_000 // flows)]
    engine_input = plan(star(flows + 1, 100 * G), messages, load("congestion_control", "swift"), transport=Transport())
    seen = watched(engine_input, "fabric_packets", "target_ps", "last_rtt_ps", every_ps=20 * US_PS)
    window, target_ps, rtt_ps = (seen[name][25:75].mean() for name in ("fabric_packets", "target_ps", "last_rtt_ps"))
    assert target_ps == pytest.approx((26 + scaling_us(window)) * US_PS, rel=0.02)
    assert rtt_ps == pytest.approx(target_ps, rel=0.05)
    assert flows * window * 4_178 * 8 / 100e9 * 1e12 == pytest.approx(rtt_ps, rel=0.1)


def incast_rtt_ps(**parameters: Any) -> float:
    """Mean round trip of probes beside eighty senders into one port of 10 Gb/s."""
    messages = [one for flow in range(80) for one in long_flow(flow, 80, 0, 320_000)]
    messages += probes(81, 80, range(8 * MS_PS, 15 * MS_PS, 400 * US_PS))
    policy = load("congestion_control", "swift", {"initial_packets": 1, **parameters})
    outcome = run(star(82, 10 * G), messages, policy, transport=Transport(), until_ps=15 * MS_PS)
    assert sum(shares(outcome, 80, 10 * MS_PS, 15 * MS_PS)) > 9 * G
    return float(np.mean(probe_rtts_ps(outcome)))


def test_an_incast_with_windows_below_a_packet_keeps_the_queue_bounded() -> None:
    """80 packets of 4,178 bytes would be 267 us of queue, and are where no window goes below a packet."""
    assert incast_rtt_ps(min_packets=1) == pytest.approx(267 * US_PS, rel=0.03)
    assert incast_rtt_ps() < 126 * US_PS  # the largest target with one switch


def test_a_departure_that_a_small_window_has_put_off_moves_when_the_window_grows() -> None:
    """The first packet puts the second off by 100 round trips of some 5 us; its acknowledgement opens the window."""
    policy = load("congestion_control", "swift", {"initial_packets": 0.01})
    outcome = run(star(2, 100 * G), long_flow(0, 1, 0, 16_384)[:1], policy, transport=Transport(mtu_bytes=8_192))
    assert outcome.counters["end_ps"] < 20 * US_PS


@pytest.mark.parametrize(("scaling", "least", "most"), [("100us", 0.98, 1), (0, 0.8, 0.93)])
def test_two_flows_share_within_tens_of_round_trips_because_small_windows_aim_higher(
    scaling: object, least: float, most: float
) -> None:
    """The second flow comes when the first has the link; a round trip is some 30 us."""
    messages = [*long_flow(0, 2, 0, 25_000_000), *long_flow(1, 2, MS_PS, 25_000_000)]
    policy = load("congestion_control", "swift", {"scaling_ps": scaling})
    outcome = run(star(3, 100 * G), messages, policy, transport=Transport(), until_ps=2 * MS_PS)
    pair = shares(outcome, 2, MS_PS + 800 * US_PS, 2 * MS_PS)
    assert least <= sum(pair) ** 2 / (2 * sum(one * one for one in pair)) <= most


def test_a_slow_host_shrinks_the_window_of_the_host_alone() -> None:
    """25 us in the host and 6 us elsewhere, at 50 Gb/s, are 46 packets of 4,158 bytes."""
    nic = Nic(pcie_rate_bps=50 * G, receive_buffer_bytes=400_000, xoff_bytes=200_000, xon_bytes=180_000)
    engine_input = plan(
        star(2, 100 * G, nic=nic), long_flow(0, 1, 0, 20_000_000), load("congestion_control", "swift"),
        transport=Transport(),
    )  # fmt: skip
    seen = watched(engine_input, "fabric_packets", "host_packets", every_ps=100 * US_PS)
    assert seen["host_packets"][10:].mean() == pytest.approx(46, rel=0.05)
    assert seen["host_packets"][10:].max() < 50
    assert (np.diff(seen["fabric_packets"][:, 0]) > 0).all()
    assert seen["fabric_packets"][-1, 0] > 90


@pytest.mark.parametrize("variant", [None, "htsim"])
def test_both_engines_agree(variant: str | None) -> None:
    messages = [one for flow in range(6) for one in long_flow(flow, 6, flow * 7 * US_PS, 200_000)]
    policy = load("congestion_control", "swift", {"initial_packets": 0.5}, variant)
    outcome = both(plan(star(7, 10 * G, nic=Nic(pcie_rate_bps=8 * G)), messages, policy))
    assert (outcome.messages["delivered_at_ps"] >= 0).all()
