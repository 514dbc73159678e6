"""Leaf-spine: every leaf is linked to every spine.

A pair has one or several links; any oversubscription is possible.
Source: the two-tier folded Clos as data centres build it, such as Alizadeh and Edsall, Hot Interconnects 2013,
doi:10.1109/HOTI.2013.23. Oversubscription is the bandwidth of a leaf's host ports divided by that of its uplinks.
A server with several NIC ports has all of them on one leaf, or with two homes on two leaves by turns.
Leaves out: leaves of different sizes (except that the last may be filled in part).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import DesignSpace, Findings, Flag, Ground, Parts, Record, Whole, row
from weftwork.spec.scenario.findings import Collected
from weftwork.spec.scenario.topology import full
from weftwork.topology import tree_rows
from weftwork.topology.oversubscription import Split, exact_ratio, most_cables, ratio_text, wanted_ratio
from weftwork.topology.pgft import Pgft, Tier
from weftwork.topology.tree_topology import tree_topology

__all__ = ["TOPOLOGY", "LeafSpineCounts", "leaf_spine", "leaf_spine_counts"]


class Keys(Record):
    """The keys of a leaf-spine fabric: its counts, or their inputs."""

    dual_homed: bool = row(
        "dual_homed",
        Flag(),
        default=False,
        text="Whether the NIC ports of a server alternate between two leaves, so that it survives the loss of a leaf.",
        source="chosen: one leaf for each rack",
    )
    leaves: int | None = row(
        "leaves",
        Whole(low=1, high=65_536, unit="switches"),
        absent="follows from hosts, radix and oversubscription",
        text="Leaf switches; given together with `spines` and `hosts_per_leaf`.",
        source="chosen: derived",
    )
    spines: int | None = row(
        "spines",
        Whole(low=1, high=65_536, unit="switches"),
        absent="follows from hosts, radix and oversubscription",
        text="Spine switches, which join the leaves; given together with `leaves` and `hosts_per_leaf`.",
        source="chosen: derived",
    )
    hosts_per_leaf: int | None = row(
        "hosts_per_leaf",
        Whole(low=1, high=1_024, unit="hosts"),
        absent="as many as the oversubscription allows",
        text="Servers on every leaf.",
        source="chosen: derived",
    )
    links_per_pair: int | None = tree_rows.links_per_pair()
    oversubscription: float | dict[str, float] | None = tree_rows.oversubscription()

    @property
    def homes(self) -> int:
        """Number of leaves that a server is linked to."""
        return 2 if self.dual_homed else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafSpineCounts:
    """The shape of a leaf-spine fabric; ``oversubscription`` is the real ratio."""

    leaves: int
    spines: int
    hosts_per_leaf: int
    links_per_pair: int
    oversubscription: Fraction


def leaf_spine_counts(  # noqa: PLR0913 - the parameters of a shape, all by name
    *,
    hosts: int,
    radix: int,
    oversubscription: float | Fraction | None = None,
    host_rate_bps: int,
    fabric_rate_bps: int,
    hosts_per_leaf: int | None = None,
    ports_per_host: int = 1,
    homes: int = 1,
    gpus_per_host: int = 1,
) -> LeafSpineCounts:
    """Derive a shape from hosts, switch ports and wanted oversubscription.

    At a ratio that is asked for, all leaves get the same number of hosts, the most that divide and have exactly that
    ratio. Without one, a leaf gets as many hosts as its ports allow without blocking, and the last one what is left.
    Then the fewest spines that carry all uplinks are taken, which decides how many links join a pair.

    Parameters
    ----------
    hosts : to be connected
    radix : ports of every switch
    oversubscription : bandwidth down divided by bandwidth up, above 0; by default at most 1, non-blocking
    host_rate_bps, fabric_rate_bps : of the links
    hosts_per_leaf : fixed, instead of as many as fit
    ports_per_host : links from a host to one leaf
    homes : leaves that a host hangs on
    gpus_per_host : for messages

    Raises
    ------
    ConfigError : the ports do not suffice, or no equal leaves have the ratio

    Examples
    --------
    >>> leaf_spine_counts(hosts=1056, radix=64, oversubscription=3, host_rate_bps=1, fabric_rate_bps=1)
    LeafSpineCounts(leaves=22, spines=8, hosts_per_leaf=48, links_per_pair=2, oversubscription=Fraction(3, 1))
    """
    mistakes = [
        Mistake(path=f"fabric.{key}", text=f"found {value}, wanted more than 0")
        for key, value in (("hosts", hosts), ("radix", radix),
                           ("oversubscription", 1 if oversubscription is None else oversubscription),
                           ("link_rate", host_rate_bps), ("fabric_rate", fabric_rate_bps),
                           ("hosts_per_leaf", 1 if hosts_per_leaf is None else hosts_per_leaf))
        if value <= 0
    ]  # fmt: skip
    if mistakes:
        raise ConfigError("fabric", mistakes)
    speed = Fraction(host_rate_bps, fabric_rate_bps)
    speed *= ports_per_host  # of all links of a host to a leaf
    split = Split(hosts=hosts, ports=radix, each=ports_per_host, speed=speed, what="leaves",
                  gpus=gpus_per_host)  # fmt: skip
    if oversubscription is None:
        ratio = Fraction(1)
        down = split.most_at_most(ratio) if hosts_per_leaf is None else hosts_per_leaf
    else:
        ratio = exact_ratio(oversubscription)
        down = split.equal(ratio) if hosts_per_leaf is None else split.equal_of(hosts_per_leaf, ratio)
    uplinks = split.uplinks(down, ratio)
    if not split.fits(down, uplinks):
        ports = down * ports_per_host + uplinks
        text = (
            f"found {down}; with {plural(uplinks, 'uplink')} that makes {plural(ports, 'port')}, wanted at most {radix}"
        )
        raise ConfigError("fabric", [Mistake(path="fabric.hosts_per_leaf", text=text)])
    leaves = -(-hosts // down) * homes
    if leaves > radix:
        text = (
            f"{plural(hosts, 'host needs', 'hosts need')} {plural(leaves, 'leaf', 'leaves')} of {down}, wanted at "
            f"most {radix}, the ports of a spine; "
            "a fat tree of 3 tiers carries more"
        )
        raise ConfigError("fabric", [Mistake(path="fabric.hosts", text=text)])
    per_pair = most_cables(uplinks, leaves, radix)
    return LeafSpineCounts(
        leaves=leaves,
        spines=uplinks // per_pair,
        hosts_per_leaf=down,
        links_per_pair=per_pair,
        oversubscription=down * speed / uplinks,
    )


def leaf_spine(  # noqa: PLR0913 - the parameters of a fabric, all by name
    *,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    host_rate_bps: int,
    fabric_rate_bps: int,
    host_delay_ps: int,
    fabric_delay_ps: int,
    switch: Switch,
    nic: Nic,
    links_per_pair: int = 1,
    hosts: int | None = None,
    loss: float = 0.0,
    corruption: float = 0.0,
    caveats: Mapping[str, Caveat] | None = None,
    server: Server | None = None,
    homes: int = 1,
) -> Fabric:
    """Build a leaf-spine fabric.

    Host i is linked to leaf j = ``i // hosts_per_leaf``, with two homes to 2j and 2j + 1.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf, links_per_pair : the shape; see `leaf_spine_counts` to derive it
    host_rate_bps, host_delay_ps : of the links between hosts and leaves
    fabric_rate_bps, fabric_delay_ps : of the links between leaves and spines
    switch, nic : the devices
    hosts : how many, if the last leaves are not filled; by default ``leaves x hosts_per_leaf``
    loss, corruption : probability per packet, on every link
    caveats : what a user should know about the devices
    server : every host, whose NIC ports go to its leaf; by default a plain one
    homes : leaves that a host hangs on, 1 or 2; its ports take them by turns

    Raises
    ------
    ConfigError : counts below 1, leaves that do not pair, more hosts than ports, more links than the switch has
        ports, rates or delays out of range
    """
    server = Server() if server is None else server
    found = Collected(section="fabric")
    counts = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf, "links_per_pair": links_per_pair}
    for key, value in {**counts, "hosts": 1 if hosts is None else hosts}.items():
        if value < 1:
            found.wrong(key, f"found {value}, wanted at least 1")
    if not found.mistakes and _can_home(server, homes, found):
        _judge(found, leaves=leaves, hosts_per_leaf=hosts_per_leaf, hosts=hosts, homes=homes)
    found.refuse()
    parts = Parts(
        hosts=hosts, ports=0, server=server, rails=0, switch=switch, nic=nic, host_rate_bps=host_rate_bps,
        fabric_rate_bps=fabric_rate_bps, host_delay_ps=host_delay_ps, fabric_delay_ps=fabric_delay_ps, loss=loss,
        corruption=corruption, caveats=dict(caveats or {}),
    )  # fmt: skip
    return TOPOLOGY.build(Keys(dual_homed=homes == 2, **counts), parts)


def _can_home(server: Server, homes: int, found: Findings) -> bool:
    """Whether the NIC ports of a server spread evenly over its leaves."""
    if server.nic_ports % homes == 0:
        return True
    text = (
        f"found true, but '{server.name}' has {plural(server.nic_ports, 'NIC port')}, wanted an"
        f" even number: node: {{model: {server.name}, nic_ports: {2 * server.nic_ports}}}"
    )
    found.wrong("dual_homed", text)
    return False


def _judge(found: Findings, *, leaves: int, hosts_per_leaf: int, hosts: int | None, homes: int) -> int | None:
    """Note unpaired leaves and hosts without a place; return the places.

    None if there are no pairs.
    """
    if leaves % homes:
        text = f"found {leaves}, wanted an even number, since the leaves of dual-homed servers come in pairs"
        found.wrong("leaves", text, str(leaves + 1))
        return None
    places = leaves // homes * hosts_per_leaf
    if hosts is not None and hosts > places:
        text = f"found {hosts:,}, wanted at most {places:,}, leaves {leaves:,} x hosts_per_leaf {hosts_per_leaf:,}"
        found.wrong(found.which("hosts", "gpus"), text + (" / 2" if homes == 2 else ""))
    return places


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if not found.is_sound("link_rate", "fabric_rate", "radix", "hosts", "gpus", "oversubscription"):
        return keys, ground.hosts
    if wanted_ratio(keys.oversubscription, "spine") is not None:
        found.wrong("oversubscription", "found a ratio of 'spine', but nothing is above the spines of a leaf-spine")
        return keys, ground.hosts
    if keys.leaves is None and keys.spines is None:
        return _derived(keys, ground, found), ground.hosts
    missing = [key for key in ("leaves", "spines", "hosts_per_leaf") if getattr(keys, key) is None]
    for key in missing:
        found.wrong(key, "missing: leaves, spines and hosts_per_leaf are given together")
    leaves, spines, per_leaf = keys.leaves, keys.spines, keys.hosts_per_leaf
    if leaves is None or spines is None or per_leaf is None:
        return keys, ground.hosts
    per_pair = keys.links_per_pair or 1
    keys = keys.model_copy(update={"links_per_pair": per_pair})
    if ground.server is None or not _can_home(ground.server, keys.homes, found):
        return keys, ground.hosts
    places = _judge(found, leaves=leaves, hosts_per_leaf=per_leaf, hosts=ground.hosts, homes=keys.homes)
    if places is None:
        return keys, ground.hosts
    down, uplinks = per_leaf * (ground.server.nic_ports // keys.homes), spines * per_pair
    for what, ports in (("leaf", down + uplinks), ("spine", leaves * per_pair)):
        if ground.radix is not None and ports > ground.radix:
            found.wrong("radix", f"found {ground.radix}, but a {what} needs {plural(ports, 'port')}")
            break
    ratio, asked = down * ground.speed / uplinks, wanted_ratio(keys.oversubscription, "leaf")
    if asked is not None and abs(asked - ratio) > ratio / 1000:
        text = (
            f"found {ratio_text(asked)}, wanted {ratio_text(ratio)}, which hosts_per_leaf, spines, links_per_pair and"
            " the rates make; leave it out"
        )
        found.wrong("oversubscription", text)
    if asked is None:
        keys = keys.model_copy(update={"oversubscription": float(ratio)})
    return keys, full(places, "leaves", found) if ground.hosts is None else ground.hosts


def _derived(keys: Keys, ground: Ground, found: Findings) -> Keys:
    """The keys of a shape derived from hosts, ports and oversubscription."""
    needed = "missing: give hosts and radix, or leaves, spines and hosts_per_leaf"
    if ground.hosts is None:
        found.wrong("hosts", needed)
    if not ground.has_ports:
        found.wrong("radix", needed)
    if keys.links_per_pair is not None:
        text = "follows from hosts, radix and oversubscription; give it together with leaves and spines"
        found.wrong("links_per_pair", text)
    ratio = wanted_ratio(keys.oversubscription, "leaf")
    can_home = ground.server is not None and _can_home(ground.server, keys.homes, found)
    if ratio is not None and not Fraction(1, 100) <= ratio <= 1_000:
        text = f"found {float(ratio):g}, wanted from 0.01 to 1000 where the shape follows from it"
        found.wrong("oversubscription", text)
    elif ratio is not None and keys.hosts_per_leaf is not None and can_home and ground.server is not None:
        each = ground.server.nic_ports // keys.homes
        if ground.hosts is not None:
            split = Split(hosts=ground.hosts, ports=0, each=each, speed=ground.speed * each, what="leaves",
                          gpus=ground.server.gpus)  # fmt: skip
            if (unequal := split.unequal(keys.hosts_per_leaf, ratio)) is not None:
                found.wrong("oversubscription", unequal)
    return keys


def _shape(keys: Keys, parts: Parts) -> dict[str, Any]:
    """Counts of the shape, given or derived from hosts and ports."""
    counts: Keys | LeafSpineCounts = keys
    if keys.leaves is None:
        counts = leaf_spine_counts(
            hosts=parts.hosts or 0,
            radix=parts.ports,
            oversubscription=wanted_ratio(keys.oversubscription, "leaf"),
            host_rate_bps=parts.host_rate_bps,
            fabric_rate_bps=parts.fabric_rate_bps,
            hosts_per_leaf=keys.hosts_per_leaf,
            ports_per_host=parts.server.nic_ports // keys.homes,
            homes=keys.homes,
            gpus_per_host=parts.server.gpus,
        )
    return {name: getattr(counts, name) for name in ("leaves", "spines", "hosts_per_leaf", "links_per_pair")}


def _tree(keys: Keys, parts: Parts) -> Pgft:
    shape = _shape(keys, parts)
    leaves, per_leaf = shape["leaves"], shape["hosts_per_leaf"]
    pods = leaves // keys.homes
    return Pgft(
        servers=pods * per_leaf if parts.hosts is None else parts.hosts,
        server=parts.server,
        per_leaf=per_leaf,
        pods=pods,
        rails=keys.homes,
        is_dual_homed=keys.dual_homed,
        tiers=(
            Tier(
                word="spine",
                children=leaves,
                parents=shape["spines"],
                cables=shape["links_per_pair"],
                rate_bps=parts.fabric_rate_bps,
            ),
        ),
        host_rate_bps=parts.host_rate_bps,
    )


def _name(tree: Pgft) -> str:
    return f"leaf-spine, {tree.leaves} x {tree.tiers[0].parents}"


TOPOLOGY: Final = tree_topology(
    keys=Keys,
    resolve=_resolve,
    tree=_tree,
    name=_name,
    design=DesignSpace(ratio_tiers=("leaf",), order=5),
    source="Alizadeh and Edsall, HotI 2013, doi:10.1109/HOTI.2013.23",
    has_pods=False,
)
