"""NDP: pulls, requests and the pacer's turns, worked out by hand; then small networks on both engines."""

import pytest
from helpers.both import both
from helpers.credits import HEADER_BYTES, MTU_BYTES, RATE_BPS, ReceivingNic, Sender, incast, pacer_ps, plan, star
from helpers.tiny import Message

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.interface import OFF, Kind

PACKET = 4_096  # payload
FIRST = 74  # packets: 2 x 100 Gb/s x 12 us are 73.2


# The sender


@pytest.mark.parametrize(
    ("first", "packets"), [({}, FIRST), ({"initial_bdps": 1.0}, 37), ({"initial_packets": 15}, 15)]
)
def test_the_first_window_is_bandwidth_delay_products_or_packets(first: dict[str, float], packets: int) -> None:
    sender = Sender("ndp", backlog_bytes=1_000 * PACKET, **first)
    assert sender.may_send == packets
    sender.sends(packets)
    assert sender.may_send == 0


def test_acknowledgements_allow_nothing_and_a_pull_allows_a_packet() -> None:
    sender = Sender("ndp", backlog_bytes=1_000 * PACKET)
    sender.sends(FIRST)
    sender.arrives(10)
    assert sender.may_send == 0
    sender.tell(Kind.CREDIT, bytes=PACKET)
    assert sender.may_send == 1
    sender.tell(Kind.CREDIT, bytes=3 * PACKET)  # two pulls were lost before
    assert sender.may_send == 4


def test_each_packet_tells_all_pulls_that_will_ever_be_wanted() -> None:
    sender = Sender("ndp", backlog_bytes=100 * PACKET)
    sender.sends()
    assert sender.state.request_bytes == (100 - FIRST) * PACKET
    sender.is_cut()  # the receiver knows that
    assert sender.state.request_bytes == (100 - FIRST) * PACKET
    sender.sends(3)
    sender.signal.inflight_bytes -= PACKET
    sender.tell(Kind.ACK, lost_bytes=PACKET)  # the receiver does not know what was overtaken
    assert sender.state.request_bytes == (100 - FIRST + 1) * PACKET


def test_a_message_within_the_first_window_wants_no_pull() -> None:
    sender = Sender("ndp", backlog_bytes=10 * PACKET)
    sender.sends(10)
    assert sender.state.request_bytes == 0


def test_after_a_timeout_one_packet_goes_unasked_and_the_rest_is_asked_for() -> None:
    sender = Sender("ndp", backlog_bytes=FIRST * PACKET)
    sender.sends(FIRST)
    sender.times_out()
    assert sender.may_send == 1
    assert sender.state.request_bytes == (FIRST - 1) * PACKET


def test_a_sender_that_waits_in_vain_asks_and_then_sends_a_packet_unasked() -> None:
    sender = Sender("ndp", backlog_bytes=(FIRST + 10) * PACKET)
    sender.sends(FIRST)
    sender.arrives(FIRST)
    assert sender.state.send_request == 0  # pulls are on their way: it has told what it wants
    for ask in range(1, 4):
        at_ps = sender.state.timer_at_ps[0]
        assert at_ps == ask * 5 * MS_PS
        sender.state.timer_at_ps[0] = OFF
        assert sender.may_send == 0
        sender.tell(Kind.TIMER, now_ps=at_ps)
        assert sender.state.send_request == 1
    sender.state.timer_at_ps[0] = OFF
    sender.tell(Kind.TIMER)
    assert sender.may_send == 1


def test_a_message_that_comes_after_the_last_pull_is_asked_for_at_once() -> None:
    sender = Sender("ndp", backlog_bytes=FIRST * PACKET)
    sender.sends(FIRST)
    sender.arrives(FIRST)
    sender.tell(Kind.CREDIT, bytes=0, backlog_bytes=3 * PACKET)
    assert (sender.state.send_request, sender.state.request_bytes) == (1, 3 * PACKET)


# The receiver


def test_a_packet_whole_or_cut_earns_a_pull_at_the_pacers_time() -> None:
    nic = ReceivingNic("ndp", 1)
    for kind in (Kind.DATA, Kind.TRIM, Kind.DATA):
        nic.hear(kind, 0, request_bytes=10 * PACKET)
    nic.run_to(100 * US_PS)
    assert nic.grants == [(turn * pacer_ps(PACKET), 0, PACKET) for turn in range(3)]


