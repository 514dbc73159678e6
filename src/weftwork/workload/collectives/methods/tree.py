"""Tree of NCCL: two trees over domains, each with half of the bytes.

Source: NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel and treeCorrectionFactor.
Leaves out: trees inside one server.
"""

from __future__ import annotations

from math import log2
from typing import Final

from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import BandwidthView, LatencyView, TimedMethod, TunerRegion
from weftwork.workload.collectives.method_bytes import LEAST_TREE_DOMAINS, GroupShape, MethodBytes, SentCall

__all__ = ["METHOD"]

# NCCL, treeCorrectionFactor, from 64 B on by powers of two (commit b647562)
TREE_CORRECTION: Final = {
    "ll": (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    "ll128": (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    "simple": (
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9,
        0.9,
    ),
}  # fmt: skip


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Two trees over domains, each with half of the bytes.

    A domain is a leaf of one tree and inside the other.
    """
    group = shape.group
    share = shape.size_bytes / (2 * shape.channels)
    pieces = shape.pieces(share)
    levels = (group.domains - 1).bit_length()
    stages = levels if group.per_domain > 1 else max(0, levels - 1)  # a chain through a domain is one more
    children = 2 if group.domains > LEAST_TREE_DOMAINS else 1  # whose pieces share a NIC
    passed = shape.size_bytes * 2 / group.per_domain * (1 if group.domains > LEAST_TREE_DOMAINS else 0.5)
    return MethodBytes(
        local_bytes=2 * (1 - 1 / group.per_domain) * shape.size_bytes,
        network_bytes=passed * (1 + stages / pieces),  # the first piece goes up before the last one starts
        local_steps=2 * (group.per_domain - 1),
        local_hops=2 * (group.per_domain - 1),
        network_steps=2 * levels,
        local_piece_bytes=share / pieces,
        network_piece_bytes=children * share / pieces,
        behind=(1 - 1 / pieces) / 2,  # up or down, not both
    )


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:  # noqa: ARG001 - as of any method
    return operation == "all-reduce" and group.domains > 1


def _bandwidth_bps(view: BandwidthView) -> float:
    tree_bps = min(view.ring_bps * 0.92, view.channels * view.limit_bps("tree"))
    protocol = view.call.method.protocol
    bus_bps = {
        "simple": tree_bps,
        "ll128": min(tree_bps * 120 / 128, view.channels * view.limit_bps("tree_ll128")),
        "ll": min(tree_bps / 3.8, view.limit_bps("ll", grows=False)),
    }[protocol]
    place = int(log2(max(1, int(view.call.size_bytes) >> 6)))
    factors = TREE_CORRECTION[protocol]
    return bus_bps / 2 * (factors[place] if place < len(factors) else 1)


def _latency_ps(view: LatencyView) -> float:
    inside = view.call.group.per_domain - 1
    return view.own.base_latency_ps + 2 * (inside * view.inside_ps + view.levels * view.across_ps)


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl, src/graph/tuning.cc",
    bytes_of=_bytes_of,
    figures="tree",
    has_all_protocols=True,
    offers=_offers,
    order=4,
    regions=(TunerRegion(key="tree_ll128_bytes", protocol="ll128"),),
    bandwidth_bps=_bandwidth_bps,
    latency_ps=_latency_ps,
)
