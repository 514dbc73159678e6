"""Rates of dense products by GPU and format, from other people's timings: in a burst, and in runs of a second.

    python -m weftwork.study.validation.product_rates

A burst rate is R of `weftwork.workload.training.kernels`: the median over products of their work with its fill, over
their time without the casts of what they multiply. What training keeps of it is the median, over products that were
timed both ways, of the time in a short burst over the time in a run of about a second, at the board's power.
Sources: tables `gemm-products` and `gemm-long-runs` of `weftwork.data.measured`.
Leaves out: products below 4,096 in any dimension, gradients of weights, and days: a second is the longest run.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weftwork.data.measured import measured
from weftwork.hardware.catalogue import GPUS, gpu
from weftwork.spec.training import Precision, Software
from weftwork.workload.training.kernels import EMPTY_ROWS, OPERAND_BYTES, PROLOGUE

__all__ = ["BurstRate", "SustainedShare", "burst_rates", "sustained_shares", "table"]

# Bytes that a cast of activations reads for each element: FP8 reads them for the largest value and again, NVFP4 has its
# scales already. Source: what the products of the table launch, `src/weftwork/data/published/README.md`
_READ_BYTES: Final[dict[Precision, float]] = {"bf16": 0.0, "fp8": 4.0, "nvfp4": 2.0}
_FORMATS: Final[dict[str, Precision]] = {"bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
_KEYS: Final[dict[Precision, str]] = {"bf16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}  # as figures of a GPU name them


@dataclass(frozen=True, kw_only=True, slots=True)
class BurstRate:
    """What products of a format reach on a GPU in a short burst.

    Attributes
    ----------
    gpu, precision : of the products
    products : how many were timed
    flops : median, FLOP/s; low and high are the quartiles
    error : mean absolute error of the products' times by the median
    """

    gpu: str
    precision: Precision
    products: int
    flops: float
    low_flops: float
    high_flops: float
    error: float

    @property
    def figure(self) -> str:
        """Key of the figure of the GPU."""
        return f"burst_{_KEYS[self.precision]}_flops"


@dataclass(frozen=True, kw_only=True, slots=True)
class SustainedShare:
    """What a run of about a second keeps of a burst: median and quartiles over products."""

    gpu: str
    precision: Precision
    products: int
    share: float
    low: float
    high: float

    @property
    def figure(self) -> str:
        """Key of the figure of the GPU."""
        return f"sustained_{_KEYS[self.precision]}_share"


def burst_rates() -> tuple[BurstRate, ...]:
    """Rates of all GPUs and formats of the table, in its order."""
    columns = measured("gemm-products").to_pydict()
    names = list(zip(columns["gpu"], columns["precision"], strict=True))
    m, n, k, seconds = (np.array(columns[name], np.float64) for name in ("m", "n", "k", "seconds"))
    rates = []
    for name in dict.fromkeys(names):
        rows = np.array([other == name for other in names])
        rates.append(_burst_rate(name[0], _FORMATS[name[1]], m[rows], n[rows], k[rows], seconds[rows]))
    return tuple(rates)


def _burst_rate(
    name: str,
    precision: Precision,
    m: NDArray[np.float64],
    n: NDArray[np.float64],
    k: NDArray[np.float64],
    seconds: NDArray[np.float64],
) -> BurstRate:
    work = 2 * m * n * k * (1 + EMPTY_ROWS / m) * (1 + EMPTY_ROWS / n) * (1 + PROLOGUE / k)
    read_bytes = _READ_BYTES[precision]
    cast_bytes = read_bytes + OPERAND_BYTES[precision] if read_bytes else 0.0  # of activations; weights come cast
    cast_s = cast_bytes * m * k / (gpu(name).memory_copy_bytes_per_s * Software().memory_efficiency)
    each = work / (seconds - cast_s)
    low, flops, high = np.quantile(each, [0.25, 0.5, 0.75])
    return BurstRate(
        gpu=name,
        precision=precision,
        products=len(seconds),
        flops=float(flops),
        low_flops=float(low),
        high_flops=float(high),
        error=float(np.mean(np.abs((work / flops + cast_s) / seconds - 1))),
    )


def sustained_shares() -> tuple[SustainedShare, ...]:
    """Shares of all GPUs and formats of the table, in its order."""
    columns = measured("gemm-long-runs").to_pydict()
    names = list(zip(columns["gpu"], columns["precision"], strict=True))
    kept = np.array(columns["short_us"], np.float64) / np.array(columns["long_us"], np.float64)
    shares = []
    for name in dict.fromkeys(names):
        rows = kept[np.array([other == name for other in names])]
        low, share, high = (float(value) for value in np.quantile(rows, [0.25, 0.5, 0.75]))
        shares.append(
            SustainedShare(
                gpu=name[0], precision=_FORMATS[name[1]], products=len(rows), share=share, low=low, high=high
            )
        )
    return tuple(shares)


def table() -> str:
    """Both tables, beside what the best shape of a short benchmark gives."""
    lines = ["gpu    format  products  burst TFLOP/s  quartiles      error  best shape"]
    for rate in burst_rates():
        key = f"achieved_{_KEYS[rate.precision]}_flops"
        row = GPUS[rate.gpu]
        best = f"{row.value(key) / 1e12:,.0f}" if key in row.figures else "-"
        quartiles = f"{rate.low_flops / 1e12:,.0f} to {rate.high_flops / 1e12:,.0f}"
        lines.append(
            f"{rate.gpu:<6} {rate.precision:<7} {rate.products:>8}  {rate.flops / 1e12:>13,.0f}  {quartiles:<13}"
            f"  {100 * rate.error:>3.1f} %  {best:>10}"
        )
    lines += ["", "gpu    format  products  kept in a run of a second  quartiles"]
    for share in sustained_shares():
        quartiles = f"{share.low:.3f} to {share.high:.3f}"
        lines.append(f"{share.gpu:<6} {share.precision:<7} {share.products:>8}  {share.share:>25.3f}  {quartiles}")
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(table())
