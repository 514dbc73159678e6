"""Measured memory peaks as models and plans, and Weftwork's counts for them.

A program's allocator says what it has given away (``allocated``) or what it has taken from the GPU (``reserved``).
Neither has what CUDA and NCCL take beside it, so that the count is compared without ``RESERVED_BYTES``. A driver says
what all of it takes (``used``), which is compared with the whole count. Of a job that ran out of memory it is known
that its peak was more than the GPU has (``exceeded``): its error is the most that it can be.
Rules for all rows of a source, so that no row has a constant of its own:
- ``zero-bubble``: Megatron-LM without flash attention, 50,304 words tied, dropout, no data parallelism, first and last
  stage a layer shorter; the fullest stage. Its GB are taken as 2^30 bytes, which Megatron-LM prints. Tables 6 and 11
  do not print the number of micro batches; it is of no effect above the number of stages.
- ``megatron-pr-482``: 32 layers with SwiGLU of width 10,880, 50,432 words tied, dropout, Adam's state sharded, no
  sequence parallelism; the fullest stage.
- ``megatron-tests``: the last rank's peak; Adam's state sharded. The GPUs of three tests are not printed; ``data``
  is the least number for which the states fit into what stays allocated between iterations.
- ``torchtitan``: full recomputation; with stages FSDP keeps weights and gradients whole between its passes.
- ``bloom``: Megatron-DeepSpeed with 250,880 words tied, dropout, full recomputation, no sequence parallelism, states
  of Adam sharded. "Rebalancing layers" is in BF16 with DeepSpeed's BF16_Optimizer and counts the ends as layers; what
  came before is in FP16, whose gradients were summed in FP16. Its GB are taken as 10^9 bytes; it was read from
  nvidia-smi, whose unit is the MiB, so that the peaks may be 5 to 7 % more.
Source: see `weftwork/data/published/README.md`.
Leaves out: torchtitan's tables 1 and 3, which compute single operations again; of the tables of BLOOM those whose
number of layers is not printed, and rows without a peak.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from weftwork.data.measured import measured
from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import LatentAttention, Model, Parallelism
from weftwork.workload.models.catalogue import model
from weftwork.workload.parallelism.memory import RESERVED_BYTES, fullest_stage, stage_memory

__all__ = ["PeakRow", "counted_bytes", "peak_rows"]

_LAST_RANK: Final = "megatron-tests"
_OUTSIDE_TOO: Final = frozenset({"used", "exceeded"})  # quantities that have what CUDA and NCCL take
_SOFTWARE: Final = {  # by source: the family of programs
    "zero-bubble": "Megatron-LM", "megatron-pr-482": "Megatron-LM", "megatron-tests": "Megatron-LM",
    "torchtitan": "torchtitan", "bloom": "Megatron-DeepSpeed",
}  # fmt: skip
_GPUS: Final = {"A100": "a100", "H100": "h100", "H800": "h800"}  # of the catalogue, by name of the system
_BLOOM: Final = re.compile(r"bloom-(?P<layers>\d+)x(?P<hidden>\d+)(?:-(?P<heads>\d+))?")  # 64 heads without a number
_WITH_SCORES: Final = frozenset({"zero-bubble", "bloom"})  # sources without flash attention
_UNFUSED: Final = {"gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed"}  # --attention-backend unfused
_WHOLE_SEQUENCES: Final = {"gpt3_7b_tp4_pp1_memory_speed"}  # without --sequence-parallel
_PLAN: Final = (
    "schedule", "tensor", "pipeline", "context", "virtual_stages", "data", "expert", "micro_batch", "global_batch",
    "sequence",
)  # fmt: skip
_WORDS: Final = 50_304  # GPT-2's, padded for tensor ranks


def _gpt(layers: int, heads: int, hidden: int) -> dict[str, Any]:
    """Table 3 of the zero-bubble paper."""
    return {
        "layers": layers, "heads": heads, "key_value_heads": heads, "head_dim": hidden // heads, "hidden": hidden,
        "ffn": 4 * hidden, "has_tied_embeddings": True,
    }  # fmt: skip


_GPT_7B: Final = {
    "layers": 32, "heads": 32, "key_value_heads": 8, "head_dim": 128, "hidden": 4096, "ffn": 16_384,
}  # fmt: skip
# arXiv:2401.10241, table 3; NVIDIA/Megatron-LM, tools/get_training_info/README.md of pull request 482, and
# model_config.yaml of its functional tests, where words are those of the tokenizer, padded
_SHAPES: Final[dict[str, dict[str, Any]]] = {
    "gpt-1.5b": _gpt(22, 24, 2304),
    "gpt-6.2b": _gpt(30, 32, 4096),
    "gpt-14.6b": _gpt(46, 40, 5120),
    "gpt-28.3b": _gpt(62, 48, 6144),
    "llama-2-7b-as-gpt": _gpt(32, 32, 4096) | {"ffn": 10_880, "is_gated": True, "vocabulary": 50_432},
    "gpt-7b": _GPT_7B | {"vocabulary": 131_200},
    "gpt-7b-tp4": _GPT_7B | {"vocabulary": 131_072},
    "gpt-15b": {
        "layers": 32, "heads": 48, "key_value_heads": 8, "head_dim": 128, "hidden": 6144, "ffn": 24_576,
        "vocabulary": 256_000, "has_dropout": False,
    },
    "latent-moe": {
        "layers": 16, "heads": 32, "key_value_heads": 32, "head_dim": 128, "hidden": 1024, "ffn": 4096,
        "is_gated": True, "vocabulary": 51_712, "has_dropout": False, "experts": 32, "experts_per_token": 4,
        "expert_ffn": 1024, "shared_ffn": 1024, "expert_layers": 15, "prediction_layers": 1,
        "latent_attention": LatentAttention(
            query_rank=1536, key_value_rank=512, no_position_dim=128, rope_dim=64, value_dim=128
        ),
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PeakRow:
    """A measured peak and the plan behind it.

    Attributes
    ----------
    name, source : of the row, for people
    software : family of the program
    quantity : what the allocator gave away, what it took from the GPU, what all programs took of the GPU, or that it
        was not enough
    peak_bytes : as measured; the memory of the GPU where that was not enough
    gpu_bytes : memory of the GPU
    stage : the one that was measured; None for the fullest one
    """

    name: str
    source: str
    software: str
    quantity: Literal["allocated", "reserved", "used", "exceeded"]
    peak_bytes: int
    gpu_bytes: int
    model: Model
    plan: Parallelism
    stage: int | None
    has_flash_attention: bool

    @property
    def error(self) -> float:
        """Counted over measured bytes, less one; of a job that ran out of memory the most that it can be."""
        return counted_bytes(self) / self.peak_bytes - 1

    @property
    def has_exceeded(self) -> bool:
        """Whether the job ran out of memory."""
        return self.quantity == "exceeded"


def peak_rows() -> tuple[PeakRow, ...]:
    """All rows of the table, in its order."""
    return tuple(map(_row, measured("peak-memory").to_pylist()))


def counted_bytes(row: PeakRow) -> int:
    """Weftwork's count of a row, without reserves outside the allocator unless they were measured too."""
    if row.stage is None:
        found = fullest_stage(row.model, row.plan, has_flash_attention=row.has_flash_attention)
    else:
        found = stage_memory(row.model, row.plan, row.stage, has_flash_attention=row.has_flash_attention)
    return found.total_bytes - (0 if row.quantity in _OUTSIDE_TOO else RESERVED_BYTES)


