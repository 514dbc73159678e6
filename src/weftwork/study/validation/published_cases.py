"""Published iterations as cases.

A row of a table becomes a model, a plan, a cluster and the software of its time.

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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from weftwork.base.grammar import plural
from weftwork.data.measured import measured
from weftwork.hardware.catalogue import SERVERS, gpu
from weftwork.spec.training import Gpu, Model, Parallelism, Precision, Software
from weftwork.study.validation.recipes import MODELS, recipe_of
from weftwork.study.validation.scorecard import Excluded
from weftwork.workload.models.catalogue import MODELS as CATALOGUE
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.software import software

__all__ = [
    "BRIDGE_NODES",
    "BRIDGE_PRECISIONS",
    "Case",
    "Family",
    "PublishedCluster",
    "bridge",
    "bridge_cluster",
    "bridge_family",
    "bridge_of",
    "dense_gpt",
    "sc21",
    "sc21_case",
    "vtrain_case",
    "vtrain_multi_node",
    "vtrain_single_node",
]

_GRADIENT_BYTES: Final = 2
_VTRAIN_WORDS: Final = 50_257  # GPT-2's
_PADDING: Final = 128  # NVIDIA/Megatron-LM, make_vocab_size_divisible_by: words a tensor rank, a multiple of this
_RACK_GPUS: Final = 64  # of 72: jobs of whole powers of two
BRIDGE_NODES: Final = {
    "H100": "dgx-h100", "B200": "dgx-b200", "B300": "dgx-b300", "GB200": "gb200-nvl72", "GB300": "gb300-nvl72",
}  # fmt: skip
BRIDGE_PRECISIONS: Final[dict[str, Precision]] = {"BF16": "bf16", "FP8": "fp8", "MXFP8": "mxfp8", "NVFP4": "nvfp4"}
_FIELDS: Final = {"chunks": "virtual_stages"}  # of the plan, by column, where they differ
# NVIDIA/Megatron-LM, examples/sc21/run_table_1.sh: micro batch, and virtual stages from their layers
_SC21: Final = {
    1.7: ("gpt-1.7b", 16, 1), 7.5: ("gpt-7.5b", 16, 1), 39.1: ("gpt-39.1b", 4, 1), 145.6: ("gpt-145.6b", 2, 2),
    529.6: ("gpt-529.6b", 1, 3),
}  # fmt: skip

Family = Literal["dense-fp8", "dense-nvfp4", "experts", "gpt-oss"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedCluster:
    """The cluster of a job.

    Attributes
    ----------
    node : server in the hardware catalogue
    gpus : of the job, which has the cluster to itself
    domain_gpus : GPUs of a server that are used, with as many of its NIC ports in proportion; 0: all
    """

    node: str
    gpus: int
    domain_gpus: int = 0

    @property
    def gpu(self) -> Gpu:
        """GPU of the server."""
        return gpu(str(SERVERS[self.node].value("gpu")))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One published iteration, by its table and the rules above.

    `row_scenario` writes it as a scenario.

    Attributes
    ----------
    name : of the row
    source : of the table
    measured_s : of the iteration
    model, plan, cluster, software : what ran
    plan_set : see `Point`
    config : text of the model's own ``config.json``; empty where the model is in the catalogue or a dense GPT
    calibration : file of constants that the scenario names; empty: none
    memory_bytes : of a GPU, where Weftwork counts more than there is and the set's note says why; 0: the GPU's
    """

    name: str
    source: str
    measured_s: float
    model: Model
    plan: Parallelism
    cluster: PublishedCluster
    software: Software
    plan_set: str = ""
    config: str = ""
    calibration: str = ""
    memory_bytes: int = 0

    @property
    def gpu(self) -> Gpu:
        """GPU of the server."""
        return self.cluster.gpu

    @property
    def configuration(self) -> str:
        """A model on a GPU in a precision.

        It may have rows of several releases and plans.
        """
        return f"{self.model.name} on {self.gpu.name} in {self.plan.precision}"


def vtrain_multi_node() -> tuple[Case, ...]:
    """47 plans of one model on 512 A100, 800 Gb/s a server."""
    return tuple(vtrain_case(row, "39.1B, 512 GPUs") for row in measured("vtrain-a100-multi-node").to_pylist())


def vtrain_single_node() -> tuple[Case, ...]:
    """Plans of small models on one to eight A100 of one server."""
    return tuple(vtrain_case(row) for row in measured("vtrain-a100-single-node").to_pylist())


