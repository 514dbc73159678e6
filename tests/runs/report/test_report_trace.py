"""Traces of training runs obey the trace event format: fields, order, nesting, pairs, and the sums of the run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers.gallery import Gallery
from helpers.training_run import Plan, segments_of, training_run

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.report.pipeline import KINDS
from weftwork.report.trace import trace_events
from weftwork.store.runs import Run

FIELDS = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"},
    "b": {"ph", "name", "cat", "id", "pid", "tid", "ts", "args"},
    "e": {"ph", "name", "cat", "id", "pid", "tid", "ts"},
    "C": {"ph", "name", "cat", "pid", "tid", "ts", "args"},
    "s": {"ph", "name", "cat", "id", "pid", "tid", "ts"},
    "f": {"ph", "name", "cat", "id", "pid", "tid", "ts", "bp"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return training_run(tmp_path_factory.mktemp("trace") / "run", Plan(), Plan(job="second", stages=2))


@pytest.fixture(scope="module")
def events(run: Run) -> list[dict[str, Any]]:
    return trace_events(run)


def test_every_event_has_the_fields_of_its_kind(events: list[dict[str, Any]]) -> None:
    assert {event["ph"] for event in events} == set(FIELDS)
    for event in events:
        assert set(event) == FIELDS[event["ph"]]
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0


def test_the_command_writes_it_and_refuses_what_has_none(
    gallery: Gallery, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.json"
    with pytest.raises(SystemExit) as left:
        main(["report", str(run.path), "-o", str(file)])
    assert left.value.code in {0, None}
    assert capsys.readouterr().out.startswith(f"trace: {file} (")
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["traceEvents"] == trace_events(run)
    with pytest.raises(SystemExit) as left:
        main(["report", str(run.path), str(run.path), "-o", str(file)])
    assert left.value.code == 2
    assert "a trace is of one run; wanted a .html file" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="trains nothing"):
        trace_events(gallery("incast"))


def test_events_come_in_order_and_names_before_them(events: list[dict[str, Any]]) -> None:
    times = [event["ts"] for event in events if event["ph"] != "M"]
    assert times == sorted(times)
    assert [event["ph"] for event in events[: len(events) - len(times)]] == ["M"] * (len(events) - len(times))
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert named == {event["pid"] for event in events}


def test_slices_of_a_thread_nest(events: list[dict[str, Any]]) -> None:
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append(event)
    assert len(threads) == 6
    for slices in threads.values():
        open_until: list[float] = []
        for event in slices:
            while open_until and open_until[-1] <= event["ts"] + 1e-9:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)


def test_beginnings_and_ends_are_pairs(events: list[dict[str, Any]]) -> None:
    for begins, ends in (("b", "e"), ("s", "f")):
        first = {event["id"]: event for event in events if event["ph"] == begins}
        last = {event["id"]: event for event in events if event["ph"] == ends}
        assert first
        assert first.keys() == last.keys()
        assert len(first) == sum(event["ph"] == begins for event in events)
        assert all(first[key]["ts"] <= last[key]["ts"] for key in first)
        assert all(first[key]["name"] == last[key]["name"] for key in first)


def test_every_send_of_the_pipeline_has_its_arrow(events: list[dict[str, Any]]) -> None:
    arrows = sum(event["ph"] == "s" for event in events)
    assert arrows == 2 * 8 * 3 + 2 * 8 * 1  # forward and back, eight micro batches, over three links and one


def test_the_time_of_a_kind_is_that_of_the_run(events: list[dict[str, Any]]) -> None:
    spent: Counter[str] = Counter()
    for event in events:
        if event["ph"] == "X" and event["cat"] in KINDS and event["pid"] <= 4:
            spent[event["cat"]] += round(event["dur"] * 1e6)
    wanted: Counter[str] = Counter()
    for _, _, which, kind, start, end in segments_of(Plan()):
        wanted[which if kind == "compute" else kind] += end - start
    assert spent == wanted
