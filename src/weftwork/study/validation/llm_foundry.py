"""Throughputs of LLM Foundry as cases: dense GPTs under FSDP.

The models have 125 million to 65 billion parameters.

Rules for all rows of the table, so that no row has a constant of its own:
- Every layer is sharded over all GPUs (FULL_SHARD: ZeRO 3), and the next one is gathered while this one computes.
- Gradients are summed in two bytes with PURE precision and in four with DEFAULT.
- Activation checkpointing is full recomputation.
- Two tables name the network between servers, 1,600 Gb/s of RoCE: DGX A100. That of H100 is not published; one port of
  400 Gb/s a GPU is taken. An A100 of 40 GB counts as one of 80 GB: its compute is the same, its memory somewhat slower.
- Data parallel communication is hidden as in recipes of dense models (`weftwork.study.validation.recipes`).
Source: mosaicml/llm-foundry, scripts/train/benchmarking/README.md, and scripts/train/yamls/pretrain for the shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weftwork.data.measured import measured
from weftwork.spec.training import Overlap, Parallelism, Precision
from weftwork.study.validation.published_cases import Case, PublishedCluster, dense_gpt
from weftwork.workload.models.software import software

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SHAPES", "SYSTEMS", "VOCABULARY", "foundry_case", "llm_foundry"]

# scripts/train/yamls/pretrain/mpt-*.yaml: layers, hidden, heads; NumParams of the table follow from them
SHAPES: Final = {
    "125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16), "3b": (32, 2560, 20),
    "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56), "70b": (80, 8192, 64),
}  # fmt: skip
VOCABULARY: Final = 50_368
SYSTEMS: Final = {"H100 80GB": "dgx-h100", "A100 80GB": "dgx-a100", "A100 40GB": "dgx-a100"}
_PRECISIONS: Final[dict[str, Precision]] = {"BF16": "bf16", "FP8": "fp8"}
# Of what the best kernels reach: FlashAttention-2, before PyTorch 2.0 the only one, gets 327.9 TFLOP/s forward on an
# H100 and 179.5 on an A100 (Azure AI benchmarking guide), over `flash_attention_share` of hardware/gpus.toml
_ATTENTION: Final = {"H100": 0.47, "A100": 1.0}
_OVERLAP: Final = Overlap(data=0.9)  # the declared prior of recipes of dense models
_FULL, _HALF = 4, 2  # bytes of a gradient that is summed


def llm_foundry(system: str, precision: str) -> tuple[Case, ...]:
    """The rows of one GPU generation and precision.

    Parameters
    ----------
    system : the first word of the column, such as ``H100``
    precision : BF16 or FP8
    """
    rows = measured("llm-foundry").to_pylist()
    return tuple(
        foundry_case(row) for row in rows if row["system"].startswith(system) and row["precision"] == precision
    )


def foundry_case(row: Mapping[str, Any]) -> Case:
    """One row of the table, or a user's row in its columns."""
    layers, hidden, heads = SHAPES[row["model"]]
    shape = {"layers": layers, "hidden": hidden, "attention_heads": heads, "sequence": row["sequence"]}
    made = dense_gpt(shape, VOCABULARY).model_copy(
        update={"name": f"mpt-{row['model']}-s{row['sequence']}", "has_dropout": False}
    )
    plan = Parallelism(
        data=row["gpus"],
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=False,
        zero=3,
        recompute="full" if row["has_recomputation"] else "none",
        precision=_PRECISIONS[row["precision"]],
        gradient_bytes=_HALF if row["has_pure_precision"] else _FULL,
        overlap=_OVERLAP,
    )
    batch = f"micro batch {row['micro_batch']} x {row['accumulation']}"
    return Case(
        source="MosaicML LLM Foundry, training benchmarks",
        name=f"{row['model']} s{row['sequence']} on {row['gpus']} {row['system']}, {row['precision']}, {batch}",
        measured_s=row["global_batch"] * row["sequence"] / row["tokens_per_s"],
        model=made,
        plan=plan,
        cluster=PublishedCluster(node=SYSTEMS[row["system"]], gpus=row["gpus"]),
        software=software("plain").model_copy(update={"attention_efficiency": _ATTENTION[row["system"].split()[0]]}),
    )
