"""The closed form of an algorithm on a torus or mesh: a part of the algorithm's record.

An algorithm says which of its ways an operation has, and the steps of a way that wait for each other;
`weftwork.workload.collectives.lattice_time` makes times of them, and `auto` takes the fastest.
Leaves out: the lanes of a way (`weftwork.workload.collectives.lattice_lanes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.base.clock import SECOND_PS

if TYPE_CHECKING:
    from weftwork.workload.collectives.fabric_lattice import LatticeRates
    from weftwork.workload.collectives.lattice import Lattice

__all__ = ["LatticeForm", "LatticeSteps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeSteps:
    """Steps of a phase that wait for each other.

    Attributes
    ----------
    count : how many
    links : of the path of a message
    message_bytes : of each
    link_bytes : on the busiest link in one direction, in a step
    port_bytes : of the busiest NIC port, in a step
    closing_links : of the path that closes a ring on an open axis; 0 where links close it
    """

    count: int
    links: int
    message_bytes: float
    link_bytes: float
    port_bytes: float
    closing_links: int = 0

    def time_ps(self, rates: LatticeRates, step_latency_ps: float) -> float:
        """Time of all steps."""
        busy_ps = 8 * SECOND_PS * max(self.link_bytes / rates.link_bps, self.port_bytes / rates.port_bps)
        usual_ps = rates.latency_ps(self.links, self.message_bytes)
        found = self.count * (usual_ps + step_latency_ps + busy_ps)
        if self.closing_links:
            found += rates.latency_ps(self.closing_links, self.message_bytes) - usual_ps
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeForm:
    """The closed form of an algorithm on a lattice.

    Parameters
    ----------
    key : of the scenario, whose value names a way of the algorithm
    ways : values of the key for an operation on a lattice, the one with the fewest bytes first; empty where the
        algorithm does not fit the lattice
    phases : of a reduce-scatter by a way, with the steps of each lane: from the way, the lattice, the bytes of the
        buffer as the protocol sends it, and the NIC ports of a GPU
    whole : ways whose phases are those of the whole all-reduce, since each step sends everything
    """

    key: str
    ways: Callable[[str, Lattice], Sequence[str]]
    phases: Callable[[str, Lattice, float, int], list[list[LatticeSteps]]]
    whole: frozenset[str] = frozenset()
