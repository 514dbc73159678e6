"""PAT of NCCL: logarithmic steps that double or halve the bytes, with one member in each domain.

It has no program of its own: recursive doubling and halving has as many steps and bytes.
Source: NVIDIA/nccl, src/graph/tuning.cc.
Leaves out: PAT of other than a power of two, for which a ring is taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import (
    BandwidthView,
    LatencyView,
    Method,
    MethodCall,
    MethodProgram,
    SoftwareTimes,
    TimedMethod,
)
from weftwork.workload.collectives.method_bytes import GroupShape, MethodBytes, SentCall
from weftwork.workload.collectives.program import program

__all__ = ["METHOD"]

LATENCY_SHARE: Final = 3.5  # of the latency of a NIC that a step of PAT takes: NCCL, tuning.cc, in a copy
MEMBER_PS: Final = 2_800_000  # of each member, as NCCL's tuner counts it


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Logarithmic steps that double or halve the bytes.

    There is one member in a domain.
    """
    group = shape.group
    passed = (group.members - 1) / group.members * shape.size_bytes
    return MethodBytes(network_bytes=passed, network_steps=(group.members - 1).bit_length(), is_in_phases=True)


def _software(times: SoftwareTimes, call: MethodCall) -> SoftwareTimes:
    return SoftwareTimes(
        base_ps=times.base_ps + call.group.members * call.figures.peer_ps,
        local_step_ps=times.local_step_ps,
        nic_ps=times.nic_ps / LATENCY_SHARE,
    )


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:  # noqa: ARG001 - as of any method
    return operation in {"reduce-scatter", "all-gather"} and group.per_domain == 1 and group.domains > 1


def _bandwidth_bps(view: BandwidthView) -> float:
    return view.ring_bps * 0.75


def _latency_ps(view: LatencyView) -> float:
    step_ps = view.own.step_latency_ps + 2 * view.call.figures.nic_latency_ps / LATENCY_SHARE
    return view.own.base_latency_ps + view.levels * step_ps + view.call.group.members * MEMBER_PS


def _program(call: MethodCall, own_channels: int | None) -> MethodProgram:
    group = call.group
    if group.members & (group.members - 1) == 0:
        text = "NCCL takes PAT, here recursive halving and doubling"
        return MethodProgram(method=Method(algorithm="halving-doubling"), note=text)
    text = "NCCL takes PAT, which has a program here only for powers of two: a ring replaces it"
    ring = Method(algorithm="ring")
    return replace(program(ring, group, call.size_bytes, call.figures, own_channels=own_channels), note=text)


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl, src/graph/tuning.cc",
    bytes_of=_bytes_of,
    figures="pat",
    software=_software,
    offers=_offers,
    order=2,
    bandwidth_bps=_bandwidth_bps,
    latency_ps=_latency_ps,
    program=_program,
)
