"""Jobs of NeMo with Hydra: ``megatron_gpt_pretraining.py model.num_layers=32 ...``, or its file of settings.

Source: NVIDIA/NeMo 1.x, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml (commit 000763d0) and
megatron_llama_config.yaml (commit 00a115fe), for names and defaults; NVIDIA/apex,
apex/contrib/optimizers/distributed_fused_adam.py, for ``overlap_grad_sync``; nemo/collections/nlp/parts/peft_config.py
(PEFT_MODULE_MAP, get_target_modules) for adapters; their rank of 32 is that of its files of fine-tuning, unverified.
Leaves out: the file of settings behind a command, of which a program's own defaults are taken; recipes of NeMo 2 in
Python.
"""

from __future__ import annotations

from typing import Final

from weftwork.base.nearest import nearest
from weftwork.spec.scenario.kinds import either
from weftwork.workload.imports.megatron_words import Given
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

__all__ = ["RELATIVE"]

_READ: Final = {
    "trainer.devices": "fabric.gpus",
    "trainer.num_nodes": "fabric.gpus",
    "trainer.precision": "training.precision",
    "model.micro_batch_size": "--micro-batch-size",
    "model.global_batch_size": "--global-batch-size",
    "model.tensor_model_parallel_size": "--tensor-model-parallel-size",
    "model.pipeline_model_parallel_size": "--pipeline-model-parallel-size",
    "model.virtual_pipeline_model_parallel_size": "--num-virtual-stages-per-pipeline-rank",
    "model.context_parallel_size": "--context-parallel-size",
    "model.expert_model_parallel_size": "--expert-model-parallel-size",
    "model.sequence_parallel": "--sequence-parallel",
    "model.encoder_seq_length": "--seq-length",
    "model.data.seq_length": "--seq-length",
    "model.max_position_embeddings": "--max-position-embeddings",
    "model.num_layers": "--num-layers",
    "model.hidden_size": "--hidden-size",
    "model.ffn_hidden_size": "--ffn-hidden-size",
    "model.num_attention_heads": "--num-attention-heads",
    "model.kv_channels": "--kv-channels",
    "model.num_query_groups": "--num-query-groups",
    "model.hidden_dropout": "--hidden-dropout",
    "model.attention_dropout": "--attention-dropout",
    "model.activation": "model.is_gated",
    "model.share_embeddings_and_output_weights": "!--untie-embeddings-and-output-weights",
    "model.make_vocab_size_divisible_by": "--make-vocab-size-divisible-by",
    "model.override_vocab_size": "--vocab-size",
    "model.tokenizer.type": "--tokenizer-type",
    "model.num_moe_experts": "--num-experts",
    "model.moe_router_topk": "--moe-router-topk",
    "model.moe_grouped_gemm": "--moe-grouped-gemm",
    "model.qk_layernorm": "--qk-layernorm",
    "model.activations_checkpoint_granularity": "--recompute-granularity",
    "model.ub_tp_comm_overlap": "--tp-comm-overlap",
    "model.overlap_p2p_comm": "!--no-overlap-p2p-communication",
    "model.fp8": "--fp8-format",
    "model.fp8_e4m3": "--fp8-format",
    "model.fp8_hybrid": "--fp8-format",
    "model.fsdp": "training.zero",
    "model.fsdp_sharding_strategy": "training.zero",
    "model.use_flash_attention": "--attention-backend",
    "model.optim.name": "training.zero",
    "model.optim.overlap_grad_sync": "--overlap-grad-reduce",
    "model.optim.overlap_param_sync": "--overlap-param-gather",
    "model.optim.grad_sync_dtype": "--grad-reduce-in-bf16",
    "model.peft.peft_scheme": "training.phase",
    "model.peft.lora_tuning.adapter_dim": "training.lora.rank",
    "model.peft.lora_tuning.target_modules": "training.lora.targets",
}
_GROUPS: Final = {
    f"{CHANGES_BOTH}gradients of an iteration are summed over its micro batches": "trainer.accumulate_grad_batches",
    f"{CHANGES_BOTH}the batch is that of the end of training": "model.rampup_batch_size",
    f"{CHANGES_BOTH}every layer is computed again under recompute: full": """
        model.activations_checkpoint_method model.activations_checkpoint_num_layers
        model.num_micro_batches_with_partial_activation_checkpoints model.activations_checkpoint_layers_per_pipeline
        model.activations_checkpoint_recurrent
    """,
    f"{CHANGES_MEMORY}weights are in 16 bits beside a copy in FP32": "model.megatron_amp_O2",
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        model.cpu_offloading model.cpu_offloading_num_layers model.cpu_offloading_activations
        model.cpu_offloading_weights model.optim.store_params model.optim.store_param_remainders
        model.optim.contiguous_grad_buffer model.optim.contiguous_param_buffer model.optim.param_sync_dtype
        model.optim.dtype
    """,
    f"{CHANGES_BOTH}layers are given to stages evenly": """
        model.pipeline_model_parallel_split_rank model.standalone_embedding_stage
    """,
    f"{CHANGES_BOTH}sums of layers are in BF16": "model.fp32_residual_connection",
    f"{CHANGES_TIME}NCCL does collectives with its own kernels": "model.sharp model.use_ring_exchange",
    f"{CHANGES_TIME}nothing pauses an iteration": "model.gc_interval model.nsys_profile.*",
    f"{CHANGES_TIME}how a backward pass overlaps is said by training.overlap": """
        model.ub_tp_comm_overlap_cfg model.batch_p2p_comm model.sync_batch_comm model.optim.bucket_cap_mb
        model.optim.pipeline_grad_sync model.grad_allreduce_chunk_size_mb model.optim.overlap_grad_reduce
        model.defer_embedding_wgrad_compute model.wgrad_deferral_limit
    """,
    f"{CHANGES_BOTH}adapters are LoRA's alone": "model.peft.*",
    f"{CHANGES_BOTH}the file of settings is not read; import that file, or give its settings in the command": """
        --config-name --config-path --config-dir -cn -cp -cd
    """,
    DATA: "model.data.* model.tokenizer.*",
    LEARNING: """
        model.optim.* model.seed model.init_method_std model.use_scaled_init_method model.native_amp_init_scale
        model.native_amp_growth_interval model.hysteresis trainer.gradient_clip_val trainer.max_steps
        trainer.max_epochs trainer.max_time trainer.gradient_clip_algorithm model.moe_aux_loss_coeff
        model.moe_router_load_balancing_type model.moe_z_loss_coeff model.optimizer_overrides.*
        model.peft.lora_tuning.alpha model.peft.lora_tuning.adapter_dropout model.peft.lora_tuning.dropout_position
        model.peft.lora_tuning.column_init_method model.peft.lora_tuning.row_init_method
    """,
    LOGGING: """
        trainer.* exp_manager.* name model.apex_transformer_log_level model.onnx_safe
        model.use_cpu_initialization model.pre_process model.post_process model.gradient_as_bucket_view
        model.validation_param_sync_overlap cluster_type run.* training_config stages
    """,
    CHECKPOINTS: """
        restore_from_path model.resume_from_checkpoint model.restore_from_path model.dist_ckpt_*
        model.peft.restore_from_path model.peft.restore_from_ckpt.*
    """,
    SHAPES: """
        model.normalization model.layernorm_epsilon model.layernorm_zero_centered_gamma model.bias
        model.do_layer_norm_weight_decay model.position_embedding_type model.rotary_percentage model.rotary_base
        model.seq_len_interpolation_factor model.attention_type model.headscale model.transformer_block_type
        model.openai_gelu model.normalize_attention_scores model.apply_query_key_layer_scaling model.ffn_dropout
        model.rotary_interleaved model.apply_rope_fusion model.add_qkv_bias model.bias_proj model.window_size
    """,
    KERNELS: """
        model.mcore_gpt model.transformer_engine model.persist_layer_norm model.grad_div_ar_fusion
        model.gradient_accumulation_fusion model.bias_activation_fusion model.bias_dropout_add_fusion
        model.bias_gelu_fusion model.masked_softmax_fusion model.get_attention_mask_from_fusion
        model.fp16_lm_cross_entropy model.fp8_margin model.fp8_interval model.fp8_amax_history_len
        model.fp8_amax_compute_algo model.reduce_amax model.use_emha model.use_te_rng_tracker model.name
        model.fp8_wgrad model.transformer_engine_* model.cross_entropy_loss_fusion model.deterministic_mode
        model.mcore_customization_config model.use_te_activation_func
    """,
}
_ANYWAY: Final = {
    "trainer.accumulate_grad_batches": ("1",),
    "model.activations_checkpoint_method": ("uniform",),
    "model.activations_checkpoint_num_layers": ("1",),
    "model.fp32_residual_connection": ("false", "False"),
    "model.cpu_offloading": ("false", "False"),
    "model.megatron_amp_O2": ("true", "True"),
    "model.sharp": ("false", "False"),
    "model.rampup_batch_size": (),
    "model.pipeline_model_parallel_split_rank": ("0",),
    "model.num_micro_batches_with_partial_activation_checkpoints": (),
    "model.activations_checkpoint_layers_per_pipeline": (),
    "model.ub_tp_comm_overlap_cfg": (),
    "model.nsys_profile.enabled": ("false", "False"),
}
_GATED: Final = ("swiglu", "fast-swiglu", "geglu", "fast-geglu", "reglu", "fast-reglu")
_PLAIN: Final = ("gelu", "squared-relu", "relu")
_PRECISIONS: Final = {"bf16": "--bf16", "bf16-mixed": "--bf16", "16": "--fp16", "16-mixed": "--fp16"}
# Optimizers whose state data parallel ranks share, and whether they sum gradients while a backward pass runs.
_SHARDED: Final = {"distributed_fused_adam": True, "mcore_distributed_optim": False}
_NO_ADAPTERS: Final = ("null", "none", "None", "")
# nemo/collections/nlp/parts/peft_config.py, PEFT_MODULE_MAP and LoraPEFTConfig
_LORA_TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "attention_qkv": ("linear_qkv",),
    "attention_dense": ("linear_proj",),
    "mlp_fc1": ("linear_fc1",),
    "mlp_fc2": ("linear_fc2",),
    "attention": ("linear_qkv", "linear_proj"),
    "mlp": ("linear_fc1", "linear_fc2"),
    "all": ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"),
}
_LORA_RANK: Final = 32
_STRATEGIES: Final = {"full": 3, "grad": 2, "hybrid": 3}  # nemo/collections/nlp/parts/nlp_overrides.py


def _recognises(job: JobText) -> bool:
    """A trainer of Lightning beside a model in Megatron-LM's words, in a file or in a command."""
    if job.form == "toml":
        return False
    sizes = job.has("model.num_layers", "model.encoder_seq_length", "model.micro_batch_size", "model.global_batch_size")
    degrees = job.has("model.tensor_model_parallel_size", "model.pipeline_model_parallel_size")
    return job.has("trainer", "exp_manager") and (sizes or degrees)


def _translate(job: SettingReader) -> None:
    for name, place in (("trainer.num_nodes", "nodes"), ("trainer.devices", "gpus_per_node")):
        value = job.text(name)
        if value is not None:
            setattr(job, place, Given(argument=name, values=(value,), line=job.settings[name].line))
    _precision(job)
    _activation(job)
    _optimizer(job)
    _adapters(job)
    if job.has("model.num_query_groups"):
        job.give("--group-query-attention", by="model.num_query_groups")
    if job.has("model.use_flash_attention"):
        is_flash = job.flag("model.use_flash_attention")
        job.give("--attention-backend", "flash" if is_flash else "unfused", by="model.use_flash_attention")
    job.same()
    _defaults(job)


def _precision(job: SettingReader) -> None:
    precision = job.word("trainer.precision", tuple(_PRECISIONS))
    if precision is not None:
        job.give(_PRECISIONS[precision], by="trainer.precision")
    if not job.has("trainer.precision"):
        job.wrong("trainer.precision", "missing, wanted bf16 or 16: a scenario does not compute in FP32")
        job.assume("--bf16", reason="a scenario's")
    is_on = job.has("model.fp8") and job.flag("model.fp8")
    for name, form in (("model.fp8_e4m3", "e4m3"), ("model.fp8_hybrid", "hybrid")):
        if is_on and job.has(name) and job.flag(name):
            job.give("--fp8-format", form, by=name)
        elif job.has(name):
            job.say(name, "nothing: it is off" if is_on else "nothing: model.fp8 is off")
    if is_on and "--fp8-format" not in job.given:
        job.give("--fp8-format", "hybrid", by="model.fp8")
    elif job.has("model.fp8"):
        job.say("model.fp8", "training.precision: fp8" if is_on else "nothing: it is off")
    for name in ("model.fp8", "model.fp8_e4m3", "model.fp8_hybrid"):
        job.settings.pop(name, None)


def _activation(job: SettingReader) -> None:
    activation = job.word("model.activation", (*_GATED, *_PLAIN))
    if activation in _GATED:
        job.give("--swiglu", by="model.activation")
    elif activation == "squared-relu":
        job.give("--squared-relu", by="model.activation")
    elif activation is not None:
        job.say("model.activation", "model.is_gated: false")


def _optimizer(job: SettingReader) -> None:
    name = job.text("model.optim.name")
    is_sharded = name in _SHARDED
    if is_sharded:
        job.give("--use-distributed-optimizer", by="model.optim.name")
    elif name is not None:
        job.say("model.optim.name", "training.zero: 0")
    if job.has("model.fsdp") and job.flag("model.fsdp"):
        strategy = job.word("model.fsdp_sharding_strategy", tuple(_STRATEGIES)) or "full"
        job.key("training.zero", _STRATEGIES[strategy], by="model.fsdp")
        job.assume("--overlap-grad-reduce", reason="FSDP sums gradients while a backward pass runs")
        job.assume("--overlap-param-gather", reason="FSDP gathers weights while it computes")
    elif job.has("model.fsdp"):
        job.say("model.fsdp", "nothing: it is off")
    default = bool(name) and _SHARDED.get(name or "", False)
    sums = job.flag("model.optim.overlap_grad_sync", default=default)
    gathers = job.flag("model.optim.overlap_param_sync")
    for setting, is_on, argument in (
        ("model.optim.overlap_grad_sync", sums, "--overlap-grad-reduce"),
        ("model.optim.overlap_param_sync", sums and gathers, "--overlap-param-gather"),
    ):
        if job.has(setting) and is_on and is_sharded:
            job.give(argument, by=setting)
        elif job.has(setting):
            job.say(setting, "nothing: it is off" if is_sharded else "nothing: the optimizer is not distributed")
        elif is_on and is_sharded:
            job.assume(argument, reason="apex's default of distributed_fused_adam")
        job.settings.pop(setting, None)
    dtype = job.text("model.optim.grad_sync_dtype")
    if dtype is not None and dtype in {"bf16", "bfloat16", "torch.bfloat16"}:
        job.give("--grad-reduce-in-bf16", by="model.optim.grad_sync_dtype")
    elif dtype is not None:
        job.say("model.optim.grad_sync_dtype", "training.gradients: fp32")
    job.settings.pop("model.optim.grad_sync_dtype", None)


def _adapters(job: SettingReader) -> None:
    """Fine-tuning of adapters; other schemes than LoRA are refused."""
    scheme_name, rank_name, targets_name = (
        "model.peft.peft_scheme", "model.peft.lora_tuning.adapter_dim", "model.peft.lora_tuning.target_modules"
    )  # fmt: skip
    scheme = job.text(scheme_name) if job.has(scheme_name) else None
    if scheme is None or scheme in _NO_ADAPTERS:
        for name in (scheme_name, rank_name, targets_name):
            if job.has(name):
                job.say(name, "nothing: no adapters are trained")
                job.settings.pop(name, None)
        return
    if scheme != "lora":
        job.wrong(scheme_name, f"found '{scheme}', wanted lora or null: other adapters are not modelled", "lora")
        return
    job.key("training.phase", "fine-tuning-lora", by=scheme_name)
    rank = job.whole(rank_name, _LORA_RANK) if job.has(rank_name) else _LORA_RANK
    if rank is not None:
        reason = "" if job.has(rank_name) else "NeMo's default"
        job.key("training.lora.rank", rank, by=rank_name if job.has(rank_name) else None, text=reason)
    if not job.has(targets_name):
        job.key("training.lora.targets", ("linear_qkv",), text="NeMo's default")
        return
    setting = job.settings[targets_name]
    names = setting.texts if setting.texts is not None else (setting.text,)
    for name in names:
        if name not in _LORA_TARGETS:
            job.wrong(
                targets_name, f"found '{name}', wanted {either(tuple(_LORA_TARGETS))}", nearest(name, _LORA_TARGETS)
            )
            return
    found = dict.fromkeys(target for name in names for target in _LORA_TARGETS[name])
    job.key("training.lora.targets", tuple(found), by=targets_name)


def _defaults(job: SettingReader) -> None:
    """Values of the file of settings that the program of a command takes."""
    if job.job.form != "script":
        return
    name = "megatron_llama_config.yaml" if "llama" in job.job.program else "megatron_gpt_config.yaml"
    reason = f"that of {name}, which is not read and may be another"
    if "llama" in job.job.program:
        if not job.has("model.activation"):
            job.assume("--swiglu", reason=reason)
        if not job.has("model.share_embeddings_and_output_weights"):
            job.assume("--untie-embeddings-and-output-weights", reason=reason)
        for dropout in ("--hidden-dropout", "--attention-dropout"):
            job.assume(dropout, "0.0", reason=reason)


RELATIVE: Final = Relative(
    title="NeMo",
    form="a command with overrides such as model.num_layers=32, or a YAML file with trainer and model",
    source="NVIDIA/NeMo, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml",
    recognises=_recognises,
    translate=_translate,
    read=_READ,
    ignored=reasons_by_argument(_GROUPS),
    anyway=_ANYWAY,
    names={"--use-distributed-optimizer": "model.optim.name: distributed_fused_adam"},
)
