"""Jobs of GPT-NeoX: a YAML file with DeepSpeed's settings beside those of the model.

Words of a name are joined with ``_`` or ``-``. Without ``train_batch_size`` the batch is one step of gradient
accumulation on each copy of the model. DeepSpeed's optimizer for BF16 shards its state at ZeRO stage 0 too, as in
`weftwork.workload.imports.relatives.megatron_deepspeed`.
Source: EleutherAI/gpt-neox, configs/neox_arguments.md (commit 984850fe) and configs/1-3B.yml (commit 048826f0).
Leaves out: several files that are joined, mixtures of other architectures such as RWKV and Mamba.
"""

from __future__ import annotations

from typing import Final

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
    "num_nodes": "fabric.gpus",
    "num_gpus": "fabric.gpus",
    "global_num_gpus": "fabric.gpus",
    "pipe_parallel_size": "--pipeline-model-parallel-size",
    "model_parallel_size": "--tensor-model-parallel-size",
    "sequence_parallel": "--sequence-parallel",
    "train_micro_batch_size_per_gpu": "--micro-batch-size",
    "train_batch_size": "--global-batch-size",
    "gradient_accumulation_steps": "training.global_batch",
    "num_layers": "--num-layers",
    "hidden_size": "--hidden-size",
    "intermediate_size": "--ffn-hidden-size",
    "num_attention_heads": "--num-attention-heads",
    "num_kv_heads": "--num-query-groups",
    "seq_length": "--seq-length",
    "max_position_embeddings": "--max-position-embeddings",
    "activation": "model.is_gated",
    "mlp_type": "model.is_gated",
    "no_weight_tying": "--untie-embeddings-and-output-weights",
    "use_qk_layernorm": "--qk-layernorm",
    "hidden_dropout": "--hidden-dropout",
    "attention_dropout": "--attention-dropout",
    "tokenizer_type": "--tokenizer-type",
    "vocab_file": "--vocab-size",
    "padded_vocab_size": "--padded-vocab-size",
    "make_vocab_size_divisible_by": "--make-vocab-size-divisible-by",
    "moe_num_experts": "--num-experts",
    "moe_top_k": "--moe-router-topk",
    "attention_config": "--attention-backend",
    "zero_optimization.stage": "training.zero",
    "zero_stage": "training.zero",
    "zero_optimization.overlap_comm": "--overlap-grad-reduce",
    "checkpoint_activations": "training.recompute",
    "precision": "--bf16",
    "bf16.enabled": "--bf16",
    "fp16.enabled": "--fp16",
    "fp16.type": "--bf16",
    "checkpoint_factor": "--save-interval",
    "save_interval": "--save-interval",
}
_GROUPS: Final = {
    f"{CHANGES_BOTH}every layer is computed again under recompute: full": "checkpoint_num_layers checkpoint_in_cpu",
    f"{CHANGES_MEMORY}a rank keeps what it needs to compute a layer again": """
        partition_activations contiguous_checkpointing
    """,
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        optimizer.type optimizer_type use_bnb_optimizer zero_optimization.offload_*
        zero_optimization.cpu_offload* data_types.*
    """,
    f"{CHANGES_TIME}data parallel ranks sum gradients as ZeRO does": """
        zero_optimization.* zero_reduce_scatter zero_contiguous_gradients zero_reduce_bucket_size
        zero_allgather_bucket_size communication_data_type fp32_allreduce prescale_gradients
        gradient_predivide_factor sparse_gradients
    """,
    f"{CHANGES_BOTH}layers are given to stages evenly": "pipe_partition_method",
    f"{CHANGES_BOTH}every layer has weights of its own": "num_unique_layers param_sharing_style",
    f"{CHANGES_BOTH}attention and MLP of a layer follow each other": "gpt_j_residual gpt_j_tied",
    f"{CHANGES_BOTH}attention sees all tokens before a token": """
        sliding_window_width sparsity_config.* sparse_attention.* gmlp_attn_dim
    """,
    f"{CHANGES_BOTH}sequences have one length from the start": """
        curriculum_learning.* curriculum_seqlen data_efficiency.*
    """,
    f"{CHANGES_BOTH}weights and gradients are whole numbers of the model": "compression_training.*",
    f"{CHANGES_BOTH}all weights are trained": "soft_prompt_tuning.* soft_prompt_tuning",
    f"{CHANGES_TIME}nothing pauses an iteration": """
        synchronize_each_layer profile_backward wall_clock_breakdown flops_profiler.* autotuning.* char_level_ppl
        log_grad_pct_zeros log_param_norm log_grad_norm log_optimizer_states log_gradient_noise_scale
        gradient_noise_scale_*
    """,
    "balance is assumed: every expert gets as many tokens as the others": """
        moe_train_capacity_factor moe_eval_capacity_factor moe_min_capacity moe_token_dropping moe_loss_coeff
        moe_use_residual moe_router_type moe_z_loss_coeff
    """,
    "what the launcher needs; says nothing about time": """
        hostfile include exclude master_port master_addr launcher force_multi detect_nvlink_pairs autotuning_run
        no_ssh_check comment account deepspeed deepspeed_mpi deepspeed_slurm deepspeed_extra_args.* distributed_backend
        local_rank rank world_size lazy_mpu_init user_script deepscale deepscale_config is_pipe_parallel
        deepspeed_activation_checkpointing activation_checkpointing.* elasticity.*
    """,
    KERNELS: """
        scaled_upper_triang_masked_softmax_fusion scaled_masked_softmax_fusion bias_gelu_fusion bias_dropout_fusion
        rope_fusion layernorm_fusion rmsnorm_fusion fp16_lm_cross_entropy onnx_safe use_cpu_initialization te_*
        output_layer_parallelism apply_query_key_layer_scaling attention_softmax_in_fp32 amp.*
    """,
    SHAPES: """
        norm layernorm_epsilon rms_norm_epsilon scalenorm_epsilon pos_emb rpe_* rotary_pct rotary_emb_base
        rotary_save_freqs_buffer opt_pos_emb_offset use_bias_in_norms use_bias_in_attn_linear use_bias_in_mlp
        model_arch mlp_multiple_of
    """,
    LEARNING: """
        optimizer.* scheduler.* lr min_lr lr_* warmup override_lr_scheduler use_checkpoint_lr_scheduler weight_decay
        gradient_clipping clip_grad hysteresis dynamic_loss_scale loss_scale loss_scale_window min_scale train_iters
        seed init_method init_method_std output_layer_init_method fp16.* bf16.* use_mup coord_check mup_*
        base_shapes_file save_base_shapes train_epochs
    """,
    DATA: """
        data_path data_impl train_data_* valid_data_* test_data_* label_data_paths weight_by_num_documents
        weighted_sampler_alpha mmap_warmup merge_file num_workers split use_shared_fs short_seq_prob eod_mask_loss
        extra_sentinel_tokens packing allow_chopped pack_impl dataset_impl
    """,
    LOGGING: """
        use_wandb wandb* wandb.* tensorboard* tensorboard.* csv_monitor.* comms_logger.* comet* log_dir log_interval
        git_hash steps_per_print dump_state eval_iters eval_interval exit_interval memory_profiling* profile
        profile_step_start profile_step_stop adlr_autoresume* iteration do_train do_valid do_test text_gen_type
        temperature top_p top_k return_logits maximum_tokens prompt_end sample_* num_samples recompute eval_*
    """,
    CHECKPOINTS: """
        save load s3_path s3_chunk_size config_files checkpoint_validation_with_forward_pass checkpoint_scale
        extra_save_iters no_save_optim no_save_rng no_load_optim no_load_rng finetune keep_last_n_checkpoints
        load_universal save_iters checkpoint.*
    """,
}
_ANYWAY: Final = {
    "checkpoint_num_layers": ("1",),
    "checkpoint_in_cpu": ("false", "False"),
    "gpt_j_residual": ("false", "False"),
    "gpt_j_tied": ("false", "False"),
    "optimizer.type": ("Adam", "adam", "AdamW", "adamw"),
    "optimizer_type": ("adam",),
    "use_bnb_optimizer": ("false", "False"),
    "partition_activations": ("false", "False"),
    "contiguous_checkpointing": ("false", "False"),
    "synchronize_each_layer": ("false", "False"),
    "wall_clock_breakdown": ("false", "False"),
    "profile_backward": ("false", "False"),
    "pipe_partition_method": ("uniform", "type:transformer|mlp"),
}
_GATED: Final = ("geglu", "swiglu")
_PLAIN: Final = ("gelu", "relu", "softsign", "swish", "mish", "silu")
_LLAMA: Final = "llama"  # of mlp_type: an MLP with a gate
_PRECISIONS: Final = {"bfloat16": "--bf16", "bf16": "--bf16", "fp16": "--fp16"}
_STAGES: Final = 3  # of ZeRO
# Words of the tokenizer of GPT-NeoX-20B, before they are padded: Black et al., arXiv:2204.06745, appendix E; its file
_WORDS: Final = {"20B_tokenizer.json": 50_277}
_MARKS: Final = ("pipe_parallel_size", "model_parallel_size", "train_micro_batch_size_per_gpu", "gpt_j_residual",
                 "pos_emb", "no_weight_tying", "checkpoint_factor")  # fmt: skip
_ENOUGH: Final = 2  # chosen: one of them may be a file of DeepSpeed


def _recognises(job: JobText) -> bool:
    """Names that GPT-NeoX alone has, at the top of a YAML file."""
    return job.form == "yaml" and sum(job.has(mark, mark.replace("_", "-")) for mark in _MARKS) >= _ENOUGH


def _translate(job: SettingReader) -> None:
    _gpus(job)
    _precision(job)
    _batch(job)
    _model(job)
    _zero(job)
    job.same()
    for dropout in ("--hidden-dropout", "--attention-dropout"):
        job.assume(dropout, "0.0", reason="GPT-NeoX's default")


def _gpus(job: SettingReader) -> None:
    for name, place in (("num_nodes", "nodes"), ("num_gpus", "gpus_per_node")):
        value = job.text(name)
        if value is not None and value != "-1":
            setattr(job, place, Given(argument=name, values=(value,), line=job.settings[name].line))
    total = job.whole("global_num_gpus")
    if total is not None:
        line = job.settings["global_num_gpus"].line
        job.nodes = Given(argument="global_num_gpus", values=("1",), line=line)
        job.gpus_per_node = Given(argument="global_num_gpus", values=(str(total),), line=line)


def _precision(job: SettingReader) -> None:
    word = job.word("precision", (*_PRECISIONS, "fp32"))
    if word == "fp32":
        job.wrong("precision", "found 'fp32', wanted bfloat16 or fp16: a scenario does not compute in FP32")
    elif word is not None:
        job.give(_PRECISIONS[word], by="precision")
    kind = job.text("fp16.type")
    is_wide = kind is not None and kind.startswith("bf")
    if kind is not None:
        job.say("fp16.type", "training.precision: bf16")
    for name, argument in (("bf16.enabled", "--bf16"), ("fp16.enabled", "--bf16" if is_wide else "--fp16")):
        if job.has(name) and job.flag(name) and not job.given.keys() & {"--bf16", "--fp16"}:
            job.give(argument, by=name)
        elif job.has(name):
            job.say(name, "nothing: it is off" if not job.flag(name) else "nothing: another setting decides")
    if not job.given.keys() & {"--bf16", "--fp16"} and word is None:
        job.wrong("bf16.enabled", "missing, wanted true here or at fp16.enabled: a scenario does not compute in FP32")
        job.assume("--bf16", reason="a scenario's")
    for name in ("precision", "bf16.enabled", "fp16.enabled", "fp16.type"):
        job.settings.pop(name, None)


def _batch(job: SettingReader) -> None:
    pipeline = job.whole("pipe_parallel_size", 1, low=0)
    if job.has("pipe_parallel_size"):
        job.give("--pipeline-model-parallel-size", str(max(pipeline or 1, 1)), by="pipe_parallel_size")
    if job.has("train_batch_size"):
        if job.has("gradient_accumulation_steps"):
            job.say("gradient_accumulation_steps", "nothing: train_batch_size says the batch")
        return
    steps = job.whole("gradient_accumulation_steps", 1)
    micro = job.whole("train_micro_batch_size_per_gpu")
    ranks = (job.whole("model_parallel_size", 1) or 1) * max(pipeline or 1, 1)
    gpus = job.job_gpus
    if steps is None or micro is None:
        return
    if gpus is None or gpus % ranks:
        job.wrong("train_batch_size", "missing, and the number of GPUs is unknown; wanted a whole number, or --gpus")
        job.assume("--global-batch-size", str(steps * micro), reason="")
        return
    batch = str(steps * micro * (gpus // ranks))
    if job.has("gradient_accumulation_steps"):
        job.give("--global-batch-size", batch, by="gradient_accumulation_steps")
    else:
        job.assume("--global-batch-size", batch, reason="one micro batch on each copy of the model")


def _model(job: SettingReader) -> None:
    activation = job.word("activation", (*_GATED, *_PLAIN))
    kind = job.word("mlp_type", ("regular", _LLAMA))
    is_gated = activation in _GATED or kind == _LLAMA
    by = "mlp_type" if kind == _LLAMA else "activation"
    if is_gated:
        job.give("--swiglu", by=by)
    for name in ("activation", "mlp_type"):
        if job.has(name) and not (is_gated and name == by):
            job.say(name, f"model.is_gated: {'true' if is_gated else 'false'}")
    if job.has("num_kv_heads"):
        job.give("--group-query-attention", by="num_kv_heads")
    file = job.text("vocab_file")
    words = _WORDS.get((file or "").rpartition("/")[2])
    if words is not None and not job.has("padded_vocab_size"):
        job.give("--vocab-size", str(words), by="vocab_file")
    elif file is not None:
        job.say("vocab_file", "nothing: the file of words is not read")
    experts = job.whole("moe_num_experts")
    if experts == 1:
        job.settings.pop("moe_num_experts")
        job.read["moe_num_experts"] = "nothing: one expert is a dense layer"
    kinds = job.settings.get("attention_config")
    if kinds is not None:
        words_of = " ".join(kinds.texts if kinds.texts is not None else (kinds.text,)).replace(",", " ").split()
        names = {word.strip("[]'\"") for word in words_of if not word.strip("[]").isdecimal()} - {"all", ""}
        _attention(job, names)
    else:
        job.assume("--attention-backend", "unfused", reason="GPT-NeoX's default, attention of the type global")
    for name in ("vocab_file", "activation", "mlp_type", "attention_config"):
        job.settings.pop(name, None)


def _attention(job: SettingReader, names: set[str]) -> None:
    """Types of attention by layer: one type for all, or a mistake."""
    if names == {"flash"}:
        job.give("--attention-backend", "flash", by="attention_config")
    elif names == {"global"}:
        job.give("--attention-backend", "unfused", by="attention_config")
    else:
        shown = ", ".join(sorted(names)) or "nothing"
        job.wrong("attention_config", f"found {shown[:60]}, wanted flash or global in all layers")


def _zero(job: SettingReader) -> None:
    name = job.first("zero_optimization.stage", "zero_stage")
    stage = job.whole(name, 0, low=0) or 0
    if stage > _STAGES:
        job.wrong(name, f"found '{stage}', wanted a whole number from 0 to 3")
    by = name if job.has(name) else None
    if stage == 0 and "--bf16" in job.given:
        job.key("training.zero", 1, by=by, text="DeepSpeed's optimizer for BF16 shards its state at stage 0 too")
    else:
        text = "" if by else "DeepSpeed's default without zero_optimization.stage"
        job.key("training.zero", min(stage, _STAGES), by=by, text=text)
    if job.has("checkpoint_activations") and job.flag("checkpoint_activations"):
        job.give("--recompute-granularity", "full", by="checkpoint_activations")
    elif job.has("checkpoint_activations"):
        job.say("checkpoint_activations", "training.recompute: none")


RELATIVE: Final = Relative(
    title="GPT-NeoX",
    form="a YAML file with pipe_parallel_size and train_micro_batch_size_per_gpu",
    source="EleutherAI/gpt-neox, configs/neox_arguments.md",
    recognises=_recognises,
    translate=_translate,
    read=_READ,
    ignored=reasons_by_argument(_GROUPS),
    anyway=_ANYWAY,
)
