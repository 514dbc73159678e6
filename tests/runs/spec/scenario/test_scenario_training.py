"""Training in a scenario: what follows from other keys, and what the record says of a plan."""

from __future__ import annotations

import jsonschema
import pytest

from weftwork.base.errors import ConfigError
from weftwork.base.fix import Settings
from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.reference import explanation
from weftwork.spec.scenario.scenario import Scenario, loads
from weftwork.spec.scenario.schema import json_schema
from weftwork.spec.scenario.training import LONG_SEQUENCE, TrainingSection
from weftwork.spec.scenario.written import dump
from weftwork.spec.training import Overlap, Parallelism, Software
from weftwork.study.prepare.training import proposed_plan
from weftwork.workload.models.catalogue import model

FABRIC = "schema: 3\nfabric: {topology: rail-optimized, gpus: 128, node: dgx-h100}\n"
ONE = FABRIC + "training: {model: llama-3-70b, tensor: 8, pipeline: 4, global_batch: 128}\n"

EXAMPLES = {
    "training": """
schema: 3
fabric: {topology: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 16}
training:
  model: llama-3-8b
  tensor: 4
  pipeline: 2
  zero: 3
  prefetch: false
  global_batch: 64
  gpus: 32
  first_gpu: 32
  software: {name: megatron-2021, launch: 36us, expert_streams: 1, graphs: [attn, moe_router]}
  overlap: {data: 0.9}
  checkpoint: {every: 100, size: 1TiB, asynchronous: true}
  loading: 3ms
stragglers: [{gpu: 12, factor: 1.25}]
""",
    "jobs": """
schema: 3
fabric: {radix: 8}
jobs:
  - {name: big, model: llama-3-70b, tensor: 8, pipeline: 2, data: 4, global_batch: 128}
  - {model: deepseek-v3, expert: 32, gpus: 64, global_batch: 128, software: megatron-2021}
""",
}


def read(text: str, **overrides: str) -> Scenario:
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    return loads(text, nodes=nodes(), overrides=given)


def training(text: str, **overrides: str) -> TrainingSection:
    section = read(text, **overrides).training
    assert section is not None
    return section


def test_copies_of_the_model_take_the_gpus_that_are_left() -> None:
    section = training(ONE)
    assert (section.data, section.gpus, section.first_gpu) == (4, 128, 0)
    assert training(ONE, training__gpus="64").data == 2
    assert training(ONE, training__first_gpu="96").gpus == 32


def test_training_runs_on_the_flow_engine_and_the_rest_on_packets() -> None:
    assert read(ONE).engine.fidelity == "flow"
    assert read(ONE, engine__fidelity="packet").engine.fidelity == "packet"
    assert read(FABRIC + "collective: {size: 1MiB}").engine.fidelity == "packet"
    assert read(FABRIC + "collective: {size: 1MiB}", engine__fidelity="flow").engine.fidelity == "flow"


def test_messages_between_stages_hide_by_default_with_virtual_stages_alone() -> None:
    found = model("llama-3-70b")
    interleaved = {"training__virtual_stages": "2"}
    assert training(ONE).parallelism(found).overlap.pipeline == 0
    assert training(ONE, **interleaved).parallelism(found).overlap.pipeline == 0.8
    for share in (0.0, 0.3):
        given = {"training__overlap__pipeline": str(share)}
        assert training(ONE, **given).parallelism(found).overlap.pipeline == share
        assert training(ONE, **given, **interleaved).parallelism(found).overlap.pipeline == share


def test_a_plan_is_the_record_of_the_section() -> None:
    found = model("llama-3-70b")
    wanted = Parallelism(tensor=8, pipeline=4, data=4, global_batch=128, sequence=8192, has_prefetch=False)
    usual = wanted.model_copy(update={"overlap": Overlap(data=0.9)})
    assert training(ONE).parallelism(found) == usual
    nothing = {f"training__overlap__{key}": "0" for key in Overlap.model_fields}
    alone = Overlap(context=0)
    assert training(ONE, **nothing).parallelism(found) == wanted.model_copy(update={"overlap": alone})
    assert wanted.gradient_bytes == 4
    lora = training(ONE, training__phase="fine-tuning-lora", training__gradients="bf16").parallelism(found)
    assert (lora.has_lora, lora.gradient_bytes) == (True, 2)
    assert training(ONE, training__zero="3").parallelism(found).has_prefetch
    assert training(ONE, training__overlap__tensor="0.7").parallelism(found).overlap.tensor == 0.7


