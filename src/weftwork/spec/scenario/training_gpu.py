"""The keys of ``training`` that say on what a job computes: GPU, its rates and its memory.

Leaves out: what a GPU gives (`weftwork.hardware.catalogue.gpu`).
"""

from __future__ import annotations

from typing import get_args

from weftwork.base.units import SIZE
from weftwork.spec.scenario.kinds import Choice, Measure, NameOrFile, Number
from weftwork.spec.scenario.rows import row
from weftwork.spec.training import ProductRates

__all__ = ["gpu_row", "memory_row", "rates_row", "sustained_rate_row"]


def gpu_row() -> str | None:
    """The key of a job's GPU."""
    key: str | None = row(
        "gpu",
        NameOrFile(catalogue="gpu"),
        absent="that of the server",
        text="GPU of the catalogue. A server of the catalogue holds that of its row and no other; `plain` holds any.",
        source="chosen: the server's",
    )
    return key


def rates_row() -> ProductRates:
    """The key of how fast dense products are."""
    key: ProductRates = row(
        "rates",
        Choice(options=get_args(ProductRates)),
        default="best-shape",
        text="Rates of dense products: of a benchmark's best shape, or the median of many shapes times sustained_rate,"
        " beside which matmul_efficiency and fp8_efficiency are 1 unless they are set.",
        source="ai-dynamo/aiconfigurator; chosen: with what the constants of the package were fitted",
    )
    return key


def sustained_rate_row() -> float | None:
    """The key of what training keeps of a measured rate."""
    key: float | None = row(
        "sustained_rate",
        Number(above=0, high=1, unit="share"),
        absent="that of the GPU, by format",
        only=("rates", ("measured",)),
        text="Share of the measured rate of products that training keeps: clocks fall under power.",
        source="see the shares of the GPU",
    )
    return key


def memory_row() -> int | None:
    """The key of the memory of a GPU."""
    key: int | None = row(
        "memory",
        Measure(quantity=SIZE, low=1),
        absent="that of the GPU",
        text="Memory of a GPU that may be used; a plan that needs more is refused.",
        source="chosen: all of it; the estimate is a formula, and recipes offload or compute again what it counts",
    )
    return key
