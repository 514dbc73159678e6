"""BCube: servers that forward, each with a port on a switch of every level.

A server has L NIC ports, and there are L levels of switches of n ports: BCube(n, L - 1) of the paper. The number of a
server has L digits to the base n. A switch of level i joins the servers whose numbers differ in digit i alone. So two
servers are at most L switches apart, and servers in between forward.
Fewer servers than n^L are the first ones; switches without a server are left out.
Source: Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577.
Leaves out: runs. Servers do not forward in the engines, so that only counts, limits, pictures and cost are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import TO_HOST, DirectNetwork
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.limits import MAX_HOSTS
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Parts, Record, Topology, Whole, row
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.direct_fabric import sound_shape

__all__ = ["TOPOLOGY"]

MOST_NUMBERS: Final = 2**62  # numbers of servers that are not built are computed in 64 bits
SOURCE: Final = "Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577"


class Keys(Record):
    """The keys of a BCube."""

    hosts_per_switch: int | None = row(
        "hosts_per_switch",
        Whole(low=2, high=4_096, unit="ports"),
        absent="the fewest for the hosts; without hosts, the ports of the switch",
        text="Servers of a switch (n), each on one of its ports.",
        source=SOURCE,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BCubeShape:
    """Counts of a BCube.

    Attributes
    ----------
    hosts_per_switch : n
    levels : of switches
    """

    hosts_per_switch: int
    levels: int

    @property
    def servers(self) -> int:
        """Servers of the full network."""
        return int(self.hosts_per_switch**self.levels)

    @property
    def places(self) -> int:
        """Places for NIC ports."""
        return self.servers * self.levels

    def switches(self, hosts: int) -> tuple[int, ...]:
        """Switches of every level that have a server.

        Parameters
        ----------
        hosts : servers, the first of the network

        Examples
        --------
        >>> BCubeShape(hosts_per_switch=4, levels=2).switches(16)
        (4, 4)
        >>> BCubeShape(hosts_per_switch=4, levels=2).switches(5)
        (2, 4)
        """
        widths = [self.hosts_per_switch**level for level in range(self.levels)]
        full = [divmod(hosts, width * self.hosts_per_switch) for width in widths]
        return tuple(blocks * width + min(rest, width) for (blocks, rest), width in zip(full, widths, strict=True))


def _shape(
    keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str, levels: int
) -> BCubeShape | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    levels : of switches, one for each NIC port of a server
    """
    n = keys.hosts_per_switch
    if n is None and endpoints is not None:
        n = 2
        while n**levels * levels < endpoints:
            n += 1
    elif n is None and ports:
        n = ports
    elif n is None:
        found.wrong("hosts_per_switch", "missing: give hosts_per_switch, or radix, or hosts")
        return None
    shape = BCubeShape(hosts_per_switch=n, levels=levels)
    if ports and n > ports:
        found.wrong(blamed, f"found {plural(ports, 'port')}, but a switch needs {n:,}: one for each of its servers")
    most = MAX_HOSTS if endpoints is None else MOST_NUMBERS
    if shape.servers > most:
        text = f"makes {shape.servers:,} servers: {n:,} to the power of the {plural(levels, 'NIC port')} of a server; "
        found.wrong("hosts_per_switch" if keys.hosts_per_switch else blamed, f"{text}wanted at most {most:,}")
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    server = ground.server
    if not found.is_sound("radix", "hosts", "gpus", "node") or server is None:
        return keys, ground.hosts
    if ground.has_ports and not ground.radix and keys.hosts_per_switch is None and ground.hosts is None:
        return keys, ground.hosts  # the ports of the catalogue's switch decide
    endpoints = None if ground.hosts is None else ground.hosts * server.nic_ports
    shape = _shape(keys, ground.radix or 0, endpoints, found, "radix", server.nic_ports)
    if shape is None:
        return keys, ground.hosts
    filled = keys.model_copy(update={"hosts_per_switch": shape.hosts_per_switch})
    if ground.hosts is not None and ground.hosts > shape.servers:
        text = f"found {ground.hosts:,}, wanted at most {shape.servers:,}: {plural(shape.hosts_per_switch, 'server')} "
        text += f"on a switch, to the power of {plural(shape.levels, 'NIC port')}"
        found.wrong(found.which("hosts", "gpus"), text)
    return filled, shape.servers if ground.hosts is None else ground.hosts


def _sound(keys: Keys, parts: Parts) -> BCubeShape:
    levels = parts.server.nic_ports

    def shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> BCubeShape | None:
        return _shape(keys, ports, endpoints, found, blamed, levels)

    return sound_shape(shape, keys, parts)


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = _sound(keys, parts)
    hosts = parts.hosts or shape.servers
    switches = sum(shape.switches(hosts))
    return FabricSize(hosts=hosts, switches=switches, links=hosts * shape.levels, leaves=switches)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = _sound(keys, parts)
    n, levels = shape.hosts_per_switch, shape.levels
    hosts = parts.hosts or shape.servers
    counts = shape.switches(hosts)
    first = np.concatenate([[0], np.cumsum(counts)])
    host = np.arange(hosts)[:, None]
    width = n ** np.arange(levels)
    # the number of a switch in its level has the digits of its servers without the digit of the level
    switch = first[:-1] + host // (width * n) * width + host % width
    return assemble(
        name=f"bcube, {plural(levels, 'level')} of switches with {plural(n, 'server')} each",
        node_names=NodeNames([("host", hosts), ("switch", int(first[-1]))]),
        node_kind=np.repeat([HOST, SWITCH], [hosts, first[-1]]),
        node_tier=np.concatenate(
            [np.zeros(hosts, np.int8), np.repeat(np.arange(1, levels + 1, dtype=np.int8), counts)]
        ),
        links=links_between(
            np.repeat(np.arange(hosts), levels),
            hosts + switch.ravel(),
            rate_bps=parts.host_rate_bps,
            delay_ps=parts.host_delay_ps,
            loss=parts.loss,
            corruption=parts.corruption,
        ),
        switches=(parts.switch,),
        nics=(parts.nic,),
        servers=(parts.server,),
        direct=_network(n, levels, hosts, int(first[-1])),
        caveats=parts.caveats,
        source="fabric",
    )


def _network(n: int, levels: int, hosts: int, switches: int) -> DirectNetwork:
    """Digits of the servers; all links lead to hosts, and switches have no digits of their own."""
    digits = np.arange(hosts)[:, None] // n ** np.arange(levels) % n
    return DirectNetwork(
        family="bcube",
        dimensions=(),
        link_dimension=np.full(hosts * levels, TO_HOST, np.int8),
        link_wraps=np.zeros(hosts * levels, np.bool_),
        axes=tuple(f"digit{level}" for level in range(levels)),
        sides=(n,) * levels,
        coordinates=np.concatenate([digits, np.full((switches, levels), -1)]).astype(np.int32),
        hosts_forward=True,
    )


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    defaults={"node": {"model": "plain", "nic_ports": 2}},
    source=SOURCE,
)
