"""Single published runs as cases: GPTs on LUMI, and DeepSeek-V3 on H800.

Rules for LUMI: Megatron-DeepSpeed with full recomputation, 1F1B and gradients of two bytes, as in the data set of
vTrain; the scripts name plan and batch. A GPU is one of the two dies of an MI250X. The words of GPT-2, padded.
DeepSeek-V3: what its report says (16 stages in DualPipe, experts over 64 GPUs, ZeRO 1, FP8, batch and sequence). Not
published: the micro batch, taken as 1, and how much is hidden, taken as in recipes that hide the exchange of tokens.
Source: spyysalo/lumi-llm-scaling, meg-ds; DeepSeek-AI, arXiv:2412.19437, sections 1, 3.1, 3.2 and 4.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weftwork.base.grammar import plural
from weftwork.data.measured import measured
from weftwork.spec.training import Overlap, Parallelism
from weftwork.study.validation.published_cases import Case, PublishedCluster, dense_gpt
from weftwork.workload.models.catalogue import model
from weftwork.workload.models.software import software

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["deepseek_case", "deepseek_v3", "lumi", "lumi_case"]

_GRADIENT_BYTES: Final = 2
_WORDS: Final = 50_257  # GPT-2's
_PADDING: Final = 128  # words a tensor rank: --make-vocab-size-divisible-by
_HIDDEN: Final = Overlap(data=0.9, pipeline=0.8, expert=0.9)  # the declared prior of recipes that hide the exchange


def lumi() -> tuple[Case, ...]:
    """Three GPTs on 64 and 128 dies of MI250X."""
    return tuple(lumi_case(row) for row in measured("training-runs").to_pylist() if row["system"] == "MI250X")


def lumi_case(row: Mapping[str, Any]) -> Case:
    """One row of a GPT on LUMI, or a similar user's row."""
    padded = _PADDING * row["tensor"]
    made = dense_gpt(row, -(-_WORDS // padded) * padded)
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        tensor=row["tensor"],
        pipeline=row["pipeline"],
        data=row["gpus"] // (row["tensor"] * row["pipeline"]),
        micro_batch=row["micro_batch"],
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=False,
        zero=1,  # chosen: replicas of Adam's state would not fit; the optimizer for BF16 of DeepSpeed shards it
        recompute="full",
        has_balanced_ends=row["layers"] % row["pipeline"] != 0,
    )
    return Case(
        source="LUMI LLM scaling, Megatron-DeepSpeed",
        name=f"{row['run']} on {plural(row['gpus'], 'die')}",
        measured_s=row["iteration_s"],
        model=made,
        plan=plan,
        cluster=PublishedCluster(node="lumi-g", gpus=row["gpus"]),
        software=software("megatron-deepspeed"),
    )


_COUNTED_BYTES: Final = 110 * 10**9  # that Weftwork counts, with tokens of experts in 16 bits; the report keeps 8


def deepseek_v3() -> tuple[Case, ...]:
    """The pre-training of DeepSeek-V3 on 2,048 H800."""
    return tuple(deepseek_case(row) for row in measured("training-runs").to_pylist() if row["system"] == "H800")


def deepseek_case(row: Mapping[str, Any]) -> Case:
    """One row of DeepSeek-V3 on H800, or a user's row in its columns."""
    plan = Parallelism(
        gradient_bytes=_GRADIENT_BYTES,
        pipeline=row["pipeline"],
        data=row["gpus"] // row["pipeline"],
        expert=row["expert"],
        schedule="dualpipe",
        micro_batch=1,
        global_batch=row["global_batch"],
        sequence=row["sequence"],
        is_sequence_parallel=False,
        zero=1,
        recompute="selective",  # section 3.2.3: norms, up-projections of latent attention, outputs of SwiGLU
        recompute_modules=("layernorm", "mla_up_proj", "moe_act"),
        moment_bytes=2,  # section 3.3.2: moments in BF16
        precision="fp8",
        has_balanced_ends=True,
        overlap=_HIDDEN,
    )
    return Case(
        source="DeepSeek-V3 technical report, arXiv:2412.19437",
        name=f"{row['run']} on {row['gpus']} H800",
        measured_s=row["iteration_s"],
        model=model("deepseek-v3"),
        plan=plan,
        cluster=PublishedCluster(node="hgx-h800", gpus=row["gpus"]),
        software=software("megatron-bridge-26.02"),
        memory_bytes=_COUNTED_BYTES,
    )
