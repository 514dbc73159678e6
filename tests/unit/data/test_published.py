"""The tables of other people's measurements."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from weftwork.base.errors import ConfigError
from weftwork.data.measured import measured, measured_names

TEXTS = {
    "benchmark", "bound", "category", "cause", "checked", "comparison", "conditions", "control", "figure", "gpu",
    "load_balancing", "long_source", "model", "pattern", "place", "precision", "quantity", "release", "round", "run",
    "schedule", "short_source", "source", "system", "topic", "transport",
}  # fmt: skip


BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def benchmark(name: str) -> ModuleType:
    """A file of benchmarks/ as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_a_table_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'nccl-all-reduce-h100-efa'"):
        measured("nccl-all-reduce-h100-eaf")


@pytest.mark.parametrize("name", measured_names())
def test_every_table_reads_as_numbers(name: str) -> None:
    table = measured(name)
    assert table.num_rows >= 4
    for column in table.column_names:
        values = [value for value in table[column].to_pylist() if value is not None]
        if column in TEXTS:
            assert all(isinstance(value, str) and value for value in values), column
        else:
            least = 0 if column == "fsdp" or column.startswith("has_") else 1e-5 if column == "seconds" else 1e-3
            assert min(values) >= least, column


def test_tables_of_iterations_are_whole() -> None:
    sizes = {
        "vtrain-a100-multi-node": 47,
        "vtrain-a100-single-node": 360,
        "megatron-sc21-a100": 5,
        "megatron-bridge": 78,
        "mlperf-training": 18,
        "llm-foundry": 112,
        "training-runs": 4,
        "fabric-comparisons": 12,
    }
    assert {name: measured(name).num_rows for name in sizes} == sizes


def test_rows_of_mlperf_divide_their_gpus_and_batches() -> None:
    for row in measured("mlperf-training").to_pylist():
        data, rest = divmod(row["gpus"], row["tensor"] * row["pipeline"] * row["context"])
        assert rest == 0, row
        assert row["global_batch"] % (data * row["micro_batch"]) == 0, row


def test_seconds_of_deepseek_v3_follow_from_its_gpu_hours() -> None:
    """180,000 H800 hours for a trillion tokens."""
    (row,) = (row for row in measured("training-runs").to_pylist() if row["system"] == "H800")
    tokens = row["global_batch"] * row["sequence"]
    assert row["iteration_s"] == pytest.approx(tokens * 180e3 * 3600 / 1e12 / row["gpus"], rel=1e-3)


@pytest.mark.parametrize("name", ["vtrain-a100-multi-node", "vtrain-a100-single-node"])
def test_plans_of_vtrain_use_all_gpus_and_divide_their_batch(name: str) -> None:
    for row in measured(name).to_pylist():
        assert row["tensor"] * row["data"] * row["pipeline"] == row["gpus"], row
        assert row["global_batch"] % (row["data"] * row["micro_batch"]) == 0, row


def test_seconds_of_sc21_follow_from_its_flops() -> None:
    """96 B s l h^2 (1 + s / 6h + V / 16lh), recomputation included."""
    for row in measured("megatron-sc21-a100").to_pylist():
        b, s, h, l = row["global_batch"], row["sequence"], row["hidden"], row["layers"]  # noqa: E741 - the paper's
        flops = 96 * b * s * l * h**2 * (1 + s / (6 * h) + row["vocabulary"] / (16 * l * h))
        found = flops / (row["tflop_per_s_per_gpu"] * 1e12 * row["gpus"])
        assert found == pytest.approx(row["iteration_s"], rel=0.01), row


def test_rows_of_megatron_bridge_divide_their_gpus_and_agree_with_their_flops() -> None:
    """FLOP over tokens is the model's: 6 times its active parameters, and attention on top; LoRA has two thirds."""
    least = {"LLAMA3_70B": 6 * 70e9, "LLAMA3.1_405B": 6 * 405e9, "DeepSeekV3": 6 * 37e9, "Qwen3_235B_a22B": 6 * 21e9}
    for row in measured("megatron-bridge").to_pylist():
        assert row["gpus"] % (row["tensor"] * row["pipeline"] * row["context"]) == 0, row
        of_a_token = row["model_tflop_per_s_per_gpu"] * 1e12 / row["tokens_per_s_per_gpu"]
        wanted = least.get(row["model"], 0) * (2 / 3 if row["gpus"] == 8 else 1)
        assert wanted * 0.9 <= of_a_token <= max(wanted * 1.35, 1e11), row


@pytest.mark.parametrize(("operation", "factor"), [("all-reduce", 2.0), ("all-gather", 1.0), ("all-to-all", 1.0)])
def test_bus_bandwidths_follow_from_algorithm_bandwidths(operation: str, factor: float) -> None:
    for row in measured(f"nccl-{operation}-h100-efa").to_pylist():
        bus = row["algorithm_bandwidth_gbyte_per_s"] * factor * (row["gpus"] - 1) / row["gpus"]
        assert bus == pytest.approx(row["bus_bandwidth_gbyte_per_s"], rel=0.01), row


def test_the_times_of_eight_a100_give_their_bus_bandwidths() -> None:
    for row in measured("nccl-all-reduce-a100-nvlink").to_pylist():
        bus = row["size_bytes"] / row["time_ns"] * 2 * 7 / 8
        assert bus == pytest.approx(row["bus_bandwidth_gbyte_per_s"], rel=0.01), row
