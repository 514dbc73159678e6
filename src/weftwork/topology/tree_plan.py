"""Recognise the tree of a fabric: switches, rates and ratios by tier.

The attachment of its servers belongs to it. The fabric is measured, whoever made it. In a tree links join neighbouring
tiers alone, and every switch reaches, going down, all leaves of its group: of those that hang together by the switches
of its tier and of the tiers below. Then a switch needs a port for each group below it, which is what ends a tree.
Source: derived from the parallel-ports generalised fat trees of Zahavi, J. Parallel Distrib. Comput. 2012.
Leaves out: fabrics whose switches, links or servers differ within a tier; they are refused with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weftwork.base.errors import WeftworkError
from weftwork.hardware import catalogue
from weftwork.spec.device import Switch
from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.connected import connected_parts
from weftwork.topology.limits import SwitchPorts, TreeEnd, best_split, tree_limit

__all__ = ["EndlessTreeError", "NoTreeError", "TreePlan", "switch_ports", "tree_plan"]


class NoTreeError(WeftworkError):
    """The fabric is no uniform tree, so its largest size is unknown.

    The text says why.
    """


class EndlessTreeError(NoTreeError):
    """The switches of a tree have unlimited ports, so the tree has no largest size."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreePlan:
    """The properties that decide how large a tree can be.

    Attributes
    ----------
    switches : of every tier, the leaves first
    rates_bps : of the links below every tier; those to servers first
    ratios : bandwidth down over bandwidth up of every tier but the top
    each, spread, networks : see `weftwork.topology.limits.TreeEnd`
    gpus : of a server
    today : the tree with its uplinks and cables as they are, and all ports of the top tier in use
    part_filled : tiers whose only group is not full; they count as filled, as far as they do not block
    """

    switches: tuple[SwitchPorts, ...]
    rates_bps: tuple[int, ...]
    ratios: tuple[Fraction, ...]
    each: int
    spread: tuple[int, ...]
    networks: int
    gpus: int
    today: TreeEnd
    part_filled: tuple[int, ...] = ()

    def end(self) -> TreeEnd | None:
        """The full tree of this kind.

        None if the ports do not suffice for one server.
        """
        rates = self.rates_bps
        splits = [
            best_split(self.switches[tier], ratio=ratio, down_bps=rates[tier], up_bps=rates[tier + 1],
                       each=self.each if tier == 0 else 1)
            for tier, ratio in enumerate(self.ratios)
        ]  # fmt: skip
        found = [split for split in splits if split is not None]
        if len(found) < len(splits):
            return None
        tree = TreeEnd(
            down=(*(down for down, _ in found), self.switches[-1].at(rates[-1])),
            up=tuple(up for _, up in found),
            spread=self.spread,
            each=self.each,
            networks=self.networks,
        )
        return tree if tree_limit(tree).servers else None


def switch_ports(switch: Switch) -> SwitchPorts:
    """The ports of a switch, with its capacity if the catalogue knows it."""
    row = catalogue.SWITCHES.get(switch.name)
    if row is None or "capacity_bps" not in row.figures:
        return SwitchPorts(ports=switch.radix)
    most = catalogue.max_ports(switch.name)
    return SwitchPorts(ports=switch.radix, capacity_bps=int(row.value("capacity_bps")), most_ports=most)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Levels:
    """A fabric by tiers.

    ``low`` and ``high`` are the ends of every link, ``groups`` is one array of nodes by tier.
    """

    tier: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    top: int
    groups: tuple[NDArray[np.int64], ...] = ()


