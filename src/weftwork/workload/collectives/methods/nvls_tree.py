"""NVLSTree of NCCL: as `hierarchical` with NVLS inside, with two trees per rail in place of its ring.

It has no program of its own: `hierarchical` with the NVLink switch inside stands for it. The trees between domains are
the rings of the rails there, which for two domains are the same.
Source: NVIDIA/nccl, src/graph/tuning.cc.
Leaves out: operations other than an all-reduce.
"""

from __future__ import annotations

from typing import Final

from weftwork.workload.collectives.closed_form import channels
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import (
    NVLS_CHANNELS,
    BandwidthView,
    LatencyView,
    Method,
    MethodCall,
    MethodProgram,
    TimedMethod,
    TunerRegion,
    switches_reduce,
)
from weftwork.workload.collectives.method_bytes import (
    LEAST_TREE_DOMAINS,
    GroupShape,
    MethodBytes,
    SentCall,
    rails_bytes,
)

__all__ = ["METHOD"]


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Two trees per rail.

    The trees are over the domains of a rail, each with half of the bytes.
    """
    domains = shape.group.domains
    return rails_bytes(shape, share=2.0 if domains > LEAST_TREE_DOMAINS else 1.0, steps=2 * (domains - 1).bit_length())


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:
    return operation == "all-reduce" and group.domains > 1 and switches_reduce(group, figures)


def _bandwidth_bps(view: BandwidthView) -> float:
    between_bps = view.ring_bps * (2 if view.call.group.domains == 2 else 1)
    return min(view.switch_bps, between_bps, NVLS_CHANNELS * view.limit_bps("nvls_tree")) * view.around


def _latency_ps(view: LatencyView) -> float:
    across_ps = 2 * view.levels * view.across_ps if view.call.is_far else 0
    return view.own.base_latency_ps + 2 * view.inside_ps + across_ps


def _program(call: MethodCall, own_channels: int | None) -> MethodProgram:
    rails = Method(algorithm="hierarchical", inner="nvls")
    text = "NCCL takes NVLSTree, here with rings over the rails in place of its trees, which have fewer steps"
    each = own_channels or channels(call.group, call.figures)
    chunk = call.figures.nvls_tree_chunk_bytes * NVLS_CHANNELS // each
    note = text if call.group.domains > LEAST_TREE_DOMAINS else None
    return MethodProgram(method=rails, least_chunk_bytes=max(1, chunk), note=note)


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl, src/graph/tuning.cc",
    bytes_of=_bytes_of,
    figures="nvls_tree",
    offers=_offers,
    order=5,
    regions=(TunerRegion(key="nvls_tree_bytes", has_line=False),),
    inner="nvls",
    bandwidth_bps=_bandwidth_bps,
    latency_ps=_latency_ps,
    program=_program,
)
