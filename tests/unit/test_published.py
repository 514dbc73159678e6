"""The tables of other people's measurements, and the least completion time of the reference model's permutation."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from weft.base.errors import ConfigError
from weft.data.measured import measured, measured_names

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


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
    assert table.num_rows >= 10
    for column in table.column_names:
        if column != "control":
            assert min(table[column].to_pylist()) > 0, column


@pytest.mark.parametrize(("operation", "factor"), [("all-reduce", 2.0), ("all-gather", 1.0), ("all-to-all", 1.0)])
def test_bus_bandwidths_follow_from_algorithm_bandwidths(operation: str, factor: float) -> None:
    for row in measured(f"nccl-{operation}-h100-efa").to_pylist():
        bus = row["algorithm_bandwidth_gbyte_per_s"] * factor * (row["gpus"] - 1) / row["gpus"]
        assert bus == pytest.approx(row["bus_bandwidth_gbyte_per_s"], rel=0.01), row


def test_the_times_of_eight_a100_give_their_bus_bandwidths() -> None:
    for row in measured("nccl-all-reduce-a100-nvlink").to_pylist():
        bus = row["size_bytes"] / row["time_ns"] * 2 * 7 / 8
        assert bus == pytest.approx(row["bus_bandwidth_gbyte_per_s"], rel=0.01), row


def test_the_least_completion_time_of_the_sprayed_permutation_is_that_of_the_reference_model() -> None:
    """A flow that stays below its leaf meets nobody, so that 256 hosts tell as much about it as 8,192."""
    module = benchmark("published_permutation")
    _, outcome = module.measure(module.fabric("mix", leaves=4), 1_000_000, 64)
    ends_us = outcome.messages["acked_at_ps"] / 1e6
    theirs_us = module.published()[1_000_000, 64]["nscc"]
    assert ends_us.min() == pytest.approx(theirs_us[1], rel=0.01)
    # 245 packets of 4,150 B at 200 Gb/s, four links of 1 us and the ACK: nobody is faster
    assert ends_us.min() >= 244 * 0.166 + 4
    assert ends_us.max() > theirs_us[1]


@pytest.mark.parametrize(
    ("curve", "gpus", "size_mib", "way", "tolerance"),
    [
        ("one-node-h100", 8, 1024, 0, 0.05),  # the calibrated row is that of 8 GiB
        ("one-node-a100", 8, 1024, 0, 0.05),
        ("a100-nvlink", 8, 512, 0, 0.05),  # nothing was calibrated on this table
        ("all-to-all", 16, 256, 0, 0.25),
        ("all-gather", 16, 512, 1, 0.20),
        ("all-reduce", 16, 512, 0, 0.25),
    ],
)
def test_large_collectives_are_as_far_off_as_the_page_says(
    curve: str, gpus: int, size_mib: int, way: int, tolerance: float
) -> None:
    module = benchmark("published_nccl")
    chosen = module.CURVES[curve]
    size_bytes = size_mib * module.MIB
    rows = [row for row in measured(chosen.table).to_pylist() if row["size_bytes"] == size_bytes]
    wanted = next(row for row in rows if row.get("gpus", 8) == gpus)[chosen.column]
    scenario, fabric = module.servers_of(chosen, gpus)
    found = module.bus_bandwidth_gbyte_per_s(
        scenario, fabric, operation=chosen.operation, way=chosen.ways[way], gpus=gpus, size_bytes=size_bytes
    )
    assert found == pytest.approx(wanted, rel=tolerance)
