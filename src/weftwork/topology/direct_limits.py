"""Compute how large a direct network can become, by the closed form of its topology.

Each file of `weftwork.topology.shapes` says how large its network can become (`limits` of its record); here are the
closed forms, and what several of them share.

A dragonfly of groups of a routers with p hosts and h global ports has at most a h + 1 groups; balanced, a = 2p = 2h. A
dragonfly+ of switches of k ports has k^2 / 4 + 1 groups. A HyperX of L dimensions with S routers on a line needs
T + L (S - 1) ports. A Slim Fly exists for prime powers q alone. Nothing but its diameter ends a torus.
Sources: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19; Shpiner et al., HiPINEB 2017; Ahn et al., HyperX, SC 2009;
Besta and Hoefler, Slim Fly, SC 2014, doi:10.1109/SC.2014.34; Jouppi et al., TPU v4, arXiv 2304.01433.
Leaves out: trees (`weftwork.topology.largest`); families without a formula, for which the reason is given.
"""

from __future__ import annotations

from math import ceil, prod
from typing import Final

import numpy as np

from weftwork.base.folder import is_path
from weftwork.base.grammar import plural
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.spec.scenario.topology_growth import DirectLimits, DirectSize, MeasuredNetwork

__all__ = [
    "direct_limits", "dragonfly", "dragonfly_plus", "grown", "hyperx", "hyperx_limits", "is_prime_power",
    "lattice_limits", "random_limits", "slim_fly",
]  # fmt: skip

SPARE_OPTICAL_PORTS: Final = 8  # TPU v4: 128 of the 136 ports of an optical switch join 64 cubes (arXiv 2304.01433)


# Closed forms


def dragonfly(p: int, a: int, h: int) -> DirectSize:
    """The largest dragonfly of these routers.

    Examples
    --------
    >>> dragonfly(16, 32, 16).endpoints, dragonfly(16, 32, 17).endpoints  # the second as Slingshot, 64 ports
    (262656, 279040)
    """
    groups = a * h + 1
    return DirectSize(
        words=f"{plural(groups, 'group')} of {plural(a, 'router')}, {p:,} + {a - 1:,} + {plural(h, 'port')}",
        endpoints=a * p * groups,
        switches=a * groups,
        switch_links=groups * a * (a - 1) // 2 + groups * a * h // 2,
        diameter_links=3,
    )


def dragonfly_plus(p: int, leaves: int, spines: int, h: int) -> DirectSize:
    """The largest dragonfly+ of these leaves and spines.

    Examples
    --------
    >>> dragonfly_plus(32, 32, 32, 32).endpoints  # balanced, 64 ports
    1049600
    """
    groups = spines * h + 1
    each = f"{plural(leaves, 'leaf', 'leaves')} and {plural(spines, 'spine')}"
    return DirectSize(
        words=f"{plural(groups, 'group')} of {each}",
        endpoints=leaves * p * groups,
        switches=(leaves + spines) * groups,
        switch_links=groups * leaves * spines + groups * spines * h // 2,
        diameter_links=3,
    )


def hyperx(ports: int, dimensions: int) -> DirectSize | None:
    """The largest regular HyperX of switches, with a relative bisection of 1/2 or more; None if the ports are too few.

    Examples
    --------
    >>> hyperx(64, 2).words, hyperx(64, 3).endpoints
    ('22 x 22 routers of 22 hosts', 65536)
    """
    side = (ports + dimensions) // (dimensions + 1)
    hosts = min(side, ports - dimensions * (side - 1))
    if side < 2 or hosts < 1:
        return None
    routers = side**dimensions
    return DirectSize(
        words=f"{' x '.join([str(side)] * dimensions)} routers of {plural(hosts, 'host')}",
        endpoints=hosts * routers,
        switches=routers,
        switch_links=routers * dimensions * (side - 1) // 2,
        diameter_links=dimensions,
    )


