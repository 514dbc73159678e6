"""Bandwidth and hops of a server by the distance of its peer.

They follow from the counts of the tree's tiers alone, or of a direct network from its measures.

Below one leaf a server has the rate of its ports; beyond, what the ratios of the tiers on the way leave of it. Pairs of
one rail and pairs of different rails differ: rails meet above the leaves, or nowhere but in servers.
Leaves out: collisions of hashed flows, and where ranks sit; a fabric that is at least as good at every distance can
still be slower in a run where its flows collide. A direct network has no bandwidth by distance, since it depends on the
traffic: its profile is the best that any traffic gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.channel_loads import designed_cut, uniform_traffic
from weftwork.topology.pgft import Pgft

__all__ = ["Profile", "direct_profile", "direct_share", "profile_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Bandwidth and hops by distance.

    Attributes
    ----------
    reach : servers within each distance, ascending; the last is all
    same_bps, same_hops : of a server towards a peer of the same rail within that distance
    other_bps : towards another rail; 0 where rails meet in servers alone
    port_bps : of one NIC port, the most that one message gets
    """

    reach: tuple[float, ...]
    same_bps: tuple[float, ...]
    same_hops: tuple[int, ...]
    other_bps: tuple[float, ...]
    port_bps: float

    @property
    def least_bps(self) -> float:
        """Bandwidth to the farthest server of the same rail."""
        return self.same_bps[-1]

    def dominates(self, other: Profile) -> bool:
        """Whether a profile is at least as good at every distance.

        One message counts too.
        """
        if self.port_bps < other.port_bps:
            return False
        for servers in sorted({*self.reach, *other.reach}):
            own, its = self._place(servers), other._place(servers)
            if (
                self.same_bps[own] < other.same_bps[its] * (1 - 1e-9)
                or self.same_hops[own] > other.same_hops[its]
                or self.other_bps[own] < other.other_bps[its] * (1 - 1e-9)
            ):
                return False
        return True

    def _place(self, servers: float) -> int:
        return next(place for place, reach in enumerate(self.reach) if servers <= reach)


def profile_of(tree: Pgft) -> Profile:
    """Bandwidth and hops of a tree by distance.

    Parameters
    ----------
    tree : of one kind of servers

    Examples
    --------
    >>> from weftwork.topology.build import tree_of
    >>> two = profile_of(tree_of(topology="leaf-spine", hosts=96, radix=32, oversubscription=3))
    >>> two.reach, [round(bps / 1e9) for bps in two.same_bps], two.same_hops
    ((24.0, inf), [400, 133], (2, 4))
    """
    whole_bps = float(tree.server.nic_ports * tree.host_rate_bps)
    reach, same = [float(tree.per_leaf)], [whole_bps]
    servers = tree.per_leaf
    share = 1.0
    for tier, ratio in zip(tree.tiers, tree.oversubscription(), strict=True):
        share /= float(ratio)
        servers *= max(1, tier.children // (tree.rails if tree.is_joined and tier is tree.tiers[0] else 1))
        reach.append(float(servers))
        same.append(min(same[-1], whole_bps * share))
    reach[-1] = inf
    hops = tuple(2 * (level + 1) for level in range(len(reach)))
    if tree.rails == 1:
        other = tuple(same)
    elif not tree.is_joined or len(same) == 1:
        other = (0.0,) * len(same)
    else:
        other = (same[1], *same[1:])
    return Profile(
        reach=tuple(reach), same_bps=tuple(same), same_hops=hops, other_bps=other, port_bps=float(tree.host_rate_bps)
    )


def direct_profile(fabric: Fabric, diameter_hops: int) -> Profile:
    """The best bandwidth that a direct network gives a server, and its longest path.

    Servers of one switch have the rate of their ports. Beyond, all links of the switch serve its servers.

    Parameters
    ----------
    fabric : a direct network of one kind of servers
    diameter_hops : links between the farthest NIC ports
    """
    links, kind = fabric.links, fabric.node_kind
    down = (kind[links["a"]] == HOST) | (kind[links["b"]] == HOST)
    count = len(fabric.node_names)
    ends = np.concatenate([links["a"], links["b"]])
    rate = np.concatenate([links["rate_bps"]] * 2).astype(np.float64)
    is_down = np.concatenate([down, down])
    to_hosts = np.bincount(ends[is_down], rate[is_down], minlength=count)
    onwards = np.bincount(ends[~is_down], rate[~is_down], minlength=count)
    homes = (kind != HOST) & (to_hosts > 0)
    share = min(1.0, float((onwards[homes] / to_hosts[homes]).max()))
    server = int(fabric.hosts[0])
    whole_bps, port_bps = float(to_hosts[server]), float(links["rate_bps"][down].max())
    near = max(1.0, float(to_hosts[homes].max()) // whole_bps)
    return Profile(
        reach=(near, inf), same_bps=(whole_bps, whole_bps * share), same_hops=(2, max(diameter_hops, 2)),
        other_bps=(whole_bps, whole_bps * share), port_bps=port_bps,
    )  # fmt: skip


def direct_share(fabric: Fabric) -> float:
    """Share of the bandwidth that a direct network carries: uniform traffic, or across the cut if that is less."""
    shares = [1.0]
    if (uniform := uniform_traffic(fabric)) is not None:
        shares.append(uniform.share)
    if (cut := designed_cut(fabric)) is not None:
        kind, links = fabric.node_kind, fabric.links
        down = (kind[links["a"]] == HOST) | (kind[links["b"]] == HOST)
        shares.append(2 * cut.rate_bps / float(links["rate_bps"][down].sum()))
    return min(shares)