def tree_plan(fabric: Fabric) -> TreePlan:
    """Read the properties that decide how large a fabric can grow.

    Parameters
    ----------
    fabric : generated or from a file

    Raises
    ------
    NoTreeError : it is no tree of one kind
    EndlessTreeError : its switches have any number of ports
    """
    levels = _levels(fabric)
    switches = _switches(fabric, levels)
    rates = _rates(fabric, levels)
    uplinks = _uplinks(levels)
    levels = _grouped(fabric, levels)
    each, spread, networks = _hung(levels)
    down = np.bincount(levels.high, minlength=len(levels.tier))
    ratios, part_filled, below = [], [], []
    for place, up in enumerate(uplinks):
        down_bps, up_bps = rates[place], rates[place + 1]
        most = int(down[levels.tier == place + 1].max())
        ratio = Fraction(most * down_bps, up * up_bps)
        groups = len(np.unique(levels.groups[place][levels.tier == place + 1]))
        is_alone = groups == networks * int(np.prod(spread[place:]))  # one server hangs on all of them
        if is_alone and ratio < 1:
            filled = _filled(switches[place], most, up, down_bps, up_bps)
            if filled > most:
                part_filled.append(place + 1)
                most, ratio = filled, Fraction(filled * down_bps, up * up_bps)
        below.append(most)
        ratios.append(ratio)
    return TreePlan(
        switches=switches,
        rates_bps=rates,
        ratios=tuple(ratios),
        each=each,
        spread=spread,
        networks=networks,
        gpus=_gpus(fabric),
        today=TreeEnd(
            down=(*below, switches[-1].at(rates[-1])),
            up=uplinks,
            spread=spread,
            each=each,
            networks=networks,
            cables=_cables(levels),
        ),
        part_filled=tuple(part_filled),
    )


def _levels(fabric: Fabric) -> _Levels:
    """Tiers and links; links join neighbouring tiers."""
    tier = fabric.node_tier.astype(np.int64)
    is_host = fabric.node_kind == HOST
    if not is_host.any() or is_host.all():
        message = "it has no switches" if is_host.any() else "it has no hosts"
        raise NoTreeError(message)
    if (is_host != (tier == 0)).any():
        message = "its tiers do not begin with the hosts"
        raise NoTreeError(message)
    a, b = fabric.links["a"].astype(np.int64), fabric.links["b"].astype(np.int64)
    span = np.abs(tier[a] - tier[b])
    if (span == 0).any():
        message = "links join nodes of one tier"
        raise NoTreeError(message)
    if (span > 1).any():
        message = "links pass over a tier"
        raise NoTreeError(message)
    is_a_lower = tier[a] < tier[b]
    return _Levels(tier=tier, low=np.where(is_a_lower, a, b), high=np.where(is_a_lower, b, a), top=int(tier.max()))


def _switches(fabric: Fabric, levels: _Levels) -> tuple[SwitchPorts, ...]:
    """The one kind of switch of every tier."""
    kinds = [switch_ports(switch) for switch in fabric.switches]
    found = []
    for tier in range(1, levels.top + 1):
        here = {kinds[device] for device in np.unique(fabric.node_device[levels.tier == tier]).tolist()}
        if any(not kind.ports for kind in here):
            first = int(np.flatnonzero(levels.tier == tier)[0])
            name = fabric.switches[int(fabric.node_device[first])].name
            message = f"{fabric.node_names[first]} ('{name}') has any number of ports"
            raise EndlessTreeError(message)
        if len(here) > 1:
            message = f"switches of tier {tier} have different ports"
            raise NoTreeError(message)
        found.append(here.pop())
    return tuple(found)


def _rates(fabric: Fabric, levels: _Levels) -> tuple[int, ...]:
    """The one rate of the links below every tier."""
    found = []
    for tier in range(1, levels.top + 1):
        rates = np.unique(fabric.links["rate_bps"][levels.tier[levels.high] == tier])
        if len(rates) != 1:
            message = f"links below tier {tier} have different rates"
            raise NoTreeError(message)
        found.append(int(rates[0]))
    return tuple(found)


def _uplinks(levels: _Levels) -> tuple[int, ...]:
    """Links up of every switch, for every tier except the top."""
    up = np.bincount(levels.low, minlength=len(levels.tier))
    found = []
    for tier in range(1, levels.top):
        here = np.unique(up[levels.tier == tier])
        if len(here) != 1 or not here[0]:
            message = f"switches of tier {tier} have different numbers of links up"
            raise NoTreeError(message)
        found.append(int(here[0]))
    return tuple(found)


