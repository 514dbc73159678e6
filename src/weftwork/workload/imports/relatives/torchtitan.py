"""Jobs of torchtitan: a TOML file with ``[model]``, ``[training]`` and ``[parallelism]``.

Weights are sharded by FSDP (ZeRO 3); with pipeline stages they stay whole between the passes of an iteration, which
is read as ZeRO 1, as `weftwork.study.validation.peak_memory` reads torchtitan's tables. Its own selective
recomputation is ``recompute: operations``, or every n-th layer.
Source: pytorch/torchtitan, torchtitan/config/job_config.py (commit 000204a4), for names and defaults;
torchtitan/models/llama3/__init__.py (commit 00f555e1), for flavors.
Leaves out: configurations in Python, which newer releases have, and overrides on the command line.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.workload.imports.reasons import (
    CHANGES_BOTH,
    CHANGES_MEMORY,
    CHANGES_TIME,
    CHECKPOINTS,
    DATA,
    KERNELS,
    LEARNING,
    LOGGING,
    reasons_by_argument,
)
from weftwork.workload.imports.relative import JobText, Relative, SettingReader
from weftwork.workload.models.catalogue import model

__all__ = ["FLAVORS", "RELATIVE"]

# Flavors of torchtitan that are exactly a model of the catalogue.
FLAVORS: Final = {
    ("llama3", "8B"): "llama-3-8b",
    ("llama3", "70B"): "llama-3-70b",
    ("llama3", "405B"): "llama-3-405b",
    ("qwen3", "8B"): "qwen3-8b",
    ("qwen3", "32B"): "qwen3-32b",
    ("qwen3", "30B-A3B"): "qwen3-30b-a3b",
    ("qwen3", "235B-A22B"): "qwen3-235b-a22b",
    ("gpt_oss", "20b"): "gpt-oss-20b",
    ("gpt_oss", "120b"): "gpt-oss-120b",
}
_BATCH: Final = ("training.local_batch_size", "training.batch_size")  # the newer name first
_SCHEDULES: Final = {  # torch/distributed/pipelining/schedules.py
    "1f1b": "1f1b", "gpipe": "gpipe", "interleaved1f1b": "1f1b",
}  # fmt: skip
_READ: Final = {
    "model.name": "training.model",
    "model.flavor": "training.model",
    "model.converters": "training.precision",
    "training.local_batch_size": "training.micro_batch",
    "training.batch_size": "training.micro_batch",
    "training.global_batch_size": "training.global_batch",
    "training.seq_len": "--seq-length",
    "training.mixed_precision_param": "training.precision",
    "training.mixed_precision_reduce": "training.gradients",
    "parallelism.data_parallel_replicate_degree": "training.zero",
    "parallelism.data_parallel_shard_degree": "training.zero",
    "parallelism.fsdp_reshard_after_forward": "training.zero",
    "parallelism.tensor_parallel_degree": "--tensor-model-parallel-size",
    "parallelism.enable_async_tensor_parallel": "--tp-comm-overlap",
    "parallelism.pipeline_parallel_degree": "--pipeline-model-parallel-size",
    "parallelism.pipeline_parallel_schedule": "training.schedule",
    "parallelism.pipeline_parallel_microbatch_size": "training.micro_batch",
    "parallelism.context_parallel_degree": "--context-parallel-size",
    "parallelism.expert_parallel_degree": "--expert-model-parallel-size",
    "parallelism.expert_tensor_parallel_degree": "--expert-tensor-parallel-size",
    "activation_checkpoint.mode": "training.recompute",
    "activation_checkpoint.selective_ac_option": "training.recompute",
    "quantize.linear.float8.recipe_name": "training.precision",
    "float8.recipe_name": "training.precision",
    "checkpoint.interval": "--save-interval",
    "checkpoint.enable_checkpoint": "training.checkpoint",
    "checkpoint.enable": "training.checkpoint",
    "checkpoint.async_mode": "--async-save",
}
_GROUPS: Final = {
    f"{CHANGES_BOTH}kernels are those of training.software, fused as Megatron-LM fuses them": """
        training.compile compile.enable compile.components compile.backend parallelism.enable_compiled_autograd
    """,
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        optimizer.name optimizer.early_step_in_backward optimizer.implementation training.enable_cpu_offload
    """,
    f"{CHANGES_BOTH}weights are gathered in BF16": """
        float8.enable_fsdp_float8_all_gather float8.precompute_float8_dynamic_scale_for_fsdp
        float8.force_recompute_fp8_weight_in_bwd quantize.linear.float8.enable_fsdp_float8_all_gather
        quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp
    """,
    f"{CHANGES_BOTH}all products of layers have one precision": """
        float8.filter_fqns float8.moe_fqns_prototype float8.emulate mx.filter_fqns quantize.*
    """,
    f"{CHANGES_BOTH}layers are given to stages evenly": """
        parallelism.pipeline_parallel_split_points parallelism.pipeline_parallel_layers_per_stage
        parallelism.pipeline_parallel_schedule_csv parallelism.pipeline_parallel_first_stage_less_layers
        parallelism.pipeline_parallel_last_stage_less_layers parallelism.module_fqns_per_model_part
    """,
    f"{CHANGES_MEMORY}logits are split by tensor ranks": "parallelism.disable_loss_parallel",
    f"{CHANGES_TIME}context ranks pass keys and values on in a ring": "parallelism.context_parallel_rotate_method",
    f"{CHANGES_BOTH}products are named by place, not by size": """
        activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns activation_checkpoint.early_stop
        activation_checkpoint.memory_budget
    """,
    f"{CHANGES_TIME}copies of a job are no part of a scenario": "fault_tolerance.*",
    f"{CHANGES_TIME}nothing pauses an iteration": """
        training.gc_freq training.gc_debug training.deterministic validation.* profiling.enable_profiling
        profiling.enable_memory_snapshot debug.*
    """,
    "balance is assumed: every expert gets as many tokens as the others": "training.debug_moe_force_load_balance",
    KERNELS: "mx.mxfp8_dim1_cast_kernel_choice mx.* float8.*",
    DATA: "training.dataset training.dataset_path model.tokenizer_path model.hf_assets_path",
    LEARNING: "optimizer.* lr_scheduler.* training.max_norm training.steps training.seed training.warmup_steps",
    LOGGING: """
        job.* profiling.* metrics.* comm.* memory_estimation.* experimental.* model.print_after_conversion
        activation_checkpoint.visualize_memory_budget_pareto activation_checkpoint.preserve_rng_state
        activation_checkpoint.determinism_check activation_checkpoint.debug training.data_parallel_degree
    """,
    CHECKPOINTS: "checkpoint.*",
}
_ANYWAY: Final = {
    "training.compile": ("false",),
    "compile.enable": ("false",),
    "optimizer.name": ("AdamW", "Adam"),
    "optimizer.implementation": ("fused",),
    "optimizer.early_step_in_backward": ("false",),
    "training.enable_cpu_offload": ("false",),
    "parallelism.disable_loss_parallel": ("false",),
    "parallelism.enable_compiled_autograd": ("false",),
    "training.deterministic": ("false",),
    "training.gc_debug": ("false",),
    "fault_tolerance.enable": ("false",),
    "validation.enabled": ("false",),
    "validation.enable": ("false",),
    "profiling.enable_profiling": ("false",),
    "profiling.enable_memory_snapshot": ("false",),
    "float8.enable_fsdp_float8_all_gather": ("false",),
    "float8.precompute_float8_dynamic_scale_for_fsdp": ("false",),
    "float8.emulate": ("false",),
}
_EVERY_LAYER: Final = 2  # job_config.py: selective_ac_option of older releases


