"""The one generator of trees: parallel-ports generalised fat trees (PGFT).

Every tier has a rate. A switch of tier l joins m_l groups of the tier below and is seen by w_l switches of each, over
p_l parallel cables;
so PGFT(h; m1..mh; w1..wh; p1..ph). A switch of tier l has the digits (x_h..x_(l+1); y_1..y_l) and is linked to those
of tier l + 1 that agree in all digits but x_(l+1), which y_(l+1) replaces. The lowest switches are leaves. An endpoint
is what a server shows one rail: w1 is the planes, p1 the cables of a server to one leaf.
Source: Oehring, Ibel, Das and Kumar, IPPS 1995 (XGFT); Zahavi, J. Parallel Distrib. Comput. 2012 (PGFT; its formulas
as other texts cite it).
Leaves out: which counts a name stands for (`weftwork.topology.shapes`), and trees whose switches of a tier differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.device import Server
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_extras import Extra
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.rails import ports_by_rail
from weftwork.spec.scenario.topology import FabricSize, Parts
from weftwork.topology.assemble import assemble, links_between

__all__ = ["Pgft", "Tier", "pgft_fabric"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """A tier of switches above the leaves.

    Attributes
    ----------
    word : what a switch of it is called
    children : m, groups of the tier below that a switch joins; the last switches may join fewer
    parents : w, switches of this tier that a switch below sees
    cables : p, parallel ones between two
    rate_bps : of a link downwards
    """

    word: str
    children: int
    parents: int
    cables: int
    rate_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pgft:
    """A tree of one kind of switches for servers of one kind.

    Server h is in pod ``h // per_leaf``. A pod has a leaf for each rail and plane; the leaves are numbered through,
    ``(plane x pods + pod) x rails + rail``, and every tier above by network, then by group, then by digit y.

    Attributes
    ----------
    servers, server : how many of which
    per_leaf : servers below a leaf, m1; the last pod may be filled in part
    pods : groups of servers below the same leaves
    rails, planes : leaves of a pod are rails x planes; planes are w1
    is_joined : whether the tiers above join the rails of a plane; else every rail is a network of its own
    is_dual_homed : the ports of a server take the rails by turns, whichever GPU they belong to
    is_rail_major : the leaves of a rail are neighbours below the next tier, not those of a pod
    leaf_word : what a leaf is called
    tiers : above the leaves, the lowest first; none where nothing joins the leaves
    host_rate_bps : of a link between a server and a leaf
    """

    servers: int
    server: Server
    per_leaf: int
    pods: int
    tiers: tuple[Tier, ...]
    host_rate_bps: int
    rails: int = 1
    planes: int = 1
    is_joined: bool = True
    is_dual_homed: bool = False
    is_rail_major: bool = False
    leaf_word: str = "leaf"

    @property
    def cables_to_leaf(self) -> int:
        """Links from a server to one leaf, p1."""
        return self.server.nic_ports // (self.planes * self.rails)

    @property
    def networks(self) -> int:
        """Number of sets of switches that no link joins."""
        return self.planes * (1 if self.is_joined else self.rails)

    @property
    def leaves(self) -> int:
        """Leaves of all networks."""
        return self.planes * self.pods * self.rails

    def groups(self) -> list[int]:
        """Groups of a network with common switches, by tier above the leaves."""
        below = self.pods * (self.rails if self.is_joined else 1)
        found = []
        for tier in self.tiers:
            below = -(-below // tier.children)
            found.append(below)
        return found

    def counts(self) -> list[int]:
        """Switches of every tier, the leaves first.

        Examples
        --------
        >>> hpn = Pgft(servers=1920, server=Server(gpus=8, nic_ports=16), per_leaf=128, pods=15, rails=8, planes=2,
        ...            tiers=(Tier(word="agg", children=120, parents=60, cables=1, rate_bps=400),), host_rate_bps=200)
        >>> hpn.counts(), hpn.links(), hpn.notation()
        ([240, 120], [30720, 14400], 'PGFT(2; 128,120; 2,60; 1,1)')
        """
        widths = [prod(tier.parents for tier in self.tiers[: place + 1]) for place in range(len(self.tiers))]
        above = [self.networks * groups * width for groups, width in zip(self.groups(), widths, strict=True)]
        return [self.leaves, *above]

    def links(self) -> list[int]:
        """Links below every tier.

        Links to servers come first, then the links to each higher tier.
        """
        counts = self.counts()
        return [
            self.servers * self.server.nic_ports,
            *(below * tier.parents * tier.cables for below, tier in zip(counts, self.tiers, strict=False)),
        ]

    def oversubscription(self) -> list[Fraction]:
        """Bandwidth down over bandwidth up of a full switch, by tier.

        The top tier has none.
        """
        down: list[Fraction] = [Fraction(self.per_leaf * self.cables_to_leaf * self.host_rate_bps)]
        down += [Fraction(tier.children * tier.cables * tier.rate_bps) for tier in self.tiers]
        up = [tier.parents * tier.cables * tier.rate_bps for tier in self.tiers]
        return [below / above for below, above in zip(down, up, strict=False)]

    def ports(self) -> list[int]:
        """Ports of a switch of every tier, the leaves first."""
        up = [*(tier.parents * tier.cables for tier in self.tiers), 0]
        down = [self.per_leaf * self.cables_to_leaf, *(tier.children * tier.cables for tier in self.tiers)]
        return [below + above for below, above in zip(down, up, strict=True)]

    def notation(self) -> str:
        """The tree in the notation of the literature."""
        rows = (
            [self.per_leaf, *(tier.children for tier in self.tiers)],
            [self.planes, *(tier.parents for tier in self.tiers)],
            [self.cables_to_leaf, *(tier.cables for tier in self.tiers)],
        )
        return f"PGFT({len(self.tiers) + 1}; " + "; ".join(",".join(map(str, row)) for row in rows) + ")"

    def size(self) -> FabricSize:
        """Size of the fabric."""
        used = self.planes * -(-self.servers // self.per_leaf) * self.rails
        return FabricSize(hosts=self.servers, switches=sum(self.counts()), links=sum(self.links()), leaves=used)

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Plane and rail of every NIC port of a server.

        Each has the shape (nic_ports,).
        """
        if self.is_dual_homed:
            port = np.arange(self.server.nic_ports)
            return np.zeros_like(port), port % self.rails
        return ports_by_rail(self.server, rails=self.rails, planes=self.planes)


