"""What a policy may ask of the hosts at both ends, to the picosecond and to the byte, in both engines.

Each number is worked out here from docs/models/packet-engine.md. Two hosts, one link of 400 Gb/s and 500 ns; the first
packet of a message has 16 bytes more than the others.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, packet_input_of, pair, sends

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.spec.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.engine.outcome import Outcome

pytestmark = pytest.mark.sanitize

FIRST_BYTES = 4096 + 62 + 16 + 20  # on the wire, with what follows a frame
NEXT_BYTES = 4096 + 62 + 20
REQUEST_PS = (66 + 20) * BYTE_PS + DELAY_PS  # and a CREDIT, back

CONTROL = """\
from weftwork.policies.interface import OFF, CongestionControl, Kind, ReceiverState, SenderState, Signal
class Params: ...
class State(SenderState):
    allowed_bytes: int
class Receiver(ReceiverState):
    told: int
class Shared:
    told: int
def step(params: Params, state: State, signal: Signal) -> None:
{step}
def receive(params: Params, state: Receiver, shared: Shared, signal: Signal) -> None:
{receive}
PLUGIN = CongestionControl(params=Params, state=State, step=step, signals=frozenset(Kind), source="none",
                           receiver_state=Receiver, receive=receive, shared_state=Shared{more})
"""
PATH = """\
from weftwork.policies.interface import Kind, PathSelection, PathState, Signal
class Params: ...
class State(PathState):
    home: int
def step(params: Params, state: State, signal: Signal) -> None:
{step}
PLUGIN = PathSelection(params=Params, state=State, step=step, signals=frozenset({{Kind.START, Kind.RESUME}}),
                       reorders="on-move", source="none")
"""
REQUESTS = """\
if signal.kind == Kind.START:
    state.window_bytes = 0.0
    state.request_bytes = signal.backlog_bytes
    state.send_request = 1
elif signal.kind == Kind.CREDIT:
    state.allowed_bytes += signal.bytes
    state.window_bytes = float(state.allowed_bytes)
elif signal.kind == Kind.ACK:
    state.allowed_bytes -= signal.bytes
    state.window_bytes = float(state.allowed_bytes)
"""
GRANTS = """\
if signal.kind == Kind.REQUEST:
    state.credit_bytes = signal.request_bytes
    state.timer_at_ps[0] = signal.now_ps + 2_000_000
elif signal.kind == Kind.TIMER:
    state.send_credit = 1
