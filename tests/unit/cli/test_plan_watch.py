"""What a search for plans says while it goes on, and when it is stopped."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

from weftwork.cli.plan_watch import SearchWatch
from weftwork.cli.progress import CountLine
from weftwork.study.plan.search import Known

KEYS = {
    "tensor": 1, "context": 1, "expert": 1, "expert_tensor": 1, "pipeline": 1, "virtual_stages": 1, "data": 8,
    "schedule": "1f1b", "zero": 1, "recompute": "none", "balanced_ends": False, "order": "tp-cp-dp-pp",
    "placement": "packed",
}  # fmt: skip


def plan(micro_batch: int) -> Any:
    keys = {**KEYS, "micro_batch": micro_batch}
    time_ps = micro_batch * 10**12
    return SimpleNamespace(
        candidate=SimpleNamespace(keys=keys), time=SimpleNamespace(total_ps=time_ps), iteration_ps=time_ps
    )


class Screen:
    """A terminal or two files, and a watch that has looked at all ways for five seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_one_place: bool = True, as_json: bool = False) -> None:
        self.out = io.StringIO()
        self.err = self.out if is_one_place else io.StringIO()
        self.plans = [plan(size) for size in (1, 2, 3)]
        clock = [100.0]
        monkeypatch.setattr("sys.stdout", self.out)
        monkeypatch.setattr("sys.stderr", self.err)
        monkeypatch.setattr("weftwork.cli.plan_watch.time.monotonic", lambda: clock[0])
        monkeypatch.setattr(Known, "fastest", lambda _: self.plans)
        self.watch = SearchWatch(CountLine({"looking": "looked at", "counting": "counted"}), as_json=as_json)
        clock[0] += 5.0

    def look(self) -> str:
        self.watch.known.told("looking", 4, 4)
        return self.taken(self.err)

    def stop(self) -> str:
        self.watch.print_known()
        return self.taken(self.out)

    def taken(self, stream: io.StringIO) -> str:
        text = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return text


def test_the_first_plans_come_with_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Screen(monkeypatch).look()
    assert said.startswith("After 5 s the fastest plans of those looked at, by closed forms:\n")
    assert "1 s  DP8 ZeRO1 mb1\n" in said
    assert said.endswith(
        "Now all plans are counted, and the best run on the flow engine; Ctrl-C prints what is known by then.\n"
    )


def test_a_stopped_search_repeats_no_plan_that_the_reader_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.look()
    assert screen.stop() == "Stopped. The plans above are closed forms alone: nothing was simulated.\n"


def test_a_stopped_search_prints_plans_that_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.look()
    screen.plans = [plan(1), plan(4)]
    first, *rest = screen.stop().splitlines()
    assert first == "Stopped. The plans above are closed forms alone: nothing was simulated."
    assert rest == ["Of the plans counted since, these are among the fastest:", "      4 s  DP8 ZeRO1 mb4"]


def test_a_file_of_the_output_has_the_plans_that_only_the_terminal_showed(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, is_one_place=False)
    screen.look()
    said = screen.stop()
    assert said.startswith("Stopped. The fastest plans so far, by closed forms; none has run:\n")
    assert len(said.splitlines()) == 4


def test_json_has_no_words_of_a_stopped_search(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, is_one_place=False, as_json=True)
    assert screen.stop() == ""
    assert "none has run" in screen.err.getvalue()


def test_a_search_that_knows_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.plans = []
    assert screen.stop() == "Stopped before any plan was counted.\n"


def test_plans_that_ran_are_printed_whatever_was_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.look()
    screen.watch.known.ran.append(plan(2))
    title, line = screen.stop().splitlines()
    assert title == "Stopped. The fastest plans of those that ran on the flow engine:"
    assert line.endswith("2 s  DP8 ZeRO1 mb2")


def test_a_limit_that_one_run_passes_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.watch.known.passes_limit(4.6, 45.2, 4.2)
    assert screen.taken(screen.err) == (
        "The search will take longer than --within: 4 s of it are left, and one plan always runs on the flow engine,"
        " which takes about 5 s where its ranks are alike, up to about 45 s where they are not.\n"
    )
    screen.watch.known.passes_limit(2, 2.1, 2.05)
    assert screen.taken(screen.err) == (
        "The search may take longer than --within: 2 s of it are left, and one plan always runs on the flow engine,"
        " which takes about 2 s.\n"
    )
