"""Offloaded activations, from a scenario to a run folder: both fidelities, the closed form, parts of the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.gallery import Gallery

from weftwork.store.runs import Run
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.prepare.training import training_setting
from weftwork.topology.build import fabric_of_section

MODEL = Path(__file__).parents[1] / "keys" / "llama.json"
SLOW = "1Gbps"  # a layer of this model computes for a few us


def scenario(layers: int, *, rate: str = SLOW, fidelity: str = "flow", more: str = "global_batch: 16") -> str:
    return f"""schema: 3
fabric: {{topology: rail-optimized, gpus: 16, node: {{model: dgx-h100, host_rate: {rate}}}, switch: tomahawk-5}}
training: {{model: {MODEL}, sequence: 128, offloaded_layers: {layers}, {more}}}
engine: {{fidelity: {fidelity}}}
transport: {{congestion_control: none}}
"""


def value(run: Run, name: str) -> float:
    found = run.value(name)
    assert found is not None
    return found


PLANS = (
    "global_batch: 16",
    "tensor: 2, pipeline: 2, global_batch: 32",
    "pipeline: 2, virtual_stages: 2, global_batch: 32",
    "pipeline: 2, schedule: zb-h1, global_batch: 32",
    "tensor: 2, zero: 3, global_batch: 16",
)


@pytest.mark.parametrize("more", PLANS)
def test_packets_flows_and_the_closed_form_agree(gallery: Gallery, tmp_path: Path, more: str) -> None:
    flows = gallery.run(scenario(6, more=more), what_if="none")
    packets = gallery.run(scenario(6, more=more, fidelity="packet"), what_if="none")
    iteration_ps = value(flows, "iteration_ps")
    assert value(flows, "spent_offload_share") > 0.2
    assert value(packets, "iteration_ps") == pytest.approx(iteration_ps, rel=0.03)
    file = tmp_path / "plan.yaml"
    file.write_text(scenario(6, more=more), encoding="utf-8")
    read = read_scenario(file)
    assert read.training is not None
    setting = training_setting(read, fabric_of_section(read.fabric, directory=tmp_path), read.training)
    plan = read.training.parallelism(setting.model)
    plan = plan.model_copy(update={"data": 16 // (plan.tensor * plan.pipeline)})
    closed_ps = setting.closed_forms().iteration(plan, follows=True).total_ps
    assert closed_ps == pytest.approx(iteration_ps, rel=0.05)


def test_an_endless_link_takes_as_long_as_no_offloading_and_a_slow_one_longer(gallery: Gallery) -> None:
    none, endless, slow = (
        gallery.run(scenario(layers, rate=rate), what_if="none")
        for layers, rate in ((0, SLOW), (6, "4000000Tbps"), (6, SLOW))
    )
    assert value(endless, "iteration_ps") == pytest.approx(value(none, "iteration_ps"), rel=1e-4)
    assert value(endless, "spent_offload_ps") == 0
    assert "spent_offload_ps" not in none.summary
    waited_ps = value(slow, "spent_offload_ps")
    assert value(slow, "iteration_ps") - waited_ps == pytest.approx(value(none, "iteration_ps"), rel=0.02)
    assert value(slow, "memory_bytes") == value(endless, "memory_bytes") < value(none, "memory_bytes")


@pytest.mark.parametrize("fidelity", ["flow", "packet"])
def test_the_price_of_the_link_is_what_the_run_takes_without_transfers(gallery: Gallery, fidelity: str) -> None:
    run = gallery.run(scenario(6, fidelity=fidelity), what_if="all")
    none = gallery.run(scenario(0, fidelity=fidelity), what_if="none")
    (price,) = [
        one for one in (run.answer.culprit, *run.answer.others)
        if (one.key, one.how) == ("training.offloaded_layers", "simulated")
    ]  # fmt: skip
    assert price.cost_s == pytest.approx((value(run, "iteration_ps") - value(none, "iteration_ps")) / 1e12, rel=0.02)
    assert run.answer.culprit.key == "training.offloaded_layers"


def test_the_result_says_that_the_link_is_for_transfers_alone(gallery: Gallery) -> None:
    run = gallery.run(scenario(6), what_if="none")
    (caveat,) = [one for one in run.caveats if one.subject == "training.offloaded_layers"]
    assert caveat.kind == "approximate"
    assert "NICs" in caveat.text


def test_a_rate_of_the_host_without_offloading_is_told(gallery: Gallery) -> None:
    run = gallery.run(scenario(0), what_if="none")
    (caveat,) = [one for one in run.caveats if one.subject == "fabric.node.host_rate"]
    assert caveat.kind == "ignored"