def _grouped(fabric: Fabric, levels: _Levels) -> _Levels:
    """Number the groups of every tier.

    A group is switches that are connected by links of this tier and below.
    """
    count = len(levels.tier)
    groups = []
    for tier in range(1, levels.top + 1):
        below = (levels.tier[levels.low] > 0) & (levels.tier[levels.high] <= tier)
        groups.append(connected_parts(levels.low[below], levels.high[below], count))
    for tier in range(2, levels.top + 1):
        here = levels.tier[levels.high] == tier
        own, parts = groups[tier - 1], groups[tier - 2]
        seen = np.unique(levels.high[here] * count + parts[levels.low[here]]) // count  # a switch, once for each part
        reached = np.bincount(seen, minlength=count)
        is_leaf = levels.tier == 1
        inside = np.bincount(np.unique(own[is_leaf] * count + parts[is_leaf]) // count, minlength=count)
        nodes = np.flatnonzero(levels.tier == tier)
        if (reached[nodes] != inside[own[nodes]]).any():
            first = nodes[reached[nodes] != inside[own[nodes]]][0]
            message = f"{fabric.node_names[int(first)]} does not reach all leaves that are connected below its tier"
            raise NoTreeError(message)
    return _Levels(tier=levels.tier, low=levels.low, high=levels.high, top=levels.top, groups=tuple(groups))


def _hung(levels: _Levels) -> tuple[int, tuple[int, ...], int]:
    """The attachment of every server.

    It is ports on each leaf, their spread over groups by tier, and networks.
    """
    to_host = levels.tier[levels.low] == 0
    host, leaf = levels.low[to_host], levels.high[to_host]
    count = len(levels.tier)
    sets = [host * count + leaf, *(host * count + groups[leaf] for groups in levels.groups[1:])]
    each = _alike(sets[0])
    spread = []
    for below, above in pairwise(sets):
        _, first = np.unique(below, return_index=True)
        spread.append(_alike(above[first]))
    networks = _alike(np.unique(sets[-1]) // count)
    if networks != len(np.unique(sets[-1] % count)):
        message = "its servers are not all attached to the same networks"
        raise NoTreeError(message)
    return each, tuple(spread), networks


def _cables(levels: _Levels) -> tuple[int, ...]:
    """The most links between a switch and one group below it.

    The result is for every tier except the leaves.
    """
    count = len(levels.tier)
    found = []
    for tier in range(2, levels.top + 1):
        here = levels.tier[levels.high] == tier
        pairs = levels.high[here] * count + levels.groups[tier - 2][levels.low[here]]
        found.append(int(np.unique(pairs, return_counts=True)[1].max()))
    return tuple(found)


def _filled(switch: SwitchPorts, most: int, up: int, down_bps: int, up_bps: int) -> int:
    """Links down of a switch with all free ports in use.

    The switch still does not block.
    """
    count = most
    while (count + 1) * down_bps <= up * up_bps and switch.fits(count + 1, down_bps, up, up_bps):
        count += 1
    return count


def _alike(keys: NDArray[np.int64]) -> int:
    """The count of each key, which must be equal for all keys."""
    often = np.unique(np.unique(keys, return_counts=True)[1])
    if len(often) != 1:
        message = "its servers are not all attached alike to leaves and groups of switches"
        raise NoTreeError(message)
    return int(often[0])


def _gpus(fabric: Fabric) -> int:
    """GPUs of every server."""
    kinds = [0] if fabric.node_server is None else np.unique(fabric.node_server[fabric.hosts]).tolist()
    gpus = {fabric.servers[kind].gpus for kind in kinds}
    if len(gpus) > 1:
        message = "its servers have different numbers of GPUs"
        raise NoTreeError(message)
    return gpus.pop()
