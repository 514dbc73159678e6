"""Slim Fly: the McKay-Miller-Siran graphs, with two links at most between any two routers.

Router (s, x, y) is in subgraph s = 0 or 1; x and y are elements of the field GF(q), with q = 4w + delta and a delta of
-1, 0 or 1. Router (0, x, y) is linked to (0, x, y') where y - y' is in the set X, and (1, m, c) to (1, m, c') where
c - c' is in the set X'. Router (0, x, y) is linked to (1, m, c) where y = m x + c.
Rack i has the routers (0, i, *) and (1, i, *), so router (s, x, y) has the number ``2q x + q s + y``.
Source: McKay, Miller and Siran, J. Combin. Theory B 74, 1998; Besta and Hoefler, Slim Fly, SC 2014.
Leaves out: fields of more than 1,024 elements, and the other graphs that the paper compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weftwork.base.caveat import Caveat
from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import (
    DesignSpace,
    DirectLimits,
    FabricSize,
    Findings,
    Ground,
    MeasuredNetwork,
    Parts,
    Record,
    ServersAndSwitch,
    Topology,
    Whole,
    row,
)
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric, direct_size, resolved_shape, sound_shape
from weftwork.topology.direct_limits import is_prime_power, slim_fly
from weftwork.topology.galois import GaloisField, galois_field, prime_power

__all__ = ["TOPOLOGY"]

SOURCE: Final = "Besta and Hoefler, Slim Fly, SC 2014"
FEWEST: Final = 3  # the smallest q: the ring of five routers, q = 1, has no field
MOST: Final = 1_024  # chosen: 2,097,152 routers, and a table of sums of 8 MiB
SUBGRAPH: Final = 0
CROSS: Final = 1


class Keys(Record):
    """The keys of a Slim Fly."""

    q: int | None = row(
        "q",
        Whole(low=FEWEST, high=MOST, unit="elements"),
        absent="the smallest that has places for the hosts; without hosts, the largest that the ports allow",
        text="Elements of the field (q): a power of a prime, and not 2; the network has 2q x q routers.",
        source=SOURCE,
    )
    hosts_per_switch: int | None = row(
        "hosts_per_switch",
        Whole(low=1, high=4_096, unit="ports"),
        absent="as many as keep uniform traffic at full rate, rounded, and not more than the ports allow",
        text="Ports of a router that lead to hosts (p); a server with four NIC ports takes four of them.",
        source=f"{SOURCE}, section 2",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SlimFlyShape:
    """Counts of a Slim Fly.

    Attributes
    ----------
    q : elements of the field
    hosts_per_switch : places for NIC ports on each router
    """

    q: int
    hosts_per_switch: int

    @property
    def delta(self) -> int:
        """-1, 0 or 1, so that q - delta is a multiple of 4."""
        return (self.q + 1) % 4 - 1

    @property
    def degree(self) -> int:
        """Ports of a router to other routers, k'."""
        return (3 * self.q - self.delta) // 2

    @property
    def routers(self) -> int:
        return 2 * self.q * self.q

    @property
    def places(self) -> int:
        return self.routers * self.hosts_per_switch

    @property
    def links(self) -> int:
        """Links between routers."""
        return self.q * self.q * self.degree

    @property
    def balanced(self) -> Fraction:
        """Hosts of a router at which uniform traffic fills the links between routers.

        Examples
        --------
        >>> round(float(SlimFlyShape(q=27, hosts_per_switch=1).balanced), 1)
        20.8
        """
        return Fraction(self.degree * self.routers, 2 * self.routers - self.degree - 2)

    def filled(self, ports: int) -> SlimFlyShape:
        """The shape with the number of hosts that balances it, if the ports allow it.

        Parameters
        ----------
        ports : of a router; 0: any number
        """
        usual = round(self.balanced)
        return replace(self, hosts_per_switch=max(1, min(usual, ports - self.degree) if ports else usual))

    def caveats(self) -> dict[str, Caveat]:
        """Report that uniform traffic does not run at full rate, if so."""
        if self.hosts_per_switch <= self.balanced:
            return {}
        over = float(self.hosts_per_switch / self.balanced - 1)
        text = (
            f"{plural(self.hosts_per_switch, 'port')} of a router lead to hosts; uniform traffic at full rate allows "
            f"{float(self.balanced):.1f}, so the links between routers are oversubscribed by {over:.1%}"
        )
        return {"fabric.hosts_per_switch": Caveat(subject="fabric.hosts_per_switch", kind="note", text=text)}


