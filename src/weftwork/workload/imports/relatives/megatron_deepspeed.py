"""Jobs of Megatron-DeepSpeed: arguments of Megatron-LM, and those of ZeRO, DeepSpeed and its experts.

With ``--bf16`` and ZeRO stage 0 DeepSpeed's optimizer for BF16 shards its state over data parallel ranks all the same,
as ZeRO 1 does: bigscience-workshop/bigscience, train/tr11-176B-ml/tr11-176B-ml.slurm, "bf16 must use z0! it implements
its own zero stage 1 equivalent". Sequence parallel ranks of DeepSpeed (Ulysses) are read as context ranks that exchange
heads.
Source: microsoft/Megatron-DeepSpeed, megatron/arguments.py (commit 060fb402, and its later main branch);
bigscience-workshop/Megatron-DeepSpeed, megatron/arguments.py, for ``--pad-vocab-size-to`` and ``--embed-layernorm``.
Leaves out: the file of ``--deepspeed_config``, which a script often writes itself.
"""

from __future__ import annotations

from typing import Final

from weftwork.workload.imports.megatron_arguments import ANYWAY, IGNORED, READ
from weftwork.workload.imports.megatron_words import Launch
from weftwork.workload.imports.reasons import (
    CHANGES_BOTH,
    CHANGES_MEMORY,
    CHANGES_TIME,
    CHECKPOINTS,
    DATA,
    KERNELS,
    LEARNING,
    LOGGING,
    SHAPES,
    reasons_by_argument,
)
from weftwork.workload.imports.relative import JobText, Relative, SettingReader
from weftwork.workload.models.software import SOFTWARE

__all__ = ["RELATIVE"]

_GENERATION: Final = "megatron-deepspeed"
_MARKS: Final = frozenset(
    {
        "--deepspeed", "--deepspeed_config", "--deepspeed-config", "--deepspeed_mpi", "--zero-stage",
        "--ds-sequence-parallel-size", "--deepspeed-activation-checkpointing", "--no-pipeline-parallel",
        "--pad-vocab-size-to", "--zero-reduce-scatter", "--zero-contigious-gradients",
    }
)  # fmt: skip
_FLASH: Final = ("--use-flash-attn", "--use-flash-attn-v1", "--use-flash-attn-v2", "--use-flash-attn-triton",
                 "--use-flash-attn-builder")  # fmt: skip
