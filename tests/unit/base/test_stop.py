"""Ctrl-C and SIGTERM: a program ends with the right code, in time, and removes what is unfinished."""

import os
import signal
from collections.abc import Callable

import pytest

from weftwork.base.stop import stoppable

pytestmark = pytest.mark.usefixtures("python_hears_sigint")


def press(number: int) -> None:
    os.kill(os.getpid(), number)


def caught(number: int) -> int:
    try:
        press(number)
    except KeyboardInterrupt:
        return 0
    return 1


def translated(number: int) -> int:
    try:
        press(number)
    except KeyboardInterrupt as stopped:
        raise RuntimeError("Query interrupted") from stopped  # as DuckDB does
    return 0


def raised(number: int) -> int:
    press(number)
    return 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [raised, caught, translated])
def test_a_signal_is_the_exit_code_whatever_becomes_of_its_exception(
    command: Callable[[int], int], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    assert stoppable(lambda: command(number), is_program=False) == 128 + number
    assert {each: signal.getsignal(each) for each in before} == before
    assert capsys.readouterr().err == f"stopped by {signal.Signals(number).name}\n"


def test_without_a_signal_nothing_is_different() -> None:
    assert stoppable(lambda: 7, is_program=False) == 7
    with pytest.raises(ZeroDivisionError):
        stoppable(lambda: 1 // 0, is_program=False)


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the fixture takes it back
    assert stoppable(lambda: raised(signal.SIGINT), is_program=False) == 0