"""


def ran(
    folder: Path,
    step: str,
    *packets: tuple[int, int],
    receive: str = "pass",
    more: str = "",
    path: str = "",
    loss: float = 0.0,
    **others: Any,
) -> Outcome:
    """Messages of so many packets, each at its instant, under a control (and a path selection) of these lines."""
    file, path_file = folder / "control.py", folder / "path.py"
    file.write_text(
        CONTROL.format(step=indent(step, "    "), receive=indent(receive, "    "), more=more), encoding="utf-8"
    )
    if path:
        path_file.write_text(PATH.format(step=indent(path, "    ")), encoding="utf-8")
        others["path_selection"] = str(path_file)
    messages = [Message(source=0, destination=1, size_bytes=count * 4096, at_ps=at_ps) for at_ps, count in packets]
    return both(packet_input_of(pair(loss=loss), sends(2, messages), congestion_control=str(file), **others))


def delivered_ps(outcome: Outcome) -> list[int]:
    return [int(at_ps) for at_ps in outcome.messages["delivered_at_ps"]]


# Requests and credit


def test_a_request_goes_there_a_credit_comes_back_and_then_data(tmp_path: Path) -> None:
    outcome = ran(tmp_path, REQUESTS, (0, 2), receive=GRANTS, more=', needs=frozenset({"request"})')
    start_ps = 2 * REQUEST_PS
    data_bytes = FIRST_BYTES + 4 + NEXT_BYTES + 4  # the requests in their headers
    assert delivered_ps(outcome) == [start_ps + data_bytes * BYTE_PS + DELAY_PS]
    assert (outcome.counters["requests_sent"], outcome.counters["credits_sent"]) == (1, 2)
    assert outcome.ports["bytes"].tolist() == [66 + data_bytes - 2 * 20, 2 * 66 + 2 * 66]  # two CREDITs and two ACKs


def test_credit_that_is_lost_comes_with_the_credit_that_is_sent_again(tmp_path: Path) -> None:
    faults = [Fault(at_ps=600_000, event=event, link=0) for event in ("down", "up")]
    outcome = ran(tmp_path, REQUESTS, (0, 1), receive=GRANTS, faults=faults)
    again_ps = REQUEST_PS + 2 * US_PS
    assert delivered_ps(outcome) == [again_ps + REQUEST_PS + FIRST_BYTES * BYTE_PS + DELAY_PS]
    assert outcome.counters["drop_link_down"] == 1


def test_credit_that_is_told_again_is_no_new_credit(tmp_path: Path) -> None:
    # One packet is granted for a message of two: the second CREDIT tells the same, and the other packet stays.
    receive = GRANTS.replace("signal.request_bytes", "4_096")
    outcome = ran(tmp_path, REQUESTS, (0, 2), receive=receive, until_ps=100 * US_PS)
    assert (outcome.counters["credits_sent"], outcome.counters["data_sent"]) == (2, 1)


def test_a_receiver_hears_the_request_of_each_packet(tmp_path: Path) -> None:
    # The second packet asks for 4,096 bytes and the third for none: a CREDIT for each of the first two.
    receive = "state.credit_bytes += signal.request_bytes"
    outcome = ran(tmp_path, "state.request_bytes = signal.backlog_bytes", (0, 3), receive=receive)
    assert outcome.counters["credits_sent"] == 2


# Pacing


def test_a_segment_leaves_back_to_back_and_the_next_waits_for_all_of_it(tmp_path: Path) -> None:
    step = f"state.rate_bps = 200e9\nstate.segment_bytes = {3 * NEXT_BYTES}"
    outcome = ran(tmp_path, step, (0, 4))
    segment_ps = (FIRST_BYTES + 2 * NEXT_BYTES) * 2 * BYTE_PS
    assert delivered_ps(outcome) == [segment_ps + NEXT_BYTES * BYTE_PS + DELAY_PS]
    step = f"state.rate_bps = 200e9\nstate.segment_bytes = {FIRST_BYTES + 2 * NEXT_BYTES + 1}"
    outcome = ran(tmp_path, step, (0, 4))  # one byte is missing: the fourth follows at once
    assert delivered_ps(outcome) == [(FIRST_BYTES + 3 * NEXT_BYTES) * BYTE_PS + DELAY_PS]


@pytest.mark.parametrize(("more", "second_ps"), [(", moves_departures=True", US_PS), ("", FIRST_BYTES * 2_000)])
def test_a_departure_moves_with_the_rate_where_the_control_says_so(tmp_path: Path, more: str, second_ps: int) -> None:
    step = f"""\
if signal.kind == Kind.START:
    state.rate_bps = 4e9
    state.timer_at_ps[0] = 1_000_000
elif signal.kind == Kind.TIMER:
    state.rate_bps = {RATE_BPS}.0
