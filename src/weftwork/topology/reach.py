"""Reachability over switches: networks, rails, and GPUs of different servers.

No link joins two networks.
Leaves out: paths through a server; a GPU that has to ask another one of its server counts as not reached.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.fabric import HOST, Fabric
from weftwork.spec.rails import ports_of_gpu
from weftwork.topology.connected import connected_parts

__all__ = ["Reach", "networks_of_links", "rails_of", "reach"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """Reachability by links: networks, and pairs of hosts and GPUs.

    Attributes
    ----------
    networks : sets of switches that links join, each with hosts on it; a wire between two hosts is one, too
    hosts_alone : hosts that reach no other host
    host_pairs, host_pairs_joined : unordered pairs of hosts, and those that share a network
    gpus_alone : GPUs whose own NIC ports reach no other server
    gpu_pairs, gpu_pairs_joined : unordered pairs of GPUs on different servers, and those whose own NIC ports share a
        network
    """

    networks: int
    hosts_alone: int
    host_pairs: int
    host_pairs_joined: int
    gpus_alone: int
    gpu_pairs: int
    gpu_pairs_joined: int


def networks_of_links(fabric: Fabric, link_up: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Network of every link, numbered from 0 by its first link.

    Links that are down have -1; the shape is (links,). A wire between two hosts is a network of its own.
    """
    count, links = len(fabric.node_names), fabric.links
    is_host = fabric.node_kind == HOST
    a, b = links["a"].astype(np.int64), links["b"].astype(np.int64)
    between = ~is_host[a] & ~is_host[b] & link_up
    part = connected_parts(a[between], b[between], count)
    island = np.where(is_host[a], np.where(is_host[b], count + np.arange(len(links)), part[b]), part[a])
    island = np.where(link_up, island, -1)
    _, first, number = np.unique(island[link_up], return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    island[link_up] = rank[number]
    return island


def reach(fabric: Fabric, link_up: NDArray[np.bool_] | None = None) -> Reach:
    """Find reachable pairs over the links that are up.

    By default all links are up.

    Parameters
    ----------
    fabric : whose hosts and switches
    link_up : shape (links,); a lost node is one whose links are all down
    """
    network = networks_of_links(fabric, fabric.links_at_start if link_up is None else link_up)
    ports = fabric.ports
    base, link = ports.base.tolist(), ports.link
    on_host = fabric.node_kind[ports.node] == HOST
    hosts_on = Counter(network[link[on_host]].tolist())
    hosts_on.pop(-1, None)  # ports whose link is down
    # what a host or a GPU reaches depends on the networks of its ports alone, and few sets of them occur
    of_hosts: Counter[frozenset[int]] = Counter()
    of_gpus: Counter[frozenset[int]] = Counter()
    inside: Counter[tuple[frozenset[int], frozenset[int]]] = Counter()  # pairs of GPUs of one server
    patterns: Counter[tuple[tuple[int, ...], int]] = Counter()
    for host in fabric.hosts.tolist():
        own = tuple(network[link[base[host] : base[host + 1]]].tolist())
        patterns[own, fabric.server(host).gpus] += 1
    for (own, gpus), times in patterns.items():
        of_hosts[frozenset(own) - {-1}] += times
        sets = Counter(
            frozenset(own[port] for port in ports_of_gpu(len(own), gpus, gpu)) - {-1} if own else frozenset()
            for gpu in range(gpus)
        )
        for one, many in sets.items():
            of_gpus[one] += many * times
            for other, more in sets.items():
                inside[one, other] += many * more * times
    hosts, gpus_all = sum(of_hosts.values()), sum(of_gpus.values())
    joined_hosts = _joined(of_hosts)
    same_server = sum(count for _, count in inside.items())
    joined_inside = sum(count for (one, other), count in inside.items() if one & other)
    gpu_pairs = (gpus_all**2 - same_server) // 2
    joined_gpus = sum(many * more for one, many in of_gpus.items() for other, more in of_gpus.items() if one & other)
    alone = {number for number, count in hosts_on.items() if count < 2}
    return Reach(
        networks=len(hosts_on),
        hosts_alone=sum(count for own, count in of_hosts.items() if not own - alone),
        host_pairs=hosts * (hosts - 1) // 2,
        host_pairs_joined=joined_hosts,
        gpus_alone=sum(count for own, count in of_gpus.items() if not own - alone),
        gpu_pairs=gpu_pairs,
        gpu_pairs_joined=(joined_gpus - joined_inside) // 2,
    )


def _joined(sets: Counter[frozenset[int]]) -> int:
    """Unordered pairs of different members with common elements."""
    ordered = sum(many * more for one, many in sets.items() for other, more in sets.items() if one & other)
    with_itself = sum(count for own, count in sets.items() if own)
    return (ordered - with_itself) // 2


def rails_of(fabric: Fabric) -> list[NDArray[np.int64]]:
    """Rails: NIC port numbers on a common switch in every host.

    There is one group, a rail, for each switch.

    Returns
    -------
    groups of port numbers in the order of their first; empty where hosts have different numbers of ports
    """
    degree = np.diff(fabric.ports.base)[fabric.hosts]
    if not len(degree) or (degree != degree[0]).any() or not degree[0]:
        return []
    first = fabric.ports.base[fabric.hosts]
    port = first[:, None] + np.arange(int(degree[0]))[None]
    far = fabric.ports.node[fabric.ports.peer[port]]
    groups: dict[bytes, list[int]] = {}
    for number, column in enumerate(far.T):
        groups.setdefault(np.ascontiguousarray(column).tobytes(), []).append(number)
    return [np.array(numbers) for numbers in groups.values()]