def pgft_fabric(
    tree: Pgft,
    parts: Parts,
    *,
    name: str,
    has_pods: bool = True,
    extras: Sequence[Extra] = (),
) -> Fabric:
    """Build a tree.

    Parameters
    ----------
    tree : its counts
    parts : devices, delays, loss and corruption of every link; rates are those of ``tree``
    name : of the fabric
    has_pods : whether the fabric tells which pod a server is in
    extras : see `weftwork.spec.fabric.Fabric`

    Raises
    ------
    ConfigError : a switch with fewer ports than links, rates or delays out of range
    """
    host = np.arange(tree.servers)
    counts = tree.counts()
    first = np.cumsum([tree.servers, *counts])  # of every tier, hosts left out
    plane, rail = tree.places()
    pod = host // tree.per_leaf
    leaf_of_port = (plane[None] * tree.pods + pod[:, None]) * tree.rails + rail[None]
    layers = [
        _links(
            np.repeat(host, tree.server.nic_ports),
            first[0] + leaf_of_port.ravel(),
            parts,
            rate_bps=tree.host_rate_bps,
            delay_ps=parts.host_delay_ps,
        )
    ]
    network, place = _leaf_places(tree)
    width = 1  # switches of a group of the tier below
    digits = np.zeros(tree.leaves, np.int64)  # of a switch of the tier below, within its group
    for number, (tier, groups) in enumerate(zip(tree.tiers, tree.groups(), strict=True)):
        below = first[number] + np.arange(counts[number])
        parent = np.repeat(np.arange(tier.parents), tier.cables)
        group = network * groups + place // tier.children
        above = ((group * width + digits) * tier.parents)[:, None] + parent[None]
        layers.append(
            _links(
                np.repeat(below, len(parent)),
                first[number + 1] + above.ravel(),
                parts,
                rate_bps=tier.rate_bps,
                delay_ps=parts.fabric_delay_ps,
            )
        )
        width *= tier.parents
        network, place, digits = np.unravel_index(np.arange(counts[number + 1]), (tree.networks, groups, width))
    words = ["host", tree.leaf_word, *(tier.word for tier in tree.tiers)]
    sizes = [tree.servers, *counts]
    node_pod = None
    if has_pods:
        leaf_pods = np.tile(np.repeat(np.arange(tree.pods), tree.rails), tree.planes)
        node_pod = np.concatenate([pod, leaf_pods, np.full(sum(counts[1:]), -1)])
    return assemble(
        name=name,
        node_names=NodeNames(list(zip(words, sizes, strict=True))),
        node_kind=np.repeat([HOST, *[SWITCH] * len(counts)], sizes),
        node_tier=np.repeat(np.arange(len(sizes)), sizes),
        links=np.concatenate(layers),
        switches=(parts.switch,),
        nics=(parts.nic,),
        servers=(tree.server,),
        node_pod=node_pod,
        extras=extras,
        tree=tree.notation() if tree.is_joined or tree.rails == 1 else f"{tree.rails} x {tree.notation()}",
        caveats=parts.caveats,
        source="fabric",
    )


def _links(
    a: NDArray[np.int64], b: NDArray[np.int64], parts: Parts, *, rate_bps: int, delay_ps: int
) -> NDArray[np.void]:
    return links_between(a, b, rate_bps=rate_bps, delay_ps=delay_ps, loss=parts.loss, corruption=parts.corruption)


def _leaf_places(tree: Pgft) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Network of every leaf, and the leaf's place in it."""
    plane, pod, rail = np.unravel_index(np.arange(tree.leaves), (tree.planes, tree.pods, tree.rails))
    if tree.is_joined:
        return plane, rail * tree.pods + pod if tree.is_rail_major else pod * tree.rails + rail
    return plane * tree.rails + rail, pod
