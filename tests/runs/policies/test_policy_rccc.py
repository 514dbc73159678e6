"""RCCC: credit, requests and the pacer's turns, worked out by hand; then small networks on both engines."""

import itertools

import pytest
from helpers.both import both
from helpers.credits import HEADER_BYTES, MTU_BYTES, RATE_BPS, UET, ReceivingNic, Sender, incast, pacer_ps, plan, star
from helpers.tiny import Message

from weftwork.base.clock import US_PS
from weftwork.policies.interface import OFF, Kind

PACKET = 4_096  # payload
PULL = 4 * PACKET  # credit of a turn
WINDOW = 225_000  # 1.5 x 100 Gb/s x 12 us


# The sender


def test_it_begins_with_one_and_a_half_bandwidth_delay_products() -> None:
    sender = Sender("rccc", backlog_bytes=1_000 * PACKET)
    assert sender.state.credit_bytes == WINDOW
    assert sender.may_send == 55  # 54.9 packets, and any credit is enough for one
    sender.sends(55)
    assert sender.state.credit_bytes == WINDOW - 55 * PACKET == -280
    assert sender.may_send == 0


@pytest.mark.parametrize(("window", "credit"), [({"window_bytes": 100_000}, 100_000), ({"window_bdps": 1.0}, 150_000)])
def test_the_window_is_bytes_or_bandwidth_delay_products(window: dict[str, float], credit: int) -> None:
    assert Sender("rccc", backlog_bytes=PACKET, **window).state.credit_bytes == credit


def test_each_packet_asks_for_what_the_backlog_and_the_window_leave() -> None:
    """After n packets the credit is WINDOW - n packets; asked for is a window less that: n packets, in quanta."""
    sender = Sender("rccc", backlog_bytes=1_000 * PACKET)
    asked = []
    for _ in range(3):
        sender.sends()
        asked.append(sender.state.request_bytes)
    assert asked == [PACKET, 2 * PACKET, 3 * PACKET]


def test_a_message_within_its_first_credit_asks_for_a_packet_while_it_has_backlog() -> None:
    sender = Sender("rccc", backlog_bytes=2 * PACKET)
    sender.sends()
    assert sender.state.request_bytes == PACKET
    sender.sends()
    assert sender.state.request_bytes == 0


