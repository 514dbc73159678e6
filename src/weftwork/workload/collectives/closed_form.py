"""Time of a collective in closed form: what the programs of the catalogue take alone, without running them.

A method is an algorithm with a protocol of NCCL. Alone it takes ``launch + max(chain, busy + last step)``. The chain is
the longest row of messages that wait for each other, each with its latency and its bytes; busy is how long the busiest
link carries bytes, with what goes before or behind them. As NCCL's tuning does, `fastest` takes the method that
is the fastest at a size. Bytes and steps are those of `weftwork.workload.collectives.algorithms`; latencies and
efficiencies are those of protocols.toml and figures.toml, which programs have too.
Source: the algorithms' files; NCCL, src/graph/tuning.cc (latencies, and that the fastest is taken).
Leaves out: all other traffic; groups whose domains have different numbers of members count as if all had the most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.protocols import PROTOCOLS, ProtocolFigures, software

__all__ = ["OPERATIONS", "Alone", "GroupShape", "Method", "alone", "extra_launch_ps", "fastest", "methods"]

OPERATIONS: Final = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")  # that have a closed form
CHUNKS: Final = 4  # as the row collective.chunks says
LEAST_CHUNK_BYTES: Final = 128 << 10  # as the row collective.least_chunk says
LEAST_TREE_DOMAINS: Final = 2
_ROUNDS: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}  # times around a ring, less a step each


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupShape:
    """Who takes part: ``members``, of which ``per_domain`` share an NVLink domain, and the GPUs of a whole domain."""

    members: int
    per_domain: int
    domain_gpus: int

    @property
    def domains(self) -> int:
        """NVLink domains, the last one perhaps not full."""
        return -(-self.members // self.per_domain)


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """An algorithm of the catalogue, what it does inside a domain, and a protocol of NCCL."""

    algorithm: str
    protocol: str = "simple"
    inner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """A collective that has its links to itself.

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
    """Ways that NCCL chooses among.

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
    if operation == "all-to-all":
        return (Method(algorithm="direct"),)
    found = [Method(algorithm="ring", protocol=protocol) for protocol in PROTOCOLS]
    if operation != "all-reduce":
        return tuple(found)
    switches_reduce = figures.has_nvls and group.per_domain >= min(8, group.domain_gpus) > 1
    if group.domains == 1:
        if switches_reduce:
            found.append(Method(algorithm="nvls"))
        return tuple(found)
    found += [Method(algorithm="tree", protocol=protocol) for protocol in PROTOCOLS]
    if switches_reduce:
        found.append(Method(algorithm="hierarchical", inner="nvls"))
    return tuple(found)


def fastest(
    operation: str,
    group: GroupShape,
    size_bytes: float,
    figures: CollectiveFigures,
    *,
    network_efficiency: float = 1.0,
    latency_scale: float = 1.0,
) -> Alone:
    """The fastest method at a size; of equals the first of `methods`.

    Parameters
    ----------
    operation, group, size_bytes, figures, network_efficiency, latency_scale : as for `alone`
    """
    found = [
        alone(operation, method, group, size_bytes, figures, network_efficiency=network_efficiency,
              latency_scale=latency_scale)
        for method in methods(operation, group, figures)
    ]  # fmt: skip
    return min(found, key=lambda one: one.time_ps)


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
    network_efficiency : share of a NIC that collectives reach, beyond headers
    latency_scale : of all latencies of software; 0 for none
    """
    shape = _SentCall(
        operation=operation,
        group=group,
        size_bytes=size_bytes / _latencies(method).protocol_efficiency,
        channels=max(1, group.per_domain) * figures.nic_ports_of_a_gpu,
    )
    bytes_of = {"ring": _ring, "tree": _tree, "nvls": _nvls, "hierarchical": _hierarchical, "direct": _direct}
    found = bytes_of[method.algorithm](shape)
    step = _latencies(method)
    local_step_ps = latency_scale * step.local_step_latency_ps
    network_step_ps = latency_scale * step.step_latency_ps
    nic_bps = figures.network_rate_bps * figures.payload_share * network_efficiency

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
        local_ps(found.local_bytes + found.local_fill_bytes) + network_ps(found.network_fill_bytes),
        network_ps(found.network_bytes) + local_ps(2 * found.local_fill_bytes),
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
    launch_ps = latency_scale * (step.base_latency_ps + extra_launch_ps(operation, group, size_bytes, figures))
    return Alone(
        method=method,
        time_ps=launch_ps + max(chain_ps, busy_ps + waited_ps),
        local_bytes=found.local_bytes,
        network_bytes=found.network_bytes,
    )


def extra_launch_ps(operation: str, group: GroupShape, size_bytes: float, figures: CollectiveFigures) -> float:
    """What a call takes besides the protocol's latencies: a launch of the GPU, and the filling of its pipelines.

    Parameters
    ----------
    operation, group, size_bytes, figures : as for `alone`; more than eight members fill pipelines no slower than eight
    """
    bus_bytes = _ROUNDS.get(operation, 1) * (group.members - 1) / group.members * size_bytes
    filling = min(1.0, (group.members - 1) / figures.ramp_steps) * bus_bytes / (bus_bytes + figures.ramp_bytes)
    return figures.launch_ps + figures.ramp_ps * filling


@cache
def _latencies(method: Method) -> ProtocolFigures:
    return software(method.protocol, method.algorithm)


