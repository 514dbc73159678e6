"""Compute the most servers of a tree, in closed form.

The inputs are ports, tiers, ratio, rails and planes. A switch of tier l has d_l ports down and u_l up. A switch of the
top tier t has all its R ports down, and needs one for each group below it. So a network has at most R d_1 d_2 ..
d_(t-1) endpoints, which is 2(k/2)^t without blocking.
Source: Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, doi:10.1145/1402958.1402967, section 3, for three tiers; derived
for others from the same count of ports. One cable between two switches makes the widest tree.
Leaves out: fabrics that are no trees; what a given fabric is of all this (`weftwork.topology.largest`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.hardware import catalogue
from weftwork.topology.oversubscription import ratio_text

__all__ = [
    "EndByRadix", "SwitchPorts", "TreeEnd", "TreeLimit", "best_split", "catalogue_ports", "ends_by_radix",
    "larger_switches", "tree_limit", "widest_tree",
]  # fmt: skip

TOLERANCE: Final = Fraction(1, 1000)  # chosen: as the generators take a ratio, `weftwork.topology.oversubscription`
NIC_RATES_BPS: Final = (200_000_000_000, 400_000_000_000, 800_000_000_000)  # chosen: NIC ports of training servers


@dataclass(frozen=True, kw_only=True, slots=True)
class SwitchPorts:
    """Numbers and rates of a switch's ports.

    Attributes
    ----------
    ports : of any rate; 0: any number
    capacity_bps : of all links together, one way; 0: any
    most_ports : however slow they are; 0: as many as splitting makes
    """

    ports: int
    capacity_bps: int = 0
    most_ports: int = 0

    def at(self, rate_bps: int) -> int:
        """Number of ports at a single rate; 0: any number.

        Examples
        --------
        >>> SwitchPorts(ports=256, capacity_bps=51_200).at(400)
        128
        """
        if not self.ports or not self.capacity_bps:
            return self.ports
        return min(self.ports, self.capacity_bps // rate_bps)

    def split(self, parts: int) -> SwitchPorts:
        """The switch with each port split into parts of equal rate.

        Examples
        --------
        >>> SwitchPorts(ports=64, capacity_bps=51_200, most_ports=256).split(2).ports
        128
        """
        ports = self.ports * parts
        return replace(self, ports=min(ports, self.most_ports) if self.most_ports else ports)

    def fits(self, down: int, down_bps: int, up: int, up_bps: int) -> bool:
        """Whether the switch has these ports down and up, at these rates."""
        if self.ports and down + up > self.ports:
            return False
        return not self.capacity_bps or down * down_bps + up * up_bps <= self.capacity_bps


def best_split(
    switch: SwitchPorts, *, ratio: Fraction, down_bps: int, up_bps: int, each: int = 1
) -> tuple[int, int] | None:
    """Split a switch's ports between down and up.

    As many go down as keep a ratio of bandwidths. A split that has the ratio within 0.1 % comes first, as in the
    generators; else the most ports down at a lower one.

    Parameters
    ----------
    switch : with a number of ports
    ratio : bandwidth down divided by bandwidth up
    down_bps, up_bps : rates of a link down and of one up
    each : ports down come in multiples of this

    Returns
    -------
    ports down and ports up; None where not even ``each`` ports down fit

    Examples
    --------
    >>> best_split(SwitchPorts(ports=64), ratio=Fraction(3), down_bps=1, up_bps=1)
    (48, 16)
    >>> hpn = SwitchPorts(ports=256, capacity_bps=51_200)  # 128 x 200 Gb/s down, 60 x 400 Gb/s up
    >>> best_split(hpn, ratio=Fraction(16, 15), down_bps=200, up_bps=400)
    (128, 60)
    """
    lower: tuple[int, int] | None = None
    uplinks = Fraction(down_bps, up_bps) / ratio  # for a port down
    most = int((switch.ports + Fraction(1, 2)) / (1 + uplinks))  # rounding saves half a port at the most
    for down in range(most // each * each, 0, -each):
        exact = down * Fraction(down_bps, up_bps) / ratio
        near = max(1, round(exact))
        has = abs(down * Fraction(down_bps, near * up_bps) - ratio) <= ratio * TOLERANCE
        if has and switch.fits(down, down_bps, near, up_bps):
            return down, near
        up = -(-exact.numerator // exact.denominator)
        if lower is None and switch.fits(down, down_bps, up, up_bps):
            lower = (down, up)
    return lower


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEnd:
    """A tree with all the ports it can have.

    Attributes
    ----------
    down : ports down of a switch of every tier, the leaves first; of the top tier all ports
    up : ports up of a switch of every tier but the top
    each : ports of a server on each of its leaves
    spread : of every tier but the top, its groups that one server hangs on below a group of the next tier; a group of
        leaves is a leaf, of others the switches that share what is below them. Joined rails: the rails, then ones
    networks : separate ones that a server has ports in: planes, times the rails where those are not joined
    cables : of every tier but the leaves, links that join a switch with each group below it; empty: one everywhere
    """

    down: tuple[int, ...]
    up: tuple[int, ...]
    spread: tuple[int, ...]
    each: int = 1
    networks: int = 1
    cables: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeLimit:
    """Numbers of parts of a full tree, all networks together.

    Attributes
    ----------
    servers : hosts
    groups : groups of every tier in one network; of leaves the leaves
    switches_by_tier : the leaves first
    host_links, switch_links : switch links join two switches
    longest_path_switches : switches between the two servers that are farthest apart, 2t - 1
    """

    servers: int
    groups: tuple[int, ...]
    switches_by_tier: tuple[int, ...]
    host_links: int
    switch_links: int
    longest_path_switches: int

    @property
    def switches(self) -> int:
        """Switches of all tiers."""
        return sum(self.switches_by_tier)

    @property
    def links(self) -> int:
        """Links to servers and between switches."""
        return self.host_links + self.switch_links


def tree_limit(tree: TreeEnd) -> TreeLimit:
    """Count the servers, switches and links of a full tree.

    Parameters
    ----------
    tree : whose ports up divide by its cables

    Examples
    --------
    >>> hpn = TreeEnd(down=(128, 120), up=(60,), spread=(8,), networks=2)  # 8 GPUs a server, 15 segments of 128 servers
    >>> full = tree_limit(hpn)
    >>> 8 * full.servers, full.switches_by_tier, full.switch_links
    (15360, (240, 120), 14400)
    """
    tiers = len(tree.down)
    cables = tree.cables or (1,) * (tiers - 1)
    children = [down // cable for down, cable in zip(tree.down[1:], cables, strict=True)]
    parents = [up // cable for up, cable in zip(tree.up, cables, strict=True)]
    slots = [groups // wide for groups, wide in zip(children, tree.spread, strict=True)]  # for the groups of a server
    per_leaf = tree.down[0] // tree.each
    groups = [1]
    for free, wide in zip(reversed(slots), reversed(tree.spread), strict=True):
        groups.insert(0, groups[0] * free * wide)
    widths = [prod(parents[:tier]) for tier in range(tiers)]  # switches of a group
    switches = [tree.networks * count * width for count, width in zip(groups, widths, strict=True)]
    servers = per_leaf * prod(slots)
    return TreeLimit(
        servers=servers,
        groups=tuple(groups),
        switches_by_tier=tuple(switches),
        host_links=tree.networks * servers * tree.each * prod(tree.spread),
        switch_links=sum(count * up for count, up in zip(switches, tree.up, strict=False)),
        longest_path_switches=2 * tiers - 1,
    )


def widest_tree(radix: int, tiers: int, *, ratio: Fraction = Fraction(1)) -> TreeEnd:
    """The widest tree of single-port servers, with switches of one radix.

    Parameters
    ----------
    radix : ports k of every switch, all of one rate
    tiers : t, from 1
    ratio : bandwidth down divided by up of the leaves, or less where no split has it; all others do not block

    Raises
    ------
    ConfigError : a leaf has too few ports for the ratio

    Examples
    --------
    >>> [tree_limit(widest_tree(64, tiers)).servers for tiers in (1, 2, 3, 4)]
    [64, 2048, 65536, 2097152]
    >>> leaf_spine = tree_limit(widest_tree(64, 2, ratio=Fraction(3)))
    >>> leaf_spine.servers, leaf_spine.switches_by_tier
    (3072, (64, 16))
    """
    ports = SwitchPorts(ports=radix)
    wanted = [ratio, *[Fraction(1)] * tiers][: tiers - 1]
    splits = [best_split(ports, ratio=one, down_bps=1, up_bps=1) for one in wanted]
    found = [split for split in splits if split is not None]
    if len(found) < len(splits):
        text = f"found {ratio_text(ratio)}, which no split of {plural(radix, 'port')} has"
        raise ConfigError("fabric", [Mistake(path="fabric.oversubscription", text=text)])
    down, up = tuple(one for one, _ in found), tuple(one for _, one in found)
    return TreeEnd(down=(*down, radix), up=up, spread=(1,) * (tiers - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class EndByRadix:
    """Largest trees of switches with a given number of ports.

    Attributes
    ----------
    radix : ports of a switch
    switches : names of the catalogue and the fastest rate in bit/s at which each has these ports
    two_tiers, three_tiers : endpoints, without blocking
    """

    radix: int
    switches: dict[str, int]
    two_tiers: int
    three_tiers: int


def ends_by_radix() -> tuple[EndByRadix, ...]:
    """Largest trees of catalogue switches, at ports of 200 to 800 Gb/s.

    The rates are those of NIC ports.

    Examples
    --------
    >>> [(row.radix, row.two_tiers, row.three_tiers) for row in ends_by_radix()][:2]
    [(32, 512, 8192), (64, 2048, 65536)]
    """
    found: dict[int, dict[str, int]] = {}
    for rate in NIC_RATES_BPS:  # ascending, so that the fastest stays
        for name, ports in catalogue_ports(rate).items():
            found.setdefault(ports, {})[name] = rate
    return tuple(
        EndByRadix(
            radix=radix,
            switches=found[radix],
            two_tiers=tree_limit(widest_tree(radix, 2)).servers,
            three_tiers=tree_limit(widest_tree(radix, 3)).servers,
        )
        for radix in sorted(found)
    )


def catalogue_ports(rate_bps: int, *, fastest_bps: int = 0) -> dict[str, int]:
    """Ports of every switch of the catalogue that has ports of a rate.

    Parameters
    ----------
    rate_bps : of the ports
    fastest_bps : that one of its ports must have as well; by default ``rate_bps``

    Examples
    --------
    >>> catalogue_ports(800_000_000_000)["quantum-x800"]
    144
    """
    needed = max(rate_bps, fastest_bps)
    fast = [
        name
        for name, row in catalogue.SWITCHES.items()
        if "capacity_bps" in row.figures and int(row.value("port_rate_bps")) >= needed
    ]
    return {name: catalogue.ports_at(name, rate_bps) for name in fast}


def larger_switches(ports: int, rate_bps: int, *, fastest_bps: int = 0) -> tuple[int, tuple[str, ...]] | None:
    """The next larger number of ports at a rate, and its switches.

    The switches are those of the catalogue.

    Parameters
    ----------
    ports : that are too few
    rate_bps, fastest_bps : see `catalogue_ports`

    Examples
    --------
    >>> larger_switches(128, 800_000_000_000)
    (144, ('quantum-x800',))
    """
    found = catalogue_ports(rate_bps, fastest_bps=fastest_bps)
    larger = {name: count for name, count in found.items() if count > ports}
    if not larger:
        return None
    fewest = min(larger.values())
    return fewest, tuple(name for name, count in larger.items() if count == fewest)
