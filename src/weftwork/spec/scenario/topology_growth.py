"""How large a topology can become, and what a search for fabrics varies of it: parts of a topology's record.

A file of `weftwork.topology.shapes`, or a user's own, gives both beside its build; `weftwork topology --limits` and
`weftwork design` know no topology by its name.
Leaves out: trees, whose largest size follows from their tiers (`weftwork.topology.largest`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weftwork.base.errors import UsageError

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.fabric_direct import DirectNetwork

__all__ = ["CubesOfPod", "DesignSpace", "DirectLimits", "DirectSize", "MeasuredNetwork", "ServersAndSwitch"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectSize:
    """One size of a direct network.

    Attributes
    ----------
    words : how it is made, such as ``balanced: 513 groups of 32 routers``
    endpoints : places for NIC ports
    switches, switch_links : how many
    diameter_links : most links between switches on a shortest path
    """

    words: str
    endpoints: int
    switches: int
    switch_links: int
    diameter_links: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectLimits:
    """The largest sizes of a direct network's family.

    Attributes
    ----------
    family : name of the topology
    ports : of a switch; 0: any number
    ends : what ends it, as a sentence without its full stop; empty: nothing does
    facts : what else a planner should know, as sentences
    sizes : the largest with the same numbers of a switch first, then others with the same ports
    """

    family: str
    ports: int
    ends: str
    facts: tuple[str, ...] = ()
    sizes: tuple[DirectSize, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredNetwork:
    """A network as it is, of which a topology says how large it can become.

    Attributes
    ----------
    fabric : as built, or as a file has it
    ports : of a switch; 0: any number
    hosts : most places in use on a switch
    """

    fabric: Fabric
    ports: int
    hosts: int

    @property
    def direct(self) -> DirectNetwork:
        """Dimensions, rings and coordinates of the network.

        Raises
        ------
        UsageError : the fabric has none
        """
        if self.fabric.direct is None:
            raise UsageError(f"'{self.fabric.name}' is no direct network: its build gave `assemble` no direct=")
        return self.fabric.direct

    def degree(self, dimension: int) -> int:
        """Most links of a dimension at a switch."""
        links = self.fabric.links[self.direct.link_dimension == dimension]
        ends = np.concatenate([links["a"], links["b"]])
        return int(np.bincount(ends).max(initial=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class CubesOfPod:
    """The cubes of a pod, of which slices are made (``weftwork topology FILE --slices``).

    Attributes
    ----------
    cubes : how many
    failed : numbers of those that are down
    slice : chips along each dimension of the slice that the scenario asks for; None: the largest
    """

    cubes: int
    failed: frozenset[int]
    slice: tuple[int, ...] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServersAndSwitch:
    """Servers and a switch, for which a topology chooses its shape.

    Attributes
    ----------
    servers : how many
    ports : NIC ports of each
    radix : ports of a switch at the rate of a NIC port; None: no port is so fast
    gpu_rate_bps : of all NIC ports of a GPU together
    """

    servers: int
    ports: int
    radix: int | None
    gpu_rate_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DesignSpace:
    """What ``weftwork design`` varies of a topology, besides its switch and the rate of its NICs.

    Parameters
    ----------
    shape : keys of ``fabric`` that follow from servers and switch; None where they make no such network. Without it
        the topology derives its shape from ``gpus`` alone
    ratio_tiers : tiers whose oversubscription is varied, as ``fabric.oversubscription`` names them: that of the leaves,
        then the one above
    planes : least and most planes into which the NIC ports of a GPU may be split, None: any number; where both are
        equal, the topology makes that many by itself, and has no key ``planes``
    usual : keys of ``fabric`` with the values that a candidate has unless the scenario sets them
    order : place in the search and in lists, the least first; topologies of one place go by their names
    """

    shape: Callable[[ServersAndSwitch], Mapping[str, Any] | None] | None = None
    ratio_tiers: tuple[str, ...] = ()
    planes: tuple[int, int | None] = (1, 1)
    usual: Mapping[str, str] = field(default_factory=dict)
    order: int = 100  # chosen: behind those of the catalogue

    def __post_init__(self) -> None:
        """Refuse mistakes of a file that was written by hand.

        Raises
        ------
        TypeError : a field of another type
        """
        shape: object = self.shape
        tiers: object = self.ratio_tiers
        least, most = self.planes
        if shape is not None and not callable(shape):
            raise TypeError(f"shape is {shape!r}, wanted a function of a ServersAndSwitch, or None")
        if not isinstance(tiers, tuple) or len(tiers) > 2 or not all(isinstance(tier, str) for tier in tiers):
            raise TypeError(f"ratio_tiers is {tiers!r}, wanted at most two names of tiers such as ('leaf', 'spine')")
        if least < 1 or (most is not None and most < least):
            raise TypeError(f"planes is {self.planes!r}, wanted the least and the most, such as (1, 4) or (1, None)")

    def has_planes(self, planes: int) -> bool:
        """Whether the NIC ports of a GPU may be split into so many planes."""
        least, most = self.planes
        return least <= planes and (most is None or planes <= most)

    @property
    def takes_planes(self) -> bool:
        """Whether the topology has a key ``planes``."""
        return self.planes[0] != self.planes[1]
