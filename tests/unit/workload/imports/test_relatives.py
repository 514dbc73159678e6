"""Jobs of Megatron-LM's relatives: each is read in its own words, and judged by no other program's rules."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.imports_relatives import NEMO, SMALL, SUFFIX, overrides, read, written

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.rows import rows_of
from weftwork.spec.scenario.training import LoraSection, TrainingSection
from weftwork.workload.imports.job_file import RELATIVES, read_job
from weftwork.workload.imports.megatron_arguments import READ
from weftwork.workload.imports.reasons import changes_results
from weftwork.workload.imports.relatives.torchtitan import FLAVORS
from weftwork.workload.models.catalogue import MODELS

NAMES = sorted(SUFFIX)
KEYS = {f"training.{row.key}" for row in rows_of(TrainingSection).values()} | {"fabric.gpus", "model.is_gated"}
KEYS |= {f"training.lora.{row.key}" for row in rows_of(LoraSection).values()}


def refused(name: str, text: str, **options: Any) -> dict[str, str]:
    """Mistakes by setting."""
    with pytest.raises(ConfigError) as caught:
        read(name, text, **options)
    return {one.path: one.text for one in caught.value.mistakes}


def test_every_relative_is_a_file_and_has_a_small_job() -> None:
    assert sorted(RELATIVES) == NAMES == sorted(SMALL)


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_is_in_one_table_alone(name: str) -> None:
    relative = RELATIVES[name]
    assert not relative.read.keys() & relative.ignored.keys()
    assert not relative.refused.keys() & (relative.read.keys() | relative.ignored.keys())
    assert all(relative.reason(argument) is not None for argument in relative.anyway)
    assert all(relative.title in text for text in relative.refused.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_argument_becomes_one_of_megatron_or_a_key(name: str) -> None:
    for target in RELATIVES[name].read.values():
        assert target.lstrip("!") in {*READ, *KEYS}, target


@pytest.mark.parametrize("name", NAMES)
def test_a_small_job_is_recognised_and_read(name: str) -> None:
    found = read(name, written(name))
    assert found.program == RELATIVES[name].title
    assert (found.gpus, found.keys["training.global_batch"], dict(found.unknown)) == (8, 64, {})
    assert all(not argument.startswith("--") or name == "megatron-deepspeed" for argument in found.read)
    assert "Megatron-LM" not in " ".join([*found.read.values(), *found.assumed.values()])


@pytest.mark.parametrize("name", NAMES)
def test_what_changes_a_result_is_told_apart(name: str) -> None:
    reasons = list(RELATIVES[name].ignored.values())
    assert any(map(changes_results, reasons))
    assert not all(map(changes_results, reasons))


@pytest.mark.parametrize(
    ("name", "settings", "key", "value"),
    [
        ("megatron-deepspeed", {"--zero-stage": 2}, "zero", 2),
        ("megatron-deepspeed", {"--zero-stage": 0}, "zero", 1),
        ("megatron-deepspeed", {"--checkpoint-activations": ""}, "recompute", "full"),
        ("megatron-deepspeed", {"--recompute-activations": ""}, "recompute", "selective"),
        ("megatron-deepspeed", {"--ds-sequence-parallel-size": 2}, "context", 2),
        ("megatron-deepspeed", {"--ds-sequence-parallel-size": 2}, "context_exchange", "all-to-all"),
        ("megatron-deepspeed", {"--no-pipeline-parallel": ""}, "pipeline", 1),
        ("megatron-deepspeed", {"--use-flash-attn-v2": ""}, "software.flash_attention", True),
        ("megatron-deepspeed", {}, "software.name", "megatron-deepspeed"),
        ("nemo", {"model.tensor_model_parallel_size": 2}, "tensor", 2),
        ("nemo", {"model.virtual_pipeline_model_parallel_size": 2}, "virtual_stages", 2),
        ("nemo", {"model.optim.name": "fused_adam"}, "zero", 0),
        ("nemo", {}, "zero", 1),
        ("nemo", {}, "overlap.data", 0.45),
        ("nemo", {"model.optim.overlap_grad_sync": False}, "overlap.data", 0.0),
        ("nemo", {"model.optim.overlap_param_sync": True}, "overlap.data", 0.9),
        ("nemo", {"model.optim.grad_sync_dtype": "bf16"}, "gradients", "bf16"),
        ("nemo", {"model.activations_checkpoint_granularity": "full"}, "recompute", "full"),
        ("nemo", {"model.fp8": True}, "precision", "fp8"),
        ("nemo", {"model.fsdp": True}, "zero", 3),
        ("nemo", {"model.peft.peft_scheme": "lora"}, "phase", "fine-tuning-lora"),
        ("nemo", {"model.peft.peft_scheme": "lora"}, "lora.rank", 32),
        ("nemo", {"model.peft.peft_scheme": "lora"}, "lora.targets", ("linear_qkv",)),
        (
            "nemo",
            {"model.peft.peft_scheme": "lora", "model.peft.lora_tuning.adapter_dim": 8},
            "lora.rank",
            8,
        ),
        (
            "nemo",
            {"model.peft.peft_scheme": "lora", "model.peft.lora_tuning.target_modules": ["attention_dense", "mlp"]},
            "lora.targets",
            ("linear_proj", "linear_fc1", "linear_fc2"),
        ),
        ("gpt-neox", {"model_parallel_size": 2}, "tensor", 2),
        ("gpt-neox", {"pipe_parallel_size": 0}, "pipeline", 1),
        ("gpt-neox", {"zero_optimization.stage": 3}, "zero", 3),
        ("gpt-neox", {"zero_optimization.stage": 0}, "zero", 1),
        ("gpt-neox", {"zero_optimization.stage": 0, "bf16.enabled": False, "fp16.enabled": True}, "zero", 0),
        ("gpt-neox", {"checkpoint_activations": True}, "recompute", "full"),
        ("gpt-neox", {"attention_config": [[["flash"], 8]]}, "software.flash_attention", True),
        ("gpt-neox", {"attention_config": [[["global"], 8]]}, "software.flash_attention", False),
        ("torchtitan", {"parallelism.tensor_parallel_degree": 2}, "tensor", 2),
        ("torchtitan", {}, "zero", 3),
        ("torchtitan", {"parallelism.data_parallel_shard_degree": 1}, "zero", 0),
        ("torchtitan", {"parallelism.fsdp_reshard_after_forward": "never"}, "zero", 2),
        ("torchtitan", {"parallelism.pipeline_parallel_degree": 2}, "zero", 1),
        ("torchtitan", {"activation_checkpoint.mode": "full"}, "recompute", "full"),
        ("torchtitan", {"activation_checkpoint.mode": "selective"}, "recompute", "operations"),
        (
            "torchtitan",
            {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "2"},
            "recompute_every",
            2,
        ),
        ("torchtitan", {"model.converters": ["float8"]}, "precision", "fp8"),
        ("torchtitan", {"model.converters": "mx"}, "precision", "mxfp8"),
        ("llm-foundry", {"fsdp_config.sharding_strategy": "SHARD_GRAD_OP"}, "zero", 2),
        ("llm-foundry", {"fsdp_config.mixed_precision": "PURE"}, "gradients", "bf16"),
        ("llm-foundry", {"fsdp_config.activation_checkpointing": True}, "recompute", "full"),
        ("llm-foundry", {"model.attn_config.attn_impl": "torch"}, "software.flash_attention", False),
        ("llm-foundry", {"precision": "amp_fp8"}, "precision", "fp8"),
    ],
)
def test_settings_become_keys(name: str, settings: dict[str, Any], key: str, value: Any) -> None:
    assert read(name, written(name, settings)).keys[f"training.{key}"] == value


@pytest.mark.parametrize(
    ("name", "settings", "setting"),
    [
        ("megatron-deepspeed", {"--zero-stage": 4}, "--zero-stage"),
        ("megatron-deepspeed", {"--batch-size": 4}, "--batch-size"),
        ("nemo", {"trainer.precision": 32}, "trainer.precision"),
        ("nemo", {"model.num_layers": "many"}, "model.num_layers"),
        ("nemo", {"model.activation": "sine"}, "model.activation"),
        ("nemo", {"model.peft.peft_scheme": "ia3"}, "model.peft.peft_scheme"),
        (
            "nemo",
            {"model.peft.peft_scheme": "lora", "model.peft.lora_tuning.target_modules": ["attention_qk"]},
            "model.peft.lora_tuning.target_modules",
        ),
        ("nemo", {"model.num_attention_head": 8}, "model.num_attention_head"),
        ("gpt-neox", {"precision": "fp32"}, "precision"),
        ("gpt-neox", {"attention_config": [[["global", "local"], 4]]}, "attention_config"),
        ("gpt-neox", {"zero_optimization.stage": 7}, "zero_optimization.stage"),
        ("torchtitan", {"model.flavor": "9B"}, "model.flavor"),
        ("torchtitan", {"model.name": "flux"}, "model.name"),
        ("torchtitan", {"activation_checkpoint.mode": "memory_budget"}, "activation_checkpoint.mode"),
        ("torchtitan", {"parallelism.tensor_parallel_degre": 2}, "parallelism.tensor_parallel_degre"),
        ("llm-foundry", {"device_train_microbatch_size": "auto"}, "device_train_microbatch_size"),
        ("llm-foundry", {"precision": "fp32"}, "precision"),
        ("llm-foundry", {"model.name": "other"}, "model.name"),
        ("llm-foundry", {"model.expansion_ratio": "x"}, "model.expansion_ratio"),
    ],
)
def test_mistakes_are_in_the_words_of_the_job(name: str, settings: dict[str, Any], setting: str) -> None:
    mistakes = refused(name, written(name, settings))
    assert setting in mistakes
    if name != "megatron-deepspeed":
        assert not any(path.startswith("--") or "Megatron-LM" in text for path, text in mistakes.items())


def test_overrides_of_hydra_are_read_like_the_file() -> None:
    found = read_job(overrides(NEMO))
    assert found.program == "NeMo"
    assert dict(found.keys) == dict(read("nemo", written("nemo"), gpus=None).keys)
    assert found.gpus == 8


def test_a_command_takes_the_defaults_of_its_programs_file() -> None:
    text = overrides({**NEMO, "model.ffn_hidden_size": 1024}).replace("megatron_gpt_", "megatron_llama_")
    found = read_job(f"{text} --config-name=base ~model.optim.name")
    assert found.model is not None
    assert (found.model.is_gated, found.model.has_dropout, found.model.has_tied_embeddings) == (True, False, False)
    assert changes_results(found.ignored["--config-name"])
    assert found.keys["training.zero"] == 0


def test_references_of_yaml_are_followed_and_others_are_named() -> None:
    text = written("nemo", {"model.max_position_embeddings": "${.encoder_seq_length}", "model.data.data_prefix": "???"})
    found = read("nemo", text)
    assert found.model is not None
    assert found.model.sequence == 2048
    mistakes = refused("nemo", written("nemo", {"model.num_layers": "${oc.env:LAYERS}"}))
    assert "oc.env:LAYERS" in mistakes["model.num_layers"]


def test_torchtitans_selective_recomputation_has_a_name() -> None:
    text = """
        [model]
        name = "llama3"
        flavor = "8B"
        [training]
        local_batch_size = 2
        seq_len = 8192
        compile = true
        [parallelism]
        data_parallel_shard_degree = -1
        [activation_checkpoint]
        mode = "selective"
        selective_ac_option = "op"
    """
    found = read("torchtitan", text)
    assert (found.keys["training.model"], found.keys["training.recompute"]) == ("llama-3-8b", "operations")
    assert (found.keys["training.micro_batch"], found.keys["training.global_batch"]) == (2, 16)
    assert changes_results(found.ignored["training.compile"])
    assert found.places["training.recompute"] == ("activation_checkpoint.selective_ac_option", 13)


def test_bloom_is_read_as_its_program_runs_it() -> None:
    """bigscience's tr11-176B: ZeRO stage 0 with BF16 shards the state of the optimizer."""
    text = """
        MODEL="--num-layers 70 --hidden-size 14336 --num-attention-heads 112 --seq-length 2048"
        MODEL="$MODEL --max-position-embeddings 2048 --position-embedding-type alibi --embed-layernorm"
        MORE="--deepspeed --deepspeed_config ds.json --zero-stage 0 --checkpoint-activations --pad-vocab-size-to 250880"
        torchrun --nproc_per_node 8 --nnodes 48 pretrain_gpt.py $MODEL $MORE --micro-batch-size 2 --bf16 \\
            --global-batch-size 2048 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 12
    """
    found = read_job(text)
    assert (found.program, found.gpus) == ("Megatron-DeepSpeed", 384)
    assert (found.keys["training.zero"], found.keys["training.recompute"]) == (1, "full")
    assert found.model is not None
    assert found.model.vocabulary == 250_880
    assert changes_results(found.ignored["--deepspeed_config"])
    assert not changes_results(found.ignored["--embed-layernorm"])


def test_hugging_face_models_of_llm_foundry_are_found_by_their_repository() -> None:
    name = {
        "model.name": "hf_causal_lm",
        "model.pretrained_model_name_or_path": "meta-llama/Meta-Llama-3.1-8B-Instruct",
    }
    assert read("llm-foundry", written("llm-foundry", name)).keys["training.model"] == "llama-3-8b"
    name["model.pretrained_model_name_or_path"] = "meta-llama/Llama-3.2-3B"
    assert "model.pretrained_model_name_or_path" in refused("llm-foundry", written("llm-foundry", name))


def test_a_script_that_names_the_file_of_its_settings_says_which() -> None:
    with pytest.raises(ConfigError, match=r"weftwork import \./configs/llama3_8b\.toml") as caught:
        read_job("#!/bin/bash\ntorchrun -m torchtitan.train --job.config_file ./configs/llama3_8b.toml\n")
    assert caught.value.mistakes[0].line == 2


def test_flavors_are_models_of_the_catalogue() -> None:
    assert set(FLAVORS.values()) <= set(MODELS)
