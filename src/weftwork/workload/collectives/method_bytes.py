"""Bytes and steps of each method of a collective.

Bytes are those of the busiest link; steps wait for each other.
Source: the files of `weftwork.workload.collectives.algorithms`, and NCCL for what has no program (`program`).
Leaves out: time, which `closed_form` makes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

__all__ = ["BYTES_OF", "CHUNKS", "LEAST_CHUNK_BYTES", "TIMES_AROUND", "GroupShape", "MethodBytes", "SentCall"]

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


def _ring(shape: SentCall) -> MethodBytes:
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


def _tree(shape: SentCall) -> MethodBytes:
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


def _nvls(shape: SentCall) -> MethodBytes:
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


def _hierarchical(shape: SentCall) -> MethodBytes:
    """Reduced in each domain, around the rail rings, then multicast.

    The switch of each domain reduces, and sends to all.
    """
    domains = shape.group.domains
    return _by_rails(shape, share=2 * (domains - 1) / domains, steps=2 * (domains - 1))


def _nvls_tree(shape: SentCall) -> MethodBytes:
    """As `_hierarchical`, with two trees per rail in place of its ring.

    The trees are over the domains of a rail, each with half of the bytes.
    """
    domains = shape.group.domains
    return _by_rails(shape, share=2.0 if domains > LEAST_TREE_DOMAINS else 1.0, steps=2 * (domains - 1).bit_length())


def _by_rails(shape: SentCall, *, share: float, steps: int) -> MethodBytes:
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


def _pat(shape: SentCall) -> MethodBytes:
    """Logarithmic steps that double or halve the bytes.

    There is one member in a domain.
    """
    group = shape.group
    passed = (group.members - 1) / group.members * shape.size_bytes
    return MethodBytes(network_bytes=passed, network_steps=(group.members - 1).bit_length(), is_in_phases=True)


def _direct(shape: SentCall) -> MethodBytes:
    """A message to every other member at once."""
    group = shape.group
    near, far = group.per_domain - 1, group.members - group.per_domain
    piece = shape.size_bytes / group.members / shape.channels
    return MethodBytes(
        local_bytes=shape.size_bytes * near / group.members,
        network_bytes=shape.size_bytes * far / group.members,
        local_steps=1 if far == 0 else 0,
        local_hops=1 if far == 0 else 0,
        network_steps=1 if far else 0,
        local_piece_bytes=piece,
        network_piece_bytes=piece,
    )


BYTES_OF: Final = {
    "ring": _ring,
    "tree": _tree,
    "nvls": _nvls,
    "hierarchical": _hierarchical,
    "nvls-tree": _nvls_tree,
    "pat": _pat,
    "direct": _direct,
}
