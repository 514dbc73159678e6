"""Time to register memory, next to the time to copy it.

The pages are in memory before, so that only registration counts: keys, checks and mlock(2).
Leaves out: what hardware adds, such as its translation table and the IOMMU.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from weftwork.rdma.device import RdmaDevice
    from weftwork.rdma.memory import ProtectionDomain

__all__ = ["time_registration"]

_REPEATS: Final = 9  # chosen: the median of as many is steady


def time_registration(device: RdmaDevice, pd: ProtectionDomain, size_bytes: int) -> dict[str, Any]:
    """Register, deregister and copy a buffer several times.

    Parameters
    ----------
    device, pd : that register
    size_bytes : of the buffer
    """
    buffer, other = np.ones(size_bytes, np.uint8), np.ones(size_bytes, np.uint8)
    registering, deregistering, copying = [], [], []
    is_pinned = True
    for _ in range(_REPEATS):
        moments = [time.perf_counter_ns()]
        region = device.reg_mr(pd, buffer)
        moments.append(time.perf_counter_ns())
        is_pinned &= region.is_pinned
        device.dereg_mr(region)
        moments.append(time.perf_counter_ns())
        other[:] = buffer
        moments.append(time.perf_counter_ns())
        registering.append(moments[1] - moments[0])
        deregistering.append(moments[2] - moments[1])
        copying.append(moments[3] - moments[2])
    return {
        "size_bytes": size_bytes,
        "register_ns": statistics.median(registering),
        "deregister_ns": statistics.median(deregistering),
        "copy_ns": statistics.median(copying),
        "is_pinned": is_pinned,
    }
