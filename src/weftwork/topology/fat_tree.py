"""Fat tree of two or three tiers from switches of one radix.

Source: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967, section 3 (three tiers); the two-tier
form is its folded Clos with one switch in place of a pod. With radix k, two tiers carry k^2/2 hosts on 3k/2 switches,
three tiers k^3/4 hosts on 5k^2/4.
A server with several NIC ports has all of them on one leaf, so that a leaf has room for (k/2) // ports of them.
Leaves out: oversubscription (see `weftwork.topology.leaf_spine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.names import NodeNames
from weftwork.topology.assemble import assemble, links_between

__all__ = ["FatTreeCounts", "fat_tree", "fat_tree_counts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FatTreeCounts:
    """How many of everything a full fat tree has; ``switch_links`` join two switches."""

    hosts: int
    switches: int
    switch_links: int


def fat_tree_counts(*, tiers: int, radix: int, ports_per_host: int = 1) -> FatTreeCounts:
    """Closed forms of a full fat tree of hosts with so many ports each.

    Examples
    --------
    >>> fat_tree_counts(tiers=2, radix=64)
    FatTreeCounts(hosts=2048, switches=96, switch_links=2048)
    >>> fat_tree_counts(tiers=3, radix=64)
    FatTreeCounts(hosts=65536, switches=5120, switch_links=131072)
    """
    per_leaf = radix // 2 // ports_per_host
    if tiers == 2:
        return FatTreeCounts(hosts=radix * per_leaf, switches=3 * radix // 2, switch_links=radix**2 // 2)
    return FatTreeCounts(hosts=radix**2 // 2 * per_leaf, switches=5 * radix**2 // 4, switch_links=radix**3 // 2)


def fat_tree(  # noqa: PLR0913 - the parameters of a fabric, all by name
    *,
    tiers: int,
    radix: int,
    host_rate_bps: int,
    fabric_rate_bps: int,
    host_delay_ps: int,
    fabric_delay_ps: int,
    switch: Switch,
    nic: Nic,
    hosts: int | None = None,
    loss: float = 0.0,
    corruption: float = 0.0,
    facts: Mapping[str, str] | None = None,
    server: Server | None = None,
) -> Fabric:
    """Build a fat tree.

    Host i hangs on leaf ``i // ((radix / 2) // NIC ports of a host)``. With fewer hosts than the full tree carries,
    leaves and pods without hosts are left out, while the spines or cores and all links above a leaf stay.

    Parameters
    ----------
    tiers : 2 (leaves, spines) or 3 (leaves and aggs in pods, cores)
    radix : ports of every switch, even
    host_rate_bps, host_delay_ps : of the links between hosts and leaves
    fabric_rate_bps, fabric_delay_ps : of the links between switches
    switch, nic : the devices
    hosts : how many; by default as many as fit
    loss, corruption : probability per packet, on every link
    facts : what a user should know about the devices
    server : every host, whose NIC ports all go to its leaf; by default a plain one

    Raises
    ------
    ConfigError : odd radix, more hosts than ports, a switch with fewer ports than ``radix``, rates or
        delays out of range
    """
    server = Server() if server is None else server
    _refuse(tiers, radix, hosts, server.nic_ports)
    half = radix // 2
    per_leaf = half // server.nic_ports
    full = fat_tree_counts(tiers=tiers, radix=radix, ports_per_host=server.nic_ports)
    host_count = full.hosts if hosts is None else hosts
    leaf_count = -(-host_count // per_leaf)
    host = np.arange(host_count)
    leaf = host_count + np.arange(leaf_count)
    optics = {"rate_bps": fabric_rate_bps, "delay_ps": fabric_delay_ps, "loss": loss, "corruption": corruption}
    layers = [
        links_between(np.repeat(host, server.nic_ports), np.repeat(leaf[host // per_leaf], server.nic_ports),
                      rate_bps=host_rate_bps, delay_ps=host_delay_ps, loss=loss, corruption=corruption),
    ]  # fmt: skip
    if tiers == 2:
        spine = host_count + leaf_count + np.arange(half)
        layers.append(links_between(np.repeat(leaf, half), np.tile(spine, leaf_count), **optics))
        names = [("host", host_count), ("leaf", leaf_count), ("spine", half)]
    else:
        pod_count = -(-leaf_count // half)
        agg = host_count + leaf_count + np.arange(pod_count * half)
        core = agg[-1] + 1 + np.arange(half * half)
        pod_aggs = agg.reshape(pod_count, half)
        layers.append(links_between(np.repeat(leaf, half), pod_aggs[np.arange(leaf_count) // half].ravel(), **optics))
        # aggregation switch j of every pod reaches the cores of group j
        layers.append(links_between(np.repeat(agg, half), np.tile(core, pod_count), **optics))
        names = [("host", host_count), ("leaf", leaf_count), ("agg", len(agg)), ("core", len(core))]
    return assemble(
        name=f"fat-tree, {tiers} tiers, radix {radix}",
        node_names=NodeNames(names),
        node_kind=np.repeat([HOST, *[SWITCH] * tiers], [count for _, count in names]),
        node_tier=np.repeat(np.arange(tiers + 1), [count for _, count in names]),
        links=np.concatenate(layers),
        switches=(switch,),
        nics=(nic,),
        servers=(server,),
        facts=facts,
        source="fabric",
    )


def _refuse(tiers: int, radix: int, hosts: int | None, ports: int) -> None:
    mistakes: list[Mistake] = []
    if tiers not in (2, 3):
        mistakes.append(Mistake(path="fabric.tiers", text=f"found {tiers}, wanted 2 or 3"))
    if radix < 2 or radix % 2:
        fix = str(radix + 1) if radix > 0 else None
        text = f"found {radix}, wanted an even number: half of the ports go down, half up"
        mistakes.append(Mistake(path="fabric.radix", text=text, fix=fix))
    if hosts is not None and hosts < 1:
        mistakes.append(Mistake(path="fabric.hosts", text=f"found {hosts}, wanted at least 1"))
    if not mistakes and ports > radix // 2:
        text = f"found {radix}, but a leaf needs {ports} ports down for one server, so wanted at least {2 * ports}"
        mistakes.append(Mistake(path="fabric.radix", text=text, fix=str(2 * ports)))
    full = 0 if mistakes else fat_tree_counts(tiers=tiers, radix=radix, ports_per_host=ports).hosts
    if not mistakes and hosts is not None and hosts > full:
        text = f"found {hosts:,}, wanted at most {full:,}, the ports of {tiers} tiers of radix {radix}"
        mistakes.append(Mistake(path="fabric.hosts", text=text))
    if mistakes:
        raise ConfigError("fabric", mistakes)