def test_what_it_asks_for_is_whole_quanta() -> None:
    """A window of 225,000 B is 878.9 quanta of 256 B: once nothing is left it asks for 879."""
    sender = Sender("rccc", backlog_bytes=1_000 * PACKET)
    sender.arrives(0)
    sender.sends()  # as a packet that goes at once, whatever the credit
    assert sender.state.credit_bytes == -PACKET
    assert sender.state.request_bytes == -(-(WINDOW + PACKET) // 256) * 256


@pytest.mark.parametrize("news", [Kind.ACK, Kind.TRIM, Kind.TIMEOUT, Kind.CREDIT])
def test_the_first_word_of_the_receiver_ends_speculation(news: Kind) -> None:
    sender = Sender("rccc", backlog_bytes=100 * PACKET)
    sender.sends(2)
    assert sender.state.credit_bytes == WINDOW - 2 * PACKET
    sender.tell(news, bytes=PULL if news == Kind.CREDIT else 0)
    assert sender.state.credit_bytes == (PULL if news == Kind.CREDIT else 0)
    assert sender.may_send == (4 if news == Kind.CREDIT else 0)


def test_granted_credit_outlives_acknowledgements_and_stays_within_a_window() -> None:
    sender = Sender("rccc", backlog_bytes=100 * PACKET)
    sender.tell(Kind.CREDIT, bytes=PULL)
    sender.arrives(0)
    assert sender.state.credit_bytes == PULL
    sender.tell(Kind.CREDIT, bytes=10 * WINDOW)
    assert sender.state.credit_bytes == WINDOW
    assert sender.state.granted_bytes == PULL + 10 * WINDOW


def test_a_cut_packet_is_asked_for_again_and_its_retransmission_is_not_new() -> None:
    sender = Sender("rccc", backlog_bytes=3 * PACKET)
    sender.sends(3)
    sender.is_cut()
    assert sender.state.request_bytes == PACKET
    sender.tell(Kind.CREDIT, bytes=PACKET)
    assert sender.may_send == 1
    sender.sends(again=True)
    assert sender.state.request_bytes == PACKET  # what was granted, and nothing more
    sender.arrives(3)
    assert sender.state.request_bytes == PACKET
    assert sender.state.sent_bytes == sender.state.arrived_bytes == 3 * PACKET


def test_a_packet_that_was_taken_for_lost_and_arrives_is_wanted_no_more() -> None:
    sender = Sender("rccc", backlog_bytes=2 * PACKET)
    sender.sends(2)
    sender.times_out()
    assert sender.state.request_bytes == 2 * PACKET
    sender.tell(Kind.ACK, bytes=2 * PACKET, arrived_bytes=2 * PACKET)
    assert sender.state.request_bytes == 0
    assert sender.state.timer_at_ps[0] == OFF


def test_without_credit_and_news_it_asks_and_then_sends_one_packet_unasked() -> None:
    sender = Sender("rccc", backlog_bytes=100 * PACKET)
    sender.sends()
    sender.times_out()
    assert (sender.state.send_request, sender.state.request_bytes) == (1, 879 * 256)  # a window, in quanta
    for ask in range(1, 4):
        at_ps = sender.state.timer_at_ps[0]
        assert at_ps == ask * 100 * US_PS
        assert sender.may_send == 0
        sender.state.timer_at_ps[0], sender.state.send_request = OFF, 0
        sender.tell(Kind.TIMER, now_ps=at_ps)
    assert sender.may_send == 1
    sender.tell(Kind.CREDIT, bytes=PULL)
    assert sender.state.asks == 0


@pytest.mark.parametrize(("base_us", "timeout_us"), [(12, 100), (50, 200)])
def test_the_timeout_is_four_round_trips_at_least(base_us: int, timeout_us: int) -> None:
    sender = Sender("rccc", backlog_bytes=PACKET, base_rtt_ps=base_us * US_PS)
    assert sender.state.timeout_ps == timeout_us * US_PS


def test_after_idle_it_uses_what_was_granted_or_begins_again() -> None:
    sender = Sender("rccc", backlog_bytes=PACKET)
    sender.sends()
    sender.arrives()
    sender.tell(Kind.CREDIT, bytes=PULL)
    sender.tell(Kind.RESUME, backlog_bytes=100 * PACKET)
    assert sender.may_send == 4
    sender.sends(4)
    sender.arrives(4)
    sender.tell(Kind.RESUME)
    assert sender.may_send == 55


# The receiver


def test_a_turn_grants_four_packets_and_lasts_as_long_as_they_do() -> None:
    nic = ReceivingNic("rccc", 1, idle_bdps=0)
    nic.hear(Kind.DATA, 0, request_bytes=10 * PACKET)
    nic.run_to(100 * US_PS)
    assert nic.grants == [(0, 0, PULL), (pacer_ps(PULL), 0, PULL), (2 * pacer_ps(PULL), 0, 2 * PACKET)]


def test_queue_pairs_that_want_credit_take_turns() -> None:
    nic = ReceivingNic("rccc", 3, idle_bdps=0)
    for pair in range(3):
        nic.hear(Kind.DATA, pair, request_bytes=20 * PULL)
    nic.run_to(11 * pacer_ps(PULL))
    assert [pair for _, pair, _ in nic.grants] == [0, 1, 2] * 4
    assert [at_ps for at_ps, _, _ in nic.grants] == [turn * pacer_ps(PULL) for turn in range(12)]


def test_one_that_wants_little_holds_the_others_up_for_as_long() -> None:
    nic = ReceivingNic("rccc", 2, idle_bdps=0)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)
    nic.hear(Kind.DATA, 1, request_bytes=PULL)
    nic.run_to(20 * US_PS)
    assert nic.grants == [(0, 0, PACKET), (pacer_ps(PACKET), 1, PULL)]


def test_one_that_wants_nothing_is_given_a_window_in_advance() -> None:
    """225,000 B are 13.7 turns: the fourteenth begins below the limit."""
    nic = ReceivingNic("rccc", 1)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)
    nic.run_to(1_000 * US_PS)
    assert nic.grants[0] == (0, 0, PACKET)
    assert nic.grants[1] == (pacer_ps(PACKET), 0, PULL)
    assert [size for _, _, size in nic.grants[1:]] == [PULL] * 14


