"""The search for plans beside plans drawn from all that can be, those that it leaves out too, each run."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.cases import Saw

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import Scenario
from weftwork.study.plan.search import search, with_plan
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute, results

CASES = 3
RUN = 60  # plans of the exhaustive search that are run, drawn from all
GPUS = 8
MISSED = 0.01  # the issue's: never more than 1 %
PLANS = {
    "tensor": (1, 2, 4, 8),
    "context": (1, 2, 4),
    "pipeline": (1, 2, 4, 8),
    "virtual_stages": (1, 2, 4),
    "schedule": ("1f1b", "gpipe", "zb-h1", "dualpipe"),
    "micro_batch": (1, 2, 4, 8),
    "zero": (0, 1, 2, 3),
    "sequence_parallel": (True, False),
    "recompute": ("none", "selective", "full"),
    "order": ("tp-cp-dp-pp", "tp-cp-pp-dp"),
    "balanced_ends": (False, True),
}


def question(draw: random.Random, folder: Path) -> Scenario:
    """A job of eight GPUs, so small that all of its plans can run; some have little memory."""
    model = draw.choice(["gpt-1.7b", "llama-3-8b", "qwen3-8b"])
    overlap = draw.choice(["{}", "{data: 0.8}", "{tensor: 0.5, pipeline: 1}"])
    file = folder / "question.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2, node: dgx-h100,"
        f" link_rate: {draw.choice([100, 400])}Gbps}},"
        f" training: {{model: {model}, gpus: {GPUS}, global_batch: {draw.choice([8, 16])}, sequence: 2048,"
        f" placement: {draw.choice(['packed', 'rails'])}, memory: {draw.choice([40, 80])}GB, overlap: {overlap}}},"
        " engine: {fidelity: flow}}",
        encoding="utf-8",
    )
    return read_scenario(file)


def is_possible(keys: dict[str, Any]) -> bool:
    """Whether nothing speaks against it at a glance."""
    is_even = GPUS % (keys["tensor"] * keys["context"] * keys["pipeline"]) == 0
    return is_even and (keys["virtual_stages"] == 1 or (keys["pipeline"] > 1 and keys["schedule"] == "1f1b"))


def sampled_ps(scenario: Scenario, draw: random.Random) -> tuple[float, int]:
    """The least time over plans drawn from all, each run; with how many ran."""
    least, ran = float("inf"), 0
    everything = [values for values in product(*PLANS.values()) if is_possible(dict(zip(PLANS, values, strict=True)))]
    draw.shuffle(everything)
    fabric = prepare(with_plan(scenario, {"zero": 3, "recompute": "full"})).fabric
    for values in everything:
        if ran == RUN:
            break
        try:
            prepared = prepare(with_plan(scenario, dict(zip(PLANS, values, strict=True))), fabric=fabric)
        except ConfigError:
            continue  # it cannot be
        found = results(prepared, execute(prepared, what_if="none")).summary["iteration_ps"].value
        assert found is not None
        least, ran = min(least, found), ran + 1
    return least, ran


@pytest.mark.parametrize("seed", range(CASES))
def test_no_plan_is_missed_by_more_than_a_hundredth(seed: int, tmp_path: Path, saw: Saw) -> None:
    draw = random.Random(seed)
    scenario = question(draw, tmp_path)
    found = search(scenario)
    least_ps, ran = sampled_ps(scenario, draw)
    saw(ran)
    assert ran >= 30
    assert found.best[0].iteration_ps <= (1 + MISSED) * least_ps