def test_the_last_packets_earn_no_pull_but_for_those_that_were_cut() -> None:
    nic = ReceivingNic("ndp", 1)
    for _ in range(5):
        nic.hear(Kind.DATA, 0, request_bytes=2 * PACKET)
    nic.run_to(50 * US_PS)
    assert len(nic.grants) == 2
    nic.hear(Kind.TRIM, 0, request_bytes=2 * PACKET)
    nic.hear(Kind.DATA, 0, request_bytes=2 * PACKET)
    nic.run_to(100 * US_PS)
    assert len(nic.grants) == 3


def test_queue_pairs_take_turns_however_many_pulls_each_has() -> None:
    nic = ReceivingNic("ndp", 3)
    for pair, packets in ((0, 6), (1, 2), (2, 4)):
        for _ in range(packets):
            nic.hear(Kind.DATA, pair, request_bytes=100 * PACKET)
    nic.run_to(100 * US_PS)
    assert [pair for _, pair, _ in nic.grants] == [0, 1, 2, 0, 1, 2, 0, 2, 0, 2, 0, 0]
    assert [at_ps for at_ps, _, _ in nic.grants] == [turn * pacer_ps(PACKET) for turn in range(12)]


def test_a_request_gets_the_last_pull_again_and_a_first_window_at_most() -> None:
    nic = ReceivingNic("ndp", 1, initial_packets=3)
    nic.hear(Kind.REQUEST, 0, request_bytes=10 * PACKET)
    nic.run_to(100 * US_PS)
    assert [size for _, _, size in nic.grants] == [0, PACKET, PACKET, PACKET]


# Networks


def ideal_ps(packets: int) -> int:
    """Time of full packets on the receiver's link."""
    return packets * (MTU_BYTES + HEADER_BYTES) * 8 * 10**12 // RATE_BPS


def test_an_incast_takes_the_time_of_the_link_where_windows_alone_wait_for_timeouts() -> None:
    """Queues of 8 packets: almost all of the first windows is cut, and comes again after a round trip."""
    fabric = star(17, queue_bytes=33_200)
    outcome = both(plan(fabric, incast(16, 40 * MTU_BYTES), "ndp"))
    took_ps = int(outcome.messages["acked_at_ps"].max())
    assert outcome.counters["trims"] > 500
    assert outcome.counters["timeouts"] == 0
    assert outcome.counters["credits_sent"] == outcome.counters["trims"]  # the first windows hold whole messages
    assert ideal_ps(640) + 11 * US_PS < took_ps < ideal_ps(640) + 3 * 12 * US_PS
    uncut = plan(fabric, [], "none").transport.model_copy(update={"trim_bytes": 0})
    dropped = both(plan(fabric, incast(16, 40 * MTU_BYTES), "fixed-window", transport=uncut))
    assert dropped.messages["acked_at_ps"].max() > 20 * took_ps  # timeouts of 10 ms


def test_messages_that_come_one_by_one_need_no_timeout() -> None:
    messages = [Message(source=0, destination=1, size_bytes=5_000, at_ps=turn * 700_000) for turn in range(200)]
    outcome = both(plan(star(3, delay_ps=US_PS), messages, "ndp", initial_bdps=1.0))
    assert outcome.counters["requests_sent"] >= 1
    assert (outcome.messages["delivered_at_ps"] - outcome.messages["posted_at_ps"]).max() < MS_PS


def test_senders_get_equal_shares() -> None:
    messages = [
        Message(source=source, destination=4, size_bytes=40_860, at_ps=(source == 3) * 100 * US_PS)
        for source in range(4)
        for _ in range(60)
    ]
    outcome = both(plan(star(5), messages, "ndp", until_ps=500 * US_PS))
    late = outcome.messages[outcome.messages["delivered_at_ps"] > 250 * US_PS]
    shares = [int(late["size_bytes"][late["source"] == source].sum()) for source in range(4)]
    assert sum(shares) ** 2 / (4 * sum(share**2 for share in shares)) > 0.98
    assert sum(shares) > 0.9 * RATE_BPS * 250e-6 / 8
