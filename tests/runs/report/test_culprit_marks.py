"""The culprit on the page: its name in the three lines, and its mark on the time lines."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from helpers.gallery import Gallery
from helpers.pages import simulated
from helpers.shown import section, three_lines
from helpers.training_run import training_run

from weftwork.base.clock import MS_PS, US_PS
from weftwork.report.culprit_marks import FaultTime, fault_times, is_culprit_row
from weftwork.report.figures.gantt import gantt
from weftwork.report.page import run_page
from weftwork.report.pipeline import read_pipeline
from weftwork.spec.answer import Culprit, CulpritIds
from weftwork.store.runs import Run

TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 24}
"""
SOMEBODY = Culprit(
    kind="gpu", name="GPU 3", key="stragglers.0", text="is slow", cost_s=1.0, cost_share=0.1, how="simulated",
    of="the run", ids=CulpritIds(gpus=(3,)),
)  # fmt: skip


def trained(gallery: Gallery, rest: str) -> Run:
    run: Run = gallery.run(TRAINING + rest)
    return run


def rows_of(html: str) -> dict[str, bool]:
    """Names of the rows of the pipeline, and whether each is marked."""
    stages = section(html, "pipeline").all(kind="stages")[0]
    return {one.text: "culprit" in one.attributes.get("class", "").split() for one in stages.all("span")}


def meta_of(html: str) -> dict[str, Any]:
    found = re.search(r'data-meta="([^"]*)"', html)
    assert found
    meta: dict[str, Any] = json.loads(unescape(found[1]))
    return meta


def test_the_row_of_a_slow_gpu_is_marked_and_no_other(gallery: Gallery) -> None:
    run = gallery("straggler")
    assert run.answer is not None
    assert run.answer.culprit.name == "GPU 3"
    html = run_page(run)
    marked = [name for name, is_marked in rows_of(html).items() if is_marked]
    assert len(rows_of(html)) > 1
    assert len(marked) == 1
    (row,) = (one for one in run.query("select distinct stage, rank, gpu from segments").to_pylist() if one["gpu"] == 3)
    assert marked == [f"stage {row['stage']}, rank {row['rank']} (\u00d71.5)"]
    assert sum(name.endswith(", to blame") for name in meta_of(html)["rows"]) == 1
    assert [one.text for one in section(html, "answer").all("b", kind="culprit")] == ["GPU 3"]


def test_a_fault_under_training_is_a_band_with_its_name(gallery: Gallery) -> None:
    fault = "faults: [{at: 100ms, link: host0-leaf0, event: degrade, fraction: 0.05, for: 200ms}]\n"
    run = trained(gallery, fault)
    html = run_page(run)
    meta = meta_of(html)
    ((begin, end, text, blamed),) = meta["faults"]
    assert [place * meta["unit"] + meta["start"] for place in (begin, end)] == pytest.approx(
        [100 * MS_PS, 300 * MS_PS], rel=1e-6
    )
    assert run.answer is not None
    is_to_blame = run.answer.culprit.name == "host0-leaf0"
    assert (text, blamed) == (f"host0-leaf0 degrade{', to blame' * is_to_blame}", int(is_to_blame))
    assert meta["top"] > 0
    assert "host0-leaf0 degrade" in section(html, "pipeline").all("canvas")[0].attributes["aria-label"]


def test_faults_of_messages_say_which_is_to_blame(gallery: Gallery) -> None:
    rest = (
        "traffic: {pattern: permutation, size: 1MB}\n"
        "faults: [{at: 20us, link: leaf0-spine1, event: degrade, fraction: 0.1},"
        " {at: 1ns, link: leaf1-spine0, event: degrade, fraction: 0.98}]"
    )
    run = simulated(gallery, rest)
    assert run.answer is not None
    assert run.answer.culprit.name == "leaf0-spine1"
    part = section(run_page(run), "links")
    marks = [(one.text, "culprit" in one.attributes["class"].split()) for one in part.all("span", kind="moment")]
    assert marks == [("leaf1-spine0 degrade", False), ("leaf0-spine1 degrade, to blame", True)]


def test_a_fault_ends_where_it_is_undone_or_another_follows(gallery: Gallery) -> None:
    rest = (
        "traffic: {pattern: incast, senders: 3, size: 1MB}\n"
        "faults: [{at: 10us, link: leaf0-spine1, event: down}, {at: 30us, link: leaf0-spine1, event: up},"
        " {at: 5us, link: leaf0-spine0, event: degrade, fraction: 0.5, for: 7us},"
        " {at: 50us, link: leaf1-spine0, event: down}]"
    )
    found = fault_times(simulated(gallery, rest))
    shown = [(one.text, *(None if at is None else at // US_PS for at in (one.start_ps, one.end_ps))) for one in found]
    assert shown == [
        ("leaf0-spine0 degrade", 5, 12), ("leaf0-spine1 down", 10, 30), ("leaf1-spine0 down", 50, None),
    ]  # fmt: skip


def test_rows_of_the_culprit_are_those_of_its_gpu_stage_or_job(tmp_path: Path) -> None:
    pipeline = read_pipeline(training_run(tmp_path / "run"))
    assert pipeline is not None
    rows = [replace(row, gpu=place) for place, row in enumerate(pipeline.rows)]

    def marked(culprit: Culprit, *jobs: str) -> list[int]:
        return [place for place, row in enumerate(rows) if is_culprit_row(culprit, row, jobs=jobs or ("pretrain",))]

    def stage(number: int, job: int = 0) -> Culprit:
        return replace(SOMEBODY, kind="stage", ids=CulpritIds(jobs=(job,), stage=number))

    def of_jobs(*places: int) -> Culprit:
        return replace(SOMEBODY, kind="job", ids=CulpritIds(jobs=places))

    assert marked(SOMEBODY) == [3]
    assert marked(stage(1)) == [1]
    assert marked(stage(2, job=1), "another", "pretrain") == [2]
    assert marked(stage(2), "another", "pretrain") == []
    assert marked(of_jobs(1), "another", "pretrain") == [0, 1, 2, 3]
    assert marked(of_jobs(0, 1), "another", "pretrain") == []  # who of several is to blame is not known
    assert marked(replace(SOMEBODY, kind="link")) == []
    assert marked(replace(SOMEBODY, ids=None)) == []  # a folder of an earlier version


def test_bands_stay_inside_the_chart(tmp_path: Path) -> None:
    pipeline = read_pipeline(training_run(tmp_path / "run"))
    assert pipeline is not None
    late = pipeline.end_ps + 1
    faults = [
        FaultTime(text="a down", start_ps=pipeline.start_ps - 5, end_ps=None, is_culprit=True),
        FaultTime(text="b down", start_ps=late, end_ps=None, is_culprit=False),
    ]
    meta = meta_of(gantt(pipeline, {"forward": 1.0}, faults=faults))
    assert meta["faults"] == [[0, meta["end"], "a down, to blame", 1]]
    assert meta_of(gantt(pipeline, {"forward": 1.0}))["top"] == 0


def test_nobody_is_marked_where_nothing_is_to_blame(gallery: Gallery) -> None:
    run = gallery("incast")
    part = section(run_page(run), "answer")
    assert three_lines(part)["to blame"].startswith(
        "nothing: its own size alone limits it: leaf0->host0 did useful work"
    )
    assert part.all("b", kind="culprit") == []
