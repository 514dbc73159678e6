"""Where ranks live. Leaves out: several GPUs in a server, which come with the models of servers."""

from __future__ import annotations

import numpy as np

from weft.spec.job import Placement

__all__ = ["one_per_host"]


def one_per_host(ranks: int) -> Placement:
    """Rank i on host i, on the host's first NIC port."""
    return Placement(host=np.arange(ranks, dtype=np.int32), nics=np.zeros((ranks, 1), np.int32))
