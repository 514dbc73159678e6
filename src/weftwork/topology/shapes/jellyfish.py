"""Jellyfish: a random graph in which every switch has the same number of links to other switches.

Free ports are paired at random; at the end, links are broken to fill ports that are left. A graph that is not connected
is drawn again. The seed is a key and part of the name.
Source: Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012.
Leaves out: growing a network that is in use, and switches with different numbers of ports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import FabricSize, Findings, Ground, Parts, Record, Topology, Whole, row
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
from weftwork.topology.random_graphs import connected_draw, regular_graph

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Singla, Hong, Popa and Godfrey, Jellyfish, NSDI 2012"


class Keys(Record):
    """The keys of a Jellyfish."""

    switches: int | None = row(
        "switches",
        Whole(low=4, high=MOST_SWITCHES, unit="switches"),
        absent="as many as the hosts need",
        text="Switches (n); the product of switches and network_ports has to be even.",
        source=SOURCE,
    )
    network_ports: int | None = network_ports_row(SOURCE)
    hosts_per_switch: int | None = hosts_per_switch_row(SOURCE)
    seed: int = seed_row()


def _fewest_switches(degree: int, places: int, endpoints: int) -> int:
    """Fewest switches with so many links each that have places for the hosts."""
    fewest = max(degree + 1, -(-endpoints // places))
    return fewest + fewest * degree % 2


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> FlatPorts | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    given, hosts = keys.switches, endpoints
    if given is None and hosts is None:
        found.wrong("switches", "missing: give switches, or hosts")
        return None

    def switches(degree: int, places: int) -> int:
        return _fewest_switches(degree, places, hosts or 1) if given is None else given

    shape = split_ports(
        found, network_ports=keys.network_ports, hosts_per_switch=keys.hosts_per_switch, ports=ports, blamed=blamed,
        switches_for=switches,
    )  # fmt: skip
    if shape is None:
        return None
    n, r = shape.switches, shape.network_ports
    if n > MOST_SWITCHES:
        needed = plural(n, "switch", "switches")
        text = f"found {plural(hosts or 0, 'NIC port')}, which need {needed}, wanted at most {MOST_SWITCHES:,}"
        found.wrong(found.which("hosts", "gpus"), text)
        return None
    key = "network_ports" if keys.network_ports is not None else "switches"
    if r > n - 1:
        text = f"found {plural(n, 'switch', 'switches')} with {plural(r, 'network port')} each, but a switch has "
        nearest = str(n - 1 if key == "network_ports" else r + 1 + (r + 1) * r % 2)
        found.wrong(key, f"{text}{plural(n - 1, 'other switch', 'other switches')} to link to", nearest)
        return None
    if n * r % 2:
        text = f"found {plural(n, 'switch', 'switches')} with {plural(r, 'network port')} each, an odd number of "
        text += "ports, so one port stays empty; "
        text += (
            f"wanted {n - 1:,} or {plural(n + 1, 'switch', 'switches')}"
            if n - 1 > r
            else f"wanted {plural(n + 1, 'switch', 'switches')}"
        )
        found.wrong("switches", f"{text}, or {r - 1:,} or {plural(r + 1, 'network port')}", str(n + 1))
        return None
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    return resolved_shape(
        _shape, keys, ground, found, key="switches",
        is_given=keys.network_ports is not None and keys.hosts_per_switch is not None,
        filled=lambda shape: {
            "switches": shape.switches, "network_ports": shape.network_ports,
            "hosts_per_switch": shape.hosts_per_switch,
        },
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    return direct_size(parts, switches=shape.switches, per_switch=shape.hosts_per_switch, links=shape.links)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    n, r = shape.switches, shape.network_ports
    a, b = connected_draw(lambda attempt: regular_graph(n, r, seed=keys.seed, attempt=attempt), n)
    return direct_fabric(
        replace(parts, caveats={**parts.caveats, **shape.caveats()}),
        name=f"jellyfish, {plural(n, 'switch', 'switches')} with {plural(r, 'network port')}, seed {keys.seed}",
        family="jellyfish",
        dimensions=("random",),
        switches=[("router", n)],
        per_switch=shape.hosts_per_switch,
        links=SwitchLinks(a=a, b=b, dimension=np.zeros(len(a), np.int8)),
    )


TOPOLOGY: Final = Topology(keys=Keys, resolve=_resolve, build=_build, size=_size, limits=random_limits, source=SOURCE)