def _row(cells: dict[str, Any]) -> PeakRow:
    source, place = cells["source"], cells["place"]
    shape = _shape(cells["model"])
    plan = {name: cells[name] for name in _PLAN} | _choices(source, place, cells)
    if place in _WHOLE_SEQUENCES:
        plan["is_sequence_parallel"] = False
    return PeakRow(
        name=f"{source}, {place}: {cells['model']}, {cells['schedule']}, {_degrees(cells)}",
        source=source,
        software=_SOFTWARE[source],
        quantity=cells["quantity"],
        peak_bytes=cells["peak_bytes"],
        gpu_bytes=gpu(_GPUS[cells["system"]]).memory_bytes,
        model=shape.model_copy(update={"sequence": cells["sequence"]}),
        plan=Parallelism(**plan),
        stage=cells["pipeline"] - 1 if source == _LAST_RANK else None,
        has_flash_attention=source not in _WITH_SCORES and place not in _UNFUSED,
    )


def _choices(source: str, place: str, cells: dict[str, Any]) -> dict[str, Any]:
    """Choices that all rows of a source, or of a place in it, share."""
    if source == "bloom":
        shared = {"zero": 1, "recompute": "full", "is_sequence_parallel": False}
        if place == "Rebalancing layers":
            return shared | {"gradient_bytes": 4, "has_gradient_copy": True, "has_balanced_ends": True}
        return shared | {"gradient_bytes": 2}
    if source == "zero-bubble":
        return {"has_balanced_ends": True, "zero": 0, "gradient_bytes": 4}
    if source == "torchtitan":
        return {"zero": 1 if cells["pipeline"] > 1 else 3, "recompute": "full", "gradient_bytes": 4}
    return {"zero": 1, "gradient_bytes": 4, "is_sequence_parallel": source != "megatron-pr-482"}


def _degrees(cells: dict[str, Any]) -> str:
    names = {
        "tensor": "TP", "pipeline": "PP", "context": "CP", "virtual_stages": "VP", "data": "DP", "expert": "EP",
        "micro_batch": "micro batch",
    }  # fmt: skip
    return " ".join(f"{text} {cells[name]}" for name, text in names.items() if cells[name] > 1)


def _shape(name: str) -> Model:
    """The model of a row, from the catalogue or from the source."""
    if bloom := _BLOOM.fullmatch(name):
        layers, hidden, heads = (int(bloom[key] or 64) for key in ("layers", "hidden", "heads"))
        shape = _gpt(layers, heads, hidden) | {"is_gated": False, "has_dropout": True, "vocabulary": 250_880}
        return Model(name=name, sequence=2048, **shape)
    if name not in _SHAPES:
        return model(name).model_copy(update={"has_dropout": False})
    width = {"is_gated": False, "has_tied_embeddings": False, "has_dropout": True, "vocabulary": _WORDS}
    return Model(name=name, **(width | {"sequence": 1024} | _SHAPES[name]))