@dataclass(frozen=True, kw_only=True, slots=True)
class _SentCall:
    """One call: bytes as the protocol sends them."""

    operation: str
    group: GroupShape
    size_bytes: float
    channels: int

    @property
    def rounds(self) -> int:
        return _ROUNDS[self.operation]

    def pieces(self, part_bytes: float) -> int:
        """Into how many pieces a part of a channel is cut."""
        return max(1, min(CHUNKS, int(part_bytes // LEAST_CHUNK_BYTES)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bytes:
    """Bytes and steps of a method.

    Attributes
    ----------
    local_bytes, network_bytes : of the busiest GPU, inside its domain and by its NICs
    local_fill_bytes, network_fill_bytes : of one piece, which a phase takes before the next one can begin
    behind : share of the busy time in which further pieces follow the first one through the chain
    local_steps, network_steps : in the chain that software passes on; ``local_hops`` counts those of switches too
    local_piece_bytes, network_piece_bytes : of a message of the chain
    is_in_phases : whether latencies come on top of the bytes, as where one phase follows the other
    """

    local_bytes: float = 0.0
    network_bytes: float = 0.0
    local_fill_bytes: float = 0.0
    network_fill_bytes: float = 0.0
    behind: float = 0.0
    local_steps: int = 0
    network_steps: int = 0
    local_hops: int = 0
    local_piece_bytes: float = 0.0
    network_piece_bytes: float = 0.0
    is_in_phases: bool = False


def _ring(shape: _SentCall) -> _Bytes:
    """Rings through all members, a domain after the other, as many as a domain has members and NICs."""
    group, rounds = shape.group, shape.rounds
    passed = rounds * (group.members - 1) / group.members * shape.size_bytes
    part = shape.size_bytes / group.members / shape.channels
    piece = part / shape.pieces(part)
    steps = rounds * (group.members - 1)
    if group.domains == 1:
        return _Bytes(local_bytes=passed, local_steps=steps, local_hops=steps, local_piece_bytes=piece)
    crossings = min(steps, rounds * group.domains - max(0, rounds - group.per_domain + 1))
    return _Bytes(
        local_bytes=passed * (1 - 1 / group.per_domain),
        network_bytes=passed / group.per_domain,
        local_steps=steps - crossings,
        local_hops=steps - crossings,
        network_steps=crossings,
        local_piece_bytes=piece,
        network_piece_bytes=piece,
    )


def _tree(shape: _SentCall) -> _Bytes:
    """Two trees over domains, each with half of the bytes: a domain is a leaf of one and inside the other."""
    group = shape.group
    share = shape.size_bytes / (2 * shape.channels)
    pieces = shape.pieces(share)
    levels = (group.domains - 1).bit_length()
    stages = levels if group.per_domain > 1 else max(0, levels - 1)  # a chain through a domain is one more
    children = 2 if group.domains > LEAST_TREE_DOMAINS else 1  # whose pieces share a NIC
    passed = shape.size_bytes * 2 / group.per_domain * (1 if group.domains > LEAST_TREE_DOMAINS else 0.5)
    return _Bytes(
        local_bytes=2 * (1 - 1 / group.per_domain) * shape.size_bytes,
        network_bytes=passed * (1 + stages / pieces),  # the first piece goes up before the last one starts
        local_steps=2 * (group.per_domain - 1),
        local_hops=2 * (group.per_domain - 1),
        network_steps=2 * levels,
        local_piece_bytes=share / pieces,
        network_piece_bytes=children * share / pieces,
        behind=(1 - 1 / pieces) / 2,  # up or down, not both
    )


def _nvls(shape: _SentCall) -> _Bytes:
    """Up to the switch and down again, piece by piece; nobody passes on but the switch and, once, the owner."""
    group = shape.group
    part = shape.size_bytes / group.members / shape.channels
    pieces = shape.pieces(part)
    up = shape.size_bytes
    return _Bytes(
        local_bytes=up + (up + up / group.members) / pieces,
        local_steps=2,
        local_hops=4,
        is_in_phases=True,
    )


def _hierarchical(shape: _SentCall) -> _Bytes:
    """Reduced by the switch of each domain, around the rings of the rails, and to all by the switch."""
    group = shape.group
    pieces = min(shape.channels, group.per_domain)  # channels follow each other on the ports of a GPU
    local = (1 + 1 / group.per_domain) * shape.size_bytes
    network = 2 * (group.domains - 1) / group.domains * shape.size_bytes / group.per_domain
    return _Bytes(
        local_bytes=local,
        network_bytes=network,
        local_fill_bytes=local / pieces,
        network_fill_bytes=network / pieces,
        local_steps=2,
        local_hops=4,
        network_steps=2 * (group.domains - 1),
        is_in_phases=True,
    )


def _direct(shape: _SentCall) -> _Bytes:
    """A message to each other member, all at once."""
    group = shape.group
    near, far = group.per_domain - 1, group.members - group.per_domain
    piece = shape.size_bytes / group.members / shape.channels
    return _Bytes(
        local_bytes=shape.size_bytes * near / group.members,
        network_bytes=shape.size_bytes * far / group.members,
        local_steps=1 if far == 0 else 0,
        local_hops=1 if far == 0 else 0,
        network_steps=1 if far else 0,
        local_piece_bytes=piece,
        network_piece_bytes=piece,
    )
