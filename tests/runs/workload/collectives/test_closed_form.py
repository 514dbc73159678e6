"""The closed form of collectives: laws over random groups, limits that follow from links, rounds and peers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from weftwork.workload.collectives.figures import FIGURES


@pytest.mark.parametrize(("gpu", "most"), [("a100", 0.05), pytest.param("h100", 0.10, marks=pytest.mark.deep)])
def test_the_fit_gives_the_figures(gpu: str, most: float) -> None:
    path = Path(__file__).resolve().parents[4] / "benchmarks" / "fit_one_node.py"
    spec = importlib.util.spec_from_file_location("fit_one_node", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found, error = module.fit(gpu)
    assert error < most
    if gpu == "a100":
        assert module.nvlink_share() == pytest.approx(1.0, abs=0.01)
    for key, value in found.items():
        assert FIGURES[gpu].value(key) == pytest.approx(value, rel=0.03), key
