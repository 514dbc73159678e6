"""Records of a topology file: its offer, check input and parts.

Leaves out: the topologies (`weftwork.topology.shapes`), and putting their nodes and links together
(`weftwork.topology.assemble`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.scenario.choice import K, KeyFindings, Offer
from weftwork.spec.scenario.topology_growth import DesignSpace

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.topology_growth import CubesOfPod, DirectLimits, MeasuredNetwork

__all__ = ["FabricSize", "Ground", "Parts", "Topology", "full"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """The common keys of ``fabric`` that a topology's check can see.

    Some are not known yet at that time.

    Attributes
    ----------
    hosts : servers that are asked for, by themselves or by their GPUs; None where nobody says
    radix : ports of every switch where the key ``radix`` gives them
    has_ports : whether the number of ports is known, from ``radix`` or from the switch
    server : None where the hardware catalogue is not known, or a field of ``node`` is wrong
    rails : that the catalogue says of the server; 0: nothing
    host_rate_bps, fabric_rate_bps : of the links to hosts and between switches
    """

    hosts: int | None
    radix: int | None
    has_ports: bool
    server: Server | None
    rails: int
    host_rate_bps: int | None
    fabric_rate_bps: int | None

    @property
    def speed(self) -> Fraction:
        """Rate of a host link over that of a switch link.

        1 if either is not known.
        """
        if self.host_rate_bps is None or self.fabric_rate_bps is None:
            return Fraction(1)
        return Fraction(self.host_rate_bps, self.fabric_rate_bps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Input of a topology's build: devices, rates and delays.

    Attributes
    ----------
    hosts : servers to attach; None for as many as fit
    ports : of every switch; 0: any number
    server, switch, nic : every one of its kind
    rails : that the catalogue says of the server; 0: nothing
    host_rate_bps, host_delay_ps : of the links between hosts and switches
    fabric_rate_bps, fabric_delay_ps : of the links between switches
    loss, corruption : probability per packet, on every link
    caveats : what a user should know about the devices
    """

    hosts: int | None
    ports: int
    server: Server
    rails: int
    switch: Switch
    nic: Nic
    host_rate_bps: int
    fabric_rate_bps: int
    host_delay_ps: int
    fabric_delay_ps: int
    loss: float
    corruption: float
    caveats: Mapping[str, Caveat]

    def common(self) -> dict[str, Any]:
        """The arguments common to all builders of shapes."""
        names = ("server", "switch", "nic", "host_rate_bps", "fabric_rate_bps", "host_delay_ps", "fabric_delay_ps",
                 "loss", "corruption", "caveats")  # fmt: skip
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricSize:
    """Size of a fabric before it is built.

    Attributes
    ----------
    hosts, switches, links : how many
    leaves : switches that hosts hang on
    """

    hosts: int
    switches: int
    links: int
    leaves: int

    @property
    def nodes(self) -> int:
        """Hosts and switches."""
        return self.hosts + self.switches


@dataclass(frozen=True, kw_only=True)
class Topology(Offer[K]):
    """The constant ``TOPOLOGY`` of a file: builds a fabric from counts.

    The fabric has hosts, switches and links.

    Parameters
    ----------
    resolve : notes what is wrong with these keys beside the common ones, and returns them with what follows filled in,
        and how many servers there are (None where only the catalogue's switch decides). Called when a scenario is read,
        and before a fabric is built; of keys that it returned itself it says nothing new
    build : makes the fabric
    size : says how large the fabric will be, so that what no memory holds is refused before it is built; without it
        a fabric is built first and measured then. May raise what ``build`` raises
    limits : says how large the network that was built can become with its switches, for
        ``weftwork topology --limits``; without it that is known of trees alone
    cubes : the cubes that the keys make, of a pod whose slices are made of cubes; None: it has none
    design : what ``weftwork design`` varies of the topology; without it no design takes part with it
    """

    resolve: Callable[[K, Ground, KeyFindings], tuple[K, int | None]]
    build: Callable[[K, Parts], Fabric]
    size: Callable[[K, Parts], FabricSize] | None = None
    limits: Callable[[MeasuredNetwork], DirectLimits] | None = None
    cubes: Callable[[K], CubesOfPod] | None = None
    design: DesignSpace | None = None

    def __post_init__(self) -> None:
        """Refuse mistakes of a file that was written by hand.

        Raises
        ------
        TypeError : as of any `Offer`; or the limits are no function, or the design is no `DesignSpace`
        """
        super().__post_init__()
        limits: object = self.limits  # a file written by hand; Python itself checks no types
        if limits is not None and not callable(limits):
            raise TypeError(f"limits is {limits!r}, wanted a function of a MeasuredNetwork, or None")
        design: object = self.design
        if design is not None and not isinstance(design, DesignSpace):
            raise TypeError(f"design is {design!r}, wanted a DesignSpace(...), or None")


def full(places: int, key: str, found: KeyFindings) -> int:
    """Hosts of a full fabric.

    They may be more than Weftwork can number; then ``key`` is to blame.
    """
    if places > MAX_HOSTS:
        found.wrong(
            key, f"makes {plural(places, 'host')}, wanted at most {MAX_HOSTS:,}; give fabric.hosts to attach fewer"
        )
    return places
