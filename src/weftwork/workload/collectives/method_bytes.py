"""Bytes and steps of a method of a collective, as records.

Bytes are those of the busiest link; steps wait for each other.
Source: NCCL, src/graph/tuning.cc; each file of `weftwork.workload.collectives.methods` makes its own.
Leaves out: time, which `closed_form` makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "CHUNKS",
    "LEAST_CHUNK_BYTES",
    "LEAST_TREE_DOMAINS",
    "TIMES_AROUND",
    "GroupShape",
    "MethodBytes",
    "SentCall",
    "rails_bytes",
]

CHUNKS: Final = 4  # as the row collective.chunks says
LEAST_CHUNK_BYTES: Final = 128 << 10  # as the row collective.least_chunk says
LEAST_TREE_DOMAINS: Final = 2
TIMES_AROUND: Final = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}  # of a ring, less a step each


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupShape:
    """Shape of a group: ``members``, members per domain, GPUs of a domain.

    ``per_domain`` members share an NVLink domain.
    """

    members: int
    per_domain: int
    domain_gpus: int

    @property
    def domains(self) -> int:
        """Number of NVLink domains; the last one may be incomplete."""
        return -(-self.members // self.per_domain)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentCall:
    """One call: bytes as the protocol sends them."""

    operation: str
    group: GroupShape
    size_bytes: float
    channels: int
    round_bytes: float = 0.0

    @property
    def rounds(self) -> int:
        """Number of rounds around a ring, less a step each."""
        return TIMES_AROUND[self.operation]

    def pieces(self, part_bytes: float) -> int:
        """Number of pieces of a channel's part."""
        return max(1, min(CHUNKS, int(part_bytes // LEAST_CHUNK_BYTES)))


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodBytes:
    """Bytes and steps of a method.

    Attributes
    ----------
    local_bytes, network_bytes : of the busiest GPU, inside its domain and by its NICs
    local_fill_bytes, network_fill_bytes : of one piece, which a phase takes before the next one can begin
    behind : share of the busy time in which further pieces follow the first one through the chain
    local_steps, network_steps : in the chain that software passes on; ``local_hops`` counts those of switches too
    local_piece_bytes, network_piece_bytes : of a message of the chain
    is_in_phases : whether latencies come on top of the bytes, as where one phase follows the other
    rounds : that follow each other, each with its part of the bytes and all steps
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
    rounds: int = 1


def rails_bytes(shape: SentCall, *, share: float, steps: int) -> MethodBytes:
    """The reduced data over the rails.

    It is ``share`` of the bytes of each GPU, in so many steps.
    """
    group = shape.group
    pieces = min(shape.channels, group.per_domain)  # channels follow each other on the ports of a GPU
    local = (1 + 1 / group.per_domain) * shape.size_bytes
    network = share * shape.size_bytes / group.per_domain
    return MethodBytes(
        local_bytes=local,
        network_bytes=network,
        local_fill_bytes=local / pieces,
        network_fill_bytes=network / pieces,
        local_steps=2,
        local_hops=4,
        network_steps=steps,
        is_in_phases=True,
    )
