"""Networks whose switches all have hosts: a dragonfly, a torus and a ring, with groups as pods.

Source: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19 (dragonfly); ids of routers and ports as in sst-elements
(merlin), with its relative arrangement of global links: group G's link q goes to group (G + q + 1) mod g.
Leaves out: several links per pair of groups, fewer groups than a h + 1, and twisted tori.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.spec.fabric_direct import GLOBAL, TO_HOST, DirectNetwork
from weftwork.topology.assemble import assemble, links_between

__all__ = ["DELAY_PS", "RATE_BPS", "dragonfly", "ring", "torus"]

RATE_BPS = 100_000_000_000
DELAY_PS = 300_000  # chosen: 60 m of fibre

Links = list[tuple[int, int]]


def dragonfly(p: int, a: int, h: int, *, switch: Switch | None = None) -> Fabric:
    """a h + 1 groups of ``a`` routers, all linked to each other; with ``h`` 0 one such group, a full mesh.

    A router's ports are its ``p`` hosts, its a - 1 routers and its ``h`` global links, in this order.
    """
    groups = a * h + 1
    hosts = groups * a * p
    links: Links = [(host, hosts + host // p) for host in range(hosts)]
    links += [
        (hosts + group * a + low, hosts + group * a + high)
        for group in range(groups)
        for low in range(a)
        for high in range(low + 1, a)
    ]
    for group in range(groups):
        for other in range(group + 1, groups):
            there, back = other - group - 1, (group - other - 1) % groups
            links.append((hosts + group * a + there // h, hosts + other * a + back // h))
    pods = [group for group in range(groups) for _ in range(a)]
    kinds = [TO_HOST] * hosts + [0] * (groups * a * (a - 1) // 2)
    kinds += [1] * (len(links) - len(kinds))
    fabric = _direct(f"dragonfly {p} {a} {h}", hosts, p, links, pods, switch)
    return _described(fabric, ("local", GLOBAL), kinds, [False] * len(links))


def torus(k: int, dims: int, *, switch: Switch | None = None) -> Fabric:
    """``k`` switches along each of ``dims`` dimensions, a host at each one; k is 3 or more. One group."""
    count = k**dims
    links: Links = [(host, count + host) for host in range(count)]
    kinds, wraps = [TO_HOST] * count, [False] * count
    for node in range(count):
        for dim, stride in enumerate(k**dim for dim in range(dims)):
            at = node // stride % k
            links.append((count + node, count + node + ((at + 1) % k - at) * stride))
            kinds.append(dim)
            wraps.append(at == k - 1)
    fabric = _direct(f"torus {k}^{dims}", count, 1, links, [0] * count, switch)
    return _described(fabric, tuple("xyzuvw"[:dims]), kinds, wraps, is_ordered=True)


def ring(n: int, *, switch: Switch | None = None) -> Fabric:
    """Link ``n`` switches in a circle, with a host at each one."""
    return torus(n, 1, switch=switch)


def _described(
    fabric: Fabric, dimensions: tuple[str, ...], kinds: list[int], wraps: list[bool], *, is_ordered: bool = False
) -> Fabric:
    """The fabric with the dimension of each of its links."""
    direct = DirectNetwork(
        family="test",
        dimensions=dimensions,
        link_dimension=np.array(kinds, np.int8),
        link_wraps=np.array(wraps),
        coordinates=np.empty((len(fabric.node_names), 0), np.int32),
        is_ordered=is_ordered,
    )
    return replace(fabric, direct=direct)


def _direct(name: str, hosts: int, per_switch: int, links: Links, pods: list[int], switch: Switch | None) -> Fabric:
    switches = hosts // per_switch
    a, b = np.array(links).T
    return assemble(
        name=name,
        node_names=[f"host{host}" for host in range(hosts)] + [f"router{index}" for index in range(switches)],
        node_kind=[HOST] * hosts + [SWITCH] * switches,
        node_tier=[0] * hosts + [1] * switches,
        node_pod=[pod for pod in pods for _ in range(per_switch)] + pods,
        links=links_between(a, b, rate_bps=RATE_BPS, delay_ps=DELAY_PS),
        switches=(switch or Switch(),),
        nics=(Nic(),),
    )
