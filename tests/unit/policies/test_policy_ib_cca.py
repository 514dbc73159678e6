"""InfiniBand congestion control against its table, worked out by hand, and N senders at one port."""

from typing import Any

import pytest

from weftwork.base.clock import US_PS
from weftwork.policies.interface import OFF, Kind
from weftwork.policies.load import LoadedPolicy, load

LINE_BPS = 100_000_000_000


PERIOD_PS = 153_600_000  # 150 x 1.024 us


class Sender:
    """One queue pair whose timer fires when it is due."""

    def __init__(self, **parameters: Any) -> None:
        variant = parameters.pop("variant", None)
        self.policy: LoadedPolicy = load("congestion_control", "ib-cca", parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps = LINE_BPS
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)

    def becns(self, count: int) -> None:
        for _ in range(count):
            self.tell(Kind.CNP)

    def run_to(self, now_ps: int) -> None:
        while OFF != (due := self.state.timer_at_ps[0]) <= now_ps:
            self.state.timer_at_ps[0] = OFF
            self.tell(Kind.TIMER, now_ps=due)
        self.signal.now_ps = now_ps


def test_it_starts_at_line_rate_with_no_timer() -> None:
    sender = Sender()
    assert (sender.state.ccti, sender.state.rate_bps) == (0, LINE_BPS)
    assert sender.state.timer_at_ps[0] == OFF


@pytest.mark.parametrize(("becns", "rate"), [(1, LINE_BPS / 2), (3, LINE_BPS / 4), (127, LINE_BPS / 128)])
def test_in_whole_steps_entry_i_pauses_for_i_packets(becns: int, rate: float) -> None:
    sender = Sender(variant="whole-steps")
    sender.becns(becns)
    assert sender.state.rate_bps == rate


def test_the_shift_divides_the_pause_and_the_multiplier_grows_it() -> None:
    eighths, twice = Sender(), Sender(cct_multiplier=2)
    eighths.becns(8)
    twice.becns(8)
    assert (eighths.state.rate_bps, twice.state.rate_bps) == (LINE_BPS / 2, LINE_BPS / 3)


def test_an_entry_holds_a_multiplier_of_14_bits() -> None:
    sender = Sender(cct_multiplier=10_000, cct_shift=0)
    sender.becns(1)
    assert sender.state.rate_bps == LINE_BPS / 10_001
    sender.becns(1)
    assert sender.state.rate_bps == LINE_BPS / 16_384


def test_the_limit_holds_and_each_becn_adds_the_increase() -> None:
    sender = Sender(ccti_increase=50)
    for wanted in (50, 100, 127, 127):
        sender.becns(1)
        assert sender.state.ccti == wanted


def test_the_timer_lowers_the_index_by_one_in_each_period_and_stops_at_the_smallest() -> None:
    sender = Sender(ccti_min=2)
    assert (sender.state.ccti, sender.state.rate_bps) == (2, LINE_BPS / 1.25)
    sender.becns(3)
    assert sender.state.timer_at_ps[0] == PERIOD_PS
    sender.run_to(2 * PERIOD_PS)
    assert sender.state.ccti == 3
    sender.run_to(3 * PERIOD_PS)
    assert (sender.state.ccti, sender.state.timer_at_ps[0]) == (2, OFF)


def test_a_becn_does_not_restart_a_timer_that_runs() -> None:
    sender = Sender()
    sender.becns(1)
    sender.signal.now_ps = PERIOD_PS - 1
    sender.becns(1)
    assert sender.state.timer_at_ps[0] == PERIOD_PS


def test_an_idle_queue_pair_recovers_as_one_whose_timer_ran() -> None:
    idle, running = Sender(), Sender()
    for sender in (idle, running):
        sender.becns(9)
    idle.state.timer_at_ps[0] = OFF  # as an engine does
    later_ps = 4 * PERIOD_PS + PERIOD_PS // 3
    idle.tell(Kind.RESUME, now_ps=later_ps)
    running.run_to(later_ps)
    assert (idle.state.ccti, idle.state.timer_at_ps[0]) == (running.state.ccti, running.state.timer_at_ps[0])
    assert idle.state.ccti == 5
    idle.state.timer_at_ps[0] = OFF
    idle.tell(Kind.RESUME, now_ps=1_000 * PERIOD_PS)
    assert (idle.state.ccti, idle.state.rate_bps, idle.state.timer_at_ps[0]) == (0, LINE_BPS, OFF)


def test_a_smallest_index_above_the_limit_is_the_limit() -> None:
    sender = Sender(ccti_min=20, ccti_limit=8)
    sender.becns(1)
    assert (sender.state.ccti, sender.state.rate_bps, sender.state.timer_at_ps[0]) == (8, LINE_BPS / 2, OFF)


@pytest.mark.parametrize(("interval", "becns"), [("0us", [1, 1, 1, 1]), ("10us", [1, 0, 0, 1])])
def test_the_receiver_answers_marked_packets_at_most_once_in_an_interval(interval: str, becns: list[int]) -> None:
    policy = load("congestion_control", "ib-cca", {"becn_interval_ps": interval})
    state, signal, sent = policy.new_receiver_state(), policy.new_signal(), []
    for at_us in (0, 4, 9, 10):
        signal.kind, signal.now_ps, signal.ecn = int(Kind.DATA), at_us * US_PS, 1
        policy.call_receive(state, None, signal)
        sent.append(state.send_cnp)
        state.send_cnp = 0
    assert sent == becns
    signal.ecn, signal.now_ps = 0, 90 * US_PS
    policy.call_receive(state, None, signal)
    assert state.send_cnp == 0
