"""What the fabric did to the packets of simulated programs: queues, marks, drops and pauses, by port.

Source: counters of the reference engine, see `weftwork.engine.rows.outcome.PORT_DTYPE`.
Leaves out: how it is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.testing.rdma_fabric import RdmaFabric

__all__ = ["FabricEffects", "PortEffect", "fabric_effects"]

PS_PER_S: Final = 1_000_000_000_000
_BITS: Final = 8
_QUIET_PACKETS: Final = 2  # chosen: a queue of one packet behind another is no congestion


@dataclass(frozen=True, kw_only=True, slots=True)
class PortEffect:
    """Counters of one port.

    Parameters
    ----------
    name : such as ``leaf0->host1``
    rate_bps : of its line
    frames, sent_bytes : packets that left by it
    marks, drops : packets that were marked or dropped
    pauses_sent, paused_ps : pause frames that left by it, and the time for which it was paused itself
    max_queue_bytes : longest queue
    busy : share of the time in which it sent, 0 to 1
    """

    name: str
    rate_bps: int
    frames: int
    sent_bytes: int
    marks: int
    drops: int
    pauses_sent: int
    paused_ps: int
    max_queue_bytes: int
    busy: float

    @property
    def queue_ps(self) -> int:
        """Longest time that a packet waited for the line."""
        return self.max_queue_bytes * _BITS * PS_PER_S // self.rate_bps


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricEffects:
    """Effects on all packets.

    Parameters
    ----------
    ports : that carried packets, those with the longest queue first
    culprit : port where packets waited longest, or None where no queue was longer than two full packets
    troubled : ports that held more than a packet, or marked, dropped or were paused
    marks, drops, pauses_sent : over all ports
    """

    ports: tuple[PortEffect, ...]
    culprit: PortEffect | None
    troubled: tuple[PortEffect, ...]
    marks: int
    drops: int
    pauses_sent: int


def fabric_effects(fabric: RdmaFabric, names: Sequence[str]) -> FabricEffects:
    """Read the counters of a fabric after a run.

    Parameters
    ----------
    fabric : that has run
    names : of its ports, by id
    """
    end_ps = max(fabric.now_ps, 1)
    ports = tuple(
        sorted(
            (
                PortEffect(
                    name=names[port.id],
                    rate_bps=port.rate_bps,
                    frames=port.counts["frames"],
                    sent_bytes=port.counts["bytes"],
                    marks=port.counts["marks"],
                    drops=port.counts["drops"],
                    pauses_sent=port.counts["pauses_sent"],
                    paused_ps=port.counts["paused_ps"],
                    max_queue_bytes=port.counts["max_queue_bytes"],
                    busy=port.counts["bytes"] * _BITS * PS_PER_S / port.rate_bps / end_ps,
                )
                for port in fabric.simulation.ports
                if port.counts["frames"] or port.counts["drops"]
            ),
            key=lambda port: (-port.drops, -port.max_queue_bytes, -port.marks, port.name),
        )
    )
    transport = fabric.transport
    quiet_bytes = _QUIET_PACKETS * (transport.mtu_bytes + transport.data_overhead_bytes + transport.first_extra_bytes)
    queued = [port for port in ports if port.drops or port.max_queue_bytes > quiet_bytes]
    packet_bytes = quiet_bytes // _QUIET_PACKETS
    return FabricEffects(
        ports=ports,
        culprit=queued[0] if queued else None,
        troubled=tuple(
            port for port in ports if port.marks or port.drops or port.paused_ps or port.max_queue_bytes > packet_bytes
        ),
        marks=sum(port.marks for port in ports),
        drops=sum(port.drops for port in ports),
        pauses_sent=sum(port.pauses_sent for port in ports),
    )
