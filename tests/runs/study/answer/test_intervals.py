"""The interval beside a time: in the folder, in the terminal, on the page and in JSON, once and alike."""

from __future__ import annotations

import json

import pytest
from helpers.gallery import Gallery

from weftwork.cli.run import run_document
from weftwork.report.answer import answer
from weftwork.report.page import three_lines_list
from weftwork.report.three_lines import labelled_lines
from weftwork.spec.answer import Answer

TRAINING = """schema: 3
fabric: {{topology: rail-optimized, gpus: 16, node: {node}, switch: tomahawk-5}}
training: {{model: llama-3-8b, tensor: 8, global_batch: 16, precision: {precision}}}
engine: {{fidelity: flow}}
"""
COLLECTIVE = """schema: 3
fabric: {topology: rail-optimized, gpus: 16, node: p5, switch: tomahawk-5}
collective: {operation: all-reduce, gpus: 16, size: 256MiB}
engine: {fidelity: flow}
"""
TRAFFIC = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 400Gbps}
traffic: {pattern: permutation, size: 64KiB}
engine: {fidelity: flow}
"""


def dense(node: str = "dgx-h100", precision: str = "fp8") -> str:
    return TRAINING.format(node=node, precision=precision)


@pytest.mark.parametrize(
    ("text", "basis"),
    [
        (dense(), "published times of dense models on h100 in fp8 by plain, 8 GPUs"),
        (dense(precision="bf16"), "published times of dense models on h100 in bf16"),
        (COLLECTIVE, "published times of all-reduces between servers on h100, 16 to 64 GPUs"),
    ],
)
def test_a_time_like_measured_times_has_an_interval_wherever_it_is_printed(
    text: str, basis: str, gallery: Gallery
) -> None:
    run = gallery.run(text, what_if="none")
    interval = run.answer.took.interval
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= interval.high
    assert basis in interval.basis
    line = dict(labelled_lines(run))["measured"]
    assert line.endswith(interval.basis)
    document = json.loads(json.dumps(run_document(run)))
    assert document["lines"]["measured"] == line
    assert document["answer"]["took"]["interval"]["rows"] == interval.rows
    assert Answer.of(document["answer"], "json") == run.answer
    assert sum(interval.basis in sentence for sentence in answer(run)) == 1
    assert three_lines_list(run).count("<dt>measured</dt>") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (dense("dgx-b200"), "no published time of dense models on b200"),
        (TRAFFIC, "no times of traffic patterns are published"),
    ],
)
def test_a_time_like_no_measured_time_says_so(text: str, reason: str, gallery: Gallery) -> None:
    run = gallery.run(text, what_if="none")
    interval = run.answer.took.interval
    assert interval is not None
    assert (interval.low, interval.high) == (None, None)
    assert dict(labelled_lines(run))["measured"] == interval.basis
    assert interval.basis.startswith("no measurement like this: ")
    assert reason in interval.basis


def test_a_run_without_an_end_and_a_folder_of_an_earlier_version_have_none(gallery: Gallery) -> None:
    run = gallery.run(TRAFFIC.replace("flow}", "flow, until: 1ns}"), what_if="none")
    assert run.answer.took.interval is None
    assert "measured" not in dict(labelled_lines(run))
    document = gallery.run(TRAFFIC, what_if="none").answer.to_json()
    assert document["took"].pop("interval") is not None
    assert Answer.of(document, "earlier").took.interval is None
