"""Published figures of RDMA hardware and of TCP, for the page that compares both.

Source: `weftwork/data/published/README.md`, with the place of each figure in its table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from weftwork.data.measured import measured

__all__ = ["HARDWARE", "CitedFact", "HardwarePoint", "cited_facts", "hardware_by_size"]

# What the table `rdma-hardware-send` was measured on, and where it stands.
HARDWARE: Final = (
    "ConnectX-5 EDR, 100 Gb/s, between memories of GPUs, ib_send_lat and ib_send_bw; github.com/linux-rdma/perftest,"
    " pull request 98"
)
_US_NS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class HardwarePoint:
    """Latency (half a round trip) and goodput of RDMA hardware for one message size."""

    latency_ns: float
    goodput_bps: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedFact:
    """A published figure with its source.

    Attributes
    ----------
    topic, transport, quantity, figure, conditions : the figure in words
    source, place : publication, and where in it
    checked : ``text`` where the figure was read in the text of the source, ``second-hand`` where others quote it
    """

    topic: str
    transport: str
    quantity: str
    figure: str
    conditions: str
    source: str
    place: str
    checked: str

    @property
    def origin(self) -> str:
        """Source and place, and whether nobody has verified the figure there."""
        mark = " (read second-hand: unverified)" if self.checked == "second-hand" else ""
        return f"{self.source}, {self.place}{mark}"


@cache
def hardware_by_size() -> dict[int, HardwarePoint]:
    """Cited figures of hardware, by message size in bytes."""
    return {
        row["size_bytes"]: HardwarePoint(latency_ns=row["latency_us"] * _US_NS, goodput_bps=row["bandwidth_gbps"] * 1e9)
        for row in measured("rdma-hardware-send").to_pylist()
    }


@cache
def cited_facts() -> tuple[CitedFact, ...]:
    """All cited figures that do not depend on the message size."""
    return tuple(CitedFact(**row) for row in measured("tcp-and-rdma").to_pylist())
