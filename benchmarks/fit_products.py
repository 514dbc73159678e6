"""Derive what casts and products in few bits cost, from layers that Transformer Engine's own benchmark timed.

    python benchmarks/fit_products.py

NVIDIA/TransformerEngine, docs/examples/gemm_profiling, prints the time of the 12 products of a layer of 4,096 columns,
an MLP of 16,384 and 15,872 tokens, with the casts of their operands and without, on a B300 and on an H200 NVL. The
difference is the casts'; the rest over the model's is what a precision reaches.
Leaves out: weights, whose casts a training step does once for all micro batches; the benchmark does them every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weftwork.hardware.catalogue import gpu
from weftwork.spec.training import Precision
from weftwork.workload.models.software import software
from weftwork.workload.training.kernels import Kernels
from weftwork.workload.training.layers import CAST_BYTES

__all__ = ["main", "rows"]

TOKENS: Final = 15_872
SHAPES: Final = ((12_288, 4_096), (4_096, 4_096), (16_384, 4_096), (4_096, 16_384))  # columns and inner, forward


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """Milliseconds of one layer's products, with casts and without, as they are printed."""

    gpu: str
    precision: Precision
    name: str
    with_casts_ms: float
    without_ms: float


# the page's tables "Per-Layer GEMM Time", lines "Per-layer total"
PUBLISHED: Final = (
    Timed(gpu="b300", precision="bf16", name="BF16", with_casts_ms=12.758, without_ms=13.102),
    Timed(gpu="b300", precision="fp8", name="FP8, scaled by tensor", with_casts_ms=9.147, without_ms=6.812),
    Timed(gpu="b300", precision="mxfp8", name="MXFP8", with_casts_ms=8.984, without_ms=7.161),
    Timed(gpu="b300", precision="nvfp4", name="NVFP4", with_casts_ms=6.453, without_ms=3.764),
    Timed(gpu="h200", precision="bf16", name="BF16", with_casts_ms=32.014, without_ms=31.968),
    Timed(gpu="h200", precision="fp8", name="FP8, scaled by tensor", with_casts_ms=20.285, without_ms=16.785),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line: bytes that a cast moves for each element, and the time of the products here over the published one."""

    timed: Timed
    cast_bytes: float
    products_error: float


def rows() -> tuple[Row, ...]:
    """Work out every line of `PUBLISHED`."""
    return tuple(_row(timed) for timed in PUBLISHED)


def _row(timed: Timed) -> Row:
    kernels = Kernels(gpu=gpu(timed.gpu), software=software("plain"), precision=timed.precision)
    products_s, elements = 0.0, 0
    for columns, inner in SHAPES:
        for sides in ((TOKENS, columns, inner), (TOKENS, inner, columns), (inner, columns, TOKENS)):
            rows_, columns_, inner_ = sides
            products_s += kernels.matmul_s(rows_, columns_, inner_)
            elements += inner_ * (rows_ + columns_)
    cast_s = (timed.with_casts_ms - timed.without_ms) * 1e-3
    bytes_per_s = kernels.gpu.memory_copy_bytes_per_s * kernels.software.memory_efficiency
    return Row(
        timed=timed,
        cast_bytes=max(0.0, cast_s) * bytes_per_s / elements,
        products_error=products_s / (timed.without_ms * 1e-3) - 1,
    )


def main() -> None:
    """Print every line."""
    for row in rows():
        timed = row.timed
        cast = f"a cast moves {row.cast_bytes:.1f} bytes an element (here {CAST_BYTES[timed.precision]:g})"
        print(f"{timed.gpu} {timed.name}: {cast}; products take {100 * row.products_error:+.1f} % here")


if __name__ == "__main__":
    main()
