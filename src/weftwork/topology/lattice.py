"""Link routers along every dimension of a lattice, each line completely, as HyperX does.

Router numbers count the first dimension fastest. A line is a set of routers that differ in one coordinate alone.
Source: Ahn, Binkert, Davis, McLaren and Schreiber, HyperX, SC 2009, section 2.
Leaves out: how the counts are chosen, which stands beside each topology.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric

if TYPE_CHECKING:
    from weftwork.spec.plug_in import Findings, Parts

__all__ = ["RouterLattice", "lattice_fabric"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterLattice:
    """Counts of a lattice whose lines are completely linked.

    Attributes
    ----------
    sides : routers of a line, by dimension
    cables : parallel links between two routers of a line, by dimension
    hosts_per_router : places for NIC ports on each router
    """

    sides: tuple[int, ...]
    cables: tuple[int, ...]
    hosts_per_router: int

    @property
    def routers(self) -> int:
        """Routers in all."""
        return prod(self.sides)

    @property
    def places(self) -> int:
        """Places for NIC ports in all."""
        return self.routers * self.hosts_per_router

    @property
    def degree(self) -> int:
        """Ports of a router to other routers."""
        return sum(cables * (side - 1) for cables, side in zip(self.cables, self.sides, strict=True))

    @property
    def links(self) -> int:
        """Links between routers."""
        return self.routers * self.degree // 2

    @property
    def words(self) -> tuple[str, ...]:
        """Words for the dimensions."""
        return tuple("xyz"[index] if index < 3 else f"d{index}" for index in range(len(self.sides)))

    def relative_bisection(self) -> tuple[Fraction, ...]:
        """Links across the middle of each dimension, for each host of a half.

        Examples
        --------
        >>> RouterLattice(sides=(4, 8), cables=(2, 1), hosts_per_router=4).relative_bisection()
        (Fraction(1, 1), Fraction(1, 1))
        """
        pairs = zip(self.cables, self.sides, strict=True)
        return tuple(Fraction(cables * side, 2 * self.hosts_per_router) for cables, side in pairs)

    def judge_ports(self, ports: int, found: Findings, blamed: str) -> None:
        """Note a switch with fewer ports than a router needs.

        Parameters
        ----------
        ports : of the switch; 0: any number
        found, blamed : takes the mistake, at the key that gives the number of ports
        """
        needed = self.degree + self.hosts_per_router
        if ports and needed > ports:
            text = (
                f"found {plural(ports, 'port')}, but a router needs {needed:,}: {self.hosts_per_router:,} to hosts and "
            )
            found.wrong(blamed, text + f"{self.degree:,} to other routers")


def lattice_fabric(shape: RouterLattice, parts: Parts, *, name: str, family: str) -> Fabric:
    """Build the fabric of a lattice.

    Parameters
    ----------
    shape : its counts
    parts : devices, rates and delays
    name : of the fabric, for people
    family : name of the topology

    Raises
    ------
    ConfigError : a switch with fewer ports than links, rates or delays out of range
    """
    router = np.arange(shape.routers)
    ends: list[tuple[np.ndarray, np.ndarray]] = []
    coordinates = np.empty((shape.routers, len(shape.sides)), np.int64)
    stride = 1
    for index, (side, cables) in enumerate(zip(shape.sides, shape.cables, strict=True)):
        coordinates[:, index] = router // stride % side
        low, high = np.triu_indices(side, 1)
        first = router[coordinates[:, index] == 0]  # of every line
        near, far = (np.add.outer(first, end * stride).ravel() for end in (low, high))
        ends.append((np.repeat(near, cables), np.repeat(far, cables)))
        stride *= side
    return direct_fabric(
        parts,
        name=name,
        family=family,
        dimensions=shape.words,
        switches=[("router", shape.routers)],
        per_switch=shape.hosts_per_router,
        links=SwitchLinks(
            a=np.concatenate([near for near, _ in ends]),
            b=np.concatenate([far for _, far in ends]),
            dimension=np.repeat(np.arange(len(ends)), [len(near) for near, _ in ends]).astype(np.int8),
        ),
        axes=shape.words,
        sides=shape.sides,
        coordinates=coordinates,
        is_ordered=True,
    )
