"""Build the fabric of a direct network from the links between its switches.

Hosts are put on switches in order, and links of hosts come first, so that the first ports of a switch lead to its
hosts. Leaves out: which switches are linked, which each file of `weftwork.topology.shapes` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import ConfigError
from weftwork.base.grammar import plural
from weftwork.spec.device import Record
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import TO_HOST, DirectNetwork, OpticalSwitches
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.topology import FabricSize, full
from weftwork.topology.assemble import assemble, links_between

if TYPE_CHECKING:
    from weftwork.spec.device import Server
    from weftwork.spec.plug_in import Findings, Ground, Parts

__all__ = [
    "SwitchLinks", "direct_fabric", "direct_size", "hosts_that_fit", "resolved_shape", "servers_of", "sound_shape",
]  # fmt: skip


class HasPlaces(Protocol):
    """Counts of a network that has places for NIC ports."""

    @property
    def places(self) -> int:
        """Ports of switches that lead to hosts."""


K = TypeVar("K", bound=Record)
S = TypeVar("S", bound=HasPlaces)


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchLinks:
    """Links between switches, by numbers of switches from 0.

    Attributes
    ----------
    a, b : shape (links,), int64
    dimension : shape (links,), int8, index of the dimension
    wraps : shape (links,), whether a link closes a ring of its dimension; None: no link does
    delay_ps : shape (links,); None: as `Parts.fabric_delay_ps`
    """

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    dimension: NDArray[np.int8]
    wraps: NDArray[np.bool_] | None = None
    delay_ps: NDArray[np.int64] | None = None


def servers_of(endpoints: int, server: Server) -> int:
    """Servers whose NIC ports fill a number of endpoints; a server is never divided."""
    return endpoints // server.nic_ports


def hosts_that_fit(endpoints: int, key: str, ground: Ground, found: Findings) -> int | None:
    """Hosts of a network with so many places for NIC ports.

    Parameters
    ----------
    endpoints : ports of switches that lead to hosts
    key : of the topology that has the number of places, to blame
    ground, found : as of the topology's ``resolve``

    Returns
    -------
    those that are asked for, else as many as fit; None where the server is not known
    """
    if ground.server is None:
        return ground.hosts
    places = servers_of(endpoints, ground.server)
    if places < 1:
        ports = plural(ground.server.nic_ports, "port")
        found.wrong(key, f"makes {plural(endpoints, 'place')} for NIC ports, but a server has {ports}")
        return ground.hosts
    if ground.hosts is not None and ground.hosts > places:
        text = f"found {ground.hosts:,}, wanted at most {places:,}: the network has {plural(endpoints, 'place')}"
        text += f" for NIC ports, and a server has {plural(ground.server.nic_ports, 'port')}"
        found.wrong(found.which("hosts", "gpus"), text)
    return full(places, key, found) if ground.hosts is None else ground.hosts


def resolved_shape(
    shape_of: Callable[[K, int, int | None, Findings, str], S | None],
    keys: K,
    ground: Ground,
    found: Findings,
    *,
    key: str,
    is_given: bool,
    filled: Callable[[S], Mapping[str, Any]],
) -> tuple[K, int | None]:
    """Fill in the keys of a network, and count its hosts.

    Parameters
    ----------
    shape_of : as of `sound_shape`
    keys, ground, found : as of the topology's ``resolve``
    key : that has the number of places, to blame
    is_given : whether the keys give the shape without the ports of a switch; else a switch of the catalogue decides,
        which is not known yet
    filled : keys that follow from the shape
    """
    if not found.is_sound("radix", "hosts", "gpus") or ground.server is None:
        return keys, ground.hosts
    if ground.has_ports and not ground.radix and not is_given:
        return keys, ground.hosts
    endpoints = None if ground.hosts is None else ground.hosts * ground.server.nic_ports
    shape = shape_of(keys, ground.radix or 0, endpoints, found, "radix")
    if shape is None:
        return keys, ground.hosts
    return keys.model_copy(update=dict(filled(shape))), hosts_that_fit(shape.places, key, ground, found)


def sound_shape(shape_of: Callable[[K, int, int | None, Findings, str], S | None], keys: K, parts: Parts) -> S:
    """Counts of a network that is built, with the ports of its switches known.

    Parameters
    ----------
    shape_of : gives the counts, or notes mistakes and returns None; from the keys, the ports of a switch (0: any
        number), the NIC ports of the hosts (None: nobody says), the mistakes, and the key with the number of ports
    keys, parts : as of the topology's ``build``

    Raises
    ------
    ConfigError : with all mistakes, and if the hosts have no places
    """
    found = Collected(section="fabric")
    endpoints = None if parts.hosts is None else parts.hosts * parts.server.nic_ports
    shape = shape_of(keys, parts.ports, endpoints, found, "switch")
    if shape is not None and servers_of(shape.places, parts.server) < (parts.hosts or 1):
        text = f"found {plural(parts.hosts or 1, 'host')}, wanted at most {servers_of(shape.places, parts.server):,}: "
        text += f"the network has {plural(shape.places, 'place')} for NIC ports, and a server has "
        found.wrong("hosts", text + plural(parts.server.nic_ports, "port"))
    if shape is None or found.mistakes:
        raise ConfigError("fabric", found.mistakes)
    return shape


def direct_size(parts: Parts, *, switches: int, per_switch: int, links: int) -> FabricSize:
    """Size of a network before it is built.

    Parameters
    ----------
    parts : its hosts and their server
    switches, per_switch : switches with hosts, and places for NIC ports on each
    links : between switches
    """
    hosts = parts.hosts or servers_of(switches * per_switch, parts.server)
    ports = hosts * parts.server.nic_ports
    return FabricSize(
        hosts=hosts, switches=switches, links=links + ports, leaves=min(switches, -(-ports // per_switch))
    )


def direct_fabric(  # noqa: PLR0913 - the parts of a network, all by name
    parts: Parts,
    *,
    name: str,
    family: str,
    dimensions: Sequence[str],
    switches: Sequence[tuple[str, int]],
    per_switch: int,
    links: SwitchLinks,
    axes: Sequence[str] = (),
    sides: Sequence[int] = (),
    coordinates: NDArray[np.integer] | None = None,
    is_ordered: bool = False,
    group: NDArray[np.integer] | None = None,
    tier: NDArray[np.integer] | None = None,
    optical: OpticalSwitches | None = None,
) -> Fabric:
    """Build a direct network.

    NIC port j of host i is endpoint ``i x nic_ports + j``, on switch ``endpoint // per_switch``.

    Parameters
    ----------
    parts : devices, rates and delays
    name : of the fabric, for people
    family : name of the topology
    dimensions : words for the dimensions of links between switches
    switches : words for switches and how many of each, such as ``[("router", 36)]``; only the first ones have hosts
    per_switch : places for NIC ports on each switch with hosts
    links : between switches
    axes, sides, coordinates : of switches, see `DirectNetwork`; coordinates have the shape (switches, axes)
    is_ordered : see `DirectNetwork`
    group : shape (switches,), the group of each switch; None: the network has no groups
    tier : shape (switches,), of each switch; by default 1
    optical : optical switches; its ``link_switch`` is for the links between switches alone

    Raises
    ------
    ConfigError : a switch with fewer ports than links, rates or delays out of range
    """
    count = sum(number for _, number in switches)
    hosts = parts.hosts or servers_of(switches[0][1] * per_switch, parts.server)
    endpoint = np.arange(hosts * parts.server.nic_ports)
    host, home = endpoint // parts.server.nic_ports, endpoint // per_switch
    first_home = home[:: parts.server.nic_ports]
    errors = {"loss": parts.loss, "corruption": parts.corruption}
    delay = parts.fabric_delay_ps if links.delay_ps is None else links.delay_ps
    rows = [
        links_between(host, hosts + home, rate_bps=parts.host_rate_bps, delay_ps=parts.host_delay_ps, **errors),
        links_between(hosts + links.a, hosts + links.b, rate_bps=parts.fabric_rate_bps, delay_ps=delay, **errors),
    ]
    at = np.empty((count, 0), np.int32) if coordinates is None else np.asarray(coordinates, np.int32)
    wraps = np.zeros(len(links.a), np.bool_) if links.wraps is None else links.wraps
    dark = np.full(len(endpoint), -1, np.int32)  # no link to a host goes through an optical switch
    if optical is not None:
        optical = OpticalSwitches(
            names=optical.names, model=optical.model, ports=optical.ports,
            link_switch=np.concatenate([dark, optical.link_switch]),
        )  # fmt: skip
    direct = DirectNetwork(
        family=family,
        dimensions=tuple(dimensions),
        link_dimension=np.concatenate([np.full(len(endpoint), TO_HOST, np.int8), links.dimension.astype(np.int8)]),
        link_wraps=np.concatenate([np.zeros(len(endpoint), np.bool_), wraps]),
        axes=tuple(axes),
        sides=tuple(sides),
        coordinates=np.concatenate([at[first_home], at]),
        is_ordered=is_ordered,
        optical=optical,
    )
    return assemble(
        name=name,
        node_names=NodeNames([("host", hosts), *switches]),
        node_kind=np.repeat([HOST, SWITCH], [hosts, count]),
        node_tier=np.concatenate([np.zeros(hosts, np.int8), np.ones(count, np.int8) if tier is None else tier]),
        links=np.concatenate(rows),
        switches=(parts.switch,),
        nics=(parts.nic,),
        servers=(parts.server,),
        node_pod=None if group is None else np.concatenate([np.asarray(group)[first_home], np.asarray(group)]),
        caveats=parts.caveats,
        direct=direct,
        source="fabric",
    )
