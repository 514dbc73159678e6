"""Fat tree of two or three tiers from switches of one radix.

Source: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967, section 3 (three tiers); the two-tier
form is its folded Clos with one switch in place of a pod. With radix k, two tiers carry k^2/2 hosts on 3k/2 switches,
three tiers k^3/4 hosts on 5k^2/4.
A server with several NIC ports has all of them on one leaf, so that a leaf has room for (k/2) // ports of them.
Leaves out: oversubscription (see `weftwork.topology.shapes.leaf_spine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from weftwork.base.caveat import Caveat
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.plug_in import Findings, Ground, Parts, Record, Topology, Whole, row
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.topology import FabricSize, full
from weftwork.topology.assemble import assemble, links_between

__all__ = ["TOPOLOGY", "FatTreeCounts", "fat_tree", "fat_tree_counts"]


class Keys(Record):
    """The keys of a fat tree."""

    tiers: int = row(
        "tiers",
        Whole(low=2, high=3, unit="tiers"),
        default=3,
        text="Tiers of switches: leaves and spines, or leaves and aggs with cores above them.",
        source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
    )


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
    caveats: Mapping[str, Caveat] | None = None,
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
    caveats : what a user should know about the devices
    server : every host, whose NIC ports all go to its leaf; by default a plain one

    Raises
    ------
    ConfigError : odd radix, more hosts than ports, a switch with fewer ports than ``radix``, rates or
        delays out of range
    """
    server = Server() if server is None else server
    found = Collected(section="fabric")
    _judge(found, tiers=tiers, radix=radix, hosts=hosts, server=server)
    found.refuse()
    half = radix // 2
    per_leaf = half // server.nic_ports
    most = fat_tree_counts(tiers=tiers, radix=radix, ports_per_host=server.nic_ports)
    host_count = most.hosts if hosts is None else hosts
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
        caveats=caveats,
        source="fabric",
    )


def _judge(found: Findings, *, tiers: int, radix: int, hosts: int | None, server: Server | None) -> int | None:
    """Note what is no fat tree; the hosts that it carries, or None where that is not known or wrong."""
    if tiers not in (2, 3):
        found.wrong("tiers", f"found {tiers}, wanted 2 or 3")
    if radix < 2 or radix % 2:
        near = max(2, radix + 1)
        found.wrong("radix", f"found {radix}, wanted an even number such as {near}: half of the ports go down, half up")
    if hosts is not None and hosts < 1:
        found.wrong("hosts", f"found {hosts}, wanted at least 1")
    if server is None or not found.is_sound("tiers", "radix", "hosts"):
        return None
    each = server.nic_ports
    if each > radix // 2:
        text = f"found {radix}, but a leaf needs {each} ports down for one server, so wanted at least {2 * each}"
        found.wrong("radix", text, str(2 * each))
        return None
    most = fat_tree_counts(tiers=tiers, radix=radix, ports_per_host=each).hosts
    if hosts is not None and hosts > most:
        key = found.which("hosts", "gpus")
        count, wanted = (hosts, most) if key == "hosts" else (hosts * server.gpus, most * server.gpus)
        ports = "" if each == 1 else f" where a server takes {each} ports"
        text = (
            f"found {count:,}, wanted at most {wanted:,}, the ports of a fat tree of {tiers} tiers and radix"
            f" {radix}{ports}"
        )
        found.wrong(key, text)
    return most


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if not found.is_sound("radix", "hosts", "gpus"):
        return keys, ground.hosts
    if ground.radix is None:
        if not ground.has_ports:
            found.wrong("radix", "missing, wanted an even whole number, the ports of every switch, such as 8")
        return keys, ground.hosts
    most = _judge(found, tiers=keys.tiers, radix=ground.radix, hosts=ground.hosts, server=ground.server)
    return keys, ground.hosts if ground.hosts is not None or most is None else full(most, "radix", found)


def _build(keys: Keys, parts: Parts) -> Fabric:
    return fat_tree(tiers=keys.tiers, radix=parts.ports, hosts=parts.hosts, **parts.common())


def _size(keys: Keys, parts: Parts) -> FabricSize:
    each, half = parts.server.nic_ports, parts.ports // 2
    most = fat_tree_counts(tiers=keys.tiers, radix=parts.ports, ports_per_host=each)
    hosts = most.hosts if parts.hosts is None else parts.hosts
    leaves = -(-hosts // max(1, half // each))
    if keys.tiers == 2:
        return FabricSize(hosts=hosts, switches=leaves + half, links=hosts * each + leaves * half, leaves=leaves)
    aggs = -(-leaves // half) * half
    links = hosts * each + leaves * half + aggs * half
    return FabricSize(hosts=hosts, switches=leaves + aggs + half * half, links=links, leaves=leaves)


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
)