def _exists(q: int) -> bool:
    return q >= FEWEST and prime_power(q) is not None


EXISTING: Final = tuple(filter(_exists, range(FEWEST, MOST + 1)))


def _judge(q: int, found: Findings) -> bool:
    """Note a number of elements that no field has; whether it has one."""
    if _exists(q):
        return True
    lower = max((one for one in EXISTING if one < q), default=None)
    upper = min((one for one in EXISTING if one > q), default=None)
    near = [one for one in (lower, upper) if one is not None]
    reason = f"found {q}, which is no power of a prime: no field has {q} elements"
    if q % 4 == 2:
        reason += ", and q - 1, q or q + 1 has to be a multiple of 4"
    text = f"{reason}; the nearest that exist are {' and '.join(map(str, near))}"
    found.wrong("q", text, str(min(near, key=lambda one: abs(one - q))))
    return False


def _chosen(ports: int, endpoints: int | None, per_switch: int | None) -> SlimFlyShape | None:
    """The smallest shape for the hosts, or the largest for the ports; None where none fits."""
    best = None
    for q in EXISTING:
        bare = SlimFlyShape(q=q, hosts_per_switch=per_switch or 0)
        needed = bare.degree + (int(bare.balanced) if per_switch is None else per_switch)
        shape = bare.filled(ports) if per_switch is None else bare
        if ports and needed > ports:
            break
        if endpoints is None:
            best = shape
        elif shape.places >= endpoints:
            return shape
    return best


def _shape(keys: Keys, ports: int, endpoints: int | None, found: Findings, blamed: str) -> SlimFlyShape | None:
    """Counts of the shape, given or derived.

    Parameters
    ----------
    keys : given
    ports : of a switch; 0: any number
    endpoints : NIC ports of the hosts; None where nobody says
    found : notes counts that do not fit
    blamed : key that gives the number of ports
    """
    if keys.q is None:
        if not ports and endpoints is None:
            found.wrong("q", "missing: give q, such as 5, or radix, or hosts")
            return None
        shape = _chosen(ports, endpoints, keys.hosts_per_switch)
        if shape is None and endpoints is None:
            smallest = SlimFlyShape(q=FEWEST, hosts_per_switch=1).filled(0)
            places = keys.hosts_per_switch or int(smallest.balanced)
            text = f"found {plural(ports, 'port')}, but a router of the smallest network, q = {FEWEST}, needs "
            text += f"{smallest.degree + places}: {smallest.degree} to other routers and {places} to hosts"
            text += "; give q for fewer hosts"
            found.wrong(blamed, text)
        elif shape is None:
            largest = _chosen(ports, None, keys.hosts_per_switch) if ports else None
            most = f"; the largest has {largest.places:,}, with q = {largest.q}" if largest else ""
            room = f" with {plural(ports, 'port')} for each router" if ports else ""
            text = f"found {plural(endpoints or 0, 'NIC port')}, more than any Slim Fly has places for{room}{most}"
            found.wrong(found.which("hosts", "gpus"), text)
        return shape
    if not _judge(keys.q, found):
        return None
    bare = SlimFlyShape(q=keys.q, hosts_per_switch=keys.hosts_per_switch or 0)
    shape = bare.filled(ports) if keys.hosts_per_switch is None else bare
    needed = shape.degree + shape.hosts_per_switch
    if ports and needed > ports:
        text = (
            f"found {plural(ports, 'port')}, but a router needs {needed:,}: {shape.degree:,} to other routers and "
            f"{shape.hosts_per_switch:,} to hosts"
        )
        free = ports - shape.hosts_per_switch
        fits = [one for one in EXISTING if SlimFlyShape(q=one, hosts_per_switch=0).degree <= free]
        found.wrong(blamed, f"{text}; q = {fits[-1]} fits" if fits else text)
    return shape


def _resolve(keys: Keys, ground: Ground, found: Findings) -> tuple[Keys, int | None]:
    if not found.is_sound("radix", "hosts", "gpus", "q") or ground.server is None:
        return keys, ground.hosts
    if keys.q is not None and not _judge(keys.q, found):
        return keys, ground.hosts
    return resolved_shape(
        _shape, keys, ground, found, key="q",
        is_given=keys.q is not None and keys.hosts_per_switch is not None,
        filled=lambda shape: {"q": shape.q, "hosts_per_switch": shape.hosts_per_switch},
    )  # fmt: skip


