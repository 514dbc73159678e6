"""A training section of a scenario as arguments of Megatron-LM.

`weftwork.workload.imports.megatron` reads them back.
Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (commit 000c4ac2).
Leaves out: data, learning rate and paths, of which a scenario knows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from weftwork.spec.scenario.devices import user_key
from weftwork.workload.imports.megatron import DATA_OVERLAP, EXPERT_OVERLAP, TENSOR_OVERLAP
from weftwork.workload.imports.megatron_keys import USUAL
from weftwork.workload.imports.megatron_limits import ABILITIES, lacking
from weftwork.workload.imports.megatron_model import model_arguments
from weftwork.workload.imports.megatron_stages import stage_words
from weftwork.workload.recipes.catalogue import EXPERT_STREAMS, exchange_share

if TYPE_CHECKING:
    from weftwork.spec.scenario.training import OverlapSection, TrainingSection
    from weftwork.spec.training import Model, Parallelism

__all__ = ["MegatronArguments", "write_megatron"]

_STRATEGY: Final = {2: "optim_grads", 3: "optim_grads_params"}
_PRECISION: Final = {
    "bf16": (),
    "fp8": ("--fp8-format", "hybrid"),
    "mxfp8": ("--fp8-format", "hybrid", "--fp8-recipe", "mxfp8"),
    "nvfp4": ("--fp4-format", "e2m1"),
}
_SCALES_OF_TENSORS: Final = ("--fp8-recipe", "tensorwise")  # delayed ones are of all layers at once
_SHARE: Final = "Megatron-LM has a switch, which no share can be given to"
# Keys that no argument says beside those that Megatron-LM lacks (`megatron_limits`), their default, and why.
_NO_ARGUMENT: Final[Mapping[str, tuple[object, str]]] = MappingProxyType(
    {
        "lora": (None, "NeMo's adapters are no arguments of Megatron-LM"),
        "offloaded_layers": (0, "not written: --cpu-offloading-num-layers takes it"),
        "moments": ("fp32", "not written: --exp-avg-dtype and --exp-avg-sq-dtype take it"),
        "placement": ("packed", "the launcher places ranks"),
        "gpu": (None, "the launcher chooses the servers"),
        "memory_bytes": (None, "Megatron-LM takes all memory"),
        "loading_ps": (0, "a time is no argument"),
        "first_gpu": (0, "the launcher chooses the servers"),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MegatronArguments:
    """Arguments of Megatron-LM.

    Attributes
    ----------
    words : of the command line, in order
    left_out : key of the scenario that no argument says, and why
    """

    words: tuple[str, ...]
    left_out: Mapping[str, str]


def write_megatron(section: TrainingSection, model: Model, *, path: str = "training") -> MegatronArguments:
    """Write a training job as arguments of Megatron-LM.

    Parameters
    ----------
    section : of a scenario
    model : that the section names
    path : of the section, for `MegatronArguments.left_out`

    Examples
    --------
    >>> from weftwork.spec.scenario.scenario import loads
    >>> from weftwork.workload.models.catalogue import model
    >>> text = "{schema: 3, fabric: {radix: 4}, training: {model: llama-2-7b, tensor: 4, global_batch: 64}}"
    >>> written = write_megatron(loads(text).training, model("llama-2-7b"))
    >>> written.words[-4:]
    ('--use-distributed-optimizer', '--bf16', '--overlap-grad-reduce', '--overlap-param-gather')
    """
    plan = section.parallelism(model)
    longest = max(model.sequence, plan.sequence)  # validate_args wants --seq-length to be no longer
    sizes, unsaid = model_arguments(model.model_copy(update={"sequence": longest}))
    left_out = {f"model.{key}": reason for key, reason in unsaid.items()}
    values = {key: getattr(section, key) for key in ABILITIES}
    left_out |= {f"{path}.{key}": reason for key, reason in lacking(model, plan, values).items()}
    for key, (usual, reason) in _NO_ARGUMENT.items():
        if getattr(section, key) not in {usual, None}:
            left_out[f"{path}.{key.removesuffix('_bytes').removesuffix('_ps')}"] = reason
    for name, precision in section.precision_by_module.modules:
        if precision is not None:
            left_out[f"{path}.precision_by_module.{name}"] = "numbers of single modules are in a file of their own"
    words = [*sizes, *_parallel(section, model, plan), *_batch(plan), *_state(section)]
    words += _overlap(section.overlap, section.zero, path, left_out)
    words += _software(section, model, path, left_out)
    checkpoint = section.checkpoint
    if checkpoint is not None:
        words += ["--save-interval", str(checkpoint.every), *(["--async-save"] if checkpoint.is_asynchronous else [])]
    return MegatronArguments(words=tuple(words), left_out=MappingProxyType(left_out))


def _parallel(section: TrainingSection, model: Model, plan: Parallelism) -> list[str]:
    words = ["--tensor-model-parallel-size", str(section.tensor)]
    words += ["--pipeline-model-parallel-size", str(section.pipeline)]
    if section.context > 1:
        words += ["--context-parallel-size", str(section.context)]
        words += ["--cp-comm-type", "a2a"] if plan.exchanges_heads else []
    if model.experts:
        words += ["--expert-model-parallel-size", str(section.expert)]
        words += ["--expert-tensor-parallel-size", str(section.expert_tensor)]
    words += stage_words(model, plan) or ()
    if section.sequence_parallel and section.tensor > 1:
        words.append("--sequence-parallel")
    return [*words, *(["--use-tp-pp-dp-mapping"] if section.order == "tp-cp-pp-dp" else [])]


def _batch(plan: Parallelism) -> list[str]:
    words = ["--micro-batch-size", str(plan.micro_batch), "--global-batch-size", str(plan.global_batch)]
    return [*words, "--seq-length", str(plan.sequence)]


def _state(section: TrainingSection) -> list[str]:
    words = ["--use-distributed-optimizer"] if section.zero == 1 else []
    if section.zero > 1:  # validate_args wants this format of checkpoints beside it
        words += ["--use-megatron-fsdp", "--data-parallel-sharding-strategy", _STRATEGY[section.zero]]
        words += ["--ckpt-format", "fsdp_dtensor"]
    words += ["--bf16", *_PRECISION[section.precision]]
    outer = (section.bf16_first_layers, section.bf16_last_layers)
    if any(outer):
        words += _SCALES_OF_TENSORS if section.precision == "fp8" else ()
        words += ["--first-last-layers-bf16", "--num-layers-at-start-in-bf16", str(outer[0])]
        words += ["--num-layers-at-end-in-bf16", str(outer[1])]
    if section.quantised_weights and section.precision != "bf16":
        words.append("--fp4-param-gather" if section.precision == "nvfp4" else "--fp8-param-gather")
    words += ["--grad-reduce-in-bf16"] if section.gradients == "bf16" else []
    if section.recompute == "selective":
        words += ["--recompute-granularity", "selective"]
        modules = section.recompute_modules or ()
        words += ["--recompute-modules", *modules] if modules not in {(), USUAL["training.recompute_modules"]} else []
    elif section.recompute == "full":
        words += ["--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1"]
    return words


def _overlap(overlap: OverlapSection, zero: int, path: str, left_out: dict[str, str]) -> list[str]:
    words = []
    if overlap.tensor:
        words.append("--tp-comm-overlap")
    if overlap.data:
        words.append("--overlap-grad-reduce")
    if overlap.data and zero and overlap.data != DATA_OVERLAP / 2:
        words.append("--overlap-param-gather")
    if overlap.expert:
        words.append("--overlap-moe-expert-parallel-comm")
    if overlap.pipeline == 0:
        words.append("--no-overlap-p2p-communication")
    said: dict[str, set[float | None]] = {
        "tensor": {0.0, TENSOR_OVERLAP},
        "data": {0.0, DATA_OVERLAP, *([DATA_OVERLAP / 2] if zero else [])},
        "expert": {0.0, EXPERT_OVERLAP},
        "pipeline": {None, 0.0},
        "context": {type(overlap).model_fields["context"].default},
    }
    for key, shares in said.items():
        if getattr(overlap, key) not in shares:
            left_out[f"{path}.overlap.{key}"] = _SHARE
    return words


def _software(section: TrainingSection, model: Model, path: str, left_out: dict[str, str]) -> list[str]:
    fields = section.software.fields
    words = []
    if fields.get("has_flash_attention", USUAL["training.software.flash_attention"]) is False:
        words += ["--attention-backend", "unfused"]
    words += _graphs(tuple(fields.get("graphs", ())))
    said = {"has_flash_attention", "graphs"}
    if model.experts:
        words += _experts(fields)
        said |= {"has_fused_router"}
        said |= {"expert_streams"} if fields.get("expert_streams") in _GROUPED else set()
        dispatcher = _dispatcher(fields)
        if dispatcher is not None:
            words += dispatcher
            said |= _OF_DISPATCHERS
    else:
        said |= {
            "expert_streams",
            "has_fused_router",
            *_OF_DISPATCHERS,
        }  # nothing is said of experts that are not there
    for field in fields:
        if field not in said:
            left_out[f"{path}.software.{user_key(field)}"] = "how fast kernels are is no argument"
    if section.software.model != "plain":
        left_out[f"{path}.software"] = "the installed release decides how fast kernels are"
    return words


_OF_DISPATCHERS: Final = {"has_deduplicated_experts", "exchange_efficiency", "exchange_multiprocessors"}
# Words for streams of experts; Transformer Engine's where nobody says how many.
_GROUPED: Final[Mapping[int | None, tuple[str, ...]]] = MappingProxyType(
    {
        None: ("--moe-grouped-gemm",),
        EXPERT_STREAMS: ("--moe-grouped-gemm",),
        0: ("--moe-grouped-gemm", "--moe-use-legacy-grouped-gemm"),
        1: (),
    }
)


def _graphs(modules: tuple[str, ...]) -> list[str]:
    if not modules:
        return []
    if "iteration" in modules:
        return ["--cuda-graph-impl", "local", "--cuda-graph-scope", "full_iteration"]
    return ["--cuda-graph-impl", "transformer_engine", "--cuda-graph-scope", *modules]


def _experts(fields: Mapping[str, object]) -> list[str]:
    streams = fields.get("expert_streams")
    words = list(_GROUPED.get(streams if isinstance(streams, int) else None, _GROUPED[None]))
    return [*words, *(["--moe-router-fusion"] if fields.get("has_fused_router", True) else [])]


def _dispatcher(fields: Mapping[str, object]) -> list[str] | None:
    """Arguments of the token dispatcher; None if Megatron-LM has no match.

    None of its dispatchers is then as fast as the fields say.
    """
    count, share = fields.get("exchange_multiprocessors", 0), fields.get("exchange_efficiency")
    if not fields.get("has_deduplicated_experts"):
        return [] if count == 0 and share in {None, 1.0} else None
    for backend in ("deepep", "hybridep"):
        if backend == "deepep" and share is not None and not count:
            continue  # without a number it has one of its own
        if isinstance(count, int) and share in {None, exchange_share(backend, count)}:
            words = ["--moe-token-dispatcher-type", "flex", "--moe-flex-dispatcher-backend", backend]
            return [*words, *([f"--moe-{backend}-num-sms", str(count)] if count else [])]
    return None
