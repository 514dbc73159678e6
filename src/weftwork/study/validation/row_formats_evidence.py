"""Formats of a user's own rows in the columns of the later evidence.

The sets are MLPerf, LLM Foundry, runs and comparisons.
"""

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
    word("round", "Round of MLPerf Training, for people."),
    word("benchmark", "Benchmark by its name in MLPerf, with the size of Llama 3.1.", tuple(BENCHMARKS)),
    word("system", "Kind of GPU.", tuple(SYSTEM_NODES)),
    GPUS,
    word("precision", "Number format of matrix products.", tuple(PRECISIONS)),
    *_PLAN,
    whole("context", "Ranks that split a sequence."),
    whole("chunks", "Virtual stages on each stage; without it 1.", optional=True),
    *_BATCH,
    whole("has_layer_graphs", "1 with CUDA graphs of layers, else 0.", has_zero=True),
    number("iteration_s", "Measured time of an iteration, seconds."),
)
_FOUNDRY: Final = (
    word("system", "GPU and its memory, as in the table.", tuple(SYSTEMS)),
    GPUS,
    word("model", "A shape of LLM Foundry.", tuple(SHAPES)),
    whole("parameters", "For people; it is not read.", optional=True),
    _BATCH[2],
    _BATCH[0],
    whole("accumulation", "Micro batches of an iteration."),
    _BATCH[1],
    word("precision", "Number format of matrix products.", ("BF16", "FP8")),
    whole("has_pure_precision", "1 with gradients summed in 16 bits, else 0.", has_zero=True),
    whole("has_recomputation", "1 with recomputation of whole layers, else 0.", has_zero=True),
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
    word("comparison", "Packaged comparison, which gives the two fabrics.", COMPARISONS),
    GPUS,
    word("bound", "Exact, up to or about, for people; over if the ratio is only a lower bound."),
    number("ratio", "Measured time on the other fabric over the time on the authors' fabric."),
)


def _rows(table: str, where: Callable[[Mapping[str, Any]], bool]) -> Callable[[], list[Any]]:
    return lambda: [row for row in measured(table).to_pylist() if where(row)]


def _mlperf(key: str, benchmark: str) -> Format:
    return Format(
        name=key,
        title="an iteration of a benchmark of MLPerf Training",
        columns=_MLPERF,
        examples=_rows("mlperf-training", lambda row: row["benchmark"].startswith(benchmark)),
        notes=("Values without a column are from NVIDIA's configurations, as for the packaged rows.",),
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
        notes=("Values without a column are declared, as for the packaged rows.",),
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
