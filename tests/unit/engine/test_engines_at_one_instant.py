"""Both engines at the instants and thresholds where a rule of the page decides, worked out on paper.

Each test is red if one operator or one place in the order is changed in either engine.
"""

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, job_of, packet_input_of, pair, sends, star

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.spec.device import Nic, Switch
from weftwork.spec.job import At, Compute, Operation, Peer, Receive, Send, Size, Wait
from weftwork.spec.transport import Transport

FIRST_BYTES = 4096 + 62 + 16
NEXT_BYTES = 4096 + 62
FULL_PS = (FIRST_BYTES + 20) * BYTE_PS
NEXT_PS = (NEXT_BYTES + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
SILENCED = str(Path(__file__).parents[2] / "policies" / "silenced.py")

pytestmark = pytest.mark.sanitize


def test_a_stream_runs_before_the_host_interface() -> None:
    # At `at_ps` host 1 handles a packet, which asks for an ACK, and posts one of its own, which takes the idle port.
    at_ps = FULL_PS + DELAY_PS + US_PS
    messages = [
        Message(source=0, destination=1, size_bytes=4096),
        Message(source=1, destination=0, size_bytes=4096, at_ps=at_ps),
    ]
    outcome = both(packet_input_of(pair(nic=Nic(pcie_latency_ps=US_PS)), sends(2, messages)))
    assert outcome.messages["delivered_at_ps"].tolist() == [at_ps, at_ps + FULL_PS + DELAY_PS + US_PS]
    assert outcome.messages["acked_at_ps"][0] == at_ps + FULL_PS + ACK_PS + DELAY_PS


def test_the_retransmission_timer_comes_before_those_of_congestion_control() -> None:
    # The first packet is lost; both timers are due 10 us after its start. TIMEOUT switches the other one off.
    blink = [Fault(at_ps=1, event="down", link=0), Fault(at_ps=2, event="up", link=0)]
    engine_input = packet_input_of(
        pair(),
        sends(2, [Message(source=0, destination=1, size_bytes=4096)]),
        transport=Transport(retransmission_timeout_ps=10 * US_PS),
        congestion_control=SILENCED,
        faults=blink,
    )
    outcome = both(engine_input)
    assert outcome.counters["timeouts"] == 1
    assert outcome.messages["delivered_at_ps"].tolist() == [10 * US_PS + FULL_PS + DELAY_PS]


def test_a_host_resumes_when_its_buffer_is_down_at_xon_exactly() -> None:
    # Every packet stays 10 us. The second one crosses Xoff; when it leaves, the third is left, which is Xon.
    nic = Nic(pcie_latency_ps=10 * US_PS, xoff_bytes=FIRST_BYTES, xon_bytes=NEXT_BYTES)
    outcome = both(packet_input_of(pair(nic=nic), sends(2, [Message(source=0, destination=1, size_bytes=3 * 4096)])))
    assert outcome.ports["pauses_sent"].tolist() == [0, 1]
    assert outcome.ports["resumes_sent"].tolist() == [0, 1]
    assert outcome.ports["paused_ps"].tolist() == [10 * US_PS, 0]


@pytest.mark.parametrize(
    "rule",
    [
        # One packet left is the reserve; the offset keeps the other rule out of it.
        pytest.param({"reserve_bytes": NEXT_BYTES, "alpha": 0.001, "xon_offset_bytes": 200_000}, id="reserve"),
        # used = S - used - offset for one packet: 4,158 = 10,000 - 4,158 - 1,684.
        pytest.param({"reserve_bytes": 0, "alpha": 1.0, "xon_offset_bytes": 10_000 - 2 * NEXT_BYTES}, id="offset"),
    ],
)
def test_a_switch_resumes_at_its_threshold_exactly(rule: dict[str, float]) -> None:
    # Four packets towards a link at a quarter of the rate. The third to arrive crosses Xoff; the third to leave leaves
    # one packet behind.
    headroom, shared = 10_000, 100_000 if rule["reserve_bytes"] else 10_000
    buffer = 2 * 2 * rule["reserve_bytes"] + 2 * headroom + shared
    switch = Switch.model_validate(
        {"forwarding_latency_ps": 0, "headroom_bytes": headroom, "buffer_bytes": buffer} | rule
    )
    fabric = star(2, switch=switch, rates_bps=[RATE_BPS, RATE_BPS // 4])
    outcome = both(packet_input_of(fabric, sends(2, [Message(source=0, destination=1, size_bytes=4 * 4096)])))
    towards_sender = 2
    assert outcome.ports["pauses_sent"][towards_sender] == 1
    assert outcome.ports["paused_ps"][0] == 4 * FULL_PS + 4 * NEXT_PS - 2 * NEXT_PS
    assert outcome.ports["drops"].sum() == 0


def test_a_flow_control_frame_that_waits_vanishes_with_its_link() -> None:
    # Host 1 asks for a pause while it sends; the link blinks before the frame has had its turn.
    asked_ps = FULL_PS + NEXT_PS + DELAY_PS
    messages = [
        Message(source=0, destination=1, size_bytes=2 * 4096),
        Message(source=1, destination=0, size_bytes=4096, at_ps=asked_ps - 1_000),
    ]
    nic = Nic(pcie_latency_ps=10 * US_PS, xoff_bytes=FIRST_BYTES, xon_bytes=0)
    engine_input = packet_input_of(
        pair(nic=nic),
        sends(2, messages),
        transport=Transport(retransmission_timeout_ps=MS_PS),
        faults=[Fault(at_ps=asked_ps + 1, event="down", link=0), Fault(at_ps=asked_ps + 2, event="up", link=0)],
    )
    outcome = both(engine_input)
    assert outcome.counters["drop_link_down"] == 1  # the packet of host 1; those of host 0 had arrived
    assert outcome.ports["pauses_sent"].sum() == 0
    assert outcome.ports["resumes_sent"].sum() == 0
    assert outcome.ports["paused_ps"].sum() == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_a_message_posted_without_credit_asks_for_it_by_and_by() -> None:
    # Nothing is outstanding when the second message is posted at 20 us: it probes at 30, 40 .. 100 us.
    def send() -> Send:
        return Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4096))

    receive = Receive(peer=Peer(rule="rank", shift=0))
    sender: list[Operation] = [send(), Wait(), At(at_ps=20 * US_PS), send(), Wait()]
    receiver: list[Operation] = [Compute(duration_ps=100 * US_PS), receive, receive, Wait()]
    transport = Transport(end_to_end_credits=1, retransmission_timeout_ps=10 * US_PS, retry_limit=0)
    outcome = both(packet_input_of(pair(), job_of([[sender], [receiver]]), transport=transport))
    assert outcome.counters["probes_sent"] == 8
    assert outcome.messages["delivered_at_ps"][1] == 100 * US_PS + ACK_PS + DELAY_PS + FULL_PS + DELAY_PS


def test_a_packet_that_had_to_wait_for_credit_has_the_whole_timeout() -> None:
    # The credit arrives one picosecond before the next probe was due; what is left of that time is not the packet's.
    acked_ps = FULL_PS + DELAY_PS + ACK_PS + DELAY_PS
    credit_ps = acked_ps + 10 * US_PS - 1
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=4096))
    receive = Receive(peer=Peer(rule="rank", shift=0))
    busy = Compute(duration_ps=credit_ps - ACK_PS - DELAY_PS)
    job = job_of([[[send, send, Wait()]], [[busy, receive, receive, Wait()]]])
    transport = Transport(end_to_end_credits=1, retransmission_timeout_ps=10 * US_PS, retry_limit=0)
    outcome = both(packet_input_of(pair(), job, transport=transport))
    assert outcome.counters["queue_pair_errors"] == outcome.counters["probes_sent"] == 0
    assert outcome.messages["acked_at_ps"].tolist() == [acked_ps, credit_ps + acked_ps]
