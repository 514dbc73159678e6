"""Measure how far a fabric can grow.

The results are free ports, the largest fabric of its kind, and the next steps. Of one kind are trees with the same
switches, the same ratio on every tier, and the same tiers, planes and rails.
Source: the closed forms of `weftwork.topology.limits` and, of direct networks, `weftwork.topology.direct_limits`.
Leaves out: the largest fabric of a kind that is neither (`weftwork.topology.tree_plan`); of it the ports left over are
known. Prices in money, and how long its cables would be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, prod
from pathlib import Path
from typing import Final, Literal

import numpy as np

from weftwork.base.folder import is_path
from weftwork.base.grammar import plural
from weftwork.hardware import catalogue
from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.scenario.topology_growth import DirectLimits
from weftwork.topology.direct_limits import direct_limits
from weftwork.topology.limits import SwitchPorts, TreeEnd, TreeLimit, larger_switches, tree_limit
from weftwork.topology.tree_plan import EndlessTreeError, NoTreeError, TreePlan, switch_ports, tree_plan

__all__ = ["FabricLimits", "NextStep", "TierPorts", "fabric_limits", "tier_ports"]

PARTS: Final = (2, 4)  # chosen: into which a NIC port splits; a ConnectX-8 has up to four planes
StepKind = Literal["tier", "planes", "switches", "rails"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TierPorts:
    """The ports of the switches of a tier.

    Attributes
    ----------
    tier : 1 for leaves and so on upwards
    switches : how many
    ports : of one switch: its links, and the ports of the slowest of their rates that are left; 0: any number
    used_min, used_max : of the switches with the fewest and the most links
    left : of all switches of the tier together; 0 where a switch has any number
    """

    tier: int
    switches: int
    ports: int
    used_min: int
    used_max: int
    left: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NextStep:
    """One step beyond the largest fabric of a kind.

    Attributes
    ----------
    step : what changes
    count : afterwards: tiers, planes for each of today, ports of a switch, or networks
    rate_bps : of a NIC port afterwards
    switches : of the catalogue that have these ports; empty where they stay
    limit : the largest fabric
    gpus : of that
    """

    step: StepKind
    count: int
    rate_bps: int
    switches: tuple[str, ...]
    limit: TreeLimit
    gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEnding:
    """The largest size of a tree.

    Attributes
    ----------
    plan, end, limit : the kind, its tree with all ports, and how much that has
    gpus : of the largest fabric
    steps : ways past it
    closed : steps that bring nothing, each with the reason
    today : the largest fabric with the top tier as it is, with its switches and as many links to each group
    """

    plan: TreePlan
    end: TreeEnd
    limit: TreeLimit
    gpus: int
    steps: tuple[NextStep, ...]
    closed: dict[StepKind, str]
    today: TreeLimit


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricLimits:
    """The largest size of a fabric, and steps beyond it.

    Attributes
    ----------
    ports : of every tier
    ending : None where it is not known, or nothing ends the fabric
    unknown : why, as a clause; empty where it is known
    is_endless : whether nothing ends it, since its switches have any number of ports
    direct : sizes of the family of a direct network; None: it is none, or has no formula
    """

    ports: tuple[TierPorts, ...]
    ending: TreeEnding | None
    unknown: str = ""
    is_endless: bool = False
    direct: DirectLimits | None = None


def fabric_limits(fabric: Fabric, topology: str | None = None) -> FabricLimits:
    """Measure the growth limits of a fabric.

    Parameters
    ----------
    fabric : generated or from a file
    topology : name or file of the topology that made it; None: not known

    Raises
    ------
    CodeError : that file of the user's own is wrong; with file and line
    """
    ports = tier_ports(fabric)
    direct = direct_limits(fabric, min(row.ports for row in ports), topology)
    if direct is not None:
        return FabricLimits(ports=ports, ending=None, direct=direct)
    if fabric.direct is not None:
        unknown = f"no formula is known for the family '{fabric.direct.family}'"
        return FabricLimits(ports=ports, ending=None, unknown=unknown + _field_to_give(topology))
    try:
        plan = tree_plan(fabric)
    except NoTreeError as reason:
        is_endless = isinstance(reason, EndlessTreeError)
        unknown = str(reason) if is_endless else f"{reason}{_field_to_give(topology)}"
        return FabricLimits(ports=ports, ending=None, unknown=unknown, is_endless=is_endless)
    end = plan.end()
    if end is None:
        return FabricLimits(
            ports=ports, ending=None, unknown="its servers are attached to more groups than a switch can join"
        )
    limit = tree_limit(end)
    steps, closed = _steps(plan, limit.servers)
    ending = TreeEnding(
        plan=plan,
        end=end,
        limit=limit,
        gpus=limit.servers * plan.gpus,
        steps=steps,
        closed=closed,
        today=tree_limit(plan.today),
    )
    return FabricLimits(ports=ports, ending=ending)


def _field_to_give(topology: str | None) -> str:
    """The field by which a topology of a user's own says its largest size; empty for others."""
    if topology is None or not is_path(topology):
        return ""
    return f", and '{Path(topology).name}' says nothing; its Topology(...) may have limits="


