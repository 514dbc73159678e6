"""Published iterations as cases: a row of a table becomes a model, a plan, a cluster and the software of its time.

Rules for all rows of a table, so that no row has a constant of its own:
- All: gradients of two bytes, FP16 in the older jobs and BF16 in the recipes (grad_reduce_in_fp32 is false).
- vTrain: Megatron-DeepSpeed, GPT with 50,257 words (padded), 1F1B, full recomputation, gradients of two
  bytes added at the end.
- SC 2021, table 1: micro batches and interleaving of the scripts that were published with it; full recomputation.
- Megatron-Bridge: eight GPUs with Llama-3-70B are LoRA and 32 fine-tuning of all weights; ``fsdp`` above 0 is ZeRO 3
  over all GPUs; a missing ``chunks`` is one virtual stage; layers that do not divide are spread with embedding and loss
  head counted; of a rack of 72 GPUs 64 are used where a job has more than 64.
Source: the tables, see weftwork/data/published/README.md; NVIDIA/Megatron-LM, examples/sc21/run_table_1.sh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from weftwork.data.measured import measured
from weftwork.hardware.catalogue import SERVERS, gpu
from weftwork.spec.training import Gpu, Model, Parallelism, Precision, Software
from weftwork.study.validation.recipes import MODELS, bridge_recipe
from weftwork.study.validation.scorecard import Excluded
from weftwork.workload.models.catalogue import MODELS as CATALOGUE
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.software import software

__all__ = ["Case", "PublishedCluster", "bridge", "sc21", "vtrain_multi_node", "vtrain_single_node"]

_GRADIENT_BYTES: Final = 2
_VTRAIN_WORDS: Final = 50_257  # GPT-2's
_PADDING: Final = 128  # NVIDIA/Megatron-LM, make_vocab_size_divisible_by: words a tensor rank, a multiple of this
_RACK_GPUS: Final = 64  # of 72: jobs of whole powers of two
_NODES: Final = {
    "H100": "dgx-h100", "B200": "dgx-b200", "B300": "dgx-b300", "GB200": "gb200-nvl72", "GB300": "gb300-nvl72",
}  # fmt: skip
_PRECISIONS: Final[dict[str, Precision]] = {"BF16": "bf16", "FP8": "fp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
# NVIDIA/Megatron-LM, examples/sc21/run_table_1.sh: micro batch, and virtual stages from their layers
_SC21: Final = {
    1.7: ("gpt-1.7b", 16, 1), 7.5: ("gpt-7.5b", 16, 1), 39.1: ("gpt-39.1b", 4, 1), 145.6: ("gpt-145.6b", 2, 2),
    529.6: ("gpt-529.6b", 1, 3),
}  # fmt: skip

Family = Literal["dense-fp8", "dense-nvfp4", "experts", "gpt-oss"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedCluster:
    """What a job runs on.

    Attributes
    ----------
    node : server in the hardware catalogue
    gpus : of the job, which has the cluster to itself
    domain_gpus : GPUs of a server that are used, with as many of its NIC ports in proportion; 0: all
    """

    node: str
    gpus: int
    domain_gpus: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One published iteration, as its table and the rules above say; `row_scenario` writes it as a scenario.

    Attributes
    ----------
    name : of the row
    source : of the table
    measured_s : of the iteration
    model, plan, cluster, software : what ran
    plan_set : see `Point`
    """

    name: str
    source: str
    measured_s: float
    model: Model
    plan: Parallelism
    cluster: PublishedCluster
    software: Software
    plan_set: str = ""

    @property
    def gpu(self) -> Gpu:
        """That of the server."""
        return gpu(str(SERVERS[self.cluster.node].value("gpu")))


def vtrain_multi_node() -> tuple[Case, ...]:
    """47 plans of one model on 512 A100, 800 Gb/s a server."""
    return tuple(_vtrain(row, "39.1B, 512 GPUs") for row in measured("vtrain-a100-multi-node").to_pylist())


def vtrain_single_node() -> tuple[Case, ...]:
    """Plans of small models on one to eight A100 of one server."""
    return tuple(
        _vtrain(
            row, f"h{row['hidden']} L{row['layers']} s{row['sequence']} batch {row['global_batch']}, {row['gpus']} GPUs"
        )
        for row in measured("vtrain-a100-single-node").to_pylist()
    )


