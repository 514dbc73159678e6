"""Jobs of LLM Foundry: a YAML file with ``model``, ``fsdp_config`` and ``device_train_microbatch_size``.

Without ``fsdp_config`` every GPU holds the whole model. PURE mixed precision sums gradients in two bytes, DEFAULT in
four, as `weftwork.study.validation.llm_foundry` reads the published runs.
Source: mosaicml/llm-foundry, llmfoundry/utils/config_utils.py (commit 0081bd28),
llmfoundry/models/mpt/configuration_mpt.py (commit 0085285a) and scripts/train/yamls/pretrain/mpt-7b.yaml (commit
15fb4ffa); PyTorch, torch/distributed/fsdp/api.py, for sharding strategies.
Leaves out: device meshes with tensor parallel ranks, and models that only a checkpoint of Hugging Face describes.
"""

from __future__ import annotations

import re
from typing import Final

from weftwork.base.nearest import nearest
from weftwork.spec.scenario.model_names import meant_model, nearest_model
from weftwork.workload.imports.reasons import (
    CHANGES_BOTH,
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
from weftwork.workload.models.catalogue import MODELS, model

__all__ = ["RELATIVE"]

_READ: Final = {
    "max_seq_len": "--seq-length",
    "variables.max_seq_len": "--seq-length",
    "global_train_batch_size": "--global-batch-size",
    "variables.global_train_batch_size": "--global-batch-size",
    "device_train_microbatch_size": "--micro-batch-size",
    "n_gpus": "fabric.gpus",
    "precision": "--bf16",
    "model.name": "training.model",
    "model.pretrained_model_name_or_path": "training.model",
    "model.d_model": "--hidden-size",
    "model.n_heads": "--num-attention-heads",
    "model.n_layers": "--num-layers",
    "model.expansion_ratio": "--ffn-hidden-size",
    "model.ffn_config.ffn_hidden_size": "--ffn-hidden-size",
    "model.max_seq_len": "--max-position-embeddings",
    "model.vocab_size": "--vocab-size",
    "model.tie_word_embeddings": "!--untie-embeddings-and-output-weights",
    "model.ffn_config.ffn_type": "model.is_gated",
    "model.attn_config.kv_n_heads": "--num-query-groups",
    "model.attn_config.attn_type": "--num-query-groups",
    "model.attn_config.attn_impl": "--attention-backend",
    "model.attn_config.attn_pdrop": "--attention-dropout",
    "model.resid_pdrop": "--hidden-dropout",
    "model.attn_config.qk_ln": "--qk-layernorm",
    "fsdp_config.sharding_strategy": "training.zero",
    "fsdp_config.mixed_precision": "training.gradients",
    "fsdp_config.activation_checkpointing": "training.recompute",
}
_GROUPS: Final = {
    f"{CHANGES_BOTH}the state of the optimizer is Adam's in FP32, on the GPU": """
        optimizer.name optimizer.params fsdp_config.cpu_offload fsdp_config.activation_cpu_offload
    """,
    f"{CHANGES_BOTH}whole layers are computed again": """
        fsdp_config.activation_checkpointing_target fsdp_config.te_checkpoint_wrapper model.fsdp_*
        model.activation_checkpointing_target
    """,
    f"{CHANGES_BOTH}data parallel ranks are one group": """
        fsdp_config.device_mesh fsdp_config.data_parallel_* tp_config.*
    """,
    f"{CHANGES_TIME}the next layer is gathered while one computes": """
        fsdp_config.forward_prefetch fsdp_config.backward_prefetch fsdp_config.limit_all_gathers
    """,
    f"{CHANGES_BOTH}attention sees all tokens before a token, in every layer": """
        model.attn_config.sliding_window_size model.attn_config.prefix_lm model.block_overrides.*
    """,
    f"{CHANGES_BOTH}all weights are trained": "peft_config.* model.peft_config.*",
    f"{CHANGES_BOTH}every layer has an MLP of its own kind": "model.ffn_config.*",
    f"{CHANGES_BOTH}kernels are those of training.software": """
        compile_config.* compile_config model.fc_type model.fc_type.*
    """,
    f"{CHANGES_TIME}nothing pauses an iteration": "profiler.* callbacks.scheduled_gc.* algorithms.*",
    KERNELS: """
        model.attn_config.* model.loss_fn model.init_device model.use_flash_attention_2 fsdp_config.use_orig_params
        fsdp_config.activation_checkpointing_reentrant fsdp_config.sync_module_states fsdp_config.verbose
        fsdp_config.flatten_parameters fsdp_config.state_dict_type fsdp_config.load_* fsdp_config.save_*
        fsdp_config.process_group fsdp_config.keep_low_precision_grads max_split_size_mb expandable_segments
        cuda_load_lazy
    """,
    SHAPES: """
        model.learned_pos_emb model.emb_pdrop model.no_bias model.norm_type model.logit_scale
        model.embedding_fraction model.use_cache model.residual_* model.use_pad_tok_in_ffn model.norm_eps
        model.final_logit_softcapping
    """,
    LEARNING: """
        optimizer.* scheduler.* seed global_seed max_duration model.init_config.* model.init_config
        variables.global_seed
    """,
    DATA: """
        data_local data_remote tokenizer.* train_loader.* eval_loader.* eval_loaders* icl_* eval_gauntlet*
        variables.* model.config_overrides.* model.config_overrides model.pretrained model.use_auth_token
        model.trust_remote_code model.use_train_metrics model.should_save_peft_only model.convert_to
        model.allow_embedding_resizing tokenizer_name data_* accumulate_train_batch_on_tokens dataset_*
    """,
    LOGGING: """
        run_name progress_bar log_to_console console_log_interval log_config python_log_level callbacks.* loggers.*
        loggers callbacks eval_* device_eval_* dist_timeout metadata.* metadata code_paths autoresume spin_dataloaders
        image command name compute.* scheduling.* integrations cluster gpu_num
    """,
    CHECKPOINTS: "save_* load_* only_hf_checkpoint only_composer_checkpoint",
}
_ANYWAY: Final = {
    "optimizer.name": ("decoupled_adamw", "adamw", "adam"),
    "fsdp_config.activation_cpu_offload": ("false", "False"),
    "fsdp_config.cpu_offload": ("false", "False"),
    "fsdp_config.limit_all_gathers": ("true", "True"),
    "fsdp_config.backward_prefetch": ("BACKWARD_PRE",),
    "model.attn_config.sliding_window_size": ("-1",),
    "model.attn_config.prefix_lm": ("false", "False"),
    "model.fc_type": ("torch",),
}
_PRECISIONS: Final = {"amp_bf16": "--bf16", "bf16": "--bf16", "amp_fp16": "--fp16", "amp_fp8": "--bf16"}
# Sharding strategy, and the stage of ZeRO that does the same: torch/distributed/fsdp/api.py, ShardingStrategy
_STRATEGIES: Final = {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2, "NO_SHARD": 0, "HYBRID_SHARD": 3, "_HYBRID_SHARD_ZERO2": 2}
_MIXED: Final = {"PURE": "bf16", "DEFAULT": "fp32", "FULL": "fp32"}  # composer, trainer/mosaic_fsdp_utils.py
_MPT: Final = "mpt_causal_lm"
_HF: Final = "hf_causal_lm"
_GATED: Final = ("mptglu", "mptgeglu")
_PLAIN: Final = ("mptmlp", "te_ln_mlp")
_FLASH: Final = ("flash", "triton", "flex")
_TIMES: Final = 4  # configuration_mpt.py: expansion_ratio
_USUAL: Final = {"d_model": 2048, "n_heads": 16, "n_layers": 24, "vocab_size": 50_368}  # the same


def _recognises(job: JobText) -> bool:
    """Composer's batch sizes in a YAML file, beside a model."""
    if job.form != "yaml":
        return False
    batches = job.has("device_train_microbatch_size", "global_train_batch_size", "device_train_batch_size")
    return batches and job.has("model", "max_seq_len", "fsdp_config")


def _translate(job: SettingReader) -> None:
    _precision(job)
    _batch(job)
    _model(job)
    _sharding(job)
    job.same()


def _precision(job: SettingReader) -> None:
    precision = job.word("precision", (*_PRECISIONS, "fp32", "amp_fp32"))
    if precision in {"fp32", "amp_fp32"}:
        job.wrong("precision", f"found '{precision}', wanted amp_bf16: a scenario does not compute in FP32")
    elif precision is not None:
        job.give(_PRECISIONS[precision], by="precision")
        if precision == "amp_fp8":
            job.give("--fp8-format", "hybrid", by="precision")
    job.assume("--bf16", reason="LLM Foundry's default without precision")
    job.settings.pop("precision", None)


def _batch(job: SettingReader) -> None:
    name = "device_train_microbatch_size"
    text = job.text(name)
    if text == "auto" or text is None:
        found = "found 'auto', which the program finds out while it runs" if text else "missing"
        job.wrong(name, f"{found}; wanted a whole number")
        job.settings.pop(name, None)
        job.assume("--micro-batch-size", "1", reason="")
    for plain in ("max_seq_len", "global_train_batch_size"):
        if job.has(f"variables.{plain}") and job.has(plain):
            job.say(f"variables.{plain}", f"nothing: {plain} says it")
            job.settings.pop(f"variables.{plain}")


def _model(job: SettingReader) -> None:
    kind = job.text("model.name") or _MPT
    if kind == _HF:
        _repository(job)
        return
    if kind != _MPT:
        fix = nearest(kind, (_MPT, _HF))
        job.wrong("model.name", f"found '{kind[:60]}', wanted {_MPT} or {_HF}", fix)
        return
    if job.has("model.name"):
        job.say("model.name", "training.model: sizes that the other settings give")
    for size, argument in (("d_model", "--hidden-size"), ("n_heads", "--num-attention-heads"),
                           ("n_layers", "--num-layers"), ("vocab_size", "--vocab-size")):  # fmt: skip
        if not job.has(f"model.{size}"):
            job.assume(argument, str(_USUAL[size]), reason=f"that of MPT without model.{size}")
    _width(job)
    _attention(job)
    for dropout in ("--hidden-dropout", "--attention-dropout"):
        job.assume(dropout, "0.0", reason="MPT drops nothing unless told otherwise")


def _repository(job: SettingReader) -> None:
    name = "model.pretrained_model_name_or_path"
    text = job.text(name)
    known = None if text is None else meant_model(text, MODELS)
    if text is None:
        job.wrong(name, "missing, wanted the name of a model")
    elif known is None:
        wanted = f"found '{text[:60]}', wanted the name of a model of the catalogue: weftwork list model"
        job.wrong(name, wanted, nearest_model(text, MODELS))
    else:
        job.model = model(known)
        job.say(name, f"training.model: {known}")
        if job.has("model.name"):
            job.say("model.name", f"training.model: {known}")


def _width(job: SettingReader) -> None:
    ffn, ratio_name = "model.ffn_config.ffn_hidden_size", "model.expansion_ratio"
    hidden = job.whole("model.d_model", _USUAL["d_model"]) or _USUAL["d_model"]
    text = job.text(ratio_name)
    ratio = float(_TIMES)
    if text is not None and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text) and float(text) > 0:
        ratio = float(text)
    elif text is not None:
        job.wrong(ratio_name, f"found '{text[:60]}', wanted a number such as 4")
    kind = job.word("model.ffn_config.ffn_type", (*_GATED, *_PLAIN))
    if kind in _GATED:
        job.give("--swiglu", by="model.ffn_config.ffn_type")
    elif kind is not None:
        job.say("model.ffn_config.ffn_type", "model.is_gated: false")
    if job.has(ffn):
        if job.has(ratio_name):
            job.say(ratio_name, f"nothing: {ffn} says the width")
        return
    width = str(max(int(hidden * ratio), 1))
    if job.has(ratio_name):
        job.give("--ffn-hidden-size", width, by=ratio_name)
    else:
        job.assume("--ffn-hidden-size", width, reason="four times model.d_model without model.expansion_ratio")


