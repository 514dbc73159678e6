"""The command line: what it prints, where it prints it, and the codes with which it leaves."""

from __future__ import annotations

import io

import pytest

import weftwork
from weftwork.cli.progress import ProgressLine, line
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
