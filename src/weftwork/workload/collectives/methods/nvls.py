"""NVLS of NCCL: up to the NVLink switch and down again, piece by piece.

Source: NVIDIA/nccl, src/graph/tuning.cc; NVLink SHARP.
Leaves out: servers whose switches do not reduce.
"""

from __future__ import annotations

from typing import Final

from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import BandwidthView, LatencyView, TimedMethod, switches_reduce
from weftwork.workload.collectives.method_bytes import GroupShape, MethodBytes, SentCall

__all__ = ["METHOD"]


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Up to the switch and down again, piece by piece.

    Only the switch and, once, the owner pass data on.
    """
    group = shape.group
    part = shape.size_bytes / group.members / shape.channels
    pieces = shape.pieces(part)
    up = shape.size_bytes
    return MethodBytes(
        local_bytes=up + (up + up / group.members) / pieces,
        local_steps=2,
        local_hops=4,
        is_in_phases=True,
    )


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:
    return operation == "all-reduce" and group.domains == 1 and switches_reduce(group, figures)


def _bandwidth_bps(view: BandwidthView) -> float:
    return view.switch_bps * view.around


def _latency_ps(view: LatencyView) -> float:
    return view.own.base_latency_ps + 2 * view.inside_ps


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl, src/graph/tuning.cc",
    bytes_of=_bytes_of,
    figures="nvls",
    offers=_offers,
    order=3,
    bandwidth_bps=_bandwidth_bps,
    latency_ps=_latency_ps,
)
