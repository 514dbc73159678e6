"""Forward and backward passes are told apart wherever a plan has both: in time, and in what ranks wait in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.spec.job import Compute, Loop, Milestone
from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.prepare.prepared import Prepared
from weftwork.workload.training.turns import PASSES

MODEL = Path(__file__).parents[1] / "keys" / "llama.json"
PLANS = {
    "data": "{data: 8, global_batch: 32}",
    "data, one micro batch": "{data: 8, global_batch: 8}",
    "data, zero 3": "{data: 8, global_batch: 32, zero: 3}",
    "pipeline": "{pipeline: 4, data: 2, global_batch: 16}",
    "pipeline, all forward first": "{pipeline: 4, data: 2, global_batch: 16, schedule: gpipe}",
    "pipeline, gradients of weights later": "{pipeline: 4, data: 2, global_batch: 16, schedule: zb-h1}",
    "pipeline, both ways": "{pipeline: 4, data: 2, global_batch: 16, schedule: dualpipe}",
    "tensor": "{tensor: 4, data: 2, global_batch: 16}",
}


def scenario(tmp_path: Path, plan: str, *, fidelity: str, more: str = "") -> Path:
    keys = plan.strip("{}")
    file = tmp_path / "scenario.yaml"
    file.write_text(
        f"""schema: 3
fabric: {{topology: leaf-spine, hosts: 8, radix: 8, node: {{gpus: 1}}, link_rate: 100Gbps}}
training: {{model: {MODEL}, gpu: h100, micro_batch: 1, sequence: 128, {keys}}}
engine: {{fidelity: {fidelity}{more}}}
""",
        encoding="utf-8",
    )
    return file


def ran(file: Path) -> Run:
    return weftwork.run(file, out=file.parent / "run", what_if="none")


def computed_ps(prepared: Prepared, *labels: str) -> dict[str, float]:
    """What the programs compute in each pass, as a mean over ranks: operations one by one, loops unrolled."""
    found = dict.fromkeys(PASSES, 0.0)
    for index, program in enumerate(prepared.job.programs):
        passes = [PASSES[row["pass"]] for row in prepared.passes(index)]
        share = float((prepared.job.rank_program == index).mean())
        number = -1

        def walk(operations: Any, passes: list[str] = passes, share: float = share) -> None:
            nonlocal number
            for operation in operations:
                if isinstance(operation, Loop):
                    for _ in range(operation.count):
                        walk(operation.body)
                elif isinstance(operation, Milestone) and operation.name == 0:
                    number += 1
                elif isinstance(operation, Compute) and prepared.job.labels[operation.label] in labels:
                    found[passes[number]] += share * operation.duration_ps

        walk(program.streams[0])
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_flows_give_each_pass_the_time_that_its_program_computes(plan: str, tmp_path: Path) -> None:
    file = scenario(tmp_path, PLANS[plan], fidelity="flow")
    wanted = computed_ps(prepare(read_scenario(file)), "compute")
    run = ran(file)
    assert wanted["backward"] + wanted["weights"] > wanted["forward"] > 0
    kinds = [kind for kind in ("forward", "backward", "weights") if wanted[kind]]
    for kind in kinds:
        assert run.value(f"spent_{kind}_ps") == pytest.approx(wanted[kind], abs=1)
    assert ("spent_weights_ps" in run.summary) == ("weights" in kinds) == ("later" in plan or "both" in plan)
    rows = run.query("select distinct pass from segments where kind = 'compute'")["pass"].to_pylist()
    assert set(kinds) <= set(rows)


@pytest.mark.parametrize("fidelity", ["packet", pytest.param("reference", marks=pytest.mark.deep)])
def test_packets_tell_no_time_of_a_pass(fidelity: str, tmp_path: Path) -> None:
    run = ran(scenario(tmp_path, PLANS["data, one micro batch"], fidelity=fidelity))
    assert run.status == "complete"
    assert run.value("spent_forward_ps") is None
    assert run.value("spent_backward_ps") is None


@pytest.mark.parametrize("fidelity", ["flow", "packet", pytest.param("reference", marks=pytest.mark.deep)])
def test_a_run_that_is_cut_in_a_backward_pass_waits_in_it(fidelity: str, tmp_path: Path) -> None:
    plan = "{data: 8, global_batch: 8, zero: 0}"  # so that the first forward pass begins with the run
    prepared = prepare(read_scenario(scenario(tmp_path, plan, fidelity=fidelity)))
    lasts_ps = computed_ps(prepared, "compute", "launch")["forward"]
    for share, name in ((0.5, "forward"), (1.5, "backward")):
        at_ps = round(lasts_ps * share)
        folder = tmp_path / name
        folder.mkdir()
        run = ran(scenario(folder, plan, fidelity=fidelity, more=f", until: {at_ps}ps"))
        assert run.status == "stopped"
        assert set(run.query("select distinct pass from waits where stream = 0")["pass"].to_pylist()) == {name}
