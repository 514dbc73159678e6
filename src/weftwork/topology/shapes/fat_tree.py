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

from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import DesignSpace, Findings, Ground, Parts, Record, ServersAndSwitch, Whole, row
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.topology import full
from weftwork.topology.oversubscription import most_cables
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY", "FatTreeCounts", "fat_tree", "fat_tree_counts", "fewest_spines"]


class Keys(Record):
    """The keys of a fat tree."""

    tiers: int = row(
        "tiers",
        Whole(low=2, high=3, unit="tiers"),
        default=3,
        text="Tiers of switches: leaves and spines, or leaves and aggs with cores above them.",
        source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
    )
    spines: int | None = row(
        "spines",
        Whole(low=1, high=65_536, unit="switches"),
        absent="as few as carry all uplinks, with equally many cables between each leaf and each spine",
        text="Spine switches of a tree of two tiers.",
        source="chosen: NVIDIA's tables of DGX SuperPOD take so many",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FatTreeCounts:
    """Counts of a full fat tree; ``switch_links`` join two switches."""

    hosts: int
    switches: int
    switch_links: int


def fat_tree_counts(*, tiers: int, radix: int, ports_per_host: int = 1) -> FatTreeCounts:
    """Closed forms of a full fat tree by radix and ports per host.

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
    spines: int | None = None,
) -> Fabric:
    """Build a fat tree.

    Host i hangs on leaf ``i // ((radix / 2) // NIC ports of a host)``. With fewer hosts than the full tree carries,
    leaves and pods without hosts are left out. Of two tiers, as few spines stay as carry all uplinks with equally many
    cables to each leaf; of three, all cores and all links above a leaf stay.

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
    spines : of a tree of two tiers; by default as above

    Raises
    ------
    ConfigError : odd radix, more hosts than ports, a switch with fewer ports than ``radix``, spines that do not divide
        the uplinks, rates or delays out of range
    """
    server = Server() if server is None else server
    found = Collected(section="fabric")
    _judge(found, tiers=tiers, radix=radix, hosts=hosts, server=server)
    found.refuse()
    parts = Parts(
        hosts=hosts, ports=radix, server=server, rails=0, switch=switch, nic=nic, host_rate_bps=host_rate_bps,
        fabric_rate_bps=fabric_rate_bps, host_delay_ps=host_delay_ps, fabric_delay_ps=fabric_delay_ps, loss=loss,
        corruption=corruption, caveats=dict(caveats or {}),
    )  # fmt: skip
    return TOPOLOGY.build(Keys(tiers=tiers, spines=spines), parts)


def fewest_spines(leaves: int, radix: int) -> int:
    """Spines of a partly filled tree of two tiers.

    They are the fewest that carry all uplinks, with equally many cables to each leaf.

    Examples
    --------
    >>> [fewest_spines(leaves, 64) for leaves in (16, 33, 64)]
    [8, 32, 32]
    """
    half = radix // 2
    return half // most_cables(half, leaves, radix)


def _tree(keys: Keys, parts: Parts) -> Pgft:
    radix = parts.ports
    half = radix // 2
    each = parts.server.nic_ports
    if each > half:
        text, fix = _narrow(radix, each)
        raise ConfigError("fabric", [Mistake(path="fabric.radix", text=text, fix=fix)])
    per_leaf = half // each
    most = fat_tree_counts(tiers=keys.tiers, radix=radix, ports_per_host=each)
    servers = most.hosts if parts.hosts is None else parts.hosts
    leaves = -(-servers // per_leaf)
    rate_bps = parts.fabric_rate_bps
    if keys.tiers == 2:
        spines = fewest_spines(leaves, radix) if keys.spines is None else keys.spines
        if half % spines or leaves * (half // spines) > radix:
            wanted = fewest_spines(leaves, radix)
            text = f"found {spines}, wanted a divisor of {half}, the uplinks of a leaf, of at least {wanted}"
            raise ConfigError("fabric", [Mistake(path="fabric.spines", text=text, fix=str(wanted))])
        tiers = [Tier(word="spine", children=leaves, parents=spines, cables=half // spines, rate_bps=rate_bps)]
    else:
        pods = -(-leaves // half)
        tiers = [
            Tier(word="agg", children=half, parents=half, cables=1, rate_bps=rate_bps),
            Tier(word="core", children=pods, parents=half, cables=1, rate_bps=rate_bps),
        ]
    return Pgft(
        servers=servers, server=parts.server, per_leaf=per_leaf, pods=leaves, tiers=tuple(tiers),
        host_rate_bps=parts.host_rate_bps,
    )  # fmt: skip


def _name(tree: Pgft) -> str:
    radix = 2 * tree.tiers[0].parents * tree.tiers[0].cables
    return f"fat-tree, {plural(len(tree.tiers) + 1, 'tier')}, radix {radix}"


def _judge(found: Findings, *, tiers: int, radix: int, hosts: int | None, server: Server | None) -> int | None:
    """Note mistakes of a fat tree, and return its number of hosts.

    None if the number is unknown or wrong.
    """
    if tiers not in (2, 3):
        found.wrong("tiers", f"found {tiers}, wanted 2 or 3")
    if radix < 2 or radix % 2:
        near = max(2, radix + 1, 0 if server is None else 2 * server.nic_ports)  # a leaf has room for one server
        found.wrong(
            "radix",
            f"found {radix}, wanted an even number such as {near}: half of the ports go down, half up",
            str(near),
        )
    if hosts is not None and hosts < 1:
        found.wrong("hosts", f"found {hosts}, wanted at least 1")
    if server is None or not found.is_sound("tiers", "radix", "hosts"):
        return None
    each = server.nic_ports
    if each > radix // 2:
        found.wrong("radix", *_narrow(radix, each))
        return None
    most = fat_tree_counts(tiers=tiers, radix=radix, ports_per_host=each).hosts
    if hosts is not None and hosts > most:
        key = found.which("hosts", "gpus")
        count, wanted = (hosts, most) if key == "hosts" else (hosts * server.gpus, most * server.gpus)
        ports = "" if each == 1 else f" where a server takes {plural(each, 'port')}"
        text = (
            f"found {count:,}, wanted at most {wanted:,}, the ports of a fat tree of {plural(tiers, 'tier')} and radix"
            f" {radix}{ports}"
        )
        found.wrong(key, text)
    return most


def _narrow(radix: int, each: int) -> tuple[str, str]:
    """What is wrong with a leaf that has no room for one server, and the fix."""
    text = f"found {radix}, but a leaf needs {plural(each, 'port')} down for one server, so wanted at least {2 * each}"
    return text, str(2 * each)


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if not found.is_sound("radix", "hosts", "gpus"):
        return keys, ground.hosts
    if ground.radix is None:
        if not ground.has_ports:
            found.wrong("radix", "missing, wanted an even whole number, the ports of every switch, such as 8")
        return keys, ground.hosts
    if keys.spines is not None and keys.tiers != 2:
        text = "means nothing with three tiers, whose aggs and cores follow from the radix; leave it out"
        found.wrong("spines", text)
    most = _judge(found, tiers=keys.tiers, radix=ground.radix, hosts=ground.hosts, server=ground.server)
    return keys, ground.hosts if ground.hosts is not None or most is None else full(most, "radix", found)


def _shape_for(asked: ServersAndSwitch) -> dict[str, int]:
    """As few tiers as carry the servers: nobody builds cores for servers that leaves and spines join."""
    if asked.radix is None:
        return {"tiers": 2}  # it cannot be built, which is said where it is tried
    held = fat_tree_counts(tiers=2, radix=asked.radix, ports_per_host=asked.ports).hosts
    return {"tiers": 2 if asked.servers <= held else 3}


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    design=DesignSpace(shape=_shape_for, order=4),
    source="Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967",
    has_pods=False,
)
