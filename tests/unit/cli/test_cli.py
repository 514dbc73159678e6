"""The command line: what it prints, where it prints it, and the codes with which it leaves."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

import pytest

import weftwork
from weftwork.cli.pool_line import PoolLine
from weftwork.cli.progress import CountLine, ProgressLine, clock_words, line
from weftwork.study.run.execute import Progress


def test_the_public_surface_is_what_it_says() -> None:
    assert weftwork.__all__ == sorted(weftwork.__all__)
    assert len(weftwork.__all__) <= 18
    assert dir(weftwork) == weftwork.__all__
    assert all(getattr(weftwork, name) is not None for name in weftwork.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fly'"):
        _ = weftwork.fly  # type: ignore[attr-defined]  # the point of the test


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_says_share_rate_and_time_left() -> None:
    first = Progress(simulated_ps=0, packet_hops=10_000_000, share=0.05)
    now = Progress(simulated_ps=1_200_000_000, packet_hops=40_000_000, share=0.25)
    assert line(now, first, 10.0) == "25.0 %  1.2 ms simulated  3.00 M packet-hops/s  0:38 left"
    late = Progress(simulated_ps=0, packet_hops=10_000_000, share=0.051)
    assert line(late, first, 10.0).endswith("2:38:10 left")
    unknown = Progress(simulated_ps=5, packet_hops=0, share=None)
    assert line(unknown, unknown, 10.0) == "5 ps simulated"
    repeated = Progress(simulated_ps=5, packet_hops=0, share=0.5, is_repeat=True)
    assert line(repeated, repeated, 10.0).startswith("a step failed; it is repeated to find its line")


def test_progress_counts_from_the_start_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("weftwork.cli.progress.time.monotonic", lambda: clock[0])
    stream = Terminal()
    with ProgressLine(stream) as progress:
        for at_s, hops in ((100.0, 0), (200.0, 10**9), (201.0, 0), (202.0, 2 * 10**6)):
            clock[0] = at_s
            progress(Progress(simulated_ps=1, packet_hops=hops, share=None))
        assert stream.getvalue().rstrip().endswith("2.00 M packet-hops/s")


def lines_at(seconds: Iterable[float], progress: Callable[[], None], clock: list[float]) -> None:
    for at_s in seconds:
        clock[0] = 100.0 + at_s
        progress()


def test_without_a_terminal_a_long_run_has_a_line_at_intervals_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("weftwork.cli.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("weftwork.cli.progress.FIRST_LINE_S", 30.0)
    stream = io.StringIO()
    now = Progress(simulated_ps=10**9, packet_hops=1, share=0.5, world="what-if 1 of 2")
    with ProgressLine(stream) as progress:
        lines_at(range(7_200), lambda: progress(now), clock)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "after 0:30: what-if 1 of 2  50.0 %  1 ms simulated"
    assert [line.split(": ")[0] for line in lines] == [
        f"after {at}" for at in ("0:30", "1:00", *(clock_words(60.0 * minutes) for minutes in range(2, 120, 2)))
    ]  # fmt: skip


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_search_says_how_far_it_is(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    clock = [100.0]
    monkeypatch.setattr("weftwork.cli.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("weftwork.cli.progress.FIRST_LINE_S", 30.0)
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    told = CountLine({"running": "plans run"})
    told.hint = "; Ctrl-C prints what is known"
    done = iter(range(100))
    lines_at(range(100), lambda: told("running", next(done), 100), clock)
    pool = PoolLine(is_silent=True)
    pool.show("3 of 9 runs")
    clock[0] += 31.0
    pool.show("4 of 9 runs")
    text = stream.getvalue()
    if is_terminal:
        assert text.count("\r\033[K") == 100
        assert "\r\033[K40 of 100 plans run, 1:00 left; Ctrl-C prints what is known" in text
    else:
        assert text.splitlines() == [
            "after 0:30: 30 of 100 plans run, 1:10 left; Ctrl-C prints what is known",
            "after 1:00: 60 of 100 plans run, 0:40 left; Ctrl-C prints what is known",
            "after 0:31: 4 of 9 runs",
        ]


def test_progress_is_quiet_in_the_first_second_and_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("weftwork.cli.progress.time.monotonic", lambda: clock[0])
    now = Progress(simulated_ps=1, packet_hops=1, share=0.5)
    for stream, is_loud in ((Terminal(), True), (io.StringIO(), False)):
        clock[0] = 100.0
        with ProgressLine(stream) as progress:
            for clock[0] in (100.5, 101.5, 101.55, 101.7):
                progress(now)
        lines = [part for part in stream.getvalue().split("\r") if part.strip()]
        assert len(lines) == (2 if is_loud else 0)
        assert not stream.getvalue() or stream.getvalue().endswith(" \r")  # wiped at the end
