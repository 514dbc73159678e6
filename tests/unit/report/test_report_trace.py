"""Traces of training runs obey the trace event format: fields, order, nesting, pairs, and the sums of the run."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from helpers.training_run import Plan, segments_of, training_run

from weftwork.report.pipeline import KINDS
from weftwork.report.trace import trace_events
from weftwork.store.runs import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return training_run(tmp_path_factory.mktemp("trace") / "run", Plan(), Plan(job="second", stages=2))


@pytest.fixture(scope="module")
def events(run: Run) -> list[dict[str, Any]]:
    return trace_events(run)


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
