"""Curves of nccl-tests on the scorecard: rows are scenarios that anybody can run, and what was fitted is fitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import weftwork
from weftwork.spec.training import Software
from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.collective import collective_scenario, measure_collective
from weftwork.study.validation.curves import one_server, rows_of
from weftwork.study.validation.network_fit import p5_figures
from weftwork.study.validation.scorecard import Score
from weftwork.study.validation.validate import write_scenarios
from weftwork.workload.collectives import closed_form
from weftwork.workload.collectives.cost import collective_cost
from weftwork.workload.collectives.protocols import ProtocolFigures


@pytest.fixture(scope="module")
def of_one_server() -> tuple[Score, ...]:
    return one_server()


def test_a_row_is_what_its_scenario_runs(of_one_server: tuple[Score, ...], tmp_path: Path) -> None:
    point = next(point for point in of_one_server[0].points if point.name == "H100, 256 MiB")
    folder = tmp_path / "rows"
    assert write_scenarios(folder, ["nccl-one-server"]) == len(rows_of("nccl-one-server")) == 13
    run = weftwork.run(
        folder / "nccl-one-server" / "all-reduce-H100-256-MiB.yaml", out=tmp_path / "run", what_if="none"
    )
    assert run.collectives["duration_ps"].to_pylist() == [round(point.predicted_s * 1e12)]


def test_a_figure_moves_training_the_command_and_the_scorecard_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model: what a step inside a server takes in LL128 is later in all three."""

    def all_three() -> tuple[float, ...]:
        software = Software()
        cost = collective_cost(
            "all-gather", members=16, per_domain=8, domain_gpus=8, size_bytes=32 << 20, figures=p5_figures(),
            software=software,
        )  # fmt: skip
        keys = {"operation": "all-gather", "algorithm": "auto", "gpus": 16, "size": 32 << 20}
        scenario = collective_scenario(keys, file=None, overrides={"fabric.node": "p5", "engine.fidelity": "flow"})
        (found,) = measure_collective(scenario, prepare(scenario).fabric, [32 << 20])
        row = next(
            row
            for row in rows_of("nccl-p5-small")
            if row.name.endswith(" 16 GPUs, 32 MiB") and row.operation == keys["operation"]
        )
        assert found.time_ps is not None
        return cost.alone_ps / 1e12, found.time_ps / 1e12, row.predicted_s()

    before = all_three()
    usual = closed_form.software

    def slower(protocol: str, algorithm: str) -> ProtocolFigures:
        own = usual(protocol, algorithm)
        return replace(own, local_step_latency_ps=own.local_step_latency_ps + 10_000_000)

    monkeypatch.setattr(closed_form, "software", slower)
    closed_form._protocol.cache_clear()
    try:
        after = all_three()
    finally:
        closed_form._protocol.cache_clear()
    for first, then in zip(before, after, strict=True):
        assert then - first == pytest.approx(13 * 10e-6 - 13 * 0.1e-6, rel=0.05)  # 2 us of the host were the least


def test_curves_of_one_server_are_within_4_percent(of_one_server: tuple[Score, ...]) -> None:
    fitted, other = of_one_server
    assert fitted.is_reached
    assert fitted.mape < 0.03
    assert other.mape < 0.04
    assert other.median < 0.02
