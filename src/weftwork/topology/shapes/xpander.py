"""Xpander: groups of switches, every two of them joined by a random matching.

The network is a lift of a full mesh of d + 1 switches: each switch becomes a group of k switches, and each link becomes
k links that join the switches of two groups one to one, at random. The switches of a group have no links to each other.
A graph that is not connected is drawn again. The seed is a key and part of the name.
Source: Valadarsky, Shahaf, Dinitz and Schapira, Xpander, CoNEXT 2016; construction as in nsg-ethz/SP-PIFO,
gen_xpander.py, and unverified against the paper itself.
Leaves out: choosing matchings without randomness, drawing again until the expansion is the best possible, and groups of
different sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Listing, Parts, Record, Topology, Whole, row
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric, direct_size, resolved_shape, sound_shape
from weftwork.topology.direct_limits import random_limits
from weftwork.topology.flat_network import (
    MOST_SWITCHES,
    FlatPorts,
    hosts_per_switch_row,
    network_ports_row,
    seed_row,
    split_ports,
)
from weftwork.topology.random_graphs import connected_draw, lifted_graph

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Valadarsky, Shahaf, Dinitz and Schapira, Xpander, CoNEXT 2016"


class Keys(Record):
    """The keys of an Xpander."""

    lifts: tuple[int, ...] | None = row(
        "lifts",
        Listing(item=Whole(low=1, high=MOST_SWITCHES, unit="copies")),
        absent="one lift, with as many copies as the hosts need",
        text="Copies of each switch in each lift, such as [2, 2, 2]; their product is the switches of a group (k).",
        source=f"{SOURCE}; unverified",
    )
    network_ports: int | None = network_ports_row(SOURCE)
    hosts_per_switch: int | None = hosts_per_switch_row(SOURCE)
    seed: int = seed_row()


@dataclass(frozen=True, kw_only=True, slots=True)
class XpanderShape:
    """Counts of an Xpander.

    Attributes
    ----------
    ports : of all switches
    lifts : copies in each lift
    """

    ports: FlatPorts
    lifts: tuple[int, ...]

    @property
    def places(self) -> int:
        return self.ports.places


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> XpanderShape | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    given, hosts = keys.lifts, endpoints
    if given is None and hosts is None:
        found.wrong("lifts", "missing: give lifts, such as [8], or hosts")
        return None
    if given is not None and prod(given) > MOST_SWITCHES:
        found.wrong("lifts", f"makes {prod(given):,} switches in a group, wanted at most {MOST_SWITCHES:,} in all")
        return None

    def switches(degree: int, places: int) -> int:
        copies = -(-(hosts or 1) // (places * (degree + 1))) if given is None else prod(given)
        return copies * (degree + 1)

    shape = split_ports(
        found, network_ports=keys.network_ports, hosts_per_switch=keys.hosts_per_switch, ports=ports, blamed=blamed,
        switches_for=switches,
    )  # fmt: skip
    if shape is None:
        return None
    if shape.switches > MOST_SWITCHES:
        key = found.which("hosts", "gpus") if given is None else "lifts"
        found.wrong(key, f"makes {plural(shape.switches, 'switch', 'switches')}, wanted at most {MOST_SWITCHES:,}")
        return None
    return XpanderShape(ports=shape, lifts=given or (shape.switches // (shape.network_ports + 1),))


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="lifts",
        is_given=keys.network_ports is not None and keys.hosts_per_switch is not None,
        filled=lambda shape: {
            "lifts": shape.lifts, "network_ports": shape.ports.network_ports,
            "hosts_per_switch": shape.ports.hosts_per_switch,
        },
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts).ports
    return direct_size(parts, switches=shape.switches, per_switch=shape.hosts_per_switch, links=shape.links)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    n, d = shape.ports.switches, shape.ports.network_ports
    each = n // (d + 1)
    a, b = connected_draw(lambda attempt: lifted_graph(d, shape.lifts, seed=keys.seed, attempt=attempt), n)
    switch = np.arange(n)
    return direct_fabric(
        replace(parts, caveats={**parts.caveats, **shape.ports.caveats()}),
        name=f"xpander, {plural(d + 1, 'group')} of {plural(each, 'switch', 'switches')}, seed {keys.seed}",
        family="xpander",
        dimensions=("lift",),
        switches=[("router", n)],
        per_switch=shape.ports.hosts_per_switch,
        links=SwitchLinks(a=a, b=b, dimension=np.zeros(len(a), np.int8)),
        axes=("group", "switch"),
        sides=(d + 1, each),
        coordinates=np.stack([switch // each, switch % each], axis=1),
        group=switch // each,
    )


TOPOLOGY: Final = Topology(keys=Keys, resolve=_resolve, build=_build, size=_size, limits=random_limits, source=SOURCE)
