"""Formats of a user's own rows in the columns of the further evidence: MLPerf, LLM Foundry, runs, comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weftwork.data.measured import measured
from weftwork.study.validation.llm_foundry import SHAPES, SYSTEMS
from weftwork.study.validation.mlperf import BENCHMARKS, PRECISIONS, SYSTEM_NODES
from weftwork.study.validation.row_columns import GPUS, Format, number, whole, word
from weftwork.study.validation.signs import COMPARISONS

__all__ = ["EVIDENCE_FORMATS"]

_PLAN: Final = (
    whole("tensor", "Ranks that split every matrix."),
    whole("pipeline", "Stages that split the layers."),
)
_BATCH: Final = (
    whole("micro_batch", "Sequences of one pass."),
    whole("global_batch", "Sequences of an iteration."),
    whole("sequence", "Tokens of a sequence."),
)
_MLPERF: Final = (
    word("round", "Of MLPerf Training, for people."),
    word("benchmark", "As MLPerf names it, with the size of Llama 3.1.", tuple(BENCHMARKS)),
    word("system", "Kind of GPU.", tuple(SYSTEM_NODES)),
    GPUS,
    word("precision", "Numbers that matrices are multiplied in.", tuple(PRECISIONS)),
    *_PLAN,
    whole("context", "Ranks that split a sequence."),
    whole("chunks", "Virtual stages on each stage; without it 1.", optional=True),
    *_BATCH,
    whole("has_layer_graphs", "1: CUDA graphs of layers.", has_zero=True),
    number("iteration_s", "Measured time of an iteration, seconds."),
)
_FOUNDRY: Final = (
    word("system", "GPU and its memory, as the table says it.", tuple(SYSTEMS)),
    GPUS,
    word("model", "A shape of LLM Foundry.", tuple(SHAPES)),
    whole("parameters", "For people; it is not read.", optional=True),
    _BATCH[2],
    _BATCH[0],
    whole("accumulation", "Micro batches of an iteration."),
    _BATCH[1],
    word("precision", "Numbers that matrices are multiplied in.", ("BF16", "FP8")),
    whole("has_pure_precision", "1: gradients are summed in 16 bits.", has_zero=True),
    whole("has_recomputation", "1: whole layers are computed again.", has_zero=True),
    number("tokens_per_s", "Measured tokens per second of the job."),
)
_RUNS: Final = (
    word("run", "For people."),
    word("system", "Kind of GPU.", ("MI250X", "H800")),
    GPUS,
    whole("layers", "Layers of a GPT; not read for DeepSeek-V3.", optional=True),
    whole("hidden", "Width of a GPT; not read for DeepSeek-V3.", optional=True),
    whole("attention_heads", "Heads of a GPT; not read for DeepSeek-V3.", optional=True),
    whole("tensor", "Ranks that split every matrix; without it 1.", optional=True),
    _PLAN[1],
    whole("expert", "Ranks over which experts are spread; without it 1.", optional=True),
    whole("micro_batch", "Sequences of one pass; without it 1.", optional=True),
    *_BATCH[1:],
    number("iteration_s", "Measured time of an iteration, seconds."),
)
_SIGNS: Final = (
    word("comparison", "Of the packaged ones, whose two fabrics it takes.", COMPARISONS),
    GPUS,
    word("bound", "For people: exact, up to or about; over: only known to be larger than the ratio."),
    number("ratio", "Measured time on the other fabric over that on the authors' own."),
)


def _rows(table: str, where: Callable[[Mapping[str, Any]], bool]) -> Callable[[], list[Any]]:
    return lambda: [row for row in measured(table).to_pylist() if where(row)]


def _mlperf(key: str, benchmark: str) -> Format:
    return Format(
        name=key,
        title="an iteration of a benchmark of MLPerf Training",
        columns=_MLPERF,
        examples=_rows("mlperf-training", lambda row: row["benchmark"].startswith(benchmark)),
        notes=("What the columns do not say follows from NVIDIA's configurations, as for the packaged rows.",),
    )


def _foundry(key: str, gpu: str, precision: str) -> Format:
    return Format(
        name=key,
        title="a throughput in the columns of LLM Foundry's tables",
        columns=_FOUNDRY,
        examples=_rows("llm-foundry", lambda row: row["system"].startswith(gpu) and row["precision"] == precision),
        notes=("Weights are sharded over all GPUs (ZeRO 3).",),
    )


def _run(key: str, system: str) -> Format:
    return Format(
        name=key,
        title="a single run",
        columns=_RUNS,
        examples=_rows("training-runs", lambda row: row["system"] == system),
        notes=("What the columns do not say is declared as for the packaged rows.",),
    )


EVIDENCE_FORMATS: Final = (
    _mlperf("mlperf-gpt3", "gpt3"),
    _mlperf("mlperf-llama3", "llama3"),
    _mlperf("mlperf-lora", "llama2"),
    _foundry("foundry-h100", "H100", "BF16"),
    _foundry("foundry-h100-fp8", "H100", "FP8"),
    _foundry("foundry-a100", "A100", "BF16"),
    _run("lumi", "MI250X"),
    _run("deepseek-v3", "H800"),
    Format(
        name="fabric-signs",
        title="a ratio of times on two fabrics",
        columns=_SIGNS,
        examples=_rows("fabric-comparisons", lambda _: True),
        notes=("A row runs both of its fabrics on the flow engine, which takes some ten seconds.",),
    ),
)