_READ: Final = {
    **{argument: argument for argument in READ if argument not in {"--num-experts", "--moe-router-topk"}},
    "--zero-stage": "training.zero",
    "--checkpoint-activations": "training.recompute",
    "--no-pipeline-parallel": "training.pipeline",
    "--ds-sequence-parallel-size": "training.context",
    "--encoder-seq-length": "--seq-length",
    "--pad-vocab-size-to": "--padded-vocab-size",
    "--num-key-value-heads": "--num-query-groups",
    "--num-experts": "--num-experts",
    "--topk": "--moe-router-topk",
    "--expert-interval": "--moe-layer-freq",
    "--moe-expert-parallel-size": "--expert-model-parallel-size",
    "--fp8-e4m3": "--fp8-format",
    "--fp8-hybrid": "--fp8-format",
    **dict.fromkeys(_FLASH, "--attention-backend"),
}
_GROUPS: Final = {
    f"{CHANGES_BOTH}the file of DeepSpeed's own settings is not read; --zero-stage says the stage of ZeRO": """
        --deepspeed_config --deepspeed-config
    """,
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        --cpu-optimizer --cpu_torch_adam --remote-device --use-pin-memory --ds_fused_adam
    """,
    f"{CHANGES_BOTH}every layer is computed again under recompute: full": """
        --checkpoint-num-layers --distribute-checkpointed-activations --checkpoint-in-cpu --split-transformers
    """,
    f"{CHANGES_MEMORY}a rank keeps what it needs to compute a layer again": """
        --partition-activations --scattered-embeddings --contigious-checkpointing
    """,
    f"{CHANGES_BOTH}matrix products are whole": "--memory-centric-tiled-linear --tile-factor",
    f"{CHANGES_BOTH}sequences have one length from the start": """
        --curriculum-learning --data-efficiency-curriculum-learning --random-ltd --variable-seq-lengths
    """,
    f"{CHANGES_BOTH}every layer of experts is alike, and a token goes to experts alone": "--mlp-type",
    f"{CHANGES_BOTH}weights and gradients are whole numbers of the model": """
        --compression-training --mos --kd --kd-beta-ce --kd-alpha-ce --kd-temp
    """,
    f"{CHANGES_TIME}weight gradients follow gradients of inputs": """
        --enable-zbh1-pipeline --enable-zbh1-exact-semantics
    """,
    f"{CHANGES_TIME}nothing pauses an iteration": "--synchronize-each-layer --profile-backward",
    f"{CHANGES_TIME}data parallel ranks sum gradients as ZeRO does": """
        --zero-reduce-scatter --zero-contigious-gradients --zero-reduce-bucket-size --zero-allgather-bucket-size
        --create-moe-param-group --enable-expert-tensor-parallelism --use-tutel
    """,
    "balance is assumed: every expert gets as many tokens as the others": """
        --moe-train-capacity-factor --moe-eval-capacity-factor --moe-min-capacity --disable-moe-token-dropping
        --moe-token-dropping --moe-top2-2nd-expert-sampling --moe-loss-coeff
    """,
    "what the launcher and DeepSpeed's engine need; says nothing about time": """
        --deepspeed --deepspeed_mpi --deepspeed-activation-checkpointing --force-ds-sequence-parallel --DDP-impl
        --ds-inference --use-one-sent-docs --local_rank --universal-checkpoint --load-tag --no-load-lr-state
    """,
    KERNELS: "--no-scaled-masked-softmax-fusion --bias-dropout-fusion --sync-tp-duplicated-parameters --use-rotary-v2",
    SHAPES: "--embed-layernorm --embed-norm --layernorm-epsilon --mem-efficient-ln --no-mem-efficient-ln",
    DATA: """
        --tokenizer-name-or-path --aml-data-download-path --train-data-exact-num-epochs --return-data-index
        --train-idx-path --train-desc-path --train-doc-idx-path --train-sample-idx-path --train-shuffle-idx-path
        --repeated-dataloader --train-weighted-split-paths --train-weighted-split-paths-path --valid-num-workers
        --mmap-warmup --multiple-valid-sets --skip-warmup
    """,
    LEARNING: """
        --train-tokens --lr-decay-tokens --lr-warmup-tokens --reset-iteration --inverse-sqrt
        --skip-train-iteration-range
    """,
    LOGGING: """
        --log-optimizer-states-to-tensorboard --codecarbon-dir --kill-switch-path --log-path
        --abort-on-unmet-fused-kernel-constraints
    """,
    CHECKPOINTS: "--verify-checkpoint --verify-checkpoint-model-type",
}
_REFUSED: Final = {
    "--batch-size": "is no longer valid in Megatron-DeepSpeed; wanted --micro-batch-size",
    "--model-parallel-size": "is no longer valid in Megatron-DeepSpeed; wanted --tensor-model-parallel-size",
    "--warmup": "is no longer valid in Megatron-DeepSpeed; wanted --lr-warmup-fraction",
}


def _recognises(job: JobText) -> bool:
    """A command with an argument that only this fork has."""
    return job.launch is not None and any(one.argument in _MARKS for one in job.launch.given)


def _translate(job: SettingReader) -> None:
    launch = job.job.launch or Launch(given=())
    job.nodes, job.gpus_per_node = launch.nodes, launch.gpus_per_node
    same = {name for name, target in _READ.items() if name == target and name != "--num-experts"}
    for one in launch.given:
        if one.argument in same:
            job.repeated += [job.given[one.argument]] if one.argument in job.given else []
            job.given[one.argument] = one
            job.names[one.argument] = one.argument
    if job.has("--encoder-seq-length"):
        _value(job, "--seq-length", "--encoder-seq-length")
    if job.has("--pad-vocab-size-to"):
        _value(job, "--padded-vocab-size", "--pad-vocab-size-to")
    if job.has("--num-key-value-heads"):
        job.give("--group-query-attention", by="--num-key-value-heads")
        _value(job, "--num-query-groups", "--num-key-value-heads")
    _zero(job)
    _layers(job)
    _experts(job)
    for name in _FLASH:
        if job.has(name):
            job.give("--attention-backend", "flash", by=name)
    for name, form in (("--fp8-e4m3", "e4m3"), ("--fp8-hybrid", "hybrid")):
        if job.has(name):
            job.give("--fp8-format", form, by=name)
    title = SOFTWARE[_GENERATION].title
    job.key("training.software.name", _GENERATION, text=f"{title[0].lower()}{title[1:]}")


def _value(job: SettingReader, argument: str, name: str) -> None:
    value = job.text(name)
    if value is not None:
        job.give(argument, value, by=name)


def _zero(job: SettingReader) -> None:
    """Stages of ZeRO; without ``--deepspeed`` Megatron-LM's own rules hold."""
    is_on = any(one.name in {"--deepspeed", "--zero-stage"} for one in job.job.settings) or job.has("--zero-stage")
    stage = job.whole("--zero-stage", 1, low=0)
    if stage is not None and stage > 3:
        job.wrong("--zero-stage", f"found '{stage}', wanted a whole number from 0 to 3")
    if not is_on or stage is None:
        return
    has_state_shards = stage == 0 and "--bf16" in job.given
    by = "--zero-stage" if job.has("--zero-stage") else None
    if has_state_shards:
        job.key("training.zero", 1, by=by, text="DeepSpeed's optimizer for BF16 shards its state at stage 0 too")
    else:
        text = "" if by else "Megatron-DeepSpeed's default without --zero-stage"
        job.key("training.zero", min(stage, 3), by=by, text=text)


def _layers(job: SettingReader) -> None:
    if job.has("--checkpoint-activations"):
        job.flag("--checkpoint-activations")
        job.give("--recompute-granularity", "full", by="--checkpoint-activations")
    if job.has("--no-pipeline-parallel"):
        job.give("--pipeline-model-parallel-size", "1", by="--no-pipeline-parallel")
    ranks = job.whole("--ds-sequence-parallel-size")
    if ranks is not None:
        job.give("--context-parallel-size", str(ranks), by="--ds-sequence-parallel-size")
        if ranks > 1:
            job.give("--cp-comm-type", "a2a", by="--ds-sequence-parallel-size")


def _experts(job: SettingReader) -> None:
    """Experts: a list with one number, of which 1 means none."""
    experts = job.whole("--num-experts")
    if experts is None or experts == 1:
        if experts == 1:
            job.say("--num-experts", "nothing: one expert is a dense layer")
        return
    job.give("--num-experts", str(experts), by="--num-experts")
    if job.has("--topk"):
        _value(job, "--moe-router-topk", "--topk")
    else:
        job.assume("--moe-router-topk", "1", reason="Megatron-DeepSpeed's default without --topk")
    if job.has("--expert-interval"):
        _value(job, "--moe-layer-freq", "--expert-interval")
    else:
        job.assume("--moe-layer-freq", "2", reason="Megatron-DeepSpeed's default without --expert-interval")
    if job.has("--moe-expert-parallel-size"):
        _value(job, "--expert-model-parallel-size", "--moe-expert-parallel-size")


RELATIVE: Final = Relative(
    title="Megatron-DeepSpeed",
    form="a script that starts it, with --deepspeed or --zero-stage",
    source="microsoft/Megatron-DeepSpeed, megatron/arguments.py",
    recognises=_recognises,
    translate=_translate,
    read=_READ,
    ignored={**{one: why for one, why in IGNORED.items() if one not in _READ}, **reasons_by_argument(_GROUPS)},
    anyway={**ANYWAY, "--checkpoint-num-layers": ("1",), "--mlp-type": ("standard",), "--remote-device": ("none",)},
    refused=_REFUSED,
)
