"""The tables of other people's measurements."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from weftwork.data.measured import measured
from weftwork.study.validation.llm_foundry import SHAPES, VOCABULARY

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


def test_rows_of_llm_foundry_agree_with_their_batches_and_parameters() -> None:
    """NumParams of the source, with biases, norms and learned positions; batches are micro batches times GPUs."""
    for row in measured("llm-foundry").to_pylist():
        layers, hidden, _ = SHAPES[row["model"]]
        biases_and_norms = 13 * layers * hidden + 2 * hidden
        embeddings = (VOCABULARY + row["sequence"]) * hidden
        assert 12 * layers * hidden**2 + biases_and_norms + embeddings == row["parameters"], row
        assert row["micro_batch"] * row["accumulation"] * row["gpus"] == row["global_batch"], row


def test_256_gpus_go_on_slower_when_one_of_two_ports_is_lost(tmp_path: Path) -> None:
    """HPN publishes -6.25 % and neither model nor batch: held is that the job goes on, at a cost like that."""
    module = benchmark("published_port_lost")
    found = module.measure(module.CASES[0], tmp_path)
    assert -0.15 < found.change < 0


@pytest.mark.parametrize(
    ("curve", "gpus", "size_mib", "tolerance"),
    [
        pytest.param("one-node-h100", 8, 1024, 0.05, marks=pytest.mark.deep),
        ("one-node-a100", 8, 1024, 0.05),
        ("a100-nvlink", 8, 512, 0.05),  # nothing was fitted on this table
        ("all-to-all", 16, 256, 0.15),
        pytest.param("all-gather", 16, 512, 0.15, marks=pytest.mark.deep),
        pytest.param("all-reduce", 16, 512, 0.15, marks=pytest.mark.deep),
    ],
)
def test_large_collectives_are_as_far_off_as_the_page_says(
    curve: str, gpus: int, size_mib: int, tolerance: float
) -> None:
    module = benchmark("published_nccl")
    chosen = module.CURVES[curve]
    size_bytes = size_mib * module.MIB
    rows = [row for row in measured(chosen.table).to_pylist() if row["size_bytes"] == size_bytes]
    wanted = next(row for row in rows if row.get("gpus", 8) == gpus)[chosen.column]
    scenario, fabric = module.servers_of(chosen, gpus)
    found, *_ = module.simulated(scenario, fabric, operation=chosen.operation, gpus=gpus, size_bytes=size_bytes)
    assert found == pytest.approx(wanted, rel=tolerance)
