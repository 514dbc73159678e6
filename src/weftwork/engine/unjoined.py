"""Find messages without a path before a run.

The NIC ports at their ends are on networks that nothing joins. A fabric of rails that meet in the servers alone, or of
planes, is several networks. A job that sends from one to another would only run into timeouts.
Leaves out: faults, which an engine meets when they happen; collectives that the flow engine runs whole, whose bytes go
by the receiver's rail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.grammar import plural
from weftwork.engine.programs import counters_of, walk
from weftwork.spec.job import Arrivals, Peer, Send
from weftwork.spec.peers import peers_of
from weftwork.topology.reach import networks_of_links

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job

__all__ = ["Unjoined", "first_unjoined"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unjoined:
    """The first message without a path.

    Attributes
    ----------
    source, destination : ranks
    source_port, destination_port : names of their NIC ports, such as ``host3/nic1``
    networks : of the fabric, that nothing joins
    """

    source: int
    destination: int
    source_port: str
    destination_port: str
    networks: int

    @property
    def text(self) -> str:
        """The pair of NIC ports and the reason."""
        return (
            f"rank {self.source} ('{self.source_port}') sends to rank {self.destination} ('{self.destination_port}'),"
            f" and no path joins them: the links of the fabric form {plural(self.networks, 'network')} without a "
            "switch in common"
        )


def first_unjoined(fabric: Fabric, job: Job) -> Unjoined | None:
    """Find a message between unconnected NIC ports; None without one.

    Parameters
    ----------
    fabric : without faults
    job : placed on it; one that `weftwork.engine.programs.check_job` finds nothing wrong with
    """
    network = networks_of_links(fabric, fabric.links_at_start)
    networks = int(network.max(initial=-1)) + 1
    if networks < 2:
        return None
    ports = fabric.ports
    node = fabric.hosts[job.placement.host]
    nics = job.placement.nics
    seen: set[tuple[int, Peer, int, str, int]] = set()
    for index, send, count in walk(job):
        ranks = np.flatnonzero(job.rank_program == index)
        first = job.first_rank[index] if job.first_rank else 0
        for own, far, nic, rail in _pairs(index, send, count, ranks, first, seen):
            apart = node[own] != node[far]
            own_, far_ = own[apart], far[apart]
            number = nics[far_, nic] if rail == "peer" else nics[own_, nic]
            source = ports.base[node[own_]] + number
            destination = ports.base[node[far_]] + nics[far_, nic]
            wrong = np.flatnonzero(network[ports.link[source]] != network[ports.link[destination]])
            if len(wrong):
                at = int(wrong[0])
                return Unjoined(
                    source=int(own_[at]),
                    destination=int(far_[at]),
                    source_port=f"{fabric.node_names[node[own_[at]]]}/nic{int(number[at])}",
                    destination_port=f"{fabric.node_names[node[far_[at]]]}/nic{int(nics[far_[at], nic])}",
                    networks=networks,
                )
    return None


def _pairs(
    index: int,
    send: object,
    count: int,
    ranks: NDArray[np.int64],
    first: int,
    seen: set[tuple[int, Peer, int, str, int]],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], int, str]]:
    """Senders and receivers of an operation, each kind once.

    They come with the column of their NIC ports and the rail.
    """
    if isinstance(send, Arrivals):
        for peer in np.unique(send.peer).tolist():
            own = ranks[ranks != peer + first]
            yield own, np.full(len(own), peer + first, np.int64), 0, "own"
    if not isinstance(send, Send):
        return
    key = (index, send.peer, send.nic, send.rail, count)
    if key in seen:
        return
    seen.add(key)
    for counter in counters_of(send.peer, count):
        peers = peers_of(send.peer, ranks - first, counter)
        there = peers >= 0
        yield ranks[there], peers[there] + first, send.nic, send.rail
