"""Studies: from a scenario to a run, ideal times against the engine, seeds, comparison and interruption."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from weftwork.study.record.interrupts import interrupts
from weftwork.study.results.seeds import interval, mean_numbers


def test_intervals_end_where_no_run_can_be() -> None:
    units = {"fct_p50_ps": "ps", "busiest_link": "share", "jain_index": "ratio", "slowdown_p50": "ratio"}
    runs = [{name: {"value": value, "unit": unit, "text": ""} for name, unit in units.items()} for value in (0.1, 0.9)]
    found = mean_numbers(runs)
    assert all(number["low"] == 0 for number in found.values())  # 0.5 - 12.7 x 0.4
    assert found["busiest_link"]["high"] == found["jain_index"]["high"] == 1
    assert found["slowdown_p50"]["high"] == found["fct_p50_ps"]["high"] == interval([0.1, 0.9])[2] > 5


def test_the_interval_is_that_of_student() -> None:
    # t of 97.5 % with 4 degrees of freedom is 2.776445 in every table
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3
    assert mean - low == pytest.approx(high - mean)
    assert mean - low == pytest.approx(2.776445 * 2.5**0.5 / 5**0.5, rel=1e-6)
    assert interval([4.0]) == (4.0, 4.0, 4.0)


@pytest.mark.usefixtures("python_hears_sigint")
def test_a_second_interrupt_is_not_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def press_twice() -> None:
        with interrupts() as wish:
            wish.keep()
            os.kill(os.getpid(), signal.SIGINT)
            assert wish.is_wanted
            os.kill(os.getpid(), signal.SIGINT)

    press_twice()  # at once: as timeout(1) sends it, to the process and to its group
    monkeypatch.setattr("weftwork.study.record.interrupts.ONE_PRESS_S", -1.0)
    with pytest.raises(KeyboardInterrupt):
        press_twice()


@pytest.mark.usefixtures("python_hears_sigint")
def test_an_interrupt_ends_what_has_nothing_to_keep() -> None:
    def press() -> None:
        with interrupts() as wish:
            wish.keep()
            wish.let_go()
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press()


def test_threads_leave_signals_alone() -> None:
    seen: list[bool] = []

    def inside() -> None:
        with interrupts() as wish:
            seen.append(wish.is_wanted)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [False]
