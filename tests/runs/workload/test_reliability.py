"""Goodput over weeks: the closed form against simulated runs, published figures, and the limits that any must obey."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.reliability import Reliability
from weftwork.spec.scenario.scenario import loads
from weftwork.workload.reliability import (
    PARTS,
    Interruptions,
    daly_period_s,
    goodput,
    shares,
    simulated_shares,
    young_period_s,
)

DAY_S = 86_400.0


@settings(deadline=None, max_examples=case_count(plain=60, deep=500))
@given(
    mean_s=st.floats(60, 1e7),
    cost_s=st.floats(0.1, 100),
    recovery_s=st.floats(0, 2000),
)
def test_no_period_beats_the_optimum_by_much(mean_s: float, cost_s: float, recovery_s: float) -> None:
    def useful(period_s: float) -> float:
        job = Interruptions(mean_s=mean_s, period_s=period_s, cost_s=cost_s, recovery_s=recovery_s)
        return shares(job)["useful"]

    best = useful(daly_period_s(mean_s, cost_s))
    others = [useful(daly_period_s(mean_s, cost_s) * factor) for factor in np.geomspace(0.05, 20, 81)]
    assert max(others) <= best * (1 + 1e-3) or cost_s > mean_s / 2
    assert daly_period_s(mean_s, cost_s) <= young_period_s(mean_s, cost_s) * (1 + 1 / 3 * sqrt(1) + 1 / 9)


@settings(deadline=None, max_examples=case_count(plain=100, deep=500))
@given(
    mean_s=st.floats(1, 1e9),
    period_s=st.floats(1, 1e5),
    cost_s=st.floats(0, 1e3),
    recovery_s=st.floats(0, 1e5),
    taken_share=st.floats(0, 1),
    repair_s=st.floats(0, 1e6),
    spares=st.none() | st.integers(0, 500),
)
def test_shares_add_up_and_are_shares(
    mean_s: float, period_s: float, cost_s: float, recovery_s: float, taken_share: float, repair_s: float,
    spares: int | None,
) -> None:  # fmt: skip
    job = Interruptions(
        mean_s=mean_s, period_s=period_s, cost_s=cost_s, recovery_s=recovery_s, taken_share=taken_share,
        repair_s=repair_s, spares=spares,
    )  # fmt: skip
    found = shares(job)
    assert tuple(found) == PARTS
    assert sum(found.values()) == pytest.approx(1)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in found.values())
    if spares is not None:
        one_more = shares(replace(job, spares=spares + 1))
        assert one_more["useful"] >= found["useful"] * (1 - 1e-12)


@pytest.mark.parametrize("spares", [None, 0, 2])
@pytest.mark.parametrize(("mean_s", "period_s"), [(11_000.0, 300.0), (1_500.0, 600.0)])
def test_the_closed_form_is_the_mean_of_simulated_runs(spares: int | None, mean_s: float, period_s: float) -> None:
    job = Interruptions(
        mean_s=mean_s, period_s=period_s, cost_s=20.0, recovery_s=900.0, taken_share=0.6, repair_s=4_000.0,
        spares=spares,
    )  # fmt: skip
    wanted = shares(job)
    runs = [simulated_shares(job, length_s=60 * DAY_S, seed=5, number=number) for number in range(60)]
    for part in PARTS:
        values = np.array([run[part] for run in runs])
        # four standard errors, and what the first hours with all spares there and the last period weigh
        slack = 4 * values.std() / sqrt(len(runs)) + 1e-3
        assert values.mean() == pytest.approx(wanted[part], abs=slack)
    assert all(sum(run.values()) == pytest.approx(1) for run in runs)


def test_a_checkpoint_comes_after_whole_iterations() -> None:
    found = goodput(Reliability(checkpoint_every_ps=100 * 10**12), gpus=16_384, iteration_s=7.0)
    assert (found.iterations, found.period_s) == (14, 98.0)
    job = goodput(Reliability(), gpus=16_384, iteration_s=7.0, checkpoint_every_s=70.0, checkpoint_cost_s=1.0)
    assert (job.period_s, job.optimum_s) == (70.0, daly_period_s(job.interruption_s, 1.0))
    assert goodput(Reliability(), gpus=16_384, iteration_s=1e5).iterations == 1


def test_the_section_is_read_with_its_units_and_refused_without_training(tmp_path: Path) -> None:
    text = """
schema: 3
fabric: {topology: rail-optimized, gpus: 64, node: dgx-h100, link_rate: 400Gbps}
training: {model: llama-3-8b, global_batch: 64, tensor: 8}
reliability: {gpu: 0.05, detect: 120s, checkpoint_every: 1800s, spares: 4}
"""
    found = loads(text, directory=tmp_path).reliability
    assert found is not None
    assert (found.gpu, found.detect_ps, found.checkpoint_every_ps, found.spares) == (
        0.05,
        120 * 10**12,
        1800 * 10**12,
        4,
    )
    assert found.restart_ps == 300 * 10**12
    other = text.replace(
        "training: {model: llama-3-8b, global_batch: 64, tensor: 8}", "traffic: {pattern: permutation}"
    )
    with pytest.raises(ConfigError, match="is about training jobs"):
        loads(other, directory=tmp_path)
    with pytest.raises(ConfigError, match=r"reliability\.gpu"):
        loads(text.replace("0.05", "-1"), directory=tmp_path)
