"""Ring of NCCL: rings through all members, domain after domain, in rounds of what its buffers hold.

Source: NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime; src/enqueue.cc (rounds). A channel
is a thread block of NCCL and gets its share of NVLink, no more while others wait for the network: on links that give it
more, its steps inside a domain are later by the difference.
Leaves out: broadcasts and reductions to one member.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.workload.collectives.closed_form import SIMPLE_POSTS, channels, latencies, round_bytes
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import (
    BandwidthView,
    LatencyView,
    MethodCall,
    MethodProgram,
    SoftwareTimes,
    TimedMethod,
    TunerRegion,
)
from weftwork.workload.collectives.method_bytes import TIMES_AROUND, GroupShape, MethodBytes, SentCall
from weftwork.workload.collectives.protocols import software

__all__ = ["METHOD"]

# Messages of NVLink take turns in slices (spec.device.Server, slice_bytes). Larger ones stay in step by that, but for
# what the latency of the network puts them out of step; chosen: up to two slices, more of which no run needs.
SLICE_BYTES: Final = 512 << 10
HELD_BYTES: Final = 2 * SLICE_BYTES
PLATEAU: Final = 1.4  # NCCL, ncclTopoGetAlgoTime: latency of a Simple ring of an all-reduce over servers, "plateau"
PLATEAU_BYTES: Final = 64  # of a part of a channel, from which on


def _bytes_of(shape: SentCall) -> MethodBytes:
    """Rings through all members, domain after domain.

    There are as many rings as a domain has members and NICs.
    """
    group, rounds = shape.group, shape.rounds
    passed = rounds * (group.members - 1) / group.members * shape.size_bytes
    part = shape.size_bytes / group.members / shape.channels
    times = max(1, ceil(part / shape.round_bytes))  # with one piece in each
    piece = part / times * shape.channels  # of all rings, which take their steps at once
    steps = rounds * (group.members - 1)
    if group.domains == 1:
        return MethodBytes(
            local_bytes=passed, local_steps=steps, local_hops=steps, local_piece_bytes=piece, rounds=times
        )
    crossings = min(steps, rounds * group.domains - max(0, rounds - group.per_domain + 1))
    return MethodBytes(
        local_bytes=passed * (1 - 1 / group.per_domain),
        network_bytes=passed / group.per_domain,
        local_steps=steps - crossings,
        local_hops=steps - crossings,
        network_steps=crossings,
        local_piece_bytes=piece * (1 - 1 / group.per_domain),
        network_piece_bytes=piece / group.per_domain,
        rounds=times,
    )


def _software(times: SoftwareTimes, call: MethodCall) -> SoftwareTimes:
    """The host posts each step between domains, also those inside a server."""
    if not call.is_far:
        return times
    posted_ps = call.figures.post_ps * (SIMPLE_POSTS if call.is_simple else 1)
    return SoftwareTimes(base_ps=times.base_ps, local_step_ps=max(times.local_step_ps, posted_ps), nic_ps=times.nic_ps)


def _offers(operation: str, group: GroupShape, figures: CollectiveFigures) -> bool:  # noqa: ARG001 - as of any method
    return operation in TIMES_AROUND


def _bandwidth_bps(view: BandwidthView) -> float:
    bus_bps = {
        "simple": view.ring_bps,
        "ll128": min(view.ring_bps * 0.92, view.channels * view.limit_bps("ring_ll128")),
        "ll": min(view.ring_bps / 2, view.limit_bps("ll", grows=False)),
    }[view.call.method.protocol]
    return bus_bps * view.around


def _latency_ps(view: LatencyView) -> float:
    call = view.call
    group, is_simple = call.group, call.is_simple
    times = TIMES_AROUND[call.operation]
    steps, crossings = times * (group.members - 1), times * (group.domains - 1)
    inside_ps = view.inside_ps
    if call.is_far:
        inside_ps = max(inside_ps, call.figures.post_ps * (3 if is_simple else 1))
    taken_ps = view.own.base_latency_ps + (steps - crossings) * inside_ps + crossings * view.across_ps
    part = call.size_bytes / (2 * group.per_domain * group.members)
    has_plateau = is_simple and call.is_far and call.operation == "all-reduce" and part >= PLATEAU_BYTES
    return taken_ps * (PLATEAU if has_plateau else 1)


def _program(call: MethodCall, own_channels: int | None) -> MethodProgram:
    method, group, figures = call.method, call.group, call.figures
    usual = channels(group, figures)
    count = own_channels or usual
    limit = max(1, round(round_bytes(method, group, figures) * usual / count))
    part = call.size_bytes / software(method.protocol, method.algorithm).protocol_efficiency / group.members / count
    hold_ps = _hold_ps(call, part / max(1, ceil(part / limit)), count)
    return MethodProgram(method=method, chunks=1, round_bytes=limit, hold_ps=hold_ps)


def _hold_ps(call: MethodCall, piece: float, count: int) -> int:
    """Extra time of a step inside a domain beyond the link's time.

    It is for a piece of one of ``count`` channels.
    """
    group, figures = call.group, call.figures
    others = max(0.0, count * (1 - 1 / group.per_domain if group.domains > 1 else 1) - 1)
    full_ps = others * min(piece, HELD_BYTES) * 8 * SECOND_PS / figures.nvlink_rate_bps
    if piece <= SLICE_BYTES:
        return round(full_ps)
    taken = latencies(call.method, "all-gather", group, 1, figures)
    apart_ps = max(0.0, taken.step_latency_ps - taken.local_step_latency_ps) if group.domains > 1 else 0.0
    return round(min(full_ps, apart_ps))


METHOD: Final = TimedMethod(
    source="NVIDIA/nccl, src/graph/tuning.cc, src/enqueue.cc",
    bytes_of=_bytes_of,
    figures="ring",
    has_all_protocols=True,
    has_rounds=True,
    software=_software,
    offers=_offers,
    order=1,
    regions=(TunerRegion(key="ring_ll128_bytes", protocol="ll128"), TunerRegion(key="")),
    bandwidth_bps=_bandwidth_bps,
    latency_ps=_latency_ps,
    program=_program,
)