def vtrain_case(row: Mapping[str, Any], plan_set: str = "") -> Case:
    """A row of vTrain's tables.

    Parameters
    ----------
    row : its cells; ``node`` and ``software`` may be of another cluster than vTrain's
    plan_set : what plans of one job are called; by default after the job
    """
    if not plan_set:
        plan_set = (
            f"h{row['hidden']} L{row['layers']} s{row['sequence']} batch {row['global_batch']}, "
            f"{plural(row['gpus'], 'GPU')}"
        )
    padded = _PADDING * row["tensor"]
    made = dense_gpt(row, -(-_VTRAIN_WORDS // padded) * padded)
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        pipeline=row["pipeline"],
        data=row["data"],
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=row["sequence"],
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
        cluster=PublishedCluster(node=row.get("node") or "hgx-a100-4x200g", gpus=row["gpus"]),
        software=software(row.get("software") or "megatron-deepspeed"),
        plan_set=plan_set,
    )


def sc21() -> tuple[Case, ...]:
    """Weak scaling of GPT on 32 to 2,520 A100."""
    return tuple(sc21_case(row) for row in measured("megatron-sc21-a100").to_pylist())


def sc21_case(row: Mapping[str, Any]) -> Case:
    """A row of table 1.

    Parameters
    ----------
    row : its cells; of a model that is not in the table also ``micro_batch`` and ``virtual_stages``
    """
    name, micro_batch, virtual_stages = _SC21.get(row["parameters_billion"], ("", 1, 1))
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        pipeline=row["pipeline"],
        data=row["gpus"] // (row["tensor"] * row["pipeline"]),
        virtual_stages=row.get("virtual_stages") or virtual_stages,
        micro_batch=row.get("micro_batch") or micro_batch,
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=False,
        zero=0,
        recompute="full",
    )
    made = model(name) if name else dense_gpt(row, row["vocabulary"])
    return Case(
        source="Narayanan et al., SC 2021, table 1",
        name=f"{name or made.name} on {plural(row['gpus'], 'GPU')}",
        measured_s=row["iteration_s"],
        model=made,
        plan=plan,
        cluster=PublishedCluster(node=row.get("node") or "dgx-a100", gpus=row["gpus"]),
        software=software(row.get("software") or "megatron-2021"),
    )


def dense_gpt(row: Mapping[str, Any], vocabulary: int) -> Model:
    """A dense GPT of a row's shape.

    Parameters
    ----------
    row : with ``layers``, ``hidden``, ``attention_heads`` and ``sequence``
    vocabulary : words, padding included
    """
    hidden, heads, sequence = row["hidden"], row["attention_heads"], row["sequence"]
    return Model(
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


def bridge(family: Family) -> tuple[tuple[Case, ...], tuple[Excluded, ...]]:
    """Rows of Megatron-Bridge's performance summary.

    Parameters
    ----------
    family : dense models in FP8 (per tensor or MXFP8) or NVFP4, mixtures of experts, or GPT-OSS

    Returns
    -------
    cases, and rows that are left out
    """
    return bridge_of(measured("megatron-bridge").to_pylist(), family)


def bridge_of(rows: Iterable[Mapping[str, Any]], family: Family) -> tuple[tuple[Case, ...], tuple[Excluded, ...]]:
    """Rows of one family from a table in the summary's columns.

    Parameters
    ----------
    rows : cells by column
    family : see `bridge`

    Returns
    -------
    cases, and rows that are left out
    """
    cases, excluded = [], []
    for row in rows:
        if bridge_family(row) != family:
            continue
        name = _row_name(row)
        if MODELS.get(row["model"]) not in CATALOGUE:
            reason = "Weftwork does not model its layers (compressed attention, hyper-connections)"
            excluded.append(Excluded(name=name, reason=reason))
            continue
        cases.append(_bridge(row, name))
    return tuple(cases), tuple(excluded)


def bridge_cluster(gpu_name: str, gpus: int) -> PublishedCluster:
    """The servers of a recipe.

    A job of more than 64 GPUs uses 64 of the 72 GPUs of a rack.
    """
    is_rack = gpu_name.startswith("gb") and gpus > _RACK_GPUS
    return PublishedCluster(node=BRIDGE_NODES[gpu_name.upper()], gpus=gpus, domain_gpus=_RACK_GPUS if is_rack else 0)


def bridge_family(row: Mapping[str, Any]) -> Family:
    """The set of Megatron-Bridge to which a row belongs."""
    if row["model"].startswith("GPT OSS"):
        return "gpt-oss"
    if not row["model"].startswith("LLAMA"):
        return "experts"
    return "dense-nvfp4" if row["precision"] == "NVFP4" else "dense-fp8"


def _row_name(row: Mapping[str, Any]) -> str:
    kind = f"{row['model']} {row['precision']} on {row['gpus']} {row['system']}, {row['release']}"
    return f"{kind} (t{row['tensor']} p{row['pipeline']} c{row['context']})"


def _bridge(row: Mapping[str, Any], name: str) -> Case:
    found = recipe_of(row)
    recipe = found.recipe
    made = model(MODELS[row["model"]])
    own = {_FIELDS.get(key, key): row[key] or 1 for key in found.differs if key != "gpus"}
    plan = recipe.plan(made).model_copy(update=own)
    ranks = plan.tensor * plan.context * plan.pipeline
    plan = plan.model_copy(update={"data": row["gpus"] // ranks, "is_sequence_parallel": plan.tensor > 1})
    tokens = row["global_batch"] * row["sequence"]
    return Case(
        source="NVIDIA Megatron-Bridge, performance summary",
        name=name,
        measured_s=tokens / (row["tokens_per_s_per_gpu"] * row["gpus"]),
        model=made,
        plan=plan,
        cluster=bridge_cluster(row["system"].lower(), row["gpus"]),
        software=recipe.software(row["release"]),
    )
