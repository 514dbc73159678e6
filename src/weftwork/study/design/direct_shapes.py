"""Choose the shape of a direct network for a number of servers and a switch.

A balanced shape uses as many ports of a switch as its servers fill: fewer switches, of which none is without servers.
Sources: the balances of `weftwork.topology.direct_limits`.
Leaves out: shapes that are not balanced; a user gives them as a scenario of ``weftwork run``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, isqrt, prod
from typing import Any, Final

from weftwork.topology.direct_limits import is_prime_power

__all__ = ["DIRECT", "near_cube", "shape_for"]


def shape_for(topology: str, servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """Keys of the shape; None where the topology derives its shape, or the switch has too few ports for any.

    Parameters
    ----------
    topology : of `DIRECT`
    servers, ports : how many, and NIC ports of each
    radix : ports of a switch at the rate of the NIC ports

    Examples
    --------
    >>> shape_for("dragonfly", 2_048, 8, 128)
    {'hosts_per_router': 32, 'routers_per_group': 64, 'global_ports': 32, 'groups': 8}
    """
    return DIRECT[topology](servers, ports, radix)


def _dragonfly(servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """Groups of a = 2p routers with p = h, as large as two groups of servers allow."""
    endpoints = servers * ports
    p = _whole_servers(min((radix + 1) // 4, isqrt(endpoints // 4)), ports)
    if p < 1:
        return None
    groups = max(2, ceil(endpoints / (2 * p * p)))
    routers = ceil(endpoints / (p * groups))
    return {"hosts_per_router": p, "routers_per_group": routers, "global_ports": p, "groups": groups}


def _dragonfly_plus(servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """Groups of as many leaves as spines, with p = h, as large as two groups of servers allow."""
    endpoints = servers * ports
    p = _whole_servers(min(radix // 2, isqrt(endpoints // 2)), ports)
    if p < 1:
        return None
    groups = max(2, ceil(endpoints / (p * p)))
    leaves = ceil(endpoints / (p * groups))
    return {"hosts_per_leaf": p, "leaves_per_group": leaves, "spines_per_group": p, "global_ports": p, "groups": groups}


def _slim_fly(servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """The least q whose routers hold the servers, each with as few of them as it needs."""
    endpoints = servers * ports
    for q in range(4, radix):
        if q % 4 == 2 or not is_prime_power(q):
            continue
        routers = 2 * q * q
        degree = (3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2
        places = ceil(endpoints / routers)
        if places <= ceil(degree * routers / (2 * routers - degree - 2)) and places + degree <= radix:
            return {"q": q, "hosts_per_switch": places}
    return None


def _torus(servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """One server on each switch of a torus of three nearly equal sides."""
    return {"shape": list(near_cube(servers)), "hosts_per_switch": 1} if ports + 6 <= radix else None


def _derived(servers: int, ports: int, radix: int) -> dict[str, Any] | None:
    """The generator itself takes the fewest routers."""
    return {} if servers * ports > radix else None  # one switch is no network


def _whole_servers(places: int, ports: int) -> int:
    """Places rounded down to whole servers, if there is room for one."""
    return places // ports * ports if places >= ports else places


def near_cube(servers: int) -> tuple[int, int, int]:
    """Sides of the three-dimensional torus with the fewest switches for so many servers, then the shortest sides.

    No side is longer than twice that of a cube.

    Examples
    --------
    >>> near_cube(128), near_cube(2_048), near_cube(31)
    ((4, 4, 8), (8, 16, 16), (2, 4, 4))
    """
    sides = [
        (first, second, -(-servers // (first * second)))
        for first in range(1, round(servers ** (1 / 3)) + 2)
        for second in range(first, round((servers / first) ** 0.5) + 2)
    ]
    longest = ceil(2 * servers ** (1 / 3))
    near = [one for one in sides if max(one) <= longest]
    one, two, three = sorted(min(near, key=lambda sides: (prod(sides), sum(sides))))
    return one, two, three


DIRECT: Final[dict[str, Callable[[int, int, int], dict[str, Any] | None]]] = {
    "dragonfly": _dragonfly,
    "dragonfly-plus": _dragonfly_plus,
    "hyperx": _derived,
    "slim-fly": _slim_fly,
    "torus": _torus,
}