def test_idle_turns_give_way_to_those_that_want_credit() -> None:
    nic = ReceivingNic("rccc", 2)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)
    nic.run_to(pacer_ps(PACKET))  # the first idle turn of queue pair 0 has been taken
    nic.hear(Kind.DATA, 1, request_bytes=4 * PULL)
    nic.run_to(1_000 * US_PS)
    assert [pair for _, pair, _ in nic.grants[:8]] == [0, 0, 1, 1, 1, 1, 0, 1]
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(nic.grants)]
    assert all(gap >= pacer_ps(size) for gap, (_, _, size) in zip(gaps, nic.grants, strict=False))


@pytest.mark.parametrize("pairs", [1, 4, 10])
def test_idle_turns_that_were_given_up_hold_up_nobody(pairs: int) -> None:
    """Packets that each ask for one more leave the idle class over and over; afterwards idle turns go on at once."""
    nic = ReceivingNic("rccc", pairs)
    for packet in range(800):
        nic.run_to(packet * 350_000)
        nic.hear(Kind.DATA, packet % pairs, request_bytes=(packet // pairs + 1) * PACKET)
    ends_ps = nic.signal.now_ps
    nic.run_to(10_000 * US_PS)
    late = [at_ps for at_ps, _, size in nic.grants if at_ps > ends_ps and size == PULL]
    assert len(late) >= 7
    assert late[-1] - ends_ps <= (14 * pairs + 1) * pacer_ps(PULL)  # 14 turns of each are a window
    gaps = [b - a for a, b in itertools.pairwise(late)]
    assert pacer_ps(PULL) <= min(gaps) <= max(gaps) <= pairs * pacer_ps(PULL)


def test_a_cut_packet_that_asks_for_nothing_gets_credit_all_the_same() -> None:
    """Its turn has nothing to grant and sends the last credit again; then the queue pair is an idle one."""
    nic = ReceivingNic("rccc", 1)
    nic.hear(Kind.TRIM, 0)
    nic.run_to(5 * US_PS)
    assert nic.grants[:2] == [(0, 0, 0), (pacer_ps(1_024), 0, PULL)]


def test_a_request_is_answered_with_the_last_credit() -> None:
    nic = ReceivingNic("rccc", 1, idle_bdps=0)
    nic.hear(Kind.DATA, 0, request_bytes=PULL)
    nic.run_to(5 * US_PS)
    nic.hear(Kind.REQUEST, 0, request_bytes=PULL)
    nic.run_to(10 * US_PS)
    assert nic.grants == [(0, 0, PULL), (5 * US_PS, 0, 0)]
    nic.hear(Kind.REQUEST, 0, request_bytes=2 * PULL)
    nic.run_to(20 * US_PS)
    assert nic.grants[2] == (10 * US_PS, 0, PULL)


def test_for_a_narrow_core_the_pacer_slows_down_by_cuts_and_marks() -> None:
    """Ten packets: two cut, one of them at the last hop, and two marked of the eight that were whole."""
    nic = ReceivingNic("rccc", 1, oversubscription=4.0)
    for ecn in (1, 1, 0, 0, 0, 0, 0, 0):
        nic.hear(Kind.DATA, 0, ecn=ecn)
    nic.hear(Kind.TRIM, 0)
    nic.hear(Kind.TRIM, 0, last_hop=1)
    assert nic.shared.interval_ends_ps == 18 * US_PS
    nic.run_to(18 * US_PS)
    nic.hear(Kind.DATA, 0, ecn=1)
    assert nic.shared.marked_part == 0.5 * 2 / 8
    assert nic.shared.rate == pytest.approx(1 - 1 / 10)  # 0.125 is no more than 0.3
    nic.run_to(36 * US_PS)
    nic.hear(Kind.DATA, 0)
    assert nic.shared.marked_part == 0.5 * 0.125 + 0.5
    assert nic.shared.rate == pytest.approx(0.9 * (1 - 0.5 * (0.5625 - 0.3)))
    nic.run_to((36 + 4 * 18) * US_PS)
    nic.hear(Kind.DATA, 0)  # G is 0.28, 0.14 ... of intervals without marks: 1 + 2 + 4 + 8 hundredths
    assert nic.shared.rate == pytest.approx(0.9 * (1 - 0.5 * 0.2625) + 0.15)
    nic.run_to(10_000 * US_PS)
    nic.hear(Kind.DATA, 0)
    assert nic.shared.rate == 1.0


def test_a_slower_pacer_takes_longer() -> None:
    nic = ReceivingNic("rccc", 1, oversubscription=90.0, idle_bdps=0)
    for _ in range(2):
        nic.hear(Kind.TRIM, 0, request_bytes=10 * PULL)
    nic.run_to(18 * US_PS)
    nic.hear(Kind.DATA, 0, request_bytes=30 * PULL)
    assert nic.shared.rate == 0.01  # all were cut: 0.9 / 90
    nic.run_to(1_000 * US_PS)
    gaps = [later[0] - earlier[0] for earlier, later in itertools.pairwise(nic.grants)]
    assert gaps[0] == pacer_ps(PULL)
    assert gaps[-1] == pytest.approx(100 * pacer_ps(PULL), rel=1e-4)


# Networks


@pytest.mark.parametrize("mtu_bytes", [1_000, MTU_BYTES])
@pytest.mark.parametrize("size_bytes", [60_000, 160_000, 200_000, 210_000, 220_000, 230_000, 250_000, 300_000, 500_000])
def test_a_lone_flow_takes_its_ideal_time(size_bytes: int, mtu_bytes: int) -> None:
    transport = UET.model_copy(update={"mtu_bytes": mtu_bytes})
    fabric, messages = star(2), incast(1, size_bytes)
    without = both(plan(fabric, messages, "none", transport=transport))
    outcome = both(plan(fabric, messages, "rccc", transport=transport))
    least_ps, took_ps = (int(run.messages["acked_at_ps"][0]) for run in (without, outcome))
    assert took_ps < 1.02 * least_ps
    assert outcome.counters["end_ps"] < took_ps + 18 * US_PS  # a window in advance, at the rate of the link


def test_a_pacer_faster_than_the_link_ends_with_its_flow() -> None:
    """Packets with 24 B more than the pacer knows: credit waits at the sender, and each packet asks for one more."""
    transport = UET.model_copy(update={"mtu_bytes": 1_000, "data_overhead_bytes": 108})
    outcome = both(plan(star(2), incast(1, 4_000_000), "rccc", transport=transport))
    took_ps = int(outcome.messages["acked_at_ps"][0])
    assert outcome.counters["end_ps"] < took_ps + 18 * US_PS


def ideal_ps(senders: int, size_bytes: int) -> int:
    """Time of all packets on the receiver's link."""
    wire_bytes = size_bytes + -(-size_bytes // MTU_BYTES) * HEADER_BYTES
    return senders * wire_bytes * 8 * 10**12 // RATE_BPS


def test_an_incast_takes_the_time_of_the_link_and_a_round_trip() -> None:
    outcome = both(plan(star(9), incast(8, 400_000), "rccc"))
    took_ps = int(outcome.messages["acked_at_ps"].max())
    assert ideal_ps(8, 400_000) + 11 * US_PS < took_ps < 1.03 * ideal_ps(8, 400_000) + 12 * US_PS
    assert outcome.counters["trims"] > 0
    assert outcome.counters["timeouts"] == 0


def test_senders_get_equal_shares() -> None:
    """Long flows of four senders, of which one begins 100 us late: in the last half each has the same."""
    messages = [
        Message(source=source, destination=4, size_bytes=40_860, at_ps=(source == 3) * 100 * US_PS)
        for source in range(4)
        for _ in range(60)
    ]
    outcome = both(plan(star(5), messages, "rccc", until_ps=500 * US_PS))
    late = outcome.messages[outcome.messages["delivered_at_ps"] > 250 * US_PS]
    shares = [int(late["size_bytes"][late["source"] == source].sum()) for source in range(4)]
    assert sum(shares) ** 2 / (4 * sum(share**2 for share in shares)) > 0.99
    assert sum(shares) > 0.93 * RATE_BPS * 250e-6 / 8
