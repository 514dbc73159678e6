"""Leaf and spine: every leaf linked to every spine, by one or several links, with any oversubscription.

Source: the two-tier folded Clos as data centres build it, such as Alizadeh and Edsall, Hot Interconnects 2013,
doi:10.1109/HOTI.2013.23. Oversubscription is the bandwidth of a leaf's host ports divided by that of its uplinks.
A server with several NIC ports has all of them on one leaf, or with two homes on two leaves by turns.
Leaves out: leaves of different sizes (except that the last may be filled in part).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.names import NodeNames
from weftwork.topology.assemble import assemble, links_between

__all__ = ["LeafSpineCounts", "leaf_spine", "leaf_spine_counts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeafSpineCounts:
    """The shape of a leaf-spine fabric; ``oversubscription`` is what the shape really has."""

    leaves: int
    spines: int
    hosts_per_leaf: int
    links_per_pair: int
    oversubscription: Fraction


def leaf_spine_counts(
    *,
    hosts: int,
    radix: int,
    oversubscription: float | Fraction,
    host_rate_bps: int,
    fabric_rate_bps: int,
    hosts_per_leaf: int | None = None,
    ports_per_host: int = 1,
    homes: int = 1,
) -> LeafSpineCounts:
    """Derive a shape from the number of hosts, the ports of a switch and the wanted oversubscription.

    A leaf gets as many hosts as its ports allow at exactly the wanted ratio. Where no split of the ports has that
    ratio, it is the largest split below it. Then the fewest spines that carry all uplinks are taken, which
    decides how many links join a pair.

    Parameters
    ----------
    hosts : to be connected
    radix : ports of every switch
    oversubscription : bandwidth down divided by bandwidth up, above 0; 1 is non-blocking
    host_rate_bps, fabric_rate_bps : of the links
    hosts_per_leaf : fixed, instead of as many as fit
    ports_per_host : links from a host to one leaf
    homes : leaves that a host hangs on

    Raises
    ------
    ConfigError : the ports do not suffice

    Examples
    --------
    >>> leaf_spine_counts(hosts=1024, radix=64, oversubscription=3, host_rate_bps=1, fabric_rate_bps=1)
    LeafSpineCounts(leaves=22, spines=8, hosts_per_leaf=48, links_per_pair=2, oversubscription=Fraction(3, 1))
    """
    mistakes = [
        Mistake(path=f"fabric.{key}", text=f"found {value}, wanted more than 0")
        for key, value in (("hosts", hosts), ("radix", radix), ("oversubscription", oversubscription),
                           ("link_rate", host_rate_bps), ("fabric_rate", fabric_rate_bps),
                           ("hosts_per_leaf", 1 if hosts_per_leaf is None else hosts_per_leaf))
        if value <= 0
    ]  # fmt: skip
    if mistakes:
        raise ConfigError("fabric", mistakes)
    ratio = Fraction(oversubscription).limit_denominator(1000)  # 1.1 means 11/10, not its binary neighbour
    speed = Fraction(host_rate_bps, fabric_rate_bps)
    speed *= ports_per_host  # of all links of a host to a leaf
    down = _hosts_per_leaf(radix, ratio, speed, hosts_per_leaf, ports_per_host)
    uplinks = -(-down * speed // ratio)
    leaves = -(-hosts // down) * homes
    if leaves > radix:
        text = (
            f"{hosts:,} hosts need {leaves:,} leaves of {down}, wanted at most {radix}, the ports of a spine; "
            "a fat tree of 3 tiers carries more"
        )
        raise ConfigError("fabric", [Mistake(path="fabric.hosts", text=text)])
    per_pair = max(m for m in range(1, uplinks + 1) if uplinks % m == 0 and leaves * m <= radix)
    return LeafSpineCounts(
        leaves=leaves,
        spines=uplinks // per_pair,
        hosts_per_leaf=down,
        links_per_pair=per_pair,
        oversubscription=down * speed / uplinks,
    )


def _hosts_per_leaf(radix: int, ratio: Fraction, speed: Fraction, wanted: int | None, each: int) -> int:
    """Hosts of a leaf, with so many ports each: the most at exactly the ratio, else the most at no more than it."""
    fitting = [down for down in range(1, radix) if down * each - (-down * speed // ratio) <= radix]
    if wanted is not None:
        if wanted not in fitting:
            uplinks = -(-wanted * speed // ratio)
            ports = wanted * each + uplinks
            text = f"found {wanted}; with {uplinks} uplinks that makes {ports} ports, wanted at most {radix}"
            raise ConfigError("fabric", [Mistake(path="fabric.hosts_per_leaf", text=text)])
        return wanted
    if not fitting:
        text = f"found {float(ratio):g}: one host and its uplinks need more than the {radix} ports of a leaf"
        raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
    exact = [down for down in fitting if (down * speed / ratio).denominator == 1]
    return max(exact or fitting)


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
    facts: Mapping[str, str] | None = None,
    server: Server | None = None,
    homes: int = 1,
) -> Fabric:
    """Build a leaf-spine fabric. Host i hangs on leaf j = ``i // hosts_per_leaf``, with two homes on 2j and 2j + 1.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf, links_per_pair : the shape; see `leaf_spine_counts` to derive it
    host_rate_bps, host_delay_ps : of the links between hosts and leaves
    fabric_rate_bps, fabric_delay_ps : of the links between leaves and spines
    switch, nic : the devices
    hosts : how many, if the last leaves are not filled; by default ``leaves x hosts_per_leaf``
    loss, corruption : probability per packet, on every link
    facts : what a user should know about the devices
    server : every host, whose NIC ports go to its leaf; by default a plain one
    homes : leaves that a host hangs on, 1 or 2; its ports take them by turns

    Raises
    ------
    ConfigError : counts below 1, leaves that do not pair, more hosts than ports, more links than the switch has
        ports, rates or delays out of range
    """
    mistakes = [
        Mistake(path=f"fabric.{key}", text=f"found {value}, wanted at least 1")
        for key, value in (("leaves", leaves), ("spines", spines), ("hosts_per_leaf", hosts_per_leaf),
                           ("links_per_pair", links_per_pair), ("hosts", 1 if hosts is None else hosts))
        if value < 1
    ]  # fmt: skip
    server = Server() if server is None else server
    if not mistakes and (leaves % homes or server.nic_ports % homes):
        text = f"found true, but {leaves} leaves and {server.nic_ports} NIC ports of a server are not both even"
        mistakes.append(Mistake(path="fabric.dual_homed", text=text))
    places = leaves // homes * hosts_per_leaf
    if not mistakes and hosts is not None and hosts > places:
        text = f"found {hosts:,}, wanted at most {places:,} = {leaves // homes} leaves x {hosts_per_leaf} servers"
        mistakes.append(Mistake(path="fabric.hosts", text=text))
    if mistakes:
        raise ConfigError("fabric", mistakes)
    host_count = places if hosts is None else hosts
    host = np.arange(host_count)
    leaf = host_count + np.arange(leaves)
    spine = host_count + leaves + np.arange(spines)
    per_leaf = np.repeat(spine, links_per_pair)
    home = host[:, None] // hosts_per_leaf * homes + np.arange(server.nic_ports)[None] % homes
    links = np.concatenate(
        [
            links_between(np.repeat(host, server.nic_ports), leaf[home.ravel()], rate_bps=host_rate_bps,
                          delay_ps=host_delay_ps, loss=loss, corruption=corruption),
            links_between(np.repeat(leaf, len(per_leaf)), np.tile(per_leaf, leaves), rate_bps=fabric_rate_bps,
                          delay_ps=fabric_delay_ps, loss=loss, corruption=corruption),
        ]
    )  # fmt: skip
    names = (("host", host_count), ("leaf", leaves), ("spine", spines))
    return assemble(
        name=f"leaf-spine, {leaves} x {spines}",
        node_names=NodeNames(names),
        node_kind=np.repeat([HOST, SWITCH, SWITCH], [count for _, count in names]),
        node_tier=np.repeat([0, 1, 2], [count for _, count in names]),
        links=links,
        switches=(switch,),
        nics=(nic,),
        servers=(server,),
        facts=facts,
        source="fabric",
    )
