"""Closed-form time of a collective that has the links to itself.

It is the time that the programs of the catalogue take, without running them. A method is an algorithm with a protocol
of NCCL. Alone it takes ``launch + rounds max(chain, busy + last step)``. The chain is the longest row of messages that
wait for each other, each with its latency and its bytes; busy is how long the busiest link carries bytes, with what
goes before or behind them. A ring has rounds, since NCCL's buffers hold only so much of a part; a round begins when the
one before is through. Which method NCCL takes at a size is `tuner`'s to say. Bytes and steps are those of
`weftwork.workload.collectives.algorithms`; latencies and efficiencies are those of protocols.toml, networks.toml and
figures.toml, which programs have too.
Source: the algorithms' files; NCCL, src/graph/tuning.cc (latencies), src/enqueue.cc (rounds).
Leaves out: all other traffic; groups whose domains have different numbers of members count as if all had the most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import Method, MethodCall, SoftwareTimes
from weftwork.workload.collectives.method_bytes import TIMES_AROUND, GroupShape, SentCall
from weftwork.workload.collectives.method_catalogue import latency_method, method_of, methods_in_order, timed_method
from weftwork.workload.collectives.protocols import PROTOCOLS, ProtocolFigures, software

__all__ = [
    "OPERATIONS",
    "Alone",
    "GroupShape",
    "Latencies",
    "Method",
    "alone",
    "channels",
    "latencies",
    "methods",
    "ramp_ps",
    "round_bytes",
]

OPERATIONS: Final = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")  # that have a closed form
SIMPLE_POSTS: Final = 3  # of the host for a step of Simple: NCCL, src/graph/tuning.cc, netOverhead
CHANNELS_INSIDE: Final = 24  # of NCCL in one server: 12 that its search finds, doubled (connect.cc), from memory
CHANNELS_ACROSS: Final = 2  # for each member of a domain: one that the search finds for its NIC, doubled


@dataclass(frozen=True, kw_only=True, slots=True)
class Latencies:
    """Software latencies of a call, as fields of `Call`.

    They are before the first byte, and for a step inside and across domains.
    """

    base_latency_ps: float
    local_step_latency_ps: float
    step_latency_ps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """Time of a collective that has its links to itself.

    Attributes
    ----------
    method : that it takes
    time_ps : from the first rank that begins to the last that has its result
    local_bytes, network_bytes : that the busiest GPU sends or receives inside its domain, and by its NICs; what a
        protocol adds is counted
    """

    method: Method
    time_ps: float
    local_bytes: float
    network_bytes: float


def methods(operation: str, group: GroupShape, figures: CollectiveFigures) -> tuple[Method, ...]:
    """Methods among which NCCL chooses.

    Parameters
    ----------
    operation : one of `OPERATIONS`
    group : of at least two members
    figures : of the servers

    Raises
    ------
    ConfigError : there is no closed form of the operation
    """
    if operation not in OPERATIONS:
        text = f"found '{operation}', wanted {', '.join(OPERATIONS)}"
        raise ConfigError("collective", [Mistake(path="collective.operation", text=text)])
    return tuple(
        Method(algorithm=name, protocol=protocol, inner=timed.inner)
        for name, timed in methods_in_order()
        if timed.offers(operation, group, figures)
        for protocol in (PROTOCOLS if timed.has_all_protocols else ("simple",))
    )


def latencies(
    method: Method, operation: str, group: GroupShape, size_bytes: float, figures: CollectiveFigures
) -> Latencies:
    """Software latencies of a call: NCCL's, its NIC's, and fitted ones.

    Parameters
    ----------
    method : one of `methods`
    operation, group, size_bytes, figures : as for `alone`
    """
    own = _protocol(method)
    is_simple = method.protocol == "simple"
    base_ps: float = own.base_latency_ps + figures.launch_ps
    if is_simple:
        base_ps += ramp_ps(operation, group, size_bytes, figures)
    nic_ps: float = figures.nic_latency_ps + (figures.nic_flush_ps if is_simple else 0)
    times = SoftwareTimes(base_ps=base_ps, local_step_ps=own.local_step_latency_ps, nic_ps=nic_ps)
    timed = method_of(method.algorithm)
    if timed is not None:
        call = MethodCall(method=method, operation=operation, group=group, size_bytes=size_bytes, figures=figures)
        times = timed.software(times, call)
    return Latencies(
        base_latency_ps=times.base_ps,
        local_step_latency_ps=times.local_step_ps,
        step_latency_ps=own.step_latency_ps + times.nic_ps,
    )


def round_bytes(method: Method, group: GroupShape, figures: CollectiveFigures) -> float:
    """Most bytes of a part in one round around a ring of `channels`.

    Bytes are counted as the protocol sends them.

    Parameters
    ----------
    method : a ring
    group, figures : as for `alone`
    """
    own = _protocol(method)
    scale = figures.buffer_scale if method.protocol == "simple" else 1
    of_nccl = CHANNELS_INSIDE if group.domains == 1 else CHANNELS_ACROSS * group.per_domain
    return own.round_bytes * scale / own.protocol_efficiency * of_nccl / channels(group, figures)


def channels(group: GroupShape, figures: CollectiveFigures) -> int:
    """Number of rings, trees or sets of connections.

    There is one for each member of a domain and each of its NIC ports.
    """
    return max(1, group.per_domain) * figures.nic_ports_of_a_gpu


def alone(
    operation: str,
    method: Method,
    group: GroupShape,
    size_bytes: float,
    figures: CollectiveFigures,
    *,
    network_efficiency: float = 1.0,
    latency_scale: float = 1.0,
) -> Alone:
    """Time and bytes of one operation by one method.

    Parameters
    ----------
    operation : one of `OPERATIONS`
    method : one of `methods`
    group : who takes part
    size_bytes : as nccl-tests counts it: the whole buffer, also of an all-gather or reduce-scatter
    figures : of the servers
    network_efficiency : share of a NIC that collectives reach, beyond headers; no more than the NIC's software gets
    latency_scale : of all latencies of software; 0 for none
    """
    timed = timed_method(method.algorithm)
    shape = SentCall(
        operation=operation,
        group=group,
        size_bytes=size_bytes / _protocol(method).protocol_efficiency,
        channels=channels(group, figures),
        round_bytes=round_bytes(method, group, figures) if timed.has_rounds else 0.0,
    )
    found = timed.bytes_of(shape)
    step = latencies(method, operation, group, size_bytes, figures)
    local_step_ps = latency_scale * step.local_step_latency_ps
    network_step_ps = latency_scale * step.step_latency_ps
    nic_bps = figures.network_rate_bps * figures.payload_share * min(network_efficiency, figures.network_share)

    def local_ps(size: float) -> float:
        return size * 8 * SECOND_PS / figures.nvlink_rate_bps if size else 0.0

    def network_ps(size: float) -> float:
        return size * 8 * SECOND_PS / nic_bps if size else 0.0

    chain_ps = (
        found.local_steps * (local_step_ps + local_ps(found.local_piece_bytes))
        + found.local_hops * figures.nvlink_latency_ps
        + found.network_steps * (network_step_ps + figures.network_latency_ps + network_ps(found.network_piece_bytes))
    )
    busy_ps = max(
        local_ps(found.local_bytes / found.rounds + found.local_fill_bytes) + network_ps(found.network_fill_bytes),
        network_ps(found.network_bytes / found.rounds) + local_ps(2 * found.local_fill_bytes),
    )
    chain_ps += found.behind * busy_ps
    if found.is_in_phases:  # phases one after the other have all their latencies, and their bytes besides
        waited_ps = found.local_steps * local_step_ps + found.local_hops * figures.nvlink_latency_ps
        waited_ps += found.network_steps * (network_step_ps + figures.network_latency_ps)
    else:
        waited_ps = max(
            figures.network_latency_ps + network_step_ps if found.network_steps else 0.0,
            figures.nvlink_latency_ps + local_step_ps if found.local_steps else 0.0,
        )
    return Alone(
        method=method,
        time_ps=latency_scale * step.base_latency_ps + found.rounds * max(chain_ps, busy_ps + waited_ps),
        local_bytes=found.local_bytes,
        network_bytes=found.network_bytes,
    )


def ramp_ps(operation: str, group: GroupShape, size_bytes: float, figures: CollectiveFigures) -> float:
    """Time to fill the pipelines of a Simple method.

    Its buffers are large.

    Parameters
    ----------
    operation, group, size_bytes, figures : as for `alone`; more than eight members fill pipelines no slower than eight
    """
    bus_bytes = TIMES_AROUND.get(operation, 1) * (group.members - 1) / group.members * size_bytes
    filling = min(1.0, (group.members - 1) / figures.ramp_steps) * bus_bytes / (bus_bytes + figures.ramp_bytes)
    return figures.ramp_ps * filling


@cache
def _protocol(method: Method) -> ProtocolFigures:
    return software(method.protocol, latency_method(method))