def is_prime_power(number: int) -> bool:
    """Whether a finite field of this many elements exists.

    Examples
    --------
    >>> [q for q in range(2, 33) if is_prime_power(q)]
    [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    """
    if number < 2:
        return False
    prime = next((factor for factor in range(2, int(number**0.5) + 1) if number % factor == 0), number)
    while number % prime == 0:
        number //= prime
    return number == 1


def slim_fly(ports: int) -> DirectSize | None:
    """The largest Slim Fly of switches that carries uniform traffic at full rate; None if the ports are too few.

    Hosts of a router are p = k' n / (2n - k' - 2) rounded, so that rounding up oversubscribes by 1 % or so.

    Examples
    --------
    >>> slim_fly(64).words, slim_fly(64).endpoints, slim_fly(128).endpoints
    ('q = 29: 1,682 routers, 43 + 21 ports', 35322, 224720)
    """
    best: DirectSize | None = None
    for q in range(4, ports):
        remainder = q % 4
        if not is_prime_power(q) or remainder == 2:
            continue
        delta = {0: 0, 1: 1, 3: -1}[remainder]
        degree, routers = (3 * q - delta) // 2, 2 * q * q
        exact = degree * routers / (2 * routers - degree - 2)
        hosts = min(ceil(exact), ports - degree)
        if hosts < int(exact) or hosts < 1:
            continue
        found = DirectSize(
            words=f"q = {q}: {plural(routers, 'router')}, {degree:,} + {plural(hosts, 'port')}",
            endpoints=hosts * routers,
            switches=routers,
            switch_links=q * q * degree,
            diameter_links=2,
        )
        if best is None or found.endpoints > best.endpoints:
            best = found
    return best


# Of a fabric


def direct_limits(fabric: Fabric, ports: int, topology: str | None = None) -> DirectLimits | None:
    """How large a network can become; None if its topology has no formula.

    Parameters
    ----------
    fabric : any
    ports : of its switches; 0: any number
    topology : name or file of the topology that made it; None: the family that a direct network names

    Raises
    ------
    CodeError : the file of the user's own is wrong; with file and line
    """
    direct = fabric.direct
    to_host = (fabric.node_kind[fabric.links["a"]] == HOST) | (fabric.node_kind[fabric.links["b"]] == HOST)
    ends = np.concatenate([fabric.links["a"][to_host], fabric.links["b"][to_host]])
    ends = ends[fabric.node_kind[ends] == SWITCH]
    measured = MeasuredNetwork(fabric=fabric, ports=ports, hosts=int(np.bincount(ends).max(initial=0)))
    if direct is not None and direct.optical is not None and fabric.node_pod is not None:
        return _cubes(measured)
    for label in (topology, None if direct is None else direct.family):
        if label is None or not (label in TOPOLOGIES or is_path(label)):
            continue
        limits = TOPOLOGIES.load(label).limits
        if limits is not None:
            with TOPOLOGIES.blaming(label):
                return TOPOLOGIES.want(label, limits(measured), DirectLimits, "limits")
    return None


def hyperx_limits(found: MeasuredNetwork) -> DirectLimits:
    """A HyperX, and a flattened butterfly: the ports of a router end it."""
    dimensions, k = len(found.direct.sides), found.ports
    sizes = [size for more in (dimensions, dimensions + 1) if k and (size := hyperx(k, more)) is not None]
    ends = "The ports of a router end this fabric: a line of S routers takes S - 1 of them, times "
    ends = f"{ends}{plural(dimensions, 'dimension')}" if k else ""
    return DirectLimits(family=found.direct.family, ports=k, ends=ends, sizes=tuple(sizes))


