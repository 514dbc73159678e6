"""The formats of a user's own rows.

They have the columns of the packaged sets, their meanings, and example rows.

Besides the format of each set there are two that name everything themselves: ``iterations`` and ``curves``.
Leaves out: how a row becomes a case (`weftwork.study.validation.own_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from weftwork.data.measured import measured, measured_names
from weftwork.hardware.catalogue import SERVERS
from weftwork.spec.training import Recompute
from weftwork.study.validation.published_cases import BRIDGE_NODES, BRIDGE_PRECISIONS, sc21
from weftwork.study.validation.recipes import MODELS as BRIDGE_MODELS
from weftwork.study.validation.row_columns import GPUS, Format, number, whole, word
from weftwork.study.validation.row_formats_evidence import EVIDENCE_FORMATS
from weftwork.study.validation.row_table import TableColumn
from weftwork.workload.models.software import SOFTWARE

__all__ = ["CURVE_TIMES", "FORMATS", "GENERAL", "format_of_head", "template"]

_SHOWN_ROWS: Final = 3  # of a template
_NODES: Final = tuple(name for name in SERVERS if "gpu" in SERVERS[name].figures)
OPERATIONS: Final = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")

# Columns with the time of a curve, the first that a row has counts: factor to seconds, or a bandwidth.
CURVE_TIMES: Final = {
    "seconds": 1.0, "time_us": 1e-6, "time_ns": 1e-9, "algorithm_bandwidth_gbyte_per_s": 0.0,
    "bus_bandwidth_gbyte_per_s": 0.0,
}  # fmt: skip


def _server(default: str) -> TableColumn:
    return word("node", f"Server of the catalogue; without it {default}.", _NODES, optional=True)


def _software(default: str) -> TableColumn:
    return word("software", f"Software of the catalogue; without it {default}.", tuple(SOFTWARE), optional=True)


_BATCHES: Final = (
    whole("global_batch", "Sequences of an iteration."),
    whole("micro_batch", "Sequences of one pass."),
)
_SHAPE: Final = (
    whole("hidden", "Width of the model."),
    whole("attention_heads", "Attention heads; a divisor of the width."),
    whole("layers", "Layers."),
    whole("sequence", "Tokens of a sequence."),
)
_TENSOR: Final = whole("tensor", "Ranks that split every matrix.")
_PIPELINE: Final = whole("pipeline", "Stages that split the layers.")
_VTRAIN: Final = (
    number("parameters_billion", "For people; it is not read.", optional=True),
    GPUS,
    *_BATCHES,
    *_SHAPE,
    _TENSOR,
    whole("data", "Copies of the model; tensor x data x pipeline is the number of GPUs."),
    _PIPELINE,
    number("iteration_ms", "Measured time of an iteration, milliseconds."),
    _server("hgx-a100-4x200g"),
    _software("megatron-deepspeed"),
)
_SC21: Final = (
    number(
        "parameters_billion",
        "Size of a model of the table: 1.7, 7.5, 39.1, 145.6 or 529.6; any other number for another model.",
    ),
    _SHAPE[1],
    _SHAPE[0],
    _SHAPE[2],
    _TENSOR,
    _PIPELINE,
    GPUS,
    _BATCHES[0],
    _SHAPE[3],
    whole("vocabulary", "Words of the vocabulary, padding included."),
    number("tflop_per_s_per_gpu", "For people; it is not read.", optional=True),
    number("iteration_s", "Measured time of an iteration, seconds."),
    whole("micro_batch", "Sequences of one pass; by default the value of the published script, else 1.", optional=True),
    whole(
        "virtual_stages",
        "Virtual stages on each stage; by default the value of the published script, else 1.",
        optional=True,
    ),
    _server("dgx-a100"),
    _software("megatron-2021"),
)
_BRIDGE: Final = (
    word("release", "Release of Megatron-Bridge, such as 26.06; it decides the generation of software."),
    word("model", "Name in the performance summary.", tuple(BRIDGE_MODELS)),
    word("system", "Kind of GPU.", tuple(BRIDGE_NODES)),
    GPUS,
    word("precision", "Number format of matrix products.", tuple(BRIDGE_PRECISIONS)),
    *_BATCHES,
    _SHAPE[3],
    _TENSOR,
    _PIPELINE,
    whole("context", "Ranks that split a sequence."),
    whole("chunks", "Virtual stages on each stage; without it 1.", optional=True),
    whole("expert", "Ranks over which experts are spread; without it 1.", optional=True),
    whole("fsdp", "Above 0: weights are sharded over all GPUs (ZeRO 3).", optional=True, has_zero=True),
    number("tokens_per_s_per_gpu", "Measured tokens per second of each GPU."),
    number("model_tflop_per_s_per_gpu", "For people; it is not read.", optional=True),
)
_ITERATIONS: Final = (
    word("model", "Model of the catalogue (`weftwork list model`), or a config.json beside the table."),
    word("node", "Server of the catalogue.", _NODES),
    GPUS,
    *_BATCHES,
    number("seconds", "Measured time of an iteration, seconds."),
    whole("sequence", "Tokens of a sequence; by default the sequence of the model.", optional=True),
    whole("tensor", "Ranks that split every matrix; without it 1.", optional=True),
    whole("context", "Ranks that split a sequence; without it 1.", optional=True),
    whole("pipeline", "Stages that split the layers; without it 1.", optional=True),
    whole("expert", "Ranks over which experts are spread; without it 1.", optional=True),
    whole("virtual_stages", "Virtual stages on each stage; without it 1.", optional=True),
    word("zero", "ZeRO stage; without it 1.", ("0", "1", "2", "3"), optional=True),
    word("recompute", "Recomputation of activations; without it none.", get_args(Recompute), optional=True),
    word(
        "precision",
        "Number format of matrix products; without it bf16.",
        ("bf16", "fp8", "mxfp8", "nvfp4"),
        optional=True,
    ),
    word("gradients", "Number format of gradients; without it fp32.", ("bf16", "fp32", "bf16+fp32"), optional=True),
    word("sequence_parallel", "Sequence parallelism; without it true.", ("true", "false"), optional=True),
    _software("plain"),
)


def _curve(operation: str, server: str, gpus: str) -> tuple[TableColumn, ...]:
    def default(value: str) -> str:
        return f"; without it {value}" if value else ""

    return (
        word(
            "operation",
            f"Operation by its name in nccl-tests{default(operation)}.",
            OPERATIONS,
            optional=bool(operation),
        ),
        whole("gpus", f"GPUs that take part{default(gpus)}.", optional=bool(gpus)),
        whole("size_bytes", "Size as nccl-tests counts it."),
        number("seconds", "Measured time, out of place; or give one of the next four columns.", optional=True),
        number("time_us", "Measured time in microseconds.", optional=True),
        number("time_ns", "Measured time in nanoseconds.", optional=True),
        number("algorithm_bandwidth_gbyte_per_s", "Size over time.", optional=True),
        number("bus_bandwidth_gbyte_per_s", "Bus bandwidth as nccl-tests defines it.", optional=True),
        word("server", f"Server of the catalogue{default(server)}.", _NODES, optional=bool(server)),
    )


_ONE_SERVER: Final = (
    *_curve("all-reduce", "the azure server of an a100_ or h100_ column", "8"),
    number("a100_bus_bandwidth_gbyte_per_s", "Bus bandwidth on 8 A100 of azure-nd-a100-v4.", optional=True),
    number("h100_bus_bandwidth_gbyte_per_s", "Bus bandwidth on 8 H100 of azure-nd-h100-v5.", optional=True),
)
_UET: Final = (
    whole("link_gbps", "Rate of all links, Gb/s."),
    whole("message_bytes", "Message of each flow, bytes."),
    whole("paths", "Entropy values of a flow."),
    word("control", "Congestion control of the catalogue.", ("nscc", "rccc", "none")),
    number("tail_fct_us", "Measured completion of the last flow, microseconds."),
    number("min_fct_us", "Completion of the first flow, microseconds; it is not scored.", optional=True),
)
_UET_SMALL: Final = (
    word("pattern", "Traffic pattern.", ("lone", "incast", "permutation")),
    word("load_balancing", "Path selection.", ("oblivious", "bitmap", "reps", "mixed")),
    whole("hosts", "Always 1024, the fat tree of the published runs."),
    whole("flows", "Flows of the run; 1024 for a permutation."),
    whole("message_bytes", "Message of each flow, bytes."),
    whole("link_gbps", "Rate of all links, Gb/s."),
    number("least_tail_us", "Completion of the last flow, least of several runs, microseconds."),
    number("most_tail_us", "Completion of the last flow, most of several runs; the mean of both is scored."),
)
_OF_PACKETS: Final = "A row runs on the packet engine; it has no scenario, since the model's packets are not RoCEv2."


def _table(name: str, *, where: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> Callable[[], list[Any]]:
    return lambda: [row for row in measured(name).to_pylist() if where(row)]


def _general_iterations() -> list[dict[str, Any]]:
    """The rows of SC 2021 with a column for everything."""
    return [
        {
            "model": case.model.name, "node": case.cluster.node, "gpus": case.cluster.gpus,
            "global_batch": case.plan.global_batch, "micro_batch": case.plan.micro_batch,
            "seconds": case.measured_s, "sequence": case.plan.sequence, "tensor": case.plan.tensor, "context": 1,
            "pipeline": case.plan.pipeline, "expert": 1, "virtual_stages": case.plan.virtual_stages,
            "zero": case.plan.zero, "recompute": case.plan.recompute, "precision": case.plan.precision,
            "gradients": "bf16", "sequence_parallel": "false", "software": case.software.name,
        }
        for case in sc21()
    ]  # fmt: skip


def _general_curves() -> list[dict[str, Any]]:
    """Large all-reduces on AWS p5 with a column for everything."""
    return [
        {
            "operation": "all-reduce", "gpus": row["gpus"], "size_bytes": row["size_bytes"],
            "algorithm_bandwidth_gbyte_per_s": row["algorithm_bandwidth_gbyte_per_s"], "server": "p5",
        }
        for row in measured("nccl-all-reduce-h100-efa").to_pylist()
        if row["size_bytes"] >= 1 << 30
    ]  # fmt: skip


def _bridge(family: str, where: Callable[[Mapping[str, Any]], bool]) -> Format:
    return Format(
        name=f"bridge-{family}",
        title="an iteration in the columns of Megatron-Bridge's performance summary",
        columns=_BRIDGE,
        examples=_table("megatron-bridge", where=where),
        notes=("Values without a column are from the recipes of the release, as for the packaged rows.",),
    )


def _p5(operation: str) -> Format:
    return Format(
        name=f"nccl-p5-{operation}",
        title=f"a size of {operation} as nccl-tests measures it",
        columns=_curve(operation, "p5", ""),
        examples=_table(f"nccl-{operation}-h100-efa", where=lambda row: row["size_bytes"] >= 256 << 20),
    )


def _small_curves() -> list[dict[str, Any]]:
    return [
        {"operation": operation, **row}
        for operation in OPERATIONS
        if f"nccl-{operation}-h100-efa" in measured_names()
        for row in measured(f"nccl-{operation}-h100-efa").to_pylist()
        if row["size_bytes"] < 256 << 20
    ]


GENERAL: Final = ("iterations", "curves")
FORMATS: Final[dict[str, Format]] = {
    made.name: made
    for made in (
        Format(
            name="iterations",
            title="an iteration: model, GPUs, plan, seconds",
            columns=_ITERATIONS,
            examples=_general_iterations,
            notes=("The overlap of communication with computation has the defaults of a scenario.",),
        ),
        Format(
            name="curves",
            title="a size of a collective: operation, GPUs, size, seconds",
            columns=_curve("", "", ""),
            examples=_general_curves,
        ),
        Format(
            name="vtrain-39b",
            title="an iteration of a dense GPT in the columns of vTrain's data set",
            columns=_VTRAIN,
            examples=_table("vtrain-a100-multi-node"),
        ),
        Format(
            name="vtrain-single-node",
            title="an iteration of a dense GPT in the columns of vTrain's data set",
            columns=_VTRAIN,
            examples=_table("vtrain-a100-single-node"),
        ),
        Format(
            name="sc21",
            title="an iteration of a dense GPT in the columns of table 1 of SC 2021",
            columns=_SC21,
            examples=_table("megatron-sc21-a100"),
        ),
        _bridge("dense-fp8", lambda row: row["model"].startswith("LLAMA") and row["precision"] != "NVFP4"),
        _bridge("dense-nvfp4", lambda row: row["model"].startswith("LLAMA") and row["precision"] == "NVFP4"),
        _bridge("experts", lambda row: row["model"].startswith(("Qwen3", "DeepSeekV3", "Nemotron"))),
        _bridge("gpt-oss", lambda row: row["model"].startswith("GPT OSS")),
        Format(
            name="nccl-one-server",
            title="a size of a collective in one server as nccl-tests measures it",
            columns=_ONE_SERVER,
            examples=_table("nccl-all-reduce-one-node", where=lambda row: row["size_bytes"] >= 64 << 20),
        ),
        _p5("all-reduce"),
        _p5("all-gather"),
        _p5("all-to-all"),
        Format(
            name="nccl-p5-small",
            title="a size of a collective as nccl-tests measures it",
            columns=_curve("", "p5", ""),
            examples=_small_curves,
        ),
        Format(
            name="uet-small",
            title="a run of the Ultra Ethernet reference model in a fat tree of 1,024 hosts",
            columns=_UET_SMALL,
            examples=_table("htsim-100g"),
            notes=(_OF_PACKETS,),
        ),
        Format(
            name="uet",
            title="a sprayed permutation of 8,192 hosts by the Ultra Ethernet reference model",
            columns=_UET,
            examples=_table("htsim-permutation-8192-hosts", where=lambda row: row["message_bytes"] <= 2_000_000),
            notes=(_OF_PACKETS, "A row of 2 MB takes some seconds of CPU time, a row of 16 MB minutes."),
        ),
        *EVIDENCE_FORMATS,
    )
}


def format_of_head(names: Sequence[str]) -> Format | None:
    """The first format that fits a head.

    Its required columns are in the head, and it knows all columns of the head.

    Parameters
    ----------
    names : of the columns
    """
    for made in FORMATS.values():
        known = {column.name for column in made.columns}
        needed = {column.name for column in made.columns if not column.optional}
        if needed <= set(names) <= known:
            return made
    return None


def template(made: Format) -> str:
    """A table of packaged rows, with the meaning of each column above it.

    Parameters
    ----------
    made : one of `FORMATS`
    """
    rows = list(made.examples())[:_SHOWN_ROWS]
    names = [column.name for column in made.columns if any(row.get(column.name) is not None for row in rows)]
    lines = [
        f"# {made.name}: each row is {made.title}.",
        f"# 'weftwork validate {made.name} --data FILE' scores them.",
        "# Lines that begin with # are skipped; columns may be in any order.",
    ]
    lines += [f"# {note}" for note in made.notes]
    for column in made.columns:
        mark = " (optional)" if column.optional else ""
        words = f" One of: {', '.join(column.choices)}." if column.choices else ""
        lines.append(f"#   {column.name}{mark}: {column.text}{words}")
    lines.append(",".join(names))
    lines += [",".join("" if row.get(name) is None else str(row[name]) for name in names) for row in rows]
    return "\n".join(lines) + "\n"