def _attention(job: SettingReader) -> None:
    kinds, groups = "model.attn_config.attn_type", "model.attn_config.kv_n_heads"
    kind = job.word(kinds, ("multihead_attention", "multiquery_attention", "grouped_query_attention"))
    if job.has(groups):
        job.give("--group-query-attention", by=groups)
    elif kind == "multiquery_attention":
        job.give("--group-query-attention", by=kinds)
        job.give("--num-query-groups", "1", by=kinds)
    if job.has(kinds) and "--num-query-groups" not in job.given:
        job.say(kinds, "model.key_value_heads" if job.has(groups) else "nothing: every head has keys and values")
    if job.has(kinds) and not job.has(groups):
        job.settings.pop(kinds)
    backend = job.word("model.attn_config.attn_impl", (*_FLASH, "torch"))
    if backend is not None:
        job.give("--attention-backend", "flash" if backend in _FLASH else "unfused", by="model.attn_config.attn_impl")


def _sharding(job: SettingReader) -> None:
    name = "fsdp_config.sharding_strategy"
    has_config = any(one.name.startswith("fsdp_config") for one in job.job.settings)
    strategy = job.word(name, tuple(_STRATEGIES))
    if strategy is not None:
        job.key("training.zero", _STRATEGIES[strategy], by=name)
    elif not job.has(name):
        zero, text = (3, "FULL_SHARD is the default of fsdp_config") if has_config else (0, "without fsdp_config (DDP)")
        job.key("training.zero", zero, text=text)
    mixed = "fsdp_config.mixed_precision"
    kind = job.word(mixed, tuple(_MIXED))
    if kind is not None:
        job.key("training.gradients", _MIXED[kind], by=mixed)
    again = "fsdp_config.activation_checkpointing"
    is_again = job.flag(again)
    if is_again:
        job.give("--recompute-granularity", "full", by=again)
    elif job.has(again):
        job.say(again, "training.recompute: none")
    job.assume("--overlap-grad-reduce", reason="data parallel ranks sum gradients while a backward pass runs")
    job.assume("--overlap-param-gather", reason="FSDP gathers weights while it computes")


RELATIVE: Final = Relative(
    title="LLM Foundry",
    form="a YAML file with model, fsdp_config and device_train_microbatch_size",
    source="mosaicml/llm-foundry, llmfoundry/utils/config_utils.py",
    recognises=_recognises,
    translate=_translate,
    read=_READ,
    ignored=reasons_by_argument(_GROUPS),
    anyway=_ANYWAY,
)
