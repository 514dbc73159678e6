"""A fabric: hosts, switches, and the links between them.

Each device has its kind and its figures. Millions of rows are NumPy arrays behind this small class. A link is full
duplex; its two directions have the same rate and delay. Ports are numbered per node in the order in which the node's
links are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weftwork.base.caveat import Caveat
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric_direct import DirectNetwork
from weftwork.spec.fabric_extras import Extra
from weftwork.spec.fabric_names import LinkNames, NodeNames

__all__ = ["HOST", "LINK_DTYPE", "SWITCH", "Fabric", "Ports"]

HOST = 0
SWITCH = 1

LINK_DTYPE = np.dtype(
    [
        ("a", np.int32),  # node index of one end
        ("b", np.int32),  # node index of the other end
        ("rate_bps", np.int64),
        ("delay_ps", np.int64),  # propagation only, one way
        ("loss", np.float64),  # probability that a packet vanishes on it
        ("corruption", np.float64),  # probability that a packet arrives with a wrong checksum
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """The two directed ends of every link.

    The ports of a node are contiguous.

    Attributes
    ----------
    base : shape (nodes + 1,), first port of each node
    node, peer, link : shape (ports,), owner, port at the other end, link
    """

    base: NDArray[np.int64]
    node: NDArray[np.int32]
    peer: NDArray[np.int32]
    link: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """Nodes, links and devices.

    Parameters
    ----------
    name : of the topology, for people
    node_names : unique, such as ``host0``, ``leaf3``, ``spine1``; `NodeNames` where they follow from numbers
    node_kind : shape (nodes,), `HOST` or `SWITCH`
    node_tier : shape (nodes,), 0 for hosts, 1 for leaves and so on upwards
    node_device : shape (nodes,), index into ``nics`` for a host and into ``switches`` for a switch
    links : shape (links,), dtype `LINK_DTYPE`
    link_names : unique; by default ``leaf3-spine1``, with ``.2``, ``.3`` appended for parallel links
    switches, nics : the devices that occur
    caveats : what a user should know, such as unverified figures
    servers : that occur
    node_server : shape (nodes,), index into ``servers`` for a host; None where every host is the first
    node_pod : shape (nodes,), the pod (block of racks under one set of leaves) of a host or leaf, -1 for none; None
        where the fabric has no pods
    extras : equipment that takes ports of switches and is no host, such as a fabric manager
    tree : numbers of the generator that made it, such as ``PGFT(2; 32,32; 1,16; 1,2)``; empty where it is no such
        tree, ``8 x PGFT(...)`` where each of 8 rails is one
    direct : dimensions and coordinates of a direct network; None: it is none
    """

    name: str
    node_names: Sequence[str]
    node_kind: NDArray[np.int8]
    node_tier: NDArray[np.int8]
    node_device: NDArray[np.int32]
    links: NDArray[np.void]
    link_names: Sequence[str]
    switches: tuple[Switch, ...]
    nics: tuple[Nic, ...]
    caveats: dict[str, Caveat] = field(default_factory=dict)
    servers: tuple[Server, ...] = (Server(),)
    node_server: NDArray[np.int32] | None = None
    node_pod: NDArray[np.int32] | None = None
    extras: tuple[Extra, ...] = ()
    tree: str = ""
    direct: DirectNetwork | None = None

    @cached_property
    def hosts(self) -> NDArray[np.int64]:
        """Node indices of the hosts, in order."""
        return np.flatnonzero(self.node_kind == HOST)

    @property
    def hosts_forward(self) -> bool:
        """Whether hosts forward packets of others, which no engine simulates."""
        return self.direct is not None and self.direct.hosts_forward

    def server(self, node: int) -> Server:
        """The server at the node index of a host."""
        return self.servers[0 if self.node_server is None else int(self.node_server[node])]

    @cached_property
    def gpus(self) -> int:
        """GPUs of all hosts."""
        each = np.array([server.gpus for server in self.servers], np.int64)
        index = np.zeros(len(self.hosts), np.int32) if self.node_server is None else self.node_server[self.hosts]
        return int(each[index].sum())

    @property
    def links_at_start(self) -> NDArray[np.bool_]:
        """Links that exist when a run starts, shape (links,).

        All but those whose circuits optical switches make later.
        """
        optical = None if self.direct is None else self.direct.optical
        if optical is None or optical.link_lit is None:
            return np.ones(len(self.links), np.bool_)
        return optical.link_lit.copy()

    @cached_property
    def ports(self) -> Ports:
        """All ports, numbered per node in the order of the links."""
        count = len(self.links)
        ends = np.empty(2 * count, np.int64)
        ends[0::2] = self.links["a"]
        ends[1::2] = self.links["b"]
        order = np.argsort(ends, kind="stable")
        number = np.empty(2 * count, np.int32)
        number[order] = np.arange(2 * count, dtype=np.int32)
        base = np.zeros(len(self.node_names) + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=len(self.node_names)), out=base[1:])
        peer = np.empty(2 * count, np.int32)
        peer[number[0::2]] = number[1::2]
        peer[number[1::2]] = number[0::2]
        return Ports(base=base, node=ends[order].astype(np.int32), peer=peer, link=(order // 2).astype(np.int32))

    def node(self, name: str) -> int:
        """Index of the node called ``name``; KeyError for an unknown name."""
        return _index(self.node_names, name) if isinstance(self.node_names, NodeNames) else self._node_index[name]

    def link(self, name: str) -> int:
        """Index of the link called ``name``; KeyError for an unknown name."""
        return _index(self.link_names, name) if isinstance(self.link_names, LinkNames) else self._link_index[name]

    @cached_property
    def _node_index(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.node_names)}

    @cached_property
    def _link_index(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.link_names)}


def _index(names: NodeNames | LinkNames, name: str) -> int:
    found = names.find(name)
    if found is None:
        raise KeyError(name)
    return found
