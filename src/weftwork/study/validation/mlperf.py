"""MLPerf Training results of NVIDIA as cases.

They are iterations of language models on 8 to 11,616 GPUs.

Rules for all rows of the table, so that no row has a constant of its own:
- A submission's ``config_*.sh`` gives plan and batch, its log the seconds. The rest is that of recipes of dense models
  (`weftwork.study.validation.recipes`): distributed optimizer, overlap, BF16 gradients; no recomputation.
- CUDA graphs of whole layers where the configuration says so, else none. LoRA: attention in FP8 (FP8_DPA).
- NVFP4: no overlap of tensor parallel communication (TP_COMM_OVERLAP=False); embedding and loss head count as layers
  (ASYM_PP_EMBED, ASYM_PP_LOSS).
- DGX systems as in the catalogue; of a rack of 72 GPUs 64 are used. Clocks are not published (some configurations
  boost them, --vboost), nor is the fabric beyond 400 Gb/s a GPU.
Source: mlcommons/training_results_v3.1, v4.0 and v5.1, folder NVIDIA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from weftwork.data.measured import measured
from weftwork.spec.training import LoraTarget, Overlap, Parallelism, Precision
from weftwork.study.validation.published_cases import Case, PublishedCluster
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.software import software

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BENCHMARKS", "PRECISIONS", "SYSTEM_NODES", "Benchmark", "mlperf", "mlperf_case"]

Benchmark = Literal["gpt3-175b", "llama2-70b-lora", "llama3.1"]

BENCHMARKS: Final = {
    "gpt3-175b": "gpt-3-175b", "llama2-70b-lora": "llama-2-70b", "llama3.1-405b": "llama-3-405b",
    "llama3.1-8b": "llama-3-8b",
}  # fmt: skip
SYSTEM_NODES: Final = {"H100": "dgx-h100", "H200": "dgx-h200", "GB200": "gb200-nvl72", "GB300": "gb300-nvl72"}
PRECISIONS: Final[dict[str, Precision]] = {"FP8": "fp8", "NVFP4": "nvfp4"}
_RACK_GPUS: Final = 64  # of 72: jobs of whole powers of two
_GRADIENT_BYTES: Final = 2
# The benchmark's reference: --lora_r 16 --lora_target_modules "qkv_proj,o_proj", one matrix of queries, keys and values
_LORA_RANK: Final = 16
_LORA_TARGETS: Final[tuple[LoraTarget, ...]] = ("linear_qkv", "linear_proj")
_DENSE: Final = Overlap(tensor=0.7, data=0.9, pipeline=0.8)  # the declared prior of recipes of dense models


def mlperf(benchmark: Benchmark) -> tuple[Case, ...]:
    """The rows of one benchmark.

    Parameters
    ----------
    benchmark : the beginning of the column
    """
    rows = measured("mlperf-training").to_pylist()
    return tuple(mlperf_case(row) for row in rows if row["benchmark"].startswith(benchmark))


def mlperf_case(row: Mapping[str, Any]) -> Case:
    """One row of the table, or a user's row in its columns."""
    is_lora = row["benchmark"].endswith("lora")
    chunks = row["chunks"] or 1
    made = model(BENCHMARKS[row["benchmark"]])
    if row["benchmark"] == "gpt3-175b":
        made = made.model_copy(update={"name": "gpt-3-175b-mlperf", "has_dropout": False})
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        context=row["context"],
        pipeline=row["pipeline"],
        data=row["gpus"] // (row["tensor"] * row["context"] * row["pipeline"]),
        virtual_stages=chunks,
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=row["tensor"] > 1,
        zero=1,
        recompute="none",
        precision=PRECISIONS[row["precision"]],
        has_lora=is_lora,
        lora_rank=_LORA_RANK if is_lora else Parallelism().lora_rank,
        lora_targets=_LORA_TARGETS if is_lora else (),
        has_quantised_weights=is_lora,  # fp8_params of conf/megatron_gpt_peft_tuning_config.yaml
        has_balanced_ends=made.layers % (row["pipeline"] * chunks) != 0,
        overlap=_DENSE if row["precision"] != "NVFP4" else _DENSE.model_copy(update={"tensor": 0.0}),
    )
    ran = software("megatron-bridge-26.02").model_copy(
        update={"graphs": ("attn", "mlp") if row["has_layer_graphs"] else (), "has_fp8_attention": is_lora}
    )
    is_racks = row["system"].startswith("GB") and row["gpus"] > _RACK_GPUS
    degrees = f"t{row['tensor']} p{row['pipeline']} c{row['context']}"
    return Case(
        source=f"MLPerf Training {row['round']}, results of NVIDIA",
        name=f"{row['benchmark']} {row['precision']} on {row['gpus']} {row['system']}, {row['round']} ({degrees})",
        measured_s=row["iteration_s"],
        model=made,
        plan=plan,
        cluster=PublishedCluster(
            node=SYSTEM_NODES[row["system"]], gpus=row["gpus"], domain_gpus=_RACK_GPUS if is_racks else 0
        ),
        software=ran,
    )
