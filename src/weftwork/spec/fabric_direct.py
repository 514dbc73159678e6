"""What a direct network knows of its links besides their ends.

A direct network links switches that have hosts with each other, as a torus and a dragonfly do. Routing reads the
dimension of every link and where rings close; collectives and pictures read coordinates.
Leaves out: how a network is made (`weftwork.topology.shapes`), and which routes it has (`weftwork.topology.routing`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["GLOBAL", "TO_HOST", "DirectNetwork", "OpticalSwitches"]

TO_HOST: Final = -1
GLOBAL: Final = "global"  # dimension of links between groups


@dataclass(frozen=True, kw_only=True, slots=True)
class OpticalSwitches:
    """Optical circuit switches between the switches of a fabric.

    A link through an optical switch is one link of the fabric: the circuit has no queue and reads no packet.

    Parameters
    ----------
    names : unique, such as ``ocs0``
    model : of the price book
    ports : of each; a circuit takes two of them
    link_switch : shape (links,), int32, the optical switch that a link goes through, -1: none
    link_lit : shape (links,), whether a link's circuit exists at the start of a run; None: all circuits do
    """

    names: tuple[str, ...]
    model: str
    ports: int
    link_switch: NDArray[np.int32]
    link_lit: NDArray[np.bool_] | None = None

    def without(self, kept: NDArray[np.bool_]) -> OpticalSwitches:
        """Only the circuits of some links; all optical switches stay."""
        lit = None if self.link_lit is None else self.link_lit[kept]
        return replace(self, link_switch=self.link_switch[kept], link_lit=lit)


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectNetwork:
    """Dimensions, rings and coordinates of a direct network.

    Parameters
    ----------
    family : name of the topology that made it
    dimensions : words for the dimensions of links, such as ``x``, ``y``, ``z`` or ``local``, ``global``
    link_dimension : shape (links,), int8, index in ``dimensions``; `TO_HOST` for links to hosts
    link_wraps : shape (links,), bool, whether the link closes a ring of its dimension, so that it is the dateline
    axes : words for the coordinates, such as ``x``, ``y``, ``z`` or ``group``, ``router``
    sides : number of values of each coordinate
    coordinates : shape (nodes, axes), int32; a host has those of its switch; -1: the node has none
    is_ordered : whether a shortest path exists that takes the dimensions one after the other, as dimension order does
    optical : optical switches, None: there are none
    hosts_forward : whether hosts forward packets of other hosts, as in BCube; no engine runs such a network
    """

    family: str
    dimensions: tuple[str, ...]
    link_dimension: NDArray[np.int8]
    link_wraps: NDArray[np.bool_]
    axes: tuple[str, ...] = ()
    sides: tuple[int, ...] = ()
    coordinates: NDArray[np.int32]
    is_ordered: bool = False
    optical: OpticalSwitches | None = None
    hosts_forward: bool = False

    @property
    def is_global(self) -> NDArray[np.bool_]:
        """Whether each link joins two groups, shape (links,)."""
        place = self.dimensions.index(GLOBAL) if GLOBAL in self.dimensions else TO_HOST - 1
        found: NDArray[np.bool_] = self.link_dimension == place
        return found

    def without(self, kept: NDArray[np.bool_]) -> DirectNetwork:
        """Only some of the links.

        Parameters
        ----------
        kept : shape (links,)
        """
        optical = None if self.optical is None else self.optical.without(kept)
        return replace(
            self, link_dimension=self.link_dimension[kept], link_wraps=self.link_wraps[kept], optical=optical
        )
