"""Time of the optimizer behind an iteration.

Adam in FP32 reads and writes its states of each parameter that a rank updates, and the exchanges of single numbers
bring ranks together. Source: Kingma and Ba, arXiv:1412.6980 (Adam).
Leaves out: which parameters a rank updates (`weftwork.workload.training.programs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from weftwork.workload.training.communication import Communication
    from weftwork.workload.training.kernels import Kernels, Size

__all__ = [
    "OPTIMIZER_BYTES",
    "OPTIMIZER_EXCHANGES",
    "OPTIMIZER_KERNELS",
    "WORKING_BYTES",
    "optimizer_exchange_ps",
    "optimizer_s",
]

OPTIMIZER_BYTES: Final = 28  # of a parameter that a rank updates: Adam in FP32 reads and writes three, reads a gradient
WORKING_BYTES: Final = 6  # of a parameter that it holds: gradient read and cleared, new value written
OPTIMIZER_KERNELS: Final = 10
OPTIMIZER_EXCHANGES: Final = 3  # small all-reduces: norm of the gradients, overflow, loss


def optimizer_s(kernels: Kernels, updated: Size, held: Size) -> Size:
    """Computing time of the optimizer.

    Parameters
    ----------
    updated : parameters that a rank updates
    held : trained parameters whose gradients and values it holds
    """
    return kernels.memory_s(OPTIMIZER_BYTES * updated + WORKING_BYTES * held, OPTIMIZER_KERNELS)


def optimizer_exchange_ps(calls: Communication) -> int:
    """Time of the small all-reduces of the optimizer."""
    return OPTIMIZER_EXCHANGES * calls.message_latency_ps(far=True)
