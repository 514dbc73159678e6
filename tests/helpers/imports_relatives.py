"""Jobs of Megatron-LM's relatives: a small one of each, and the same training section written for any of them."""

from __future__ import annotations

import json
from typing import Any

from weftwork.workload.imports.job_file import read_job
from weftwork.workload.imports.megatron import MegatronImport

SUFFIX = {
    "megatron-deepspeed": ".sh", "nemo": ".yaml", "gpt-neox": ".yml", "torchtitan": ".toml", "llm-foundry": ".yaml",
}  # fmt: skip

DEEPSPEED = (
    "deepspeed --num_nodes 2 --num_gpus 4 pretrain_gpt.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 "
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 "
    "--vocab-size 1000 --deepspeed --zero-stage 1"
)
NEMO: dict[str, Any] = {
    "trainer.precision": "bf16",
    "trainer.devices": 4,
    "trainer.num_nodes": 2,
    "model.num_layers": 8,
    "model.hidden_size": 512,
    "model.num_attention_heads": 8,
    "model.encoder_seq_length": 2048,
    "model.micro_batch_size": 1,
    "model.global_batch_size": 64,
    "model.override_vocab_size": 1000,
    "model.optim.name": "distributed_fused_adam",
}
NEOX: dict[str, Any] = {
    "pipe_parallel_size": 1,
    "model_parallel_size": 1,
    "num_nodes": 2,
    "num_gpus": 4,
    "num_layers": 8,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "seq_length": 2048,
    "max_position_embeddings": 2048,
    "train_micro_batch_size_per_gpu": 1,
    "train_batch_size": 64,
    "padded_vocab_size": 1000,
    "bf16.enabled": True,
    "zero_optimization.stage": 1,
}
TITAN: dict[str, Any] = {
    "model.name": "llama3",
    "model.flavor": "8B",
    "training.local_batch_size": 1,
    "training.global_batch_size": 64,
    "training.seq_len": 8192,
    "parallelism.tensor_parallel_degree": 1,
    "activation_checkpoint.mode": "none",
}
FOUNDRY: dict[str, Any] = {
    "max_seq_len": 2048,
    "global_train_batch_size": 64,
    "device_train_microbatch_size": 1,
    "precision": "amp_bf16",
    "model.name": "mpt_causal_lm",
    "model.d_model": 512,
    "model.n_heads": 8,
    "model.n_layers": 8,
    "model.vocab_size": 1000,
    "fsdp_config.sharding_strategy": "FULL_SHARD",
}
SMALL: dict[str, Any] = {
    "megatron-deepspeed": DEEPSPEED, "nemo": NEMO, "gpt-neox": NEOX, "torchtitan": TITAN, "llm-foundry": FOUNDRY,
}  # fmt: skip


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Dotted settings as a tree; a setting that is also a section gives way to the section."""
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        *above, last = name.split(".")
        section = tree
        for part in above:
            if not isinstance(section.get(part), dict):
                section[part] = {}
            section = section[part]
        if not isinstance(section.get(last), dict):
            section[last] = value
    return tree


def toml_of(tree: dict[str, Any], above: str = "") -> str:
    """A tree as TOML."""
    plain = [f"{key} = {json.dumps(value)}" for key, value in tree.items() if not isinstance(value, dict)]
    inner = [toml_of(value, f"{above}{key}.") for key, value in tree.items() if isinstance(value, dict)]
    head = [f"[{above[:-1]}]"] if above and plain else []
    return "\n".join([*head, *plain, *inner])


def written(name: str, settings: dict[str, Any] | None = None, more: str = "") -> str:
    """The small job of a relative with further settings, as its file."""
    if name == "megatron-deepspeed":
        words = [f"{key} {value}".strip() for key, value in (settings or {}).items()]
        return " ".join([DEEPSPEED, *words, more])
    both = {**SMALL[name], **(settings or {})}
    return toml_of(nested(both)) if name == "torchtitan" else json.dumps(nested(both), indent=1)


def overrides(settings: dict[str, Any]) -> str:
    """Settings of NeMo as overrides of a command."""
    words = [
        f"{key}={'true' if value is True else 'false' if value is False else value}" for key, value in settings.items()
    ]
    return f"torchrun megatron_gpt_pretraining.py {' '.join(words)}"


def read(name: str, text: str, **options: Any) -> MegatronImport:
    """The import of a relative's file."""
    return read_job(text, suffix=SUFFIX[name], **{"gpus": 8, **options})
