"""A queue pair as known to both ends: its identity and rules.

Source: `docs/models/packet-engine.md`, sections Packets and Randomness.
Leaves out: the ports at its ends, which a failover changes; see `queue_pair`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weftwork.base.flow_identity import flow_identity
from weftwork.base.random import Stream, draw
from weftwork.policies.load import LoadedPolicy
from weftwork.spec.transport import Transport

__all__ = ["EVERY_CHANNEL", "Flow", "Pins", "QueuePairConfig"]

Pins = Mapping[tuple[int, int, int], int]  # entropy by source, destination and channel

FIRST_ENTROPY: Final = 0xC000  # the dynamic ports of RFC 6335, section 6
EVERY_CHANNEL: Final = -1  # that has no pin of its own


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """The identity of a queue pair.

    Attributes
    ----------
    id : (source, destination, channel) in 64 bits
    number : of the destination's queue pair, which a switch may hash
    entropy : UDP source port, pinned or drawn, unless a path selection chooses another
    """

    id: int
    number: int
    entropy: int

    @classmethod
    def of(cls, source: int, destination: int, channel: int, *, seed: int, pins: Pins | None = None) -> Flow:
        """The flow from rank to rank on a channel, in a run.

        The run has this seed and these pinned entropies.
        """
        identity = flow_identity(source, destination, channel)
        drawn = FIRST_ENTROPY | draw(seed, Stream.PATH_CHOICE, identity, 0, 0) & 0x3FFF
        pins = pins or {}
        of_all_channels = pins.get((source, destination, EVERY_CHANNEL), drawn)
        return cls(
            id=identity,
            number=draw(0, Stream.PATH_CHOICE, identity, 1, 0) & 0xFFFFFF,
            entropy=pins.get((source, destination, channel), of_all_channels),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class QueuePairConfig:
    """The rules that both ends of every queue pair obey.

    Parameters
    ----------
    transport : sizes, recovery, timeout and credits
    congestion_control, path_selection : policies; no path selection means constant entropy
    control_class : class index of ACK, NAK, CNP, CREDIT, REQUEST and PROBE
    has_receives : whether a message keeps its buffer until the receiving rank has asked for it
    seed : of the run
    echoes_time, echoes_entropy, has_telemetry : whether a policy asks for round trips, for the entropies that packets
        carried, and for what switches write into packets
    fabric_base_rtt_ps : longest base RTT of any two NIC ports, for policies
    pins : entropies that the plan gives
    """

    transport: Transport
    congestion_control: LoadedPolicy
    path_selection: LoadedPolicy | None
    control_class: int
    has_receives: bool
    seed: int
    echoes_time: bool
    echoes_entropy: bool
    has_telemetry: bool
    has_path_load: bool
    fabric_base_rtt_ps: int
    pins: Pins = field(default_factory=dict)