"""
    outcome = ran(tmp_path, step, (0, 2), more=more)
    assert delivered_ps(outcome) == [second_ps + NEXT_BYTES * BYTE_PS + DELAY_PS]


# Timeouts


@pytest.mark.parametrize(("own_ps", "low_ps", "timeouts"), [(20 * US_PS, 30 * US_PS, 4), (0, 30 * US_PS, 3), (0, 0, 1)])
def test_the_policys_own_timeout_comes_before_the_one_for_few_packets_and_that_before_the_usual_one(
    tmp_path: Path, own_ps: int, low_ps: int, timeouts: int
) -> None:
    transport = Transport(timeout_low_ps=low_ps, timeout_low_packets=1, retransmission_timeout_ps=60 * US_PS)
    outcome = ran(tmp_path, f"state.timeout_ps = {own_ps}", (0, 1), loss=1.0, transport=transport, until_ps=100 * US_PS)
    assert outcome.counters["timeouts"] == timeouts


# Echoes


def test_what_is_echoed_is_paid_for_there_and_back(tmp_path: Path) -> None:
    for more, there_bytes, back_bytes in (
        ("", 0, 0),
        (', needs=frozenset({"rtt"})', 4, 4),
        (', needs=frozenset({"entropy"})', 0, 2),
        (', needs=frozenset({"rtt", "entropy"})', 4, 6),
    ):
        outcome = ran(tmp_path, "pass", (0, 1), more=more)
        assert outcome.ports["bytes"].tolist() == [4096 + 62 + 16 + there_bytes, 66 + back_bytes]


@pytest.mark.parametrize(("more", "is_told"), [(', needs=frozenset({"rtt"})', True), ("", False)])
def test_a_round_trip_is_told_to_whom_asks_for_it(tmp_path: Path, more: str, *, is_told: bool) -> None:
    # The first ACK opens the window for a second packet only where it tells the round trip to the picosecond.
    extra_bytes = 4 if is_told else 0
    there_ps = (FIRST_BYTES + extra_bytes) * BYTE_PS + DELAY_PS
    back_ps = (66 + 20 + extra_bytes) * BYTE_PS + DELAY_PS
    step = f"""\
if signal.kind == Kind.START:
    state.window_bytes = 4096.0
elif signal.kind == Kind.ACK:
    state.window_bytes = 0.0
    if signal.rtt_ps == {there_ps + back_ps}:
        state.window_bytes = 4096.0
"""
    outcome = ran(tmp_path, step, (0, 2), more=more, until_ps=100 * US_PS)
    assert outcome.counters["data_sent"] == 1 + is_told


# What an ACK tells


def test_a_control_hears_of_complete_messages_and_of_what_has_arrived(tmp_path: Path) -> None:
    # The window stays shut after the first ACK unless it tells of one message, and of its bytes.
    step = """\
if signal.kind == Kind.START:
    state.window_bytes = 8192.0
elif signal.kind == Kind.ACK:
    state.window_bytes = 8192.0 * signal.completed_messages * (signal.arrived_bytes // 4096)
"""
    outcome = ran(tmp_path, step, (0, 2), (0, 1), (0, 2), until_ps=100 * US_PS)
    # The ACK of the first packet completes nothing and shuts the window; that of the second opens it.
    assert (outcome.counters["data_sent"], outcome.complete) == (5, True)


# Path selection


def test_a_path_selection_hears_of_start_timers_and_resume(tmp_path: Path) -> None:
    path = """\
if signal.kind == Kind.START:
    state.timer_at_ps[0] = signal.now_ps + 1_000_000
elif signal.kind == Kind.TIMER:
    state.home = 1
elif signal.kind == Kind.RESUME:
    state.home = 2
else:
    state.entropy = state.home
"""
    step = f"""\
if signal.kind == Kind.SEND:
    state.rate_bps = {RATE_BPS}.0 / (1 + signal.entropy)
"""
    outcome = ran(tmp_path, step, (0, 14), (50 * US_PS, 2), path=path)
    # Packets 0 to 11 start before the timer; from packet 12 on each waits for the one before at half the rate.
    twelfth_ps = (FIRST_BYTES + 11 * NEXT_BYTES) * BYTE_PS
    assert twelfth_ps - NEXT_BYTES * BYTE_PS < US_PS < twelfth_ps
    last_ps = twelfth_ps + 2 * NEXT_BYTES * BYTE_PS
    resumed_ps = 50 * US_PS + 3 * FIRST_BYTES * BYTE_PS
    assert delivered_ps(outcome) == [at_ps + NEXT_BYTES * BYTE_PS + DELAY_PS for at_ps in (last_ps, resumed_ps)]
