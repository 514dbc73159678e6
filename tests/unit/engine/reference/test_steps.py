"""The policies of a sender, on a clock and a line that the test moves: what they hear, and what they may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.by_hand import (
    CONTROL_CLASS,
    FABRIC_BASE_RTT_PS,
    FLOW,
    FRAME_PS,
    MTU_BYTES,
    RATE_BPS,
    HandLine,
    HandPath,
    data,
)
from helpers.driven_sender import ACK, CNP, CREDIT, NAK, TIMEOUT_PS, Driven, drive

from weftwork.base.clock import US_PS
from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.packet import HopTelemetry, PacketKind
from weftwork.policies.interface import OFF, TIMERS, Kind

# What they are told


def test_a_control_is_told_of_a_start_of_every_packet_and_of_what_comes_back() -> None:
    driven = drive(MTU_BYTES, MTU_BYTES)
    driven.sends(2)
    driven.hears(CNP)
    driven.hears(CREDIT, credit_bytes=9)
    driven.hears(ACK, 2)
    assert driven.control.kinds() == ["START", "SEND", "SEND", "CNP", "CREDIT", "ACK"]
    driven.hears(CNP)  # an idle queue pair has nothing to slow down
    driven.hears(CREDIT, credit_bytes=10)
    driven.post(MTU_BYTES)
    assert driven.control.kinds() == ["CREDIT", "RESUME"]
    driven.sends(1)
    driven.clock.go_to(driven.sender.deadline_at_ps)
    driven.sends(1)
    driven.hears(NAK, 2)
    assert driven.control.kinds() == ["SEND", "TIMEOUT", "SEND", "NAK"]  # a NAK without news is no ACK


def test_a_control_is_told_only_of_what_it_asked_for_and_of_starts_and_timers() -> None:
    driven = drive()
    driven.sender.steps.control_signals = frozenset({Kind.START, Kind.TIMER})
    driven.post(MTU_BYTES)
    driven.sends(1)
    driven.hears(ACK, 1)
    assert driven.control.kinds() == ["START"]


def test_an_ack_tells_times_marks_and_telemetry_of_the_packet_that_it_answers() -> None:
    driven = drive(2 * MTU_BYTES)
    (packet, _) = driven.sends(2)
    packet.hop_count = 3  # of which one writes
    packet.hops.append(HopTelemetry(queue_bytes=11, tx_bytes=22, rate_bps=33, at_ps=44, port=55))
    driven.clock.go_to(9 * US_PS)
    driven.hears(ACK, 1, echo=packet, is_marked=True, host_delay_ps=2 * US_PS)
    told = driven.control.heard[-1]
    assert (told.rtt_ps, told.host_delay_ps, told.fabric_delay_ps) == (9 * US_PS, 2 * US_PS, 7 * US_PS)
    assert (told.bytes, told.seq, told.ecn, told.hops) == (MTU_BYTES, 1, 1, 3)
    assert (told.hop_queue_bytes[0], told.hop_tx_bytes[0]) == (11, 22)
    assert (told.hop_rate_bps[0], told.hop_at_ps[0], told.hop_port[0]) == (33, 44, 55)
    assert (told.inflight_bytes, told.backlog_bytes, told.next_seq) == (MTU_BYTES, 0, 2)
    assert (told.line_rate_bps, told.base_rtt_ps, told.mtu_bytes) == (RATE_BPS, 7 * US_PS, MTU_BYTES)
    assert told.fabric_base_rtt_ps == FABRIC_BASE_RTT_PS


def test_a_timer_of_a_control_fires_at_the_senders_place_and_is_off_while_idle() -> None:
    driven = drive()
    driven.control.on_step = lambda state, signal: state.timer_at_ps.__setitem__(1, signal.now_ps + US_PS)
    driven.post(MTU_BYTES)
    assert (US_PS, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 0, 0, 1)) in driven.clock.calls
    driven.clock.go_to(2 * US_PS)
    assert driven.control.kinds() == ["START", "TIMER", "TIMER"]
    driven.sends(1)
    driven.hears(ACK, 1)
    assert driven.sender.state.timer_at_ps == [OFF] * 4
    driven.control.kinds()
    driven.clock.go_to(10 * US_PS)
    assert driven.control.kinds() == []


@pytest.mark.parametrize(("per", "wanted"), [("packet", [1, 2, 3, 4]), ("message", [1, 1, 1, 2])])
def test_a_path_is_chosen_for_each_packet_or_for_each_message(per: str, wanted: list[int]) -> None:
    sent = drive(3 * MTU_BYTES, MTU_BYTES, path=HandPath(per)).sends(4)
    assert [packet.entropy for packet in sent] == wanted


def test_a_path_selection_is_told_of_its_start_and_of_answers_where_it_asks_for_them() -> None:
    path = HandPath("packet", frozenset({Kind.START, Kind.RESUME, Kind.ACK, Kind.NAK, Kind.TIMEOUT}))
    driven = drive(2 * MTU_BYTES, path=path)
    driven.sends(2)
    driven.hears(ACK, 1, echo=data(0, entropy=77))
    driven.hears(NAK, 1, echo=data(1, entropy=78, hop_count=5))
    driven.sends(1)
    driven.clock.go_to(driven.sender.deadline_at_ps)
    driven.hears(ACK, 2)
    driven.post(MTU_BYTES)
    told = [(Kind(signal.kind).name, signal.seq, signal.entropy, signal.hops) for signal in path.heard]
    assert [one for one in told if one[0] != "SEND"] == [
        ("START", 0, 0, 0),
        ("ACK", 1, 77, 0),
        ("NAK", 1, 78, 5),
        ("TIMEOUT", 0, 3, 0),  # the third choice was that for the second packet, which went again
        ("ACK", 2, 0, 0),
        ("RESUME", 0, 0, 0),
    ]
    deaf = HandPath("packet")
    driven = drive(MTU_BYTES, path=deaf)
    driven.sends(1)
    driven.hears(ACK, 1)
    driven.post(MTU_BYTES)
    assert deaf.kinds() == ["SEND"]


def test_path_selection_hears_first() -> None:
    order: list[str] = []
    path = HandPath("packet", frozenset(Kind))
    path.on_step = lambda _state, signal: order.append(f"path {Kind(signal.kind).name}")
    driven = drive(path=path, recovery="selective-repeat")
    driven.control.on_step = lambda _state, signal: order.append(f"control {Kind(signal.kind).name}")
    driven.post(2 * MTU_BYTES)
    driven.sends(2)
    driven.hears(NAK, 0, echo=data(1, is_cut=True))
    driven.hears(ACK, 2)
    driven.post(MTU_BYTES)
    driven.sends(1)
    driven.clock.go_to(driven.sender.deadline_at_ps)
    kinds = ["START", "SEND", "SEND", "TRIM", "ACK", "RESUME", "SEND", "TIMEOUT"]
    assert order == [f"{who} {kind}" for kind in kinds for who in ("path", "control")]


def test_without_a_path_selection_all_packets_carry_the_flows_own_entropy() -> None:
    assert {packet.entropy for packet in drive(3 * MTU_BYTES).sends(3)} == {FLOW.entropy}


def test_a_path_selection_draws_by_the_packet_and_the_port() -> None:
    draws = []
    for _ in range(2):
        path = HandPath("packet")
        drive(3 * MTU_BYTES, path=path).sends(3)
        draws.append([told.draw for told in path.heard])
    assert draws[0] == draws[1]
    assert len(set(draws[0])) == 3
    assert all(0 <= bits < 1 << 62 for bits in draws[0])


# Timers of path selection


def sets_timer(timer: int, after_ps: int) -> Any:
    """A step that sets a timer of its state at every call."""
    return lambda state, signal: state.timer_at_ps.__setitem__(timer, signal.now_ps + after_ps)


def test_timers_of_path_selection_come_behind_those_of_the_control_and_are_off_while_idle() -> None:
    path = HandPath("packet", frozenset({Kind.START}))
    path.on_step = sets_timer(1, US_PS)
    driven = drive(path=path)
    driven.control.on_step = sets_timer(1, US_PS)
    driven.post(MTU_BYTES)
    assert driven.clock.calls == [
        (US_PS, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 0, 0, 1)),
        (US_PS, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 0, 0, TIMERS + 1)),
    ]
    before = driven.line.starts
    driven.clock.go_to(US_PS)
    assert [(Kind(told.kind).name, told.timer) for told in path.heard] == [("START", 0), ("TIMER", 1)]
    assert driven.control.kinds() == ["START", "TIMER"]
    assert driven.line.starts == before + 2  # either timer lets the port look again
    driven.sends(1)
    driven.hears(ACK, 1)
    assert driven.sender.steps.path_state.timer_at_ps == [OFF] * TIMERS
    path.kinds()
    driven.clock.go_to(9 * US_PS)
    assert path.kinds() == []


def test_a_timer_of_path_selection_is_read_after_the_choice_of_a_path_too_and_moves_with_the_queue_pair() -> None:
    path = HandPath("packet")
    driven = drive(MTU_BYTES, path=path)
    path.on_step = sets_timer(0, 3 * US_PS)
    driven.sends(1)
    path.on_step = lambda _state, _signal: None
    driven.sender.move(HandLine(port=4), destination=5)
    assert (3 * US_PS, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 4, 0, TIMERS)) in driven.clock.calls
    path.kinds()
    driven.clock.go_to(9 * US_PS)
    assert path.kinds() == ["TIMER"]  # once, though the agenda has it for both ports


def test_in_error_no_timer_of_path_selection_fires() -> None:
    path = HandPath("packet")
    path.on_step = sets_timer(0, 2 * TIMEOUT_PS)
    driven = drive(MTU_BYTES, path=path, retry_limit=0)
    driven.sends(1)
    driven.clock.go_to(TIMEOUT_PS)
    assert driven.counted["queue_pair_errors"] == 1
    path.kinds()
    driven.clock.go_to(9 * TIMEOUT_PS)
    assert path.kinds() == []


# Departures that move


def slow_down(driven: Driven) -> None:
    """From the next step on, a tenth of the line rate."""
    driven.control.on_step = lambda state, _signal: setattr(state, "rate_bps", RATE_BPS / 10)


@pytest.mark.parametrize(("moves", "next_send_at_ps"), [(True, 10 * FRAME_PS), (False, FRAME_PS)])
def test_a_rate_that_changes_moves_the_departure_where_the_control_says_so(
    *, moves: bool, next_send_at_ps: int
) -> None:
    driven = drive(3 * MTU_BYTES, moves_departures=moves)
    driven.sends(1)
    slow_down(driven)
    driven.clock.go_to(FRAME_PS // 2)
    driven.hears(CNP)
    assert driven.sender.next_send_at_ps == next_send_at_ps
    driven.clock.go_to(next_send_at_ps - 1)
    assert driven.leaves() is None
    driven.clock.go_to(next_send_at_ps)
    assert driven.leaves() is not None


def test_a_departure_whose_time_has_come_does_not_move_any_more() -> None:
    driven = drive(3 * MTU_BYTES, moves_departures=True)
    driven.sends(1)
    slow_down(driven)
    driven.clock.go_to(FRAME_PS)
    driven.hears(CNP)
    assert driven.sender.next_send_at_ps == FRAME_PS


def test_the_step_of_a_departure_sets_the_next_one_by_its_own_rate() -> None:
    driven = drive(3 * MTU_BYTES, moves_departures=True)
    slow_down(driven)
    driven.sends(1)
    assert driven.sender.next_send_at_ps == 10 * FRAME_PS


# Requests


def test_a_step_that_asks_for_a_request_gets_one_and_only_one() -> None:
    driven = drive(credit_bytes=77)

    def asks(state: Any, signal: Any) -> None:
        state.request_bytes = signal.backlog_bytes
        state.send_request = 1

    driven.control.on_step = asks
    driven.post(3 * MTU_BYTES)
    driven.control.on_step = lambda _state, _signal: None
    driven.sends(2)
    (request,) = driven.line.control
    assert (request.kind, request.seq, request.attempt) == (PacketKind.REQUEST, 0, 0)
    assert (request.request_bytes, request.size_bytes) == (3 * MTU_BYTES, 77)
    assert (request.origin, request.destination, request.traffic_class) == (0, 1, CONTROL_CLASS)
    assert driven.sender.state.send_request == 0
    driven.control.on_step = asks
    driven.hears(CNP)
    (_, second) = driven.line.control
    assert (second.seq, second.attempt, second.request_bytes) == (2, 1, MTU_BYTES)
    assert driven.counted["requests_sent"] == 2
    assert second.identity != request.identity


def test_every_packet_carries_what_its_own_step_requests() -> None:
    driven = drive(3 * MTU_BYTES)
    driven.control.on_step = lambda state, signal: setattr(state, "request_bytes", signal.backlog_bytes)
    assert [packet.request_bytes for packet in driven.sends(3)] == [2 * MTU_BYTES, MTU_BYTES, 0]


# Credit


def test_credit_is_what_was_granted_since_the_most_that_is_known() -> None:
    driven = drive(MTU_BYTES)
    driven.control.kinds()
    for all_bytes in (4_000, 9_000, 7_000, 9_000):  # the grants of 4,000 and 5,000; one of them comes late, one again
        driven.hears(CREDIT, credit_bytes=all_bytes)
    assert [(told.kind, told.bytes) for told in driven.control.heard] == [(Kind.CREDIT, 4_000), (Kind.CREDIT, 5_000)]


def test_a_credit_that_is_lost_comes_with_the_next_one() -> None:
    driven = drive(MTU_BYTES)
    driven.control.kinds()
    driven.hears(CREDIT, credit_bytes=4_000)
    driven.hears(CREDIT, credit_bytes=12_000)  # that of 8,000 was lost
    assert [told.bytes for told in driven.control.heard] == [4_000, 8_000]
