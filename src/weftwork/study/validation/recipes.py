"""How published training jobs were run, as far as their tables do not say: rules, not rows.

A table gives a model, a plan and a release. What that release's recipes turn on besides (CUDA graphs, how tokens are
exchanged, what is recomputed, what is overlapped) is declared here by generation, model and precision.
Source: NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs (recipes), read at several commits.
Leaves out: recomputation of single activations (``moe_act``, ``layernorm``, ``mla_up_proj``), taken as free, and the
offloading of activations, taken as hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from weftwork.spec.training import Overlap, Software
from weftwork.workload.models.software import software

__all__ = ["MODELS", "Recipe", "bridge_recipe", "generation"]

# Names of the table, and names of Weftwork's catalogue of models.
MODELS: Final = {
    "LLAMA3_8B": "llama-3-8b",
    "LLAMA3_70B": "llama-3-70b",
    "LLAMA3.1_405B": "llama-3-405b",
    "DeepSeekV3": "deepseek-v3",
    "Qwen3_30B_a3B": "qwen3-30b-a3b",
    "Qwen3_235B_a22B": "qwen3-235b-a22b",
    "GPT OSS 20B": "gpt-oss-20b",
    "GPT OSS 120B": "gpt-oss-120b",
    "Nemotron_3_Nano": "nemotron-3-nano",
    "Nemotron_3_Super": "nemotron-3-super",
}

# Priors, never fitted: what is overlapped in the recipes is hidden but for the first and last of a row of operations.
# Recipes for NVFP4 set tp_comm_overlap to False (llama3_llm_pretrain.py, llama31_llm_pretrain.py).
_DENSE: Final = Overlap(tensor=0.7, data=0.9, pipeline=0.8)
_HIDDEN: Final = 0.9
# Share of a layer's operations that partial graphs replay: attention, router, sorting of tokens (``moe_preprocess``).
_PARTIAL_GRAPHS: Final = 0.7
_SERVER_GPUS: Final = 8
_BEFORE_FULL_GRAPHS: Final = ("26.02", "26.04")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What a table does not say about a row."""

    software: Software
    overlap: Overlap
    recompute: Literal["none", "selective", "full"]
    has_lora: bool


def generation(release: str) -> str:
    """Software generation of a release such as ``26.04.01``; those after 26.06 count as 26.06.

    Examples
    --------
    >>> generation("26.04.01"), generation("26.08")
    ('megatron-bridge-26.04', 'megatron-bridge-26.06')
    """
    short = ".".join(release.split(".")[:2])
    return f"megatron-bridge-{short if short in _BEFORE_FULL_GRAPHS else '26.06'}"


def bridge_recipe(
    name: str, *, system: str, precision: str, release: str, gpus: int, tensor: int, expert: int
) -> Recipe:
    """What the recipe of a row of Megatron-Bridge's table turns on.

    Parameters
    ----------
    name, system, precision, release, gpus, tensor, expert : columns of the table
    """
    made = software(generation(release))
    if name.startswith("LLAMA"):
        # the recipes of eight GPUs are LoRA; graphs of an MLP or none: layers this large hide their launches
        is_lora = name == "LLAMA3_70B" and gpus == 8
        overlap = _DENSE if precision != "NVFP4" else _DENSE.model_copy(update={"tensor": 0.0})
        return Recipe(software=made, overlap=overlap, recompute="none", has_lora=is_lora)
    is_blackwell = system != "H100"
    is_late = made.name not in {f"megatron-bridge-{short}" for short in _BEFORE_FULL_GRAPHS}
    is_nemotron = name.startswith("Nemotron")
    is_full = is_late and is_blackwell and precision != "BF16" and not is_nemotron
    # Qwen3 on H100 and GPT-OSS in BF16 exchange tokens by a plain all-to-all
    is_plain = (name == "Qwen3_235B_a22B" and not is_blackwell) or (name.startswith("GPT OSS") and precision == "BF16")
    # moe_a2a_overlap: whole graphs have it, and what leaves a server of eight GPUs
    leaves_server = system in {"H100", "B200"} and expert > _SERVER_GPUS and not is_nemotron
    made = made.model_copy(
        update={
            "graph_share": 1.0 if is_full else _graph_share(name, system, expert),
            "has_deduplicated_experts": not is_plain,
            "has_fused_activations": is_full,
            "has_fp8_attention": is_full and not name.startswith("Qwen3"),
        }
    )
    overlaps = is_full or leaves_server
    overlap = _DENSE.model_copy(update={"expert": _HIDDEN if overlaps else 0.0})
    return Recipe(software=made, overlap=overlap, recompute=_recompute(name, system, precision, tensor), has_lora=False)


def _graph_share(name: str, system: str, expert: int) -> float:
    """Of partial graphs: large models on H100 and B200 have none, but where tokens leave a server of B200."""
    if name in {"DeepSeekV3", "Qwen3_235B_a22B", "GPT OSS 120B"} and system in {"H100", "B200"}:
        return _PARTIAL_GRAPHS if system == "B200" and expert > _SERVER_GPUS else 0.0
    return _PARTIAL_GRAPHS


def _recompute(name: str, system: str, precision: str, tensor: int) -> Literal["none", "selective", "full"]:
    """Recipes that recompute attention and experts, all but a layer's outer matrices, count as full."""
    if name == "Nemotron_3_Nano" and system == "H100":
        return "full"
    if name == "Nemotron_3_Super" and precision != "NVFP4":
        if system == "GB200" and tensor == 1:
            return "full"
        if system == "B200":
            return "selective"
    return "none"
