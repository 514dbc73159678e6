"""A plan written as a file of any relative is read back as it was; a broken file never gives anything but mistakes.

Leaves out: what a program cannot say, such as pipeline stages in LLM Foundry.
"""

from __future__ import annotations

from typing import Any

from helpers.imports_relatives import NEMO, SMALL, SUFFIX, overrides, read, written
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.workload.imports.job_file import read_job
from weftwork.workload.imports.megatron import MegatronImport

COUNTS = st.sampled_from([1, 2, 4, 8])
SIZES = st.integers(1, 2**20)
Plan = dict[str, Any]
LETTERS = st.sampled_from([*"aZ09 .:=-_[]{}'\"#,$\n\t\\~+", "\0", "\1", "é", "${", "???", "true", "null", "1e999"])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Keys of a training section that every relative can say."""
    micro = draw(st.sampled_from([1, 2, 4]))
    return {
        "tensor": draw(COUNTS),
        "micro_batch": micro,
        "global_batch": micro * draw(st.integers(1, 4096)),
        "sequence": draw(SIZES),
        "zero": draw(st.sampled_from([0, 1, 2, 3])),
        "recompute": draw(st.sampled_from(["none", "full"])),
    }


def as_settings(name: str, plan: Plan) -> tuple[dict[str, Any], Plan]:
    """Settings of a relative, and the part of the plan that they say."""
    again = plan["recompute"] == "full"
    both = {key: plan[key] for key in ("micro_batch", "global_batch", "sequence", "recompute")}
    if name == "megatron-deepspeed":
        words = {"--tensor-model-parallel-size": plan["tensor"], "--micro-batch-size": plan["micro_batch"]}
        words |= {"--global-batch-size": plan["global_batch"], "--seq-length": plan["sequence"]}
        words |= {"--zero-stage": plan["zero"], **({"--checkpoint-activations": ""} if again else {})}
        return words, {**both, "tensor": plan["tensor"], "zero": max(plan["zero"], 1)}
    if name == "nemo":
        sharded = "distributed_fused_adam" if plan["zero"] else "fused_adam"
        settings = {"model.micro_batch_size": plan["micro_batch"], "model.global_batch_size": plan["global_batch"]}
        settings |= {"model.tensor_model_parallel_size": plan["tensor"], "model.encoder_seq_length": plan["sequence"]}
        settings |= {"model.optim.name": sharded}
        settings |= {"model.activations_checkpoint_granularity": "full" if again else None}
        return settings, {**both, "tensor": plan["tensor"], "zero": min(plan["zero"], 1)}
    if name == "gpt-neox":
        settings = {"train_micro_batch_size_per_gpu": plan["micro_batch"], "train_batch_size": plan["global_batch"]}
        settings |= {"model_parallel_size": plan["tensor"], "seq_length": plan["sequence"]}
        settings |= {"zero_optimization.stage": plan["zero"], "checkpoint_activations": again}
        return settings, {**both, "tensor": plan["tensor"], "zero": max(plan["zero"], 1)}
    if name == "torchtitan":
        settings = {
            "training.local_batch_size": plan["micro_batch"],
            "training.global_batch_size": plan["global_batch"],
        }
        settings |= {"parallelism.tensor_parallel_degree": plan["tensor"], "training.seq_len": plan["sequence"]}
        settings |= {"activation_checkpoint.mode": plan["recompute"]}
        zero = {
            0: {"parallelism.data_parallel_shard_degree": 1},
            2: {"parallelism.fsdp_reshard_after_forward": "never"},
        }
        settings |= zero.get(plan["zero"], {})
        return settings, {**both, "tensor": plan["tensor"], "zero": plan["zero"] if plan["zero"] in zero else 3}
    strategy = {0: "NO_SHARD", 2: "SHARD_GRAD_OP"}.get(plan["zero"], "FULL_SHARD")
    settings = {"device_train_microbatch_size": plan["micro_batch"], "global_train_batch_size": plan["global_batch"]}
    settings |= {"max_seq_len": plan["sequence"], "fsdp_config.sharding_strategy": strategy}
    settings |= {"fsdp_config.activation_checkpointing": again}
    return settings, {**both, "zero": plan["zero"] if plan["zero"] in {0, 2} else 3}


def said(found: MegatronImport, keys: Plan) -> Plan:
    return {key: found.keys[f"training.{key}"] for key in keys}


@given(name=st.sampled_from(sorted(SUFFIX)), plan=plans())
def test_a_plan_is_read_as_it_was_written(name: str, plan: Plan) -> None:
    settings, keys = as_settings(name, plan)
    found = read(name, written(name, settings))
    assert said(found, keys) == keys
    assert not found.unknown


@given(plan=plans())
def test_overrides_say_what_the_file_says(plan: Plan) -> None:
    settings, keys = as_settings("nemo", plan)
    found = read_job(overrides({key: value for key, value in {**NEMO, **settings}.items() if value is not None}))
    assert said(found, keys) == keys


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, str]:
    """A small job with letters put in, taken out and lines changed."""
    name = draw(st.sampled_from(sorted(SMALL)))
    text = written(name)
    for _ in range(draw(st.integers(1, 6))):
        place, many = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
        text = text[:place] + draw(LETTERS) + text[place + many :]
    return name, text


@given(job=broken(), other=st.sampled_from(sorted(set(SUFFIX.values()))))
def test_a_broken_file_gives_a_job_or_mistakes(job: tuple[str, str], other: str) -> None:
    name, text = job
    for suffix in (SUFFIX[name], other):
        try:
            found = read_job(text, suffix=suffix, gpus=8)
        except ConfigError as error:
            assert error.mistakes  # noqa: PT017 - either way is right
            assert all(one.text and one.text.isprintable() for one in error.mistakes)  # noqa: PT017
        else:
            assert found.keys["training.micro_batch"]
