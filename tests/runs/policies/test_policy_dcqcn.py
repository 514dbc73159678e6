"""DCQCN against its equations, worked out by hand."""

from typing import Any

import pytest

from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, Kind
from weftwork.policies.load import LoadedPolicy, load

LINE_BPS = 40_000_000_000
US_PS = 1_000_000
G = 1 / 256


class Sender:
    """One queue pair whose timers fire when they are due."""

    def __init__(self, line_bps: int = LINE_BPS, **parameters: Any) -> None:
        variant = parameters.pop("variant", "paper")
        self.policy: LoadedPolicy = load("congestion_control", "dcqcn", parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = line_bps
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def due_ps(self) -> int | None:
        return min((at for at in self.state.timer_at_ps if at != OFF), default=None)

    def run_to(self, now_ps: int) -> None:
        while (due := self.due_ps()) is not None and due <= now_ps:
            timer = self.state.timer_at_ps.index(due)
            self.state.timer_at_ps[timer] = OFF
            self.tell(Kind.TIMER, now_ps=due, timer=timer)
        self.signal.now_ps = now_ps


def test_it_starts_at_line_rate_with_no_timer() -> None:
    sender = Sender()
    assert sender.state.rate_bps == LINE_BPS
    assert sender.due_ps() is None


def test_the_first_cnp_halves_the_rate_and_keeps_the_target() -> None:
    sender = Sender()
    sender.tell(Kind.CNP, now_ps=0)
    assert (sender.state.rate_bps, sender.state.target_bps, sender.state.alpha) == (LINE_BPS / 2, LINE_BPS, 1.0)
    assert list(sender.state.timer_at_ps) == [55 * US_PS, 55 * US_PS, OFF, OFF]


def test_alpha_decays_without_cnps_and_the_next_cut_is_smaller() -> None:
    sender = Sender()
    sender.tell(Kind.CNP, now_ps=0)
    sender.run_to(111 * US_PS)
    decayed = (1.0 - G) * ((1.0 - G) * 1.0)
    assert sender.state.alpha == decayed
    before = sender.state.rate_bps
    sender.tell(Kind.CNP)
    assert sender.state.rate_bps == before * (1.0 - decayed / 2.0)
    assert sender.state.alpha == (1.0 - G) * decayed + G


def test_five_fast_steps_halve_the_gap_then_the_target_rises() -> None:
    sender = Sender()
    sender.tell(Kind.CNP, now_ps=0)
    sender.tell(Kind.CNP)
    assert (sender.state.rate_bps, sender.state.target_bps) == (LINE_BPS / 4, LINE_BPS / 2)
    sender.run_to(5 * 55 * US_PS)
    assert sender.state.rate_bps == LINE_BPS / 2 - LINE_BPS / 4 / 2**5
    assert sender.state.target_bps == LINE_BPS / 2
    sender.run_to(6 * 55 * US_PS)
    assert sender.state.target_bps == LINE_BPS / 2 + 40e6
    sender.run_to(16 * 55 * US_PS)
    assert sender.state.target_bps == LINE_BPS / 2 + 11 * 40e6


def test_the_byte_counter_increases_on_its_own() -> None:
    sender = Sender()
    sender.tell(Kind.CNP, now_ps=0)
    for _ in range(2_441):
        sender.tell(Kind.SEND, bytes=4_096)
    assert sender.state.rate_bps == LINE_BPS / 2
    sender.tell(Kind.SEND, bytes=4_096)
    assert sender.state.rate_bps == LINE_BPS * 0.75
    assert sender.state.sent_bytes == 2_442 * 4_096 - 10_000_000


def test_hyper_increase_needs_both_counters_past_fast_recovery() -> None:
    sender = Sender(increase_bytes="1MB")
    for _ in range(4):
        sender.tell(Kind.CNP, now_ps=0)
    for _ in range(6):
        sender.tell(Kind.SEND, bytes=1_000_000)
    sender.run_to(6 * 55 * US_PS)
    target = LINE_BPS / 8 + 7 * 40e6  # the byte counter's sixth step, and every one of the timer's after it
    assert sender.state.target_bps == target
    sender.tell(Kind.SEND, bytes=1_000_000)
    assert sender.state.target_bps == target + 400e6
    sender.run_to(7 * 55 * US_PS)
    assert sender.state.target_bps == target + 800e6
    sender.tell(Kind.SEND, bytes=1_000_000)
    assert sender.state.target_bps == target + 800e6 + 2 * 400e6


def test_the_rate_stays_within_its_floor_and_the_line_rate() -> None:
    sender = Sender()
    for _ in range(100):
        sender.tell(Kind.CNP)
    assert sender.state.rate_bps == 100e6
    sender.run_to(10 * 10**12)
    assert sender.state.rate_bps == LINE_BPS


def test_all_timers_end_when_the_rate_is_back_and_alpha_is_nothing() -> None:
    sender = Sender()
    sender.tell(Kind.CNP, now_ps=0)
    sender.run_to(10**12)
    assert sender.due_ps() is None
    assert sender.state.alpha == 0.0


@pytest.mark.parametrize("variant", ["paper", "vendor", "hpcc-repo", "hpcc-repo-window"])
@pytest.mark.parametrize("idle_us", [1, 54, 55, 400, 5_000])
def test_after_idle_it_is_where_running_timers_would_have_brought_it(variant: str, idle_us: int) -> None:
    busy, idle = Sender(variant=variant), Sender(variant=variant)
    for sender in (busy, idle):
        for at_us in (10, 30):
            sender.run_to(at_us * US_PS)
            sender.tell(Kind.CNP)
    for timer in range(4):
        idle.state.timer_at_ps[timer] = OFF  # what an engine does when a queue pair has nothing to send
    now_ps = (30 + idle_us) * US_PS
    busy.run_to(now_ps)
    idle.tell(Kind.RESUME, now_ps=now_ps)
    assert repr(busy.state) == repr(idle.state)


def test_the_vendor_variant_cuts_once_in_its_decrease_period() -> None:
    sender = Sender(variant="vendor")
    for at_us in (1, 2, 3):
        sender.run_to(at_us * US_PS)
        sender.tell(Kind.CNP)
        assert sender.state.rate_bps == LINE_BPS
    sender.run_to(5 * US_PS)
    assert sender.state.rate_bps == LINE_BPS
    sender.run_to(5 * US_PS + 1_000)
    assert LINE_BPS / 2 < sender.state.rate_bps < LINE_BPS * 0.51
    sender.run_to(40 * US_PS)
    assert sender.state.rate_bps < LINE_BPS * 0.51
    assert sender.state.decrease_at_ps == OFF


def test_in_the_vendor_variant_alpha_rises_once_for_all_cnps_of_its_period() -> None:
    """At the timer of 1 us it rises where a CNP has come, the very first apart; else it decays (equations 1 and 2)."""
    g = 5 / 1024
    sender = Sender(variant="vendor")
    sender.tell(Kind.CNP, now_ps=0)
    alpha = sender.state.alpha
    assert alpha == 1023 / 1024
    for at_us, cnps in ((1, 0), (2, 2), (3, 0), (4, 1), (5, 0), (6, 0)):
        for _ in range(cnps):
            sender.tell(Kind.CNP, now_ps=at_us * US_PS - 1)
        sender.run_to(at_us * US_PS)
        alpha = (1.0 - g) * alpha + (g if cnps else 0.0)
        assert sender.state.alpha == alpha, at_us


def test_the_hpcc_variant_starts_on_the_first_cnp_and_scales_its_increase() -> None:
    sender = Sender(100_000_000_000, variant="hpcc-repo")
    sender.tell(Kind.CNP, now_ps=0)
    assert (sender.state.rate_bps, sender.state.alpha) == (100e9, 1.0)
    sender.run_to(4 * US_PS + 1_000)
    alpha = (1.0 - G) * (1.0 - G) * (1.0 - G) * (1.0 - G)
    assert sender.state.rate_bps == 100e9 * (1.0 - alpha / 2.0)
    sender.tell(Kind.CNP, now_ps=5 * US_PS)
    sender.run_to(8 * US_PS + 1_000)  # the second cut: stages are at 0, so that the target is kept
    assert sender.state.target_bps == 100e9
    for _ in range(3):
        sender.tell(Kind.CNP)
        sender.run_to(sender.signal.now_ps + 4 * US_PS)
    sender.state.target_bps = 50e9
    start_ps = sender.state.increase_at_ps
    sender.run_to(start_ps)
    assert sender.state.target_bps == 50e9
    sender.run_to(start_ps + 300 * US_PS)
    assert sender.state.target_bps == 50e9 + 4 * 5e6
    sender.run_to(start_ps + 600 * US_PS)
    assert sender.state.target_bps == 50e9 + 4 * 5e6 + 4 * 50e6


@pytest.mark.parametrize(("interval", "sent"), [("50us", 3), (0, 11)])
def test_the_receiver_sends_at_most_one_cnp_in_an_interval(interval: object, sent: int) -> None:
    policy = load("congestion_control", "dcqcn", {"cnp_interval_ps": interval}, "paper")
    receiver, signal = policy.new_receiver_state(), policy.new_signal()
    signal.kind = int(Kind.DATA)
    count = 0
    for number in range(11):
        signal.now_ps, signal.ecn = number * 10 * US_PS, 1
        policy.call_receive(receiver, None, signal)
        count += receiver.send_cnp
        receiver.send_cnp = 0
    assert count == sent


def test_an_unmarked_packet_gets_no_cnp() -> None:
    policy = load("congestion_control", "dcqcn", variant="paper")
    receiver, signal = policy.new_receiver_state(), policy.new_signal()
    signal.kind, signal.ecn = int(Kind.DATA), 0
    policy.call_receive(receiver, None, signal)
    assert receiver.send_cnp == 0


def test_at_400_gbps_the_defaults_recover_sixteen_times_as_fast_as_at_25() -> None:
    """The defaults scale with the line rate: hyper increase adds 50 Mb/s x 400 / 25 to the target."""
    sender = Sender(400_000_000_000, variant=None)
    for _ in range(3):
        sender.tell(Kind.CNP)
        sender.run_to(sender.signal.now_ps + 4 * US_PS)
    sender.state.target_bps = 50e9
    start_ps = sender.state.increase_at_ps
    sender.run_to(start_ps + 300 * US_PS)
    assert sender.state.target_bps == 50e9 + 16 * 5e6
    sender.run_to(start_ps + 600 * US_PS)
    assert sender.state.target_bps == 50e9 + 16 * 5e6 + 16 * 50e6


@pytest.mark.parametrize(("follows", "left"), [(True, 0.25), (False, 1.0)])
def test_the_window_is_some_bandwidth_delay_products_and_follows_the_rate(*, follows: bool, left: float) -> None:
    sender = Sender(variant="hpcc-repo-window", window_bdps=2, window_follows_rate=follows)
    sender.signal.base_rtt_ps, sender.signal.mtu_bytes = 8 * US_PS, 1_000
    sender.tell(Kind.START)
    full_bytes = 2 * LINE_BPS * 8e-6 / 8 + 1_000  # two times 40 Gb/s x 8 us, and a packet
    assert sender.state.window_bytes == full_bytes == 81_000
    sender.state.rate_bps = LINE_BPS / 4
    sender.tell(Kind.SEND, bytes=1_000)
    assert sender.state.window_bytes == left * full_bytes
    sender.state.rate_bps = 1e6
    sender.tell(Kind.SEND, bytes=1_000)
    assert sender.state.window_bytes == (1_000 if follows else full_bytes)


def test_without_a_window_nothing_bounds_what_is_in_flight() -> None:
    sender = Sender(variant=None)
    sender.signal.base_rtt_ps, sender.signal.mtu_bytes = 8 * US_PS, 1_000
    sender.tell(Kind.SEND, bytes=1_000)
    assert sender.state.window_bytes == NO_WINDOW_BYTES
