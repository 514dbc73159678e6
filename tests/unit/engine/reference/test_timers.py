"""Timers of a policy's state alone: when they fire, and what makes them silent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from helpers.by_hand import HandClock

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.timers import PolicyTimers
from weftwork.policies.interface import OFF, TIMERS
from weftwork.policies.load import load

POLICY = load("congestion_control", "none")  # that owns the step of the timers


def timers_of(clock: HandClock) -> tuple[PolicyTimers, Any, list[tuple[int, int]]]:
    fired: list[tuple[int, int]] = []
    state = SimpleNamespace(timer_at_ps=[5] * TIMERS)
    timers = PolicyTimers(
        clock, Agenda.CONGESTION_CONTROL, state, lambda timer: fired.append((clock.now_ps, timer)), POLICY
    )
    return timers, state, fired


def test_all_are_off_at_first() -> None:
    clock = HandClock()
    timers, state, _ = timers_of(clock)
    assert state.timer_at_ps == [OFF] * TIMERS
    timers.schedule(0, 0)
    assert clock.calls == []


def test_one_fires_at_its_instant_after_it_was_set_off() -> None:
    clock = HandClock()
    timers, state, fired = timers_of(clock)
    timers.fire = lambda timer: fired.append((clock.now_ps, state.timer_at_ps[timer]))
    state.timer_at_ps[2] = 70
    timers.schedule(3, 4)
    assert clock.calls == [(70, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 3, 4, 2))]
    clock.go_to(100)
    assert fired == [(70, OFF)]


def test_an_instant_that_has_passed_is_the_present_one() -> None:
    clock = HandClock()
    timers, state, fired = timers_of(clock)
    clock.go_to(50)
    state.timer_at_ps[1] = 20
    timers.schedule(0, 0)
    assert fired == []  # in the agenda, not at once
    clock.go_to(50)
    assert fired == [(50, 1)]


def test_one_that_was_moved_fires_at_its_new_instant_only() -> None:
    for new_ps in (30, 90):
        clock = HandClock()
        timers, state, fired = timers_of(clock)
        for at_ps in (70, new_ps):
            state.timer_at_ps[0] = at_ps
            timers.schedule(0, 0)
        clock.go_to(100)
        assert fired == [(new_ps, 0)]


def test_one_that_is_moved_away_and_back_fires_once() -> None:
    clock = HandClock()
    timers, state, fired = timers_of(clock)
    for at_ps in (70, 90, 70):
        state.timer_at_ps[0] = at_ps
        timers.schedule(0, 0)
    clock.go_to(100)
    assert fired == [(70, 0)]


def test_one_that_is_read_again_and_again_is_in_the_agenda_once() -> None:
    clock = HandClock()
    timers, state, _ = timers_of(clock)
    state.timer_at_ps[0] = 70
    for _ in range(5):
        timers.schedule(0, 0)
    assert len(clock.calls) == 1


def test_stopped_they_are_silent_until_one_is_set_anew() -> None:
    clock = HandClock()
    timers, state, fired = timers_of(clock)
    state.timer_at_ps[0] = 70
    timers.schedule(0, 0)
    timers.stop()
    clock.go_to(80)
    assert fired == []
    state.timer_at_ps[0] = 90
    timers.schedule(0, 0)
    clock.go_to(100)
    assert fired == [(90, 0)]


def test_at_another_place_they_keep_their_instants_and_fire_there_only() -> None:
    clock = HandClock()
    timers, state, _ = timers_of(clock)
    fired_at: list[tuple[int, ...]] = []
    timers.fire = lambda _timer: fired_at.append(clock.identity)
    state.timer_at_ps[3] = 70
    timers.schedule(0, 0)
    timers.schedule(6, 1)
    assert [identity[1:3] for _, _, identity in clock.calls] == [(0, 0), (6, 1)]
    clock.go_to(100)
    assert fired_at == [(Agenda.CONGESTION_CONTROL, 6, 1, 3)]


def test_a_second_policy_of_a_slot_has_other_numbers_in_the_agenda_and_the_same_in_its_state() -> None:
    clock, fired = HandClock(), list[int]()
    state = SimpleNamespace(timer_at_ps=[OFF] * TIMERS)
    timers = PolicyTimers(clock, Agenda.CONGESTION_CONTROL, state, fired.append, POLICY, first=TIMERS)
    state.timer_at_ps[2] = 70
    timers.schedule(3, 4)
    assert clock.calls == [(70, Phase.AGENDA, (Agenda.CONGESTION_CONTROL, 3, 4, TIMERS + 2))]
    clock.go_to(100)
    assert fired == [2]