def tier_ports(fabric: Fabric) -> tuple[TierPorts, ...]:
    """Count used and free ports of every tier of switches."""
    used = np.diff(fabric.ports.base)
    rate = fabric.links["rate_bps"][fabric.ports.link]
    total = np.zeros(len(used), np.int64)
    np.add.at(total, fabric.ports.node, rate)
    slowest = np.full(len(used), np.iinfo(np.int64).max)
    np.minimum.at(slowest, fabric.ports.node, rate)
    kinds = [switch_ports(switch) for switch in fabric.switches]
    radix = np.array([kind.ports for kind in kinds], np.int64)
    capacity = np.array([kind.capacity_bps for kind in kinds], np.int64)
    rows = []
    for tier in np.unique(fabric.node_tier[fabric.node_kind != HOST]).tolist():
        nodes = np.flatnonzero((fabric.node_tier == tier) & (fabric.node_kind != HOST))
        device = fabric.node_device[nodes]
        has_number = radix[device] > 0
        left = np.where(has_number, radix[device] - used[nodes], 0)
        by_capacity = (capacity[device] - total[nodes]) // slowest[nodes]
        left = np.where(has_number & (capacity[device] > 0), np.minimum(left, by_capacity), left)
        rows.append(
            TierPorts(
                tier=tier,
                switches=len(nodes),
                ports=int((used[nodes] + left).max()) if has_number.all() else 0,
                used_min=int(used[nodes].min()),
                used_max=int(used[nodes].max()),
                left=int(left.sum()),
            )
        )
    return tuple(rows)


# What comes after the end


def _steps(plan: TreePlan, servers: int) -> tuple[tuple[NextStep, ...], dict[StepKind, str]]:
    """Steps beyond an end: tier, planes, switches, rails.

    They come in this order, with the reasons why others are impossible.
    """
    steps: list[NextStep] = []
    closed: dict[StepKind, str] = {}
    ways: dict[StepKind, list[NextStep | str]] = {
        "tier": [_one_more_tier(plan)],
        "planes": [_more_planes(plan, parts) for parts in PARTS],
        "switches": [_larger_switches(plan)],
        "rails": [_rails_apart(plan)],
    }
    for kind, found in ways.items():
        most = servers
        for step in found:
            if isinstance(step, NextStep) and step.limit.servers > most:
                steps.append(step)
                most = step.limit.servers
        is_alone = kind == "rails" and plan.gpus == 1  # no rails to speak of
        if most == servers and not is_alone:
            first = found[0]
            closed[kind] = first if isinstance(first, str) else "carries no more servers"
    return tuple(steps), closed


def _step(
    plan: TreePlan, kind: StepKind, count: int, switches: tuple[str, ...] = ()
) -> NextStep | str:  # fmt: skip
    """The largest tree of a changed plan."""
    end = plan.end()
    if end is None:
        return "leaves too few ports for one server"
    limit = tree_limit(end)
    return NextStep(step=kind, count=count, rate_bps=plan.rates_bps[0], switches=switches, limit=limit,
                    gpus=limit.servers * plan.gpus)  # fmt: skip


def _one_more_tier(plan: TreePlan) -> NextStep | str:
    """Step: the top tier sends half of its bandwidth up, to an added tier.

    The added tier has switches of the same kind.
    """
    changed = replace(
        plan,
        switches=(*plan.switches, plan.switches[-1]),
        rates_bps=(*plan.rates_bps, plan.rates_bps[-1]),
        ratios=(*plan.ratios, Fraction(1)),
        spread=(*plan.spread, 1),
    )
    return _step(changed, "tier", len(changed.switches))


def _more_planes(plan: TreePlan, parts: int) -> NextStep | str:
    """Step: ports of a GPU that share a leaf go to separate planes.

    If each port has a plane already, all ports are split.
    """
    if (together := _ports_together(plan)) > 1:
        return _step(replace(plan, each=plan.each // together, networks=plan.networks * together), "planes", together)
    if any(rate % parts for rate in plan.rates_bps):
        return "the rate of a link does not split"
    changed = replace(
        plan,
        switches=tuple(switch.split(parts) for switch in plan.switches),
        rates_bps=tuple(rate // parts for rate in plan.rates_bps),
        networks=plan.networks * parts,
    )
    if changed.switches == plan.switches:
        return "a switch has no more ports at a lower rate"
    return _step(changed, "planes", parts)


def _ports_together(plan: TreePlan) -> int:
    """Ports of one GPU on the same leaf."""
    of_gpu = plan.networks * plan.each * prod(plan.spread) // plan.gpus
    return gcd(plan.each, max(1, of_gpu))


def _larger_switches(plan: TreePlan) -> NextStep | str:
    """Step: larger switches of the catalogue replace all switches.

    They are the next larger ones that have ports of these rates.
    """
    slowest, fastest = min(plan.rates_bps), max(plan.rates_bps)
    ports = max(switch.ports for switch in plan.switches)
    found = larger_switches(ports, slowest, fastest_bps=fastest)
    if found is None:
        return f"the catalogue has no switch with more than {plural(ports, 'port')} at this rate"
    count, names = found
    kind = SwitchPorts(
        ports=count,
        capacity_bps=int(catalogue.SWITCHES[names[0]].value("capacity_bps")),
        most_ports=catalogue.max_ports(names[0]),
    )
    return _step(replace(plan, switches=(kind,) * len(plan.switches)), "switches", count, names)


def _rails_apart(plan: TreePlan) -> NextStep | str:
    """Step: every GPU's ports are in a separate network.

    A server with fewer GPUs than leaves has one network for each leaf.
    """
    together = _ports_together(plan)
    apart = prod(plan.spread) * plan.each // together
    if apart == 1:
        return "no two GPUs of a server share a network"
    changed = replace(
        plan, each=together, spread=(1,) * len(plan.spread), networks=plan.networks * apart,
    )  # fmt: skip
    return _step(changed, "rails", changed.networks)
