"""Hierarchical collective: reduced in each domain, around the rail rings, then multicast.

The switch of each domain reduces, and sends to all. NCCL has no such method; it is the program of NVLSTree.
Source: the file of the algorithm; Cho et al., BlueConnect, MLSys 2019.
Leaves out: groups of a network (`weftwork.workload.collectives.group_form`).
"""

from __future__ import annotations

from typing import Final

from weftwork.workload.collectives.method import TimedMethod
from weftwork.workload.collectives.method_bytes import MethodBytes, SentCall, rails_bytes

__all__ = ["METHOD"]


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Reduced in each domain, around the rail rings, then multicast.

    The switch of each domain reduces, and sends to all.
    """
    domains = shape.group.domains
    return rails_bytes(shape, share=2 * (domains - 1) / domains, steps=2 * (domains - 1))


METHOD: Final = TimedMethod(
    source="Cho et al., BlueConnect, MLSys 2019",
    bytes_of=_bytes_of,
    figures_by_inner={"nvls": "nvls-tree"},
)
