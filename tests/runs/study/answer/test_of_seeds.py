"""The answer of several seeds: means, the culprit that most of them name, and how many they are."""

from __future__ import annotations

import json
from statistics import fmean
from typing import Any

import pytest
from helpers.gallery import Gallery

import weftwork
from weftwork.cli.run import run_document
from weftwork.report.three_lines import three_lines
from weftwork.report.words import amount
from weftwork.spec.answer import Answer
from weftwork.store.runs import Run

HASHED = """schema: 3
fabric: {topology: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4, link_rate: 400Gbps}
transport: {congestion_control: none, load_balancing: ecmp}
traffic: {pattern: permutation, size: 1MiB}
"""


TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 8, pipeline: 2, global_batch: 64}
stragglers: [{gpu: 12, factor: 1.25}]
transport: {load_balancing: switch-spray, reorder_tolerant: true}
engine: {fidelity: flow}
"""


def ran(text: str, gallery: Gallery, **options: Any) -> Run:
    run: Run = gallery.run(text, **options)
    return run


def test_a_set_of_seeds_has_an_answer_in_its_folder_in_python_and_in_json(gallery: Gallery) -> None:
    run = ran(HASHED, gallery, seeds=3)
    found = run.answer
    assert found is not None
    each = [part.answer for part in run.seeds]
    assert all(one is not None for one in each)
    own = [one.culprit for one in each if one is not None and one.culprit.name == found.culprit.name]
    assert (found.culprit.name, found.culprit.named_by, found.seeds) == ("ecmp", len(own), 3)
    assert found.culprit.cost_s == pytest.approx(fmean(one.cost_s or 0 for one in own))
    assert found.took.seconds == pytest.approx(fmean(one.took.seconds or 0 for one in each if one is not None))
    assert (run.value("completion_ps") or 0) * 1e-12 == pytest.approx(found.took.seconds)
    document = json.loads(json.dumps(run_document(run)))
    assert Answer.of(document["answer"], "json") == found
    assert weftwork.open_run(run.path).answer == found
    _, limited_by, to_blame = three_lines(run)
    assert limited_by.startswith(f"{found.limited_by.name}, in use ")
    assert amount(found.limited_by.share, "share") in limited_by
    assert to_blame.startswith(f"ecmp (transport.load_balancing) {found.culprit.text}: ")
    assert amount((found.culprit.cost_s or 0) * 1e12, "ps") in to_blame
    seeds = "3 seeds" if len(own) == 3 else f"{len(own)} of 3 seeds"
    assert to_blame.endswith(f" on average of {seeds} (simulated again without it)")


def test_a_set_of_training_runs_is_limited_by_the_largest_mean_share(gallery: Gallery) -> None:
    run = ran(TRAINING, gallery, seeds=2)
    found = run.answer
    assert found is not None
    assert found.limited_by.share == run.value(found.limited_by.number)
    assert three_lines(run)[1].startswith(f"{found.limited_by.name} ")
    assert (found.culprit.name, found.culprit.named_by) == ("GPU 12", 2)