def _size(keys: Keys, parts: Parts) -> FabricSize:
    shape = sound_shape(_shape, keys, parts)
    return direct_size(parts, switches=shape.routers, per_switch=shape.hosts_per_switch, links=shape.links)


def generators(field: GaloisField) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sets X and X' of differences inside the two subgraphs.

    Parameters
    ----------
    field : of q elements

    Examples
    --------
    >>> [one.tolist() for one in generators(galois_field(5))]
    [[1, 4], [2, 3]]
    """
    q, powers = field.size, field.powers
    if q % 4 != 3:
        return powers[0 : q - 1 : 2], powers[np.arange(1, q, 2) % (q - 1)]
    w = (q + 1) // 4
    even, odd = np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)
    return powers[np.concatenate([even, odd])], powers[np.concatenate([even + 1, odd + 1]) % (q - 1)]


def _inside(field: GaloisField, differences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Links between elements with one of these differences."""
    low = np.repeat(np.arange(field.size), len(differences))
    high = field.sums[:, differences].ravel()
    return low[low < high], high[low < high]


def graph_links(q: int) -> SwitchLinks:
    """Links between the routers of a Slim Fly.

    Parameters
    ----------
    q : a power of a prime, and not 2
    """
    field = galois_field(q)
    rack = np.arange(q)[:, None]
    a, b = [], []
    for half, differences in enumerate(generators(field)):
        low, high = _inside(field, differences)
        a.append((rack * 2 * q + half * q + low).ravel())
        b.append((rack * 2 * q + half * q + high).ravel())
    inside = sum(map(len, a))
    x, m, c = (grid.ravel() for grid in np.mgrid[:q, :q, :q])
    y = field.sums[field.product(m, x), c]
    a.append(x * 2 * q + y)
    b.append(m * 2 * q + q + c)
    dimension = np.repeat([SUBGRAPH, CROSS], [inside, len(x)]).astype(np.int8)
    return SwitchLinks(a=np.concatenate(a), b=np.concatenate(b), dimension=dimension)


def _build(keys: Keys, parts: Parts) -> Fabric:
    shape = sound_shape(_shape, keys, parts)
    q = shape.q
    router = np.arange(shape.routers)
    rack = router // (2 * q)
    return direct_fabric(
        replace(parts, caveats={**parts.caveats, **shape.caveats()}),
        name=f"slim-fly, q = {q}, {plural(shape.routers, 'router')}",
        family="slim-fly",
        dimensions=("subgraph", "cross"),
        switches=[("router", shape.routers)],
        per_switch=shape.hosts_per_switch,
        links=graph_links(q),
        axes=("rack", "subgraph", "router"),
        sides=(q, 2, q),
        coordinates=np.stack([rack, router // q % 2, router % q], axis=1),
        group=rack,
    )


def _limits(found: MeasuredNetwork) -> DirectLimits:
    """The ports of a router end it."""
    size = slim_fly(found.ports) if found.ports else None
    ends = "The ports of a router end this fabric: a Slim Fly over q elements needs about 3q/2 of them for links"
    return DirectLimits(family=found.direct.family, ports=found.ports, ends=ends if found.ports else "",
                        sizes=() if size is None else (size,))  # fmt: skip


def _shape_for(asked: ServersAndSwitch) -> dict[str, Any] | None:
    """The least q whose routers hold the servers, each with as few of them as it needs."""
    if asked.radix is None:
        return None
    endpoints = asked.servers * asked.ports
    for q in range(4, asked.radix):
        if q % 4 == 2 or not is_prime_power(q):
            continue
        routers = 2 * q * q
        degree = (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2
        places = ceil(endpoints / routers)
        if places <= ceil(degree * routers / (2 * routers - degree - 2)) and places + degree <= asked.radix:
            return {"q": q, "hosts_per_switch": places}
    return None


TOPOLOGY: Final = Topology(
    keys=Keys,
    resolve=_resolve,
    build=_build,
    size=_size,
    limits=_limits,
    design=DesignSpace(shape=_shape_for, usual={"routing": "minimal"}, order=12),
    source=SOURCE,
)
