"""A collective call: operation, ranks, bytes, and behaviour of the software.

Sizes are those of nccl-tests: the buffer of an all-reduce, broadcast, reduce or send-receive; the whole buffer of an
all-gather or reduce-scatter, a part of it for each rank; the send buffer of each rank of an all-to-all.
Source: nccl-tests, doc/PERFORMANCE.md, which also defines bus bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest
from weftwork.spec.plug_in import NoKeys, Record
from weftwork.spec.scenario.workload import OPERATIONS
from weftwork.workload.collectives.lattice import Lattice

__all__ = ["OPERATIONS", "Call", "bus_bandwidth_factor", "call_mistakes"]

_MAX_CHANNELS: Final = 1 << 10  # chosen: a flow's identity has 16 bits for connections, and a channel uses a few


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One collective operation among ranks 0 to ``ranks - 1``.

    Parameters
    ----------
    operation : one of `OPERATIONS`
    ranks : GPUs that take part
    size_bytes : as nccl-tests counts it, see the header; nothing for a barrier
    channels : share the bytes; each has connections of its own, as a channel of NCCL has
    chunks : pieces of a part that are under way at a time: step k of one overlaps step k + 1 of another. A chain or a
        tree has one part, the whole share of a channel, and wants many
    least_chunk_bytes : a piece is not made smaller; a small part has fewer pieces than ``chunks``
    round_bytes : of a part on the wire that go around a ring before the next ones begin; 0 for no limit
    domain : ranks of one NVLink domain, neighbours in rank order; 1 where all traffic crosses the network
    lattice : the box of a torus or mesh that the ranks fill; None: they fill none
    group : ranks of one group of switches of the fabric, neighbours in rank order; 1 where the fabric has no groups
    options : the keys of the algorithm's own, where it has any
    root : of broadcast and reduce
    shift : of send-receive, rank i sends to rank i + shift; None for half of the ranks (nccl-tests has 1)
    repeat : times that it is done; a rank starts again when it has its whole result
    priority : of the data, -1 for the transport's
    nic_columns : columns of `Placement.nics`; channels take them in turn
    step_latency_ps : software latency of a step over the network: from the arrival of a piece until it can be passed on
    local_step_latency_ps : the same inside a domain
    base_latency_ps : from the start until the first byte is sent
    protocol_efficiency : data bytes per byte on the wire, above 0 and at most 1
    """

    operation: str
    ranks: int
    size_bytes: int
    channels: int = 1
    chunks: int = 1
    least_chunk_bytes: int = 1
    round_bytes: int = 0
    domain: int = 1
    lattice: Lattice | None = None
    group: int = 1
    options: Record = field(default_factory=NoKeys)
    root: int = 0
    shift: int | None = None
    repeat: int = 1
    priority: int = -1
    nic_columns: int = 1
    step_latency_ps: int = 0
    local_step_latency_ps: int = 0
    base_latency_ps: int = 0
    protocol_efficiency: float = 1.0

    @property
    def servers(self) -> int:
        """Number of NVLink domains that take part."""
        return self.ranks // self.domain

    @property
    def wire_bytes(self) -> int:
        """Bytes of the buffer as the protocol sends it: ceil(size / efficiency)."""
        if self.operation == "barrier":
            return 0
        efficiency = Fraction(self.protocol_efficiency).limit_denominator(1_000_000)
        return -(-self.size_bytes * efficiency.denominator // efficiency.numerator)

    @property
    def distance(self) -> int:
        """Distance from sender to receiver in a send-receive."""
        return self.ranks // 2 if self.shift is None else self.shift % self.ranks

    def nic(self, channel: int) -> int:
        """Column of `Placement.nics` that a channel uses.

        Channels of one rail use the columns alternately.
        """
        return channel // self.domain % self.nic_columns

    def channel_bytes(self, each: int = 1) -> list[int]:
        """Bytes on the wire of each channel or share; a barrier has one channel.

        ``each`` is the number of shares of a channel.
        """
        if self.operation == "barrier":
            return [0]
        shares = self.channels * each
        return [self.wire_bytes // shares + (index < self.wire_bytes % shares) for index in range(shares)]

    def pieces(self, part_bytes: int) -> int:
        """Number of pieces of a part."""
        return max(1, min(self.chunks, part_bytes // self.least_chunk_bytes))

    def rounds(self, part_bytes: int) -> int:
        """Number of sequential rounds of a part around a ring."""
        return max(1, -(-part_bytes // self.round_bytes)) if self.round_bytes else 1


def bus_bandwidth_factor(operation: str, ranks: int) -> Fraction:
    """Bus bandwidth over algorithm bandwidth, as defined by nccl-tests.

    Parameters
    ----------
    operation : one of `OPERATIONS` that moves data
    ranks : GPUs that take part

    Raises
    ------
    ConfigError : a barrier, which moves no data

    Examples
    --------
    >>> bus_bandwidth_factor("all-reduce", 8)
    Fraction(7, 4)
    """
    if operation == "all-reduce":
        return Fraction(2 * (ranks - 1), ranks)
    if operation in {"reduce-scatter", "all-gather", "all-to-all"}:
        return Fraction(ranks - 1, ranks)
    if operation in {"broadcast", "reduce", "send-receive"}:
        return Fraction(1)
    text = f"found '{operation}', which moves no data, wanted one of {', '.join(OPERATIONS[:-1])}"
    raise ConfigError("collective", [Mistake(path="collective.operation", text=text)])


def call_mistakes(call: Call, operations: Sequence[str], algorithm: str) -> list[Mistake]:
    """Find impossible calls, and operations that this algorithm lacks.

    Parameters
    ----------
    call : what is asked
    operations : that the algorithm has
    algorithm : its name, for messages
    """
    mistakes: list[Mistake] = []

    def want(key: str, holds: bool, text: str, fix: str | None = None) -> None:  # noqa: FBT001
        if not holds:
            mistakes.append(Mistake(path=f"collective.{key}", text=text, fix=fix))

    known = call.operation in OPERATIONS
    wanted = f"wanted {', '.join(operations)}"
    want("operation", known, f"found '{call.operation}', {wanted}", nearest(call.operation, OPERATIONS))
    want("algorithm", not known or call.operation in operations, f"{algorithm} has no {call.operation}; {wanted}")
    least = {
        "gpus": (call.ranks, 2, "GPUs"),
        "size": (call.size_bytes, 0 if call.operation == "barrier" else 1, "byte"),
        "channels": (call.channels, 1, "channel"),
        "chunks": (call.chunks, 1, "piece"),
        "least_chunk": (call.least_chunk_bytes, 1, "byte"),
        "round": (call.round_bytes, 0, "bytes"),
        "domain": (call.domain, 1, "GPU"),
        "repeat": (call.repeat, 1, "time"),
        "nic_columns": (call.nic_columns, 1, "NIC column"),
        "step_latency": (call.step_latency_ps, 0, "ps"),
        "local_step_latency": (call.local_step_latency_ps, 0, "ps"),
        "base_latency": (call.base_latency_ps, 0, "ps"),
    }
    for name, (found, limit, words) in least.items():
        want(name, found >= limit, f"found {found:,}, wanted at least {limit:,} {words}")
    want("channels", call.channels <= _MAX_CHANNELS, f"found {call.channels:,}, wanted at most {_MAX_CHANNELS:,}")
    if call.domain > 1:
        fits = call.ranks % call.domain == 0
        text = (
            f"found {plural(call.ranks, 'GPU')}, wanted a multiple of the {plural(call.domain, 'GPU')} of an "
            "NVLink domain"
        )
        want("gpus", fits, text, f"{max(1, round(call.ranks / call.domain)) * call.domain}")
    last = call.ranks - 1
    want("root", 0 <= call.root <= last, f"found {call.root:,}, wanted a rank from 0 to {last:,}")
    moves = call.operation != "send-receive" or call.ranks < 1 or call.distance != 0
    want("shift", moves, f"found {call.shift}, so that every rank would send to itself; wanted 1 to {last:,}")
    want("priority", -1 <= call.priority <= 7, f"found {call.priority}, wanted 0 to 7, or -1 for the transport's")
    efficiency = call.protocol_efficiency
    want("protocol_efficiency", 0 < efficiency <= 1, f"found {efficiency:g}, wanted above 0 and at most 1")
    return mistakes