def test_long_context_means_long_sequences_unless_they_are_given() -> None:
    found = model("llama-3-70b")
    assert training(ONE, training__phase="long-context").parallelism(found).sequence == LONG_SEQUENCE
    both = training(ONE, training__phase="long-context", training__sequence="65536")
    assert both.parallelism(found).sequence == 65_536


def test_software_is_a_preset_and_what_differs_from_it() -> None:
    section = training(ONE, training__software__launch="36us", training__software__deduplicated_experts="true")
    assert section.software.on(Software()) == Software(launch_ps=36_000_000, has_deduplicated_experts=True)
    named = training(ONE, training__software="megatron-2021").software
    assert (named.model, named.fields) == ("megatron-2021", {})


def test_several_jobs_follow_each_other_and_have_names() -> None:
    first = "{model: llama-3-8b, tensor: 2, data: 8, global_batch: 64}"
    second = "{name: second, model: llama-3-8b, gpus: 32, global_batch: 64}"
    scenario = read(f"{FABRIC}jobs: [{first}, {second}]")
    assert [(job.name, job.first_gpu, job.gpus, job.data) for job in scenario.trainings] == [
        ("job0", 0, 16, 8),
        ("second", 16, 32, 32),
    ]
    assert scenario.workload is scenario.jobs[0]
    changed = read(f"{FABRIC}jobs: [{first}, {second}]", jobs__1__software__launch="9us")
    assert changed.jobs[1].software.fields == {"launch_ps": 9_000_000}


@pytest.mark.parametrize(
    ("gpus", "key", "value", "fix"),
    [
        ("128", "pipeline", "3", "--set training.pipeline=4 --set training.data=8"),
        ("128", "tensor", "7", "--set training.tensor=8 --set training.context=2 --set training.data=8"),
        ("60", "pipeline", "4", "--set training.pipeline=5 --set training.data=3 --set training.global_batch=9"),
        (
            "7",
            "context",
            "2",
            "--set training.context=1 --set training.data=7 --set training.global_batch=7 --set training.zero=2",
        ),
    ],
)
def test_degrees_that_do_not_divide_the_gpus_name_the_nearest_plan_that_can_be(
    gpus: str, key: str, value: str, fix: str
) -> None:
    text = FABRIC + f"training: {{model: llama-3-8b, global_batch: 8, gpus: {gpus}, {key}: {value}, tensor: 4}}"
    if key != "pipeline":
        text = text.replace(", tensor: 4", "")
    with pytest.raises(ConfigError) as caught:
        loads(text, nodes=nodes(), propose_plan=proposed_plan)
    (mistake,) = caught.value.mistakes
    assert (mistake.path, str(mistake.fix)) == (f"training.{key}", fix)
    assert isinstance(mistake.fix, Settings)
    settings = {path.replace(".", "__"): value for path, value in mistake.fix.values}
    assert training(text, **settings).gpus == int(gpus)


def test_gpus_of_an_unknown_server_leave_the_copies_open() -> None:
    section = loads(ONE, nodes={"dgx-h100": nodes()["dgx-h100"]}).training
    assert section is not None
    assert section.data == 4
    without = loads(ONE.replace("gpus: 128, ", "pods: 2, nodes_per_pod: 8, "), nodes={}).training
    assert without is not None
    assert (without.data, without.gpus) == (None, None)


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_what_is_dumped_is_complete_and_loads_back_equal(text: str) -> None:
    scenario = loads(text)
    written = dump(scenario)
    assert loads(written) == scenario
    assert dump(loads(written)) == written


def test_no_job_is_no_workload() -> None:
    with pytest.raises(ConfigError, match="found no job"):
        read(FABRIC + "jobs: []")


def test_the_keys_are_explained() -> None:
    assert "what is left" in explanation("training.data")
    assert "CPU time to launch" in explanation("training.software.launch")
    assert "training.overlap.tensor" in explanation("training.overlap")
    assert explanation("jobs.name").startswith("jobs.name")


def test_an_editor_takes_what_is_read() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    tree = {
        "schema": 3,
        "fabric": {"radix": 8},
        "training": {"model": "x", "global_batch": 8, "software": {"name": "plain", "launch": "36us"}},
    }
    validator.validate(tree)
    tree["traffic"] = {"pattern": "incast"}
    assert not validator.is_valid(tree)
