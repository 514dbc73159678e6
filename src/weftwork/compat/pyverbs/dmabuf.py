"""DMA buffers of GPUs, which a software NIC does not reach.

Source: pyverbs, dmabuf.pyx (names).
Leaves out: the buffers themselves.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.base import PyverbsCM
from weftwork.compat.pyverbs.pyverbs_error import not_supported

__all__ = ["DmaBuf"]


class DmaBuf(PyverbsCM):
    """A buffer that is refused."""

    def __init__(self, size: int, gpu: int = 0, gtt: int = 0) -> None:
        raise not_supported(f"A DMA buffer of {size} bytes on GPU {gpu} (GTT {gtt})")