def _recognises(job: JobText) -> bool:
    """A TOML file with sections of torchtitan."""
    return job.form == "toml" and job.has("parallelism", "activation_checkpoint", "training.seq_len", "model.flavor")


def _translate(job: SettingReader) -> None:
    _model(job)
    _batch(job)
    _sharding(job)
    _precision(job)
    _recompute(job)
    _checkpoint(job)
    _schedule(job)
    job.same()
    if (job.whole("parallelism.tensor_parallel_degree", 1) or 1) > 1:
        job.assume("--sequence-parallel", reason="tensor ranks of torchtitan split norms along the sequence")
    job.assume("--overlap-grad-reduce", reason="FSDP sums gradients while a backward pass runs")
    job.assume("--overlap-param-gather", reason="FSDP gathers weights while it computes")


def _model(job: SettingReader) -> None:
    name, flavor = job.text("model.name") or "llama3", job.text("model.flavor")
    names = {known for known, _ in FLAVORS}
    if name not in names:
        wanted = f"found '{name[:60]}', wanted {', '.join(sorted(names))}: models of the catalogue"
        job.wrong("model.name", wanted, nearest(name, sorted(names)))
        return
    flavors = [known for kind, known in FLAVORS if kind == name]
    if flavor not in flavors:
        found = "missing" if flavor is None else f"found '{flavor[:60]}'"
        fix = None if flavor is None else nearest(flavor, flavors)
        job.wrong("model.flavor", f"{found}, wanted {' or '.join(flavors)}: models of the catalogue", fix)
        return
    job.model = model(FLAVORS[name, flavor])
    for setting in ("model.name", "model.flavor"):
        if job.has(setting):
            job.say(setting, f"training.model: {job.model.name}")


