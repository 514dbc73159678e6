"""EQDS: credit, requests and the pacer's three classes, worked out by hand; then small networks on both engines."""

import itertools

import pytest
from helpers.both import both
from helpers.credits import HEADER_BYTES, MTU_BYTES, RATE_BPS, UET, ReceivingNic, Sender, incast, pacer_ps, plan, star
from helpers.tiny import Message

from weftwork.base.clock import US_PS
from weftwork.policies.interface import OFF, Kind

PACKET = 4_096  # payload: 8 quanta, or a pull
WINDOW = 225_000  # 1.5 x 100 Gb/s x 12 us


# The sender


@pytest.mark.parametrize(("window", "credit"), [({}, WINDOW), ({"window_packets": 50}, 50 * PACKET)])
def test_it_begins_with_speculative_credit_for_whole_packets(window: dict[str, int], credit: int) -> None:
    sender = Sender("eqds", backlog_bytes=1_000 * PACKET, **window)
    assert sender.state.speculative_bytes == credit
    assert sender.may_send == credit // PACKET
    sender.sends(credit // PACKET)
    assert sender.may_send == 0
    sender.signal.inflight_bytes = 0
    sender.tell(Kind.TIMER)  # with nothing in flight a NIC would send for any credit
    assert sender.state.window_bytes == 0


def test_the_last_packet_needs_credit_for_its_own_size() -> None:
    sender = Sender("eqds", backlog_bytes=100 * PACKET)
    sender.sends()
    sender.arrives()
    sender.tell(Kind.CREDIT, bytes=512, backlog_bytes=100)
    assert sender.state.window_bytes == 512


def test_each_packet_asks_for_what_the_backlog_and_the_window_leave() -> None:
    """After a packet the credit is 220,904 B; a window less that is a packet, in quanta of 512 B."""
    sender = Sender("eqds", backlog_bytes=1_000 * PACKET)
    sender.sends()
    assert sender.state.request_bytes == PACKET
    sender.arrives()
    assert sender.state.request_bytes == -(-WINDOW // 512) * 512


@pytest.mark.parametrize(("news", "left"), [(Kind.ACK, 0), (Kind.TRIM, 0), (Kind.CREDIT, WINDOW - 2 * PACKET)])
def test_acknowledgements_end_speculation_and_pulls_do_not(news: Kind, left: int) -> None:
    sender = Sender("eqds", backlog_bytes=100 * PACKET)
    sender.sends(2)
    sender.tell(news, bytes=PACKET if news == Kind.CREDIT else 0)
    assert sender.state.speculative_bytes == left
    assert sender.state.credit_bytes == (PACKET if news == Kind.CREDIT else 0)


def test_granted_credit_is_spent_first() -> None:
    sender = Sender("eqds", backlog_bytes=100 * PACKET)
    sender.tell(Kind.CREDIT, bytes=PACKET + 1_000)
    sender.sends()
    assert (sender.state.credit_bytes, sender.state.speculative_bytes) == (1_000, WINDOW)
    sender.sends()
    assert (sender.state.credit_bytes, sender.state.speculative_bytes) == (0, WINDOW - PACKET + 1_000)


def test_a_cut_packet_is_asked_for_again() -> None:
    sender = Sender("eqds", backlog_bytes=3 * PACKET)
    sender.sends(3)
    sender.is_cut()
    assert sender.state.request_bytes == PACKET
    sender.tell(Kind.CREDIT, bytes=PACKET)
    sender.sends(again=True)
    assert sender.state.request_bytes == PACKET  # what was granted


def test_without_credit_and_news_it_asks_and_then_sends_one_packet_unasked() -> None:
    sender = Sender("eqds", backlog_bytes=100 * PACKET)
    sender.sends(54)
    sender.arrives(0)
    sender.times_out()
    assert sender.state.send_request == 1
    for ask in range(1, 4):
        at_ps = sender.state.timer_at_ps[0]
        assert at_ps == ask * 100 * US_PS
        assert sender.may_send == 0
        sender.state.timer_at_ps[0] = OFF
        sender.tell(Kind.TIMER, now_ps=at_ps)
    assert sender.may_send == 1


@pytest.mark.parametrize(("backlog", "sent", "asks"), [(54, 36, 1), (54, 54, 0), (55, 36, 0)])
def test_the_first_ack_sends_a_request_where_no_packet_has_asked(backlog: int, sent: int, asks: int) -> None:
    """The window is 54.9 packets: those of a message of 54 ask for nothing, those of a message of 55 for a quantum."""
    sender = Sender("eqds", backlog_bytes=backlog * PACKET)
    sender.sends(sent)
    sender.arrives()
    assert sender.state.send_request == asks
    wanted = min((backlog - sent) * PACKET, WINDOW)
    assert sender.state.request_bytes == -(-wanted // 512) * 512
    sender.state.send_request = 0
    sender.arrives()
    assert sender.state.send_request == 0


def test_after_a_cut_the_packet_that_comes_again_asks() -> None:
    sender = Sender("eqds", backlog_bytes=54 * PACKET)
    sender.sends(36)
    sender.is_cut()
    assert sender.state.send_request == 0
    assert sender.state.request_bytes == 19 * PACKET


def test_after_idle_it_begins_again_with_no_more_than_a_window() -> None:
    sender = Sender("eqds", backlog_bytes=PACKET)
    sender.sends()
    sender.arrives()
    sender.tell(Kind.CREDIT, bytes=100_000)
    sender.tell(Kind.RESUME, backlog_bytes=100 * PACKET)
    assert (sender.state.credit_bytes, sender.state.speculative_bytes) == (100_000, WINDOW - 100_000)


# The receiver


def test_a_turn_grants_a_pull_and_lasts_as_long_as_its_packet() -> None:
    nic = ReceivingNic("eqds", 1)
    nic.hear(Kind.DATA, 0, request_bytes=2 * PACKET + 512)
    nic.run_to(2 * pacer_ps(PACKET))
    assert nic.grants == [(turn * pacer_ps(PACKET), 0, PACKET) for turn in range(3)]


def test_a_window_is_granted_in_advance_and_no_more() -> None:
    nic = ReceivingNic("eqds", 1)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)
    nic.run_to(1_000 * US_PS)
    assert len(nic.grants) == 1 + 55  # 225,000 B are 54.9 pulls


def test_cut_packets_come_before_credit_that_is_asked_for_and_that_before_credit_in_advance() -> None:
    nic = ReceivingNic("eqds", 3)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)  # idle after its first turn
    nic.run_to(pacer_ps(PACKET))
    nic.hear(Kind.DATA, 1, request_bytes=4 * PACKET)
    nic.hear(Kind.TRIM, 2)
    nic.hear(Kind.TRIM, 2)
    nic.run_to(20 * pacer_ps(PACKET))
    assert [pair for _, pair, _ in nic.grants[:8]] == [0, 0, 2, 2, 1, 1, 1, 1]
    assert {pair for _, pair, _ in nic.grants[8:]} == {0, 1, 2}
    instants = [at_ps for at_ps, _, _ in nic.grants]
    assert all(b - a >= pacer_ps(PACKET) for a, b in itertools.pairwise(instants))


def test_queue_pairs_that_want_credit_take_turns() -> None:
    nic = ReceivingNic("eqds", 3)
    for pair in range(3):
        nic.hear(Kind.DATA, pair, request_bytes=20 * PACKET)
    nic.run_to(11 * pacer_ps(PACKET))
    assert [pair for _, pair, _ in nic.grants] == [0, 1, 2] * 4


def test_a_request_gets_the_last_credit_again() -> None:
    nic = ReceivingNic("eqds", 1)
    nic.hear(Kind.DATA, 0, request_bytes=PACKET)
    nic.run_to(1_000 * US_PS)
    nic.hear(Kind.REQUEST, 0, request_bytes=PACKET)
    assert nic.grants[-1] == (1_000 * US_PS, 0, 0)


# Networks


@pytest.mark.parametrize("mtu_bytes", [1_000, MTU_BYTES])
@pytest.mark.parametrize("size_bytes", [60_000, 140_000, 160_000, 180_000, 200_000, 210_000, 225_000, 250_000, 500_000])
def test_a_lone_flow_waits_for_credit_no_longer_than_a_round_trip(size_bytes: int, mtu_bytes: int) -> None:
    """What the first window leaves unsent at the first ACK has to be asked for, which takes a round trip."""
    transport = UET.model_copy(update={"mtu_bytes": mtu_bytes})
    fabric, messages = star(2), incast(1, size_bytes)
    ideal = both(plan(fabric, messages, "none", transport=transport))
    outcome = both(plan(fabric, messages, "eqds", transport=transport))
    ideal_ps, took_ps = (int(run.messages["acked_at_ps"][0]) for run in (ideal, outcome))
    assert took_ps < 1.01 * ideal_ps + 12 * US_PS
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["end_ps"] < took_ps + 12 * US_PS  # credit in advance: half a window after the last data


def test_an_incast_takes_the_time_of_the_link_and_a_round_trip() -> None:
    outcome = both(plan(star(9), incast(8, 100 * MTU_BYTES), "eqds"))
    ideal_ps = 800 * (MTU_BYTES + HEADER_BYTES) * 8 * 10**12 // RATE_BPS
    took_ps = int(outcome.messages["acked_at_ps"].max())
    assert ideal_ps + 11 * US_PS < took_ps < 1.03 * ideal_ps + 12 * US_PS
    assert outcome.counters["trims"] > 0
    assert outcome.counters["timeouts"] == 0


def test_senders_get_equal_shares() -> None:
    messages = [
        Message(source=source, destination=4, size_bytes=40_860, at_ps=(source == 3) * 100 * US_PS)
        for source in range(4)
        for _ in range(60)
    ]
    outcome = both(plan(star(5), messages, "eqds", until_ps=500 * US_PS))
    late = outcome.messages[outcome.messages["delivered_at_ps"] > 250 * US_PS]
    shares = [int(late["size_bytes"][late["source"] == source].sum()) for source in range(4)]
    assert sum(shares) ** 2 / (4 * sum(share**2 for share in shares)) > 0.99
    assert sum(shares) > 0.93 * RATE_BPS * 250e-6 / 8