def lattice_limits(found: MeasuredNetwork) -> DirectLimits:
    """A torus or mesh: no port ends it, but the bisection of a switch falls with the longest side."""
    sides = found.direct.sides
    closes = bool(found.direct.link_wraps.any())
    links = (2 if closes else 1) * prod(sides) // max(sides)
    degree = 2 * sum(side > 1 for side in sides)
    span = sum(side // 2 if closes else side - 1 for side in sides)
    longer = [2 * side if side == max(sides) and place == sides.index(max(sides)) else side
              for place, side in enumerate(sides)]  # fmt: skip
    then = sum(side // 2 if closes else side - 1 for side in longer)
    need = f"A switch needs {plural(degree, 'port')} for links, whatever the sides."
    cut = f"{plural(links, 'link')} cross the middle of the longest side: {links / prod(sides):.3g} for each switch."
    cut += " If that side doubles, as many links serve twice the switches, and the diameter grows from "
    cut += f"{span:,} to {plural(then, 'link')}."
    return DirectLimits(family=found.direct.family, ports=found.ports, ends="", facts=(need, cut))


def random_limits(found: MeasuredNetwork) -> DirectLimits:
    """A random graph: no port ends it, but paths become longer."""
    degree = max(found.degree(dimension) for dimension in range(len(found.direct.dimensions)))
    need = f"A switch needs {plural(degree, 'port')} for links, whatever the number of switches."
    far = f"Paths become longer: at most {degree:,} switches are 1 link from a switch, and {degree:,} x {degree - 1:,} "
    far += "are 2 links from it."
    return DirectLimits(family=found.direct.family, ports=found.ports, ends="", facts=(need, far))


def _cubes(found: MeasuredNetwork) -> DirectLimits:
    """Cubes behind optical switches: each cube takes the same ports of every optical switch."""
    optical, fabric = found.direct.optical, found.fabric
    if optical is None or fabric.node_pod is None:  # the caller looked
        return DirectLimits(family=found.direct.family, ports=found.ports, ends="")
    used = optical.link_switch >= 0
    cubes = len(np.unique(fabric.node_pod[fabric.node_kind == SWITCH]))
    ends = np.concatenate([fabric.node_pod[fabric.links["a"][used]], fabric.node_pod[fabric.links["b"][used]]])
    through = np.concatenate([optical.link_switch[used]] * 2)
    wide = int(fabric.node_pod.max()) + 1  # numbers of cubes have gaps where cubes failed
    each = int(np.bincount(through * np.int64(wide) + ends).max(initial=1))
    inside = int((fabric.node_kind == SWITCH).sum()) // cubes
    links = int((found.direct.link_dimension >= 0).sum()) // cubes
    most = optical.ports // each
    spare = (optical.ports - SPARE_OPTICAL_PORTS) // each
    sizes = [_pod(count, inside, links, found.hosts, optical.ports - count * each) for count in (spare, most) if count]
    ends_words = f"The {plural(optical.ports, 'port')} of an optical switch end this fabric: each cube takes {each} of "
    fact = (
        f"It has {plural(cubes, 'cube')} of {plural(inside, 'switch', 'switches')}, which use {cubes * each:,} of the "
    )
    return DirectLimits(
        family=found.direct.family, ports=found.ports, ends=f"{ends_words}them",
        facts=(f"{fact}{plural(optical.ports, 'port')}.",), sizes=tuple(sizes),
    )  # fmt: skip


def _pod(cubes: int, inside: int, links: int, hosts: int, left: int) -> DirectSize:
    """A pod of cubes as one torus of nearly equal sides."""
    side = round(inside ** (1 / 3))
    sides = _near_cube(cubes)
    return DirectSize(
        words=f"{plural(cubes, 'cube')}, {plural(left, 'spare port')} of each optical switch",
        endpoints=cubes * inside * hosts,
        switches=cubes * inside,
        switch_links=cubes * links,
        diameter_links=sum(side * length // 2 for length in sides),
    )


def _near_cube(count: int) -> tuple[int, int, int]:
    """Three factors of a number with the least sum."""
    return min(
        ((one, two, count // one // two) for one in range(1, count + 1) if count % one == 0
         for two in range(1, count // one + 1) if count // one % two == 0),
        key=sum,
    )  # fmt: skip


def grown(sizes: list[DirectSize]) -> tuple[DirectSize, ...]:
    """The first size, and later ones that are larger than all before."""
    kept = sizes[:1]
    for size in sizes[1:]:
        if size.endpoints > kept[-1].endpoints:
            kept.append(size)
    return tuple(kept)
