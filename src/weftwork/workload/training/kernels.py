"""Times of single kernels on one GPU, by shape.

A matrix product C[m, n] = A[m, k] B[k, n] takes 2 m n k / R (1 + 64 / m) (1 + 64 / n) (1 + 128 / k), or as long as
its operands need from memory, and a tail in which the GPU drains. R is the peak of the precision, times the share of it
that any measured product reaches (`Gpu.achieved_share`, in fewer bits `Gpu.achieved_fp8_share`), times
``Software.matmul_efficiency``. Other kernels take as long as their bytes need.
Leaves out: tiles and waves, of which the three factors are the smooth average; clocks that fall under load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.training import Gpu, Precision, Software

__all__ = ["EMPTY_ROWS", "PROLOGUE", "RESULT_BYTES", "Kernels", "Size"]

Size = TypeVar("Size", float, NDArray[np.float64])  # of one plan, or of many

# chosen: half of the last tile of 128 rows or columns is empty in the mean; 128 fits the calibration rows as well, 8.02
# instead of 7.98 % off
EMPTY_ROWS: Final = 64
PROLOGUE: Final = 128  # chosen: of the inner dimension, until the pipeline of a tile is full; 64 to 256 move little
# bytes of an operand; NVFP4 has a scale of one byte for 16 numbers of four bits
OPERAND_BYTES: Final[dict[Precision, float]] = {"bf16": 2.0, "fp8": 1.0, "mxfp8": 1.0, "nvfp4": 0.5625}
RESULT_BYTES: Final = 2.0  # results are bfloat16, whatever the operands are
ATTENTION_HALF_TOKENS: Final = 1024  # chosen: flash attention over so many tokens gets half of its rate
# In FP8 over BF16, forward and backward: means of Llama 3.1 and DeepSeek-V3 over 4,096 and 8,192 tokens, GB200 and
# GB300. Source: NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training (cuDNN 9.19)
FP8_ATTENTION_GAIN: Final = {False: 1.3, True: 1.2}
ATTENTION_WIDTH: Final = 256  # of a query and a value together, below which exponentials bind: the same, GPT-OSS
BACKWARD_WORK: Final = 2.5  # five products instead of two: Dao, arXiv:2307.08691, section 3.1
BACKWARD_SHARE: Final = 0.78  # of the forward rate: NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training, GB200


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernels:
    """Times of kernels on a GPU with its software.

    All times are seconds.
    """

    gpu: Gpu
    software: Software
    precision: Precision = "bf16"

    @property
    def tail_s(self) -> float:
        """Time of every kernel beyond its work."""
        return self.software.kernel_tail_ps * 1e-12

    def matmul_flops(self, precision: Precision) -> float:
        """Rate of a large matrix product, FLOP/s."""
        gpu, software = self.gpu, self.software
        if precision == "bf16":
            return gpu.bf16_flops * gpu.achieved_share * software.matmul_efficiency
        reached = gpu.achieved_fp8_share * software.matmul_efficiency
        if precision == "nvfp4":
            reached = gpu.achieved_fp4_share * software.matmul_efficiency
            return gpu.fp4_flops * reached * software.fp8_efficiency
        return gpu.fp8_flops * reached * software.fp8_efficiency

    def matmul_s(
        self,
        rows: float,
        columns: float,
        inner: float,
        *,
        batch: float = 1,
        precision: Precision | None = None,
        result_bytes: float = RESULT_BYTES,
    ) -> float:
        """Time of ``batch`` products [rows, inner] x [inner, columns] in one kernel.

        Parameters
        ----------
        rows, columns, inner : of one product
        batch : how many
        precision : by default that of the layer
        result_bytes : that each number of the result moves
        """
        if min(rows, columns, inner, batch) <= 0:
            return 0.0
        used = precision or self.precision
        fill = (1 + EMPTY_ROWS / rows) * (1 + EMPTY_ROWS / columns) * (1 + PROLOGUE / inner)
        work_s = 2.0 * rows * columns * inner * batch / self.matmul_flops(used) * fill
        size = batch * (OPERAND_BYTES[used] * inner * (rows + columns) + result_bytes * rows * columns)
        return max(work_s, size / self._bytes_per_s) + self.tail_s

    def memory_s(self, size_bytes: Size, kernels: int = 1) -> Size:
        """Time of kernels that move this many bytes, reads plus writes."""
        return size_bytes / self._bytes_per_s + kernels * self.tail_s

    def scan_s(self, flops: float, *, backward: bool = False) -> float:
        """Time of a state-space scan, from the FLOP of its forward pass.

        It is forward or backward.
        """
        forward_s = flops / self.gpu.scan_flops
        if backward:
            return BACKWARD_WORK * forward_s / BACKWARD_SHARE + 2 * self.tail_s
        return forward_s + self.tail_s

    def flash_s(self, flops: float, tokens: float, width: int, *, backward: bool = False) -> float:
        """Time of fused attention.

        Parameters
        ----------
        flops : of the forward pass
        tokens : the length of the rows that it works on: the sequence, or less under a window
        width : of a query and a value of one head together
        backward : whether this is the backward pass
        """
        share = self.gpu.flash_attention_share * self.software.attention_efficiency
        rate = self.gpu.bf16_flops * share * tokens / (tokens + ATTENTION_HALF_TOKENS)
        if self.software.has_fp8_attention and self.precision != "bf16":
            rate *= FP8_ATTENTION_GAIN[backward]
        rate *= min(1.0, width / ATTENTION_WIDTH)
        if backward:
            return BACKWARD_WORK * flops / (rate * BACKWARD_SHARE) + 2 * self.tail_s
        return flops / rate + self.tail_s

    @property
    def _bytes_per_s(self) -> float:
        return self.gpu.memory_copy_bytes_per_s * self.software.memory_efficiency
