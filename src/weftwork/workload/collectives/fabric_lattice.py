"""The lattice of a job's GPUs on a fabric, with its rates and latencies.

A job has a lattice if its GPUs fill a box of coordinates, one on each place, and links join neighbours along each axis.
Leaves out: GPUs that share a switch, and boxes with a hole or a missing link. They have no lattice, and a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST
from weftwork.workload.collectives.crossed import crossed, own_switches, slowest_forwarding_ps
from weftwork.workload.collectives.lattice import Axis, Lattice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement

__all__ = ["LatticePlaces", "LatticeRates", "NoLattice", "in_order", "lattice_of", "lattice_rates"]

_NAMED: Final = 4  # chosen: as many missing places as a line holds


@dataclass(frozen=True, kw_only=True, slots=True)
class NoLattice:
    """The reason why the GPUs of a job have no lattice."""

    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticePlaces:
    """A lattice, and the ranks of a placement in its order.

    Attributes
    ----------
    lattice : of the GPUs
    order : shape (ranks,), rank of the placement at each place of the lattice
    """

    lattice: Lattice
    order: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class LatticeRates:
    """Rates and latencies of messages on a lattice.

    Attributes
    ----------
    link_bps : of a link between neighbours, in each direction, of data
    port_bps : of a NIC port, of data
    columns : NIC ports of a GPU
    end_latency_ps : of a message besides its links: both links to hosts, one switch, the receiving NIC
    hop_latency_ps : of each link between switches, with the switch behind it
    packet_bytes : most data of a packet, which a switch receives whole before it sends it on; 0: not counted
    """

    link_bps: float
    port_bps: float
    columns: int
    end_latency_ps: int
    hop_latency_ps: int
    packet_bytes: int = 0

    def latency_ps(self, links: int, message_bytes: float = 0.0) -> float:
        """Latency of a message over some links between switches, besides its serialisation on the slowest link."""
        bits = 8 * min(self.packet_bytes, message_bytes)
        on_links = bits * (2 / self.port_bps + links / self.link_bps - 1 / min(self.port_bps, self.link_bps))
        return self.end_latency_ps + links * self.hop_latency_ps + SECOND_PS * on_links


def in_order(placement: Placement, places: LatticePlaces) -> Placement:
    """The placement with ranks renumbered in the order of the lattice."""
    gpu = None if placement.gpu is None else placement.gpu[places.order]
    return replace(placement, host=placement.host[places.order], nics=placement.nics[places.order], gpu=gpu)


def lattice_of(fabric: Fabric, placement: Placement) -> LatticePlaces | NoLattice:
    """The lattice of the GPUs of a job, or the reason why there is none.

    Parameters
    ----------
    fabric : of any topology
    placement : of the ranks
    """
    direct = fabric.direct
    if direct is None or not direct.sides:
        return NoLattice(reason="the switches of this fabric have no coordinates; wanted a torus or a mesh")
    place = direct.coordinates[fabric.hosts[placement.host]].astype(np.int64)
    if (place < 0).any():
        return NoLattice(reason=f"rank {int((place < 0).any(axis=1).argmax())} is on a switch without coordinates")
    low, sides = place.min(axis=0), np.ptp(place, axis=0) + 1
    at = np.ravel_multi_index(tuple((place - low).T[::-1]), tuple(sides[::-1]))
    counts = np.bincount(at, minlength=int(sides.prod()))
    if (counts > 1).any():
        text = f"{plural(int(counts.max()), 'GPU')} share the place {_words(place[at == counts.argmax()][0])}"
        return NoLattice(reason=f"{text}; wanted one on each place")
    if (counts == 0).any():
        missing = [_words(low + _unravel(int(one), sides)) for one in np.flatnonzero(counts == 0)]
        named = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        box = "x".join(map(str, sides))
        text = (
            f"the {plural(len(place), 'GPU')} do not fill their box of {box}: {plural(len(missing), 'place')} without"
        )
        return NoLattice(reason=f"{text} a GPU, {named}")
    axes = _axes(fabric, low, sides)
    return axes if isinstance(axes, NoLattice) else LatticePlaces(lattice=Lattice(axes=axes), order=np.argsort(at))


def _axes(fabric: Fabric, low: NDArray[np.int64], sides: NDArray[np.int64]) -> tuple[Axis, ...] | NoLattice:
    """Axes of more than one place, if links join all neighbours."""
    direct = fabric.direct
    assert direct is not None  # noqa: S101 - the caller has looked
    counts = _neighbours(fabric)
    if isinstance(counts, NoLattice):
        return counts
    found = []
    for axis, size in enumerate(sides.tolist()):
        if size == 1:
            continue
        words = direct.axes[axis]
        others = [range(int(first), int(first + side)) for first, side in zip(low, sides, strict=True)]
        others[axis] = range(1)
        inner: list[int] = []
        closing: list[int] = []
        for rest in product(*others):
            line = [(*rest[:axis], int(low[axis]) + step, *rest[axis + 1 :]) for step in range(size)]
            for one, other in pairwise(line):
                inner.append(counts.get((one, other), 0))
                if not inner[-1]:
                    text = f"no link joins {_words(one)} and {_words(other)} along {words}"
                    return NoLattice(reason=f"{text}; wanted all links of the box")
            closing.append(counts.get((line[0], line[-1]), 0))
        is_ring = size > 2 and size == direct.sides[axis] and max(closing) > 0
        if is_ring and min(closing) == 0:
            return NoLattice(reason=f"a link that closes a ring along {words} is missing; wanted all of them or none")
        is_pair = size == 2 and size == direct.sides[axis]
        links = min(*inner, *closing) if is_ring else min(inner)
        found.append(Axis(name=words, size=size, is_closed=is_ring or (is_pair and links > 1), links=links))
    return tuple(found)


def _neighbours(fabric: Fabric) -> dict[tuple[tuple[int, ...], tuple[int, ...]], int] | NoLattice:
    """Number of links between neighbouring places, lower place first."""
    direct = fabric.direct
    assert direct is not None  # noqa: S101 - the caller has looked
    a, b = fabric.links["a"], fabric.links["b"]
    is_inner = (fabric.node_kind[a] != HOST) & (fabric.node_kind[b] != HOST)
    ends = np.stack([direct.coordinates[a[is_inner]], direct.coordinates[b[is_inner]]]).astype(np.int64)
    ends = ends[:, (ends >= 0).all(axis=(0, 2))]
    apart = np.abs(ends[0] - ends[1])
    sides = np.array(direct.sides)
    is_step = ((apart == 1) | ((apart == sides - 1) & (apart > 0))) & ((apart > 0).sum(axis=1) == 1)[:, None]
    strange = np.flatnonzero(~is_step.any(axis=1))
    if len(strange):
        one, other = (_words(end[strange[0]]) for end in ends)
        return NoLattice(reason=f"a link joins {one} and {other}, which are no neighbours; wanted a torus or a mesh")
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for one, other in zip(ends[0].tolist(), ends[1].tolist(), strict=True):
        pair = (tuple(min(one, other)), tuple(max(one, other)))
        found[pair] = found.get(pair, 0) + 1
    return found


def lattice_rates(
    fabric: Fabric, placement: Placement, *, payload_share: float = 1.0, packet_bytes: int = 0
) -> LatticeRates:
    """Rates and latencies of a fabric with a lattice.

    Of different links and switches of its box, the slowest.

    Parameters
    ----------
    fabric, placement : that have a lattice
    payload_share : of the bytes on a link that are data
    packet_bytes : see `LatticeRates`
    """
    links, path = fabric.links, crossed(fabric, placement)
    places = own_switches(fabric, placement)  # messages go from neighbour to neighbour, inside the box
    is_own = np.isin(links["a"], places) & np.isin(links["b"], places)
    forwarding_ps = slowest_forwarding_ps(fabric, places)
    return LatticeRates(
        link_bps=payload_share * int(links["rate_bps"][is_own].min()),
        port_bps=payload_share * path.port_bps,
        columns=placement.nics.shape[1],
        end_latency_ps=2 * path.to_leaf_ps + forwarding_ps + path.nic_ps,
        hop_latency_ps=int(links["delay_ps"][is_own].max()) + forwarding_ps,
        packet_bytes=packet_bytes,
    )


def _unravel(index: int, sides: NDArray[np.int64]) -> NDArray[np.int64]:
    """Coordinates of an index whose first axis changes fastest."""
    return np.array(np.unravel_index(index, tuple(sides[::-1])))[::-1]


def _words(place: NDArray[np.int64] | tuple[int, ...]) -> str:
    return "(" + ", ".join(str(int(one)) for one in place) + ")"