def _vtrain(row: Mapping[str, Any], plan_set: str) -> Case:
    hidden, heads, sequence = row["hidden"], row["attention_heads"], row["sequence"]
    padded = _PADDING * row["tensor"]
    vocabulary = -(-_VTRAIN_WORDS // padded) * padded
    made = Model(
        name=f"gpt-h{hidden}-l{row['layers']}-s{sequence}-v{vocabulary}",
        layers=row["layers"],
        hidden=hidden,
        heads=heads,
        key_value_heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        vocabulary=vocabulary,
        sequence=sequence,
    )
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        pipeline=row["pipeline"],
        data=row["data"],
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=sequence,
        is_sequence_parallel=False,
        zero=0,
        recompute="full",
    )
    return Case(
        source="Data set of vTrain (MICRO 2024)",
        name=f"{plan_set}: t{plan.tensor} d{plan.data} p{plan.pipeline} micro batch {plan.micro_batch}",
        measured_s=row["iteration_ms"] / 1e3,
        model=made,
        plan=plan,
        cluster=PublishedCluster(node="hgx-a100-4x200g", gpus=row["gpus"]),
        software=software("megatron-deepspeed"),
        plan_set=plan_set,
    )


def sc21() -> tuple[Case, ...]:
    """Weak scaling of GPT on 32 to 2,520 A100."""
    cases = []
    for row in measured("megatron-sc21-a100").to_pylist():
        name, micro_batch, virtual_stages = _SC21[row["parameters_billion"]]
        plan = Parallelism(
            gradient_bytes=_GRADIENT_BYTES,
            tensor=row["tensor"],
            pipeline=row["pipeline"],
            data=row["gpus"] // (row["tensor"] * row["pipeline"]),
            virtual_stages=virtual_stages,
            micro_batch=micro_batch,
            global_batch=row["global_batch"],
            sequence=row["sequence"],
            is_sequence_parallel=False,
            zero=0,
            recompute="full",
        )
        made = model(name)
        cases.append(
            Case(
                source="Narayanan et al., SC 2021, table 1",
                name=f"{name} on {row['gpus']} GPUs",
                measured_s=row["iteration_s"],
                model=made,
                plan=plan,
                cluster=PublishedCluster(node="dgx-a100", gpus=row["gpus"]),
                software=software("megatron-2021"),
            )
        )
    return tuple(cases)


def bridge(family: Family) -> tuple[tuple[Case, ...], tuple[Excluded, ...]]:
    """Rows of Megatron-Bridge's performance summary.

    Parameters
    ----------
    family : dense models in FP8 (per tensor or MXFP8) or NVFP4, mixtures of experts, or GPT-OSS

    Returns
    -------
    cases, and rows that are left out
    """
    cases, excluded = [], []
    for row in measured("megatron-bridge").to_pylist():
        if _family(row) != family:
            continue
        name = _row_name(row)
        if MODELS.get(row["model"]) not in CATALOGUE:
            reason = "its layers (compressed attention, hyper-connections) are none of Weftwork's"
            excluded.append(Excluded(name=name, reason=reason))
            continue
        cases.append(_bridge(row, name))
    return tuple(cases), tuple(excluded)


def _family(row: Mapping[str, Any]) -> Family:
    if row["model"].startswith("GPT OSS"):
        return "gpt-oss"
    if not row["model"].startswith("LLAMA"):
        return "experts"
    return "dense-nvfp4" if row["precision"] == "NVFP4" else "dense-fp8"


def _row_name(row: Mapping[str, Any]) -> str:
    kind = f"{row['model']} {row['precision']} on {row['gpus']} {row['system']}, {row['release']}"
    return f"{kind} (t{row['tensor']} p{row['pipeline']} c{row['context']})"


def _bridge(row: Mapping[str, Any], name: str) -> Case:
    recipe = bridge_recipe(
        row["model"],
        system=row["system"],
        precision=row["precision"],
        release=row["release"],
        gpus=row["gpus"],
        tensor=row["tensor"],
        expert=row["expert"] or 1,
    )
    made = model(MODELS[row["model"]])
    stages = row["pipeline"] * (row["chunks"] or 1)
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        context=row["context"],
        pipeline=row["pipeline"],
        data=row["gpus"] // (row["tensor"] * row["context"] * row["pipeline"]),
        expert=row["expert"] or 1,
        virtual_stages=row["chunks"] or 1,
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=row["tensor"] > 1,
        zero=3 if row["fsdp"] else 1,
        recompute=recipe.recompute,
        precision=_PRECISIONS[row["precision"]],
        has_lora=recipe.has_lora,
        has_balanced_ends=made.layers % stages != 0,
        overlap=recipe.overlap,
    )
    tokens = row["global_batch"] * row["sequence"]
    return Case(
        source="NVIDIA Megatron-Bridge, performance summary",
        name=name,
        measured_s=tokens / (row["tokens_per_s_per_gpu"] * row["gpus"]),
        model=made,
        plan=plan,
        cluster=PublishedCluster(
            node=_NODES[row["system"]],
            gpus=row["gpus"],
            domain_gpus=_RACK_GPUS if row["system"].startswith("GB") and row["gpus"] > _RACK_GPUS else 0,
        ),
        software=recipe.software,
    )
