"""The clock of a simulation alone: order of one instant, the end, and who is told meanwhile."""

from __future__ import annotations

import random
from typing import Any

from weftwork.engine.reference.clock import Agenda, Phase
from weftwork.engine.reference.event_heap import EVENTS_PER_TURN, EventHeap

NEVER_PS = 10**18


def order_of(calls: list[tuple[int, Phase, tuple[int, ...]]]) -> list[tuple[int, Phase, tuple[int, ...]]]:
    heap, done = EventHeap(), []
    for call in calls:
        heap.at(*call, done.append, call)
    heap.run(NEVER_PS)
    return done


def test_calls_of_one_instant_go_by_phase_then_by_identity() -> None:
    wanted: list[Any] = [
        (3, Phase.AGENDA, (Agenda.REFRESH, 0, 0)),
        (7, Phase.DEPARTURE, (2,)),
        (7, Phase.INSTANT, (0,)),
        (7, Phase.FLOW_CONTROL, (1,)),
        (7, Phase.PACKET, (0,)),
        (7, Phase.PACKET, (4,)),
        (7, Phase.AGENDA, (Agenda.JOB, 9, 0)),
        (7, Phase.AGENDA, (Agenda.HOST_INTERFACE, 1)),
        (7, Phase.AGENDA, (Agenda.SIGNAL, 0, 0)),
        (8, Phase.DEPARTURE, (0,)),
    ]
    for seed in range(20):
        calls = wanted.copy()
        random.Random(seed).shuffle(calls)
        assert order_of(calls) == wanted


def test_calls_that_are_alike_keep_the_order_in_which_they_were_asked_for() -> None:
    heap, done = EventHeap(), []
    for number in range(50):
        heap.at(7, Phase.DEPARTURE, (1,), done.append, number)
    heap.run(NEVER_PS)
    assert done == list(range(50))


def test_a_call_may_ask_for_another_at_its_own_instant() -> None:
    heap, done = EventHeap(), []

    def first() -> None:
        heap.at(heap.now_ps, Phase.AGENDA, (0,), done.append, heap.now_ps)

    heap.at(7, Phase.PACKET, (0,), first)
    heap.run(NEVER_PS)
    assert (done, heap.now_ps) == ([7], 7)


def test_it_stops_before_the_first_call_at_its_end_and_stands_there() -> None:
    heap, done = EventHeap(), []
    for at_ps in (5, 6, 7):
        heap.at(at_ps, Phase.PACKET, (0,), done.append, at_ps)
    heap.run(6)
    assert (done, heap.now_ps, bool(heap)) == ([5], 6, True)
    heap.run(100)
    assert (done, heap.now_ps, bool(heap)) == ([5, 6, 7], 7, False)


def test_it_tells_now_and_then() -> None:
    heap, told = EventHeap(), []
    for at_ps in range(2 * EVENTS_PER_TURN + 1):
        heap.at(at_ps, Phase.PACKET, (0,), int)
    heap.run(NEVER_PS, lambda: told.append(heap.now_ps))
    assert told == [EVENTS_PER_TURN - 1, 2 * EVENTS_PER_TURN - 1]
