"""Barriers and writes for memory of a device, which a software NIC does not have.

Source: pyverbs, dma_util.pyx (names).
Leaves out: registers of a device.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.pyverbs_error import not_supported

__all__ = ["mmio_write32_as_be", "mmio_write64_as_be", "udma_from_dev_barrier", "udma_to_dev_barrier"]


def udma_to_dev_barrier() -> None:
    """Do nothing: the NIC runs in this process, in the order of its program."""


def udma_from_dev_barrier() -> None:
    """Do nothing, as `udma_to_dev_barrier`."""


def mmio_write64_as_be(addr: int, val: int) -> None:
    """Refuse: there are no registers."""
    raise not_supported(f"Writing {val:#x} to a register at {addr:#x}")


def mmio_write32_as_be(addr: int, val: int) -> None:
    """Refuse: there are no registers."""
    raise not_supported(f"Writing {val:#x} to a register at {addr:#x}")
