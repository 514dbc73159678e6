"""A method of a collective that has a closed form: its record, and what the record's functions see.

A method is an algorithm with a protocol of NCCL. Its file says what the busiest link carries and which steps wait for
each other, what the software adds to its latencies, where NCCL chooses it and what NCCL's tuner expects of it, and
which algorithm of the catalogue is its program. An `Algorithm` of a user's own may offer one too (``method``): then
``protocol: auto`` chooses among protocols by it, and its latencies are those of the figures that it names.
Leaves out: the closed form itself (`closed_form`), and the choice among methods (`tuner`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from weftwork.workload.collectives.method_bytes import GroupShape, MethodBytes, SentCall

if TYPE_CHECKING:
    from weftwork.base.catalogue import Row
    from weftwork.workload.collectives.figures import CollectiveFigures
    from weftwork.workload.collectives.protocols import ProtocolFigures

__all__ = [
    "NVLS_CHANNELS",
    "BandwidthView",
    "LatencyView",
    "Method",
    "MethodCall",
    "MethodProgram",
    "SoftwareTimes",
    "TimedMethod",
    "TunerRegion",
    "switches_reduce",
]

NVLS_CHANNELS: Final = 16  # NCCL, src/enqueue.cc: NVLS should not need more to get peak bandwidth


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """An algorithm with an NCCL protocol, and its method inside a domain.

    ``algorithm`` is a name of the catalogue, the file of a user's own, or a method of NCCL that is the program of
    another algorithm (`weftwork.workload.collectives.methods`).
    """

    algorithm: str
    protocol: str = "simple"
    inner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodCall:
    """A call by a method: operation, group, bytes and servers.

    ``size_bytes`` is counted as nccl-tests does: the whole buffer, also of an all-gather or reduce-scatter.
    """

    method: Method
    operation: str
    group: GroupShape
    size_bytes: float
    figures: CollectiveFigures

    @property
    def is_far(self) -> bool:
        """Whether the group has several domains."""
        return self.group.domains > 1

    @property
    def is_simple(self) -> bool:
        """Whether the protocol is NCCL's Simple."""
        return self.method.protocol == "simple"


@dataclass(frozen=True, kw_only=True, slots=True)
class SoftwareTimes:
    """Latencies of software that a method may add to.

    Before the first byte, for a step inside a domain, and of the NIC for a step across domains.
    """

    base_ps: float
    local_step_ps: float
    nic_ps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BandwidthView:
    """What NCCL's tuner knows where it estimates the bandwidth of a method.

    Attributes
    ----------
    call : operation, group and bytes
    row : limits of the generation of GPUs, of tuner.toml
    scale : 1, 2 or 4 domains or more, as names in ``row`` end
    channels : that the search finds
    ring_bps : of all rings together
    around : buffer bytes for each byte that passes a link of a ring
    growth : of the links over those of the generation's server, at least 1
    """

    call: MethodCall
    row: Row
    scale: int
    channels: int
    ring_bps: float
    around: float
    growth: float

    def limit_bps(self, name: str, *, grows: bool = True) -> float:
        """NCCL's limit of a channel, which grows with the links unless it comes from small buffers."""
        return (self.growth if grows else 1.0) * float(self.row.value(f"{name}_{self.scale}_bps"))

    @property
    def switch_bps(self) -> float:
        """Buffer bytes that NVLink switches reduce and multicast."""
        share = (NVLS_CHANNELS - 1) / NVLS_CHANNELS * float(self.row.value("nvls_efficiency"))
        return 2 * share * self.call.figures.nvlink_rate_bps


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyView:
    """What NCCL's tuner knows where it estimates the latency of a method.

    Attributes
    ----------
    call : operation, group and bytes
    own : figures of the protocol
    levels : of a binary tree over the domains
    inside_ps, across_ps : of a step inside a domain and across domains
    """

    call: MethodCall
    own: ProtocolFigures
    levels: int
    inside_ps: float
    across_ps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodProgram:
    """Keys of a section ``collective`` for a method.

    Attributes
    ----------
    method : the program, as one that has a closed form
    chunks : pieces of a part that are under way; None for the section's own
    least_chunk_bytes : a piece is not made smaller; None for the section's own
    round_bytes : of a part on the wire in one round; None where there are no rounds
    hold_ps : that a step inside a domain takes longer, since a channel gets its share of NVLink and no more
    note : how the program differs from the method; None where it does not
    """

    method: Method
    chunks: int | None = None
    least_chunk_bytes: int | None = None
    round_bytes: int | None = None
    hold_ps: int = 0
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TunerRegion:
    """Sizes at which the tuner of a network's plugin takes a method.

    Attributes
    ----------
    key : of a row of regions.toml: up to so many bytes, unless a key before it in the row holds the size; empty: all
        larger sizes
    protocol : by which it is taken
    has_line : whether the bound lies on a line between two rows; else it is that of the last row alone
    """

    key: str
    protocol: str = "simple"
    has_line: bool = True


def switches_reduce(group: GroupShape, figures: CollectiveFigures) -> bool:
    """Whether NVLink switches reduce for a group: NCCL wants whole servers, or eight GPUs of a larger domain."""
    return figures.has_nvls and group.per_domain >= min(8, group.domain_gpus) > 1


def _as_they_are(times: SoftwareTimes, _: MethodCall) -> SoftwareTimes:
    return times


def _never(*_: object) -> bool:
    return False


def _itself(call: MethodCall, _: int | None) -> MethodProgram:
    return MethodProgram(method=call.method)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedMethod:
    """The constant ``METHOD`` of a file, or the field ``method`` of an algorithm of a user's own.

    Parameters
    ----------
    source : where it is described
    bytes_of : what the busiest link carries, and which steps wait for each other
    figures : whose latencies of protocols.toml it has, such as ``tree``; empty: those of the ring, as a caveat says
    figures_by_inner : by its method inside a domain, another method whose latencies it has then
    has_all_protocols : whether NCCL's LL and LL128 have it too; else Simple alone
    has_rounds : whether NCCL's buffers hold only so much of a part, so that larger parts go in rounds
    software : what the method adds to the latencies of its protocol and NIC
    offers : whether NCCL chooses among it for an operation of a group on such servers
    order : among the methods of NCCL: of equal ones NCCL takes the first
    inner : method inside a domain, of a method of NCCL
    regions : where the tuner of a network's plugin takes it in place of NCCL's choice
    bandwidth_bps, latency_ps : what NCCL's tuner expects of it: buffer bytes per time without latencies, and latency
    program : the program of a call, with the channels that the section asks for; by default its own algorithm
    """

    source: str
    bytes_of: Callable[[SentCall], MethodBytes]
    figures: str = ""
    figures_by_inner: Mapping[str, str] = field(default_factory=dict)
    has_all_protocols: bool = False
    has_rounds: bool = False
    software: Callable[[SoftwareTimes, MethodCall], SoftwareTimes] = _as_they_are
    offers: Callable[[str, GroupShape, CollectiveFigures], bool] = _never
    order: int = 100
    inner: str | None = None
    regions: tuple[TunerRegion, ...] = ()
    bandwidth_bps: Callable[[BandwidthView], float] | None = None
    latency_ps: Callable[[LatencyView], float] | None = None
    program: Callable[[MethodCall, int | None], MethodProgram] = _itself