def _batch(job: SettingReader) -> None:
    name = job.first(*_BATCH)
    local = job.whole(name)
    if local is None:
        if not job.has(name):
            job.wrong(name, "missing, wanted a whole number")
        local = 1
    degrees = ("tensor", "pipeline", "context")
    ranks = 1
    for degree in degrees:
        ranks *= job.whole(f"parallelism.{degree}_parallel_degree", 1) or 1
    stages = job.whole("parallelism.pipeline_parallel_degree", 1) or 1
    micro, by = local, name
    if stages > 1:
        by = "parallelism.pipeline_parallel_microbatch_size"
        micro = job.whole(by, 1) or 1
        if job.has(name):
            job.say(name, "the sequences of a data parallel rank, which a pipeline takes in micro batches")
    elif job.has("parallelism.pipeline_parallel_microbatch_size"):
        job.say("parallelism.pipeline_parallel_microbatch_size", "nothing: there is one stage")
    if job.has(by):
        job.give("--micro-batch-size", str(micro), by=by)
    else:
        job.assume("--micro-batch-size", str(micro), reason=f"torchtitan's default without {by}")
    text = job.text("training.global_batch_size")
    if text is not None and text != "-1":
        batch = job.whole("training.global_batch_size")
        if batch is not None:
            job.give("--global-batch-size", str(batch), by="training.global_batch_size")
            return
    gpus = job.job_gpus
    if gpus is None or gpus % ranks:
        job.wrong("training.global_batch_size", "missing, and the number of GPUs is unknown; wanted --gpus")
        job.assume("--global-batch-size", str(local), reason="")
        return
    if text is not None:
        job.give("--global-batch-size", str(local * (gpus // ranks)), by="training.global_batch_size")
    else:
        reason = f"{local} on each of {plural(gpus // ranks, 'data parallel rank')}"
        job.assume("--global-batch-size", str(local * (gpus // ranks)), reason=reason)


def _sharding(job: SettingReader) -> None:
    copies = job.whole("parallelism.data_parallel_replicate_degree", 1) or 1
    shard, shards = "parallelism.data_parallel_shard_degree", job.text("parallelism.data_parallel_shard_degree")
    stages = job.whole("parallelism.pipeline_parallel_degree", 1) or 1
    policy_name = "parallelism.fsdp_reshard_after_forward"
    policy = job.word(policy_name, ("default", "always", "never")) or "default"
    if shards is not None and shards != "-1" and job.whole(shard) is None:
        return
    by = shard if job.has(shard) else None
    stays = policy == "never" or (policy == "default" and stages > 1)
    if shards == "1":
        job.key("training.zero", 0, by=by, text="without shards gradients are summed over copies (DDP)")
    elif stays and stages > 1:
        job.key("training.zero", 1, by=by, text="weights and gradients stay whole between the passes of a pipeline")
    elif stays:
        job.key("training.zero", 2, by=by, text="weights stay whole after a forward pass")
    else:
        job.key("training.zero", 3, by=by, text="" if by else "FSDP is torchtitan's default")
    if job.has(policy_name):
        job.say(policy_name, f"training.zero: {job.keys['training.zero'][0]}")
    replicate = "parallelism.data_parallel_replicate_degree"
    if copies > 1 and shards != "1":
        job.ignored[replicate] = (
            f"{CHANGES_BOTH}data parallel ranks are one group (this job has {plural(copies, 'copy', 'copies')})"
        )
        job.settings.pop(replicate)
    elif job.has(replicate):
        job.say(replicate, "training.zero: 0" if shards == "1" else "nothing: there is one copy of the shards")


def _precision(job: SettingReader) -> None:
    param = "training.mixed_precision_param"
    if job.word(param, ("bfloat16", "float32")) == "float32":
        job.wrong(param, "found 'float32', wanted bfloat16: a scenario does not compute in FP32")
    job.assume("--bf16", reason="torchtitan's default without training.mixed_precision_param")
    if job.has(param):
        job.give("--bf16", by=param)
    reduce = "training.mixed_precision_reduce"
    width = job.word(reduce, ("float32", "bfloat16"))
    if width == "bfloat16":
        job.give("--grad-reduce-in-bf16", by=reduce)
    elif width is not None:
        job.say(reduce, "training.gradients: fp32")
    converters = job.settings.get("model.converters")
    words = () if converters is None else converters.texts or tuple(converters.text.replace(",", " ").split())
    for word in words:
        last = word.rpartition(".")[2]
        if "float8" in last and "moe" not in word:
            job.give("--fp8-format", "hybrid", by="model.converters")
        elif last in {"mx", "mxfp8"}:
            job.give("--fp8-format", "e4m3", by="model.converters")
            job.given["--fp8-recipe"] = job.given["--fp8-format"].__class__(
                argument="--fp8-recipe", values=("mxfp8",), line=converters.line if converters else None
            )
            job.names["--fp8-recipe"] = "model.converters"
        else:
            job.wrong("model.converters", f"found '{word[:60]}', wanted float8 or mx")
    if converters is not None and not words:
        job.say("model.converters", "nothing: the list is empty")
    for name in ("float8.recipe_name", "quantize.linear.float8.recipe_name"):
        if job.has(name):
            job.say(name, "nothing: scales of FP8 are left out of its time")


def _recompute(job: SettingReader) -> None:
    mode_name, option_name = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
    mode = job.word(mode_name, ("none", "selective", "full", "memory_budget"))
    if mode == "memory_budget":
        job.wrong(mode_name, "found 'memory_budget', which the compiler decides; wanted none, selective or full")
        return
    by = mode_name if job.has(mode_name) else None
    option = job.text(option_name)
    if mode in {"none", "full"}:
        job.key("training.recompute", mode, by=by)
        if option is not None:
            job.say(option_name, f"nothing: the mode is {mode}")
        return
    by = option_name if job.has(option_name) else by
    if option is None:
        option = "op" if mode == "selective" else str(_EVERY_LAYER)
    if option == "op":
        text = "results of attention and of every second matrix product are kept"
        job.key("training.recompute", "operations", by=by, text=text)
    elif option.isdecimal() and len(option) < 7:
        every = max(int(option), 1)
        job.key("training.recompute", "full", by=by)
        if every > 1:
            job.key("training.recompute_every", every, by=by)
    else:
        job.wrong(option_name, f"found '{option[:60]}', wanted op or a whole number")
    if by == option_name and job.has(mode_name):
        job.say(mode_name, "training.recompute: what selective_ac_option says")


def _checkpoint(job: SettingReader) -> None:
    name = job.first("checkpoint.enable", "checkpoint.enable_checkpoint")
    is_on = job.flag(name)
    if job.has(name):
        job.say(name, "training.checkpoint" if is_on else "nothing: it is off")
    if not is_on:
        for off in ("checkpoint.interval", "checkpoint.async_mode"):
            if job.has(off):
                job.read[off] = "nothing: checkpoints are off"
                job.settings.pop(off)
        return
    if not job.has("checkpoint.interval"):
        job.assume("--save-interval", "500", reason="torchtitan's default without checkpoint.interval")
    mode = job.word("checkpoint.async_mode", ("disabled", "async", "async_with_pinned_mem"))
    if mode is not None and mode != "disabled":
        job.give("--async-save", by="checkpoint.async_mode")
    elif mode is not None:
        job.say("checkpoint.async_mode", "nothing: checkpoints are stored while the job waits")
    job.settings.pop("checkpoint.async_mode", None)


def _schedule(job: SettingReader) -> None:
    name = "parallelism.pipeline_parallel_schedule"
    stages = job.whole("parallelism.pipeline_parallel_degree", 1) or 1
    text = job.text(name)
    if text is None:
        return
    if stages == 1:
        job.say(name, "nothing: there is one stage")
        return
    known = _SCHEDULES.get(text.lower())
    if known is None:
        job.ignored[name] = f"{CHANGES_BOTH}the schedule is 1f1b, not {text[:60]}"
        job.settings.pop(name)
        return
    job.key("training.schedule", known, by=name)
    if text.lower().startswith("interleaved"):
        job.give("--num-virtual-stages-per-pipeline-rank", "2", by=name)


RELATIVE: Final = Relative(
    title="torchtitan",
    form="a TOML file with [model], [training] and [parallelism]",
    source="pytorch/torchtitan, torchtitan/config/job_config.py",
    recognises=_recognises,
    translate=_translate,
    read=_READ,
    ignored=reasons_by_argument(_GROUPS),
    anyway=_ANYWAY,
)
