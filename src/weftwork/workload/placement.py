"""Placement of ranks: GPUs, servers and NIC ports.

A placement is an order of GPUs; rank r lives on the r-th of them. `PLACEMENTS` has the orders by name.
Leaves out: servers of which other jobs have a part (give `Placement` yourself for those), and ranks that move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.random import Stream, draws
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Placement
from weftwork.spec.rails import ports_of_gpu
from weftwork.spec.scenario.workload import FRAGMENT_SERVERS

__all__ = [
    "FRAGMENTS",
    "PLACEMENTS",
    "first_gpus",
    "gpu_ports",
    "one_per_host",
    "packed",
    "placed",
    "pods",
    "rails",
    "random",
    "random_fragments",
    "random_servers",
    "scattered",
    "with_nvlink_switches",
]

FRAGMENTS: Final = "random-fragments"


class PlacedSection(Protocol):
    """A section of a scenario that says where its ranks are."""

    @property
    def placement(self) -> str:
        """Name in `PLACEMENTS`."""

    @property
    def fragment(self) -> int | None:
        """Servers of a fragment."""


def one_per_host(ranks: int) -> Placement:
    """Rank i on host i, on the host's first NIC port."""
    return Placement(host=np.arange(ranks, dtype=np.int32), nics=np.zeros((ranks, 1), np.int32))


def first_gpus(fabric: Fabric) -> Placement:
    """Rank i on the first GPU of host i, with the GPU's NIC ports.

    The first port is the usual one; others take over for it.
    """
    hosts = np.arange(len(fabric.hosts))
    placed = _placement(fabric, hosts, np.zeros(len(hosts), np.int64))
    return replace(placed, gpu=None)


def packed(fabric: Fabric, ranks: int, *, seed: int = 0) -> Placement:
    """Fill servers one after the other, GPU by GPU.

    Parameters
    ----------
    fabric : whose servers
    ranks : how many GPUs the job takes
    seed : of the run; means nothing here

    Raises
    ------
    ConfigError : fewer than one rank, or more than the fabric has GPUs
    """
    del seed
    host, gpu = _gpus(fabric, ranks)
    return _placement(fabric, host[:ranks], gpu[:ranks])


def rails(fabric: Fabric, ranks: int, *, seed: int = 0) -> Placement:
    """The GPUs of `packed`, ordered by rail.

    With S servers, GPU g of server s is rank g S + s. Neighbours in rank are then one leaf apart, as a ring over the
    ranks of one rail wants it. Parameters as `packed`.
    """
    del seed
    host, gpu = _gpus(fabric, ranks)
    order = np.lexsort((host[:ranks], gpu[:ranks]))
    return _placement(fabric, host[:ranks][order], gpu[:ranks][order])


def pods(fabric: Fabric, ranks: int, *, seed: int = 0) -> Placement:
    """Fill servers from all pods alternately.

    Neighbouring servers are then in different pods. A fabric without pods is one pod. Parameters as `packed`.
    """
    del seed
    host, gpu = _gpus(fabric, ranks)
    pod = np.zeros(len(fabric.hosts), np.int32) if fabric.node_pod is None else fabric.node_pod[fabric.hosts]
    turn = _count_within(pod)
    order = np.lexsort((gpu, pod[host], turn[host]))[:ranks]
    return _placement(fabric, host[order], gpu[order])


def random_servers(fabric: Fabric, ranks: int, *, seed: int = 0) -> Placement:
    """Fill whole servers in random order.

    It is what a scheduler finds free in a busy cluster; the seed draws the order. Ranks of one server stay together, so
    that NVLink domains are as `packed` has them. Parameters as `packed`.
    """
    host, gpu = _gpus(fabric, ranks)
    keys = draws(seed, Stream.PLACEMENT, np.arange(len(fabric.hosts)), 1, 0)
    order = np.lexsort((gpu, host, keys[host]))[:ranks]
    return _placement(fabric, host[order], gpu[order])


def random_fragments(fabric: Fabric, ranks: int, *, seed: int = 0, fragment: int = 1) -> Placement:
    """Fill fragments of neighbouring servers in random order.

    It is what a scheduler finds in a cluster whose jobs come and go by whole racks. Fragments begin at every
    ``fragment``-th server; one server makes it `random_servers` with other draws. Parameters as `packed`.

    Parameters
    ----------
    fabric, ranks, seed : as `packed`
    fragment : servers of a fragment
    """
    host, gpu = _gpus(fabric, ranks)
    first = np.arange(len(fabric.hosts)) // fragment
    keys = draws(seed, Stream.PLACEMENT, first, 2, 0)
    order = np.lexsort((gpu, host, first[host], keys[host]))[:ranks]
    return _placement(fabric, host[order], gpu[order])


def placed(fabric: Fabric, ranks: int, section: PlacedSection, *, seed: int = 0) -> Placement:
    """The placement that a section of a scenario asks for.

    Parameters
    ----------
    fabric, ranks, seed : as `packed`
    section : with ``placement`` and ``fragment``
    """
    if section.placement == FRAGMENTS:
        return random_fragments(fabric, ranks, seed=seed, fragment=section.fragment or FRAGMENT_SERVERS)
    return PLACEMENTS[section.placement](fabric, ranks, seed=seed)


def random(fabric: Fabric, ranks: int, *, seed: int = 0) -> Placement:
    """Use single GPUs in random order.

    It is the worst case, which no scheduler gives. The seed draws the order over the whole fabric. Neighbours in rank
    are on different servers, so that hardly anything goes by NVLink. Parameters as `packed`.
    """
    host, gpu = _gpus(fabric, ranks)
    keys = draws(seed, Stream.PLACEMENT, np.arange(len(host)), 0, 0)
    order = np.argsort(keys, kind="stable")[:ranks]
    return _placement(fabric, host[order], gpu[order])


_SCATTERED: Final = (
    "random scatters single GPUs over all servers, so that neighbours in rank hardly ever share NVLink; schedulers"
    " give whole servers: random-servers"
)
# A fabric, a number of ranks and the seed of the run to a placement, by the name in a scenario.
PLACEMENTS: dict[str, Callable[..., Placement]] = {
    "packed": packed, "rails": rails, "pods": pods, "random-servers": random_servers, FRAGMENTS: random_fragments,
    "random": random,
}  # fmt: skip


def scattered(placement: str, path: str) -> dict[str, Caveat]:
    """Note about an unrealistic placement, by its key.

    No scheduler gives such a placement. Empty for all other placements.

    Parameters
    ----------
    placement : name in `PLACEMENTS`
    path : of the key, such as ``training.placement``
    """
    return caveats_by_subject([Caveat(subject=path, kind="note", text=_SCATTERED)] if placement == "random" else [])


def gpu_ports(fabric: Fabric, host: int, gpu: int) -> list[int]:
    """NIC ports of a GPU, numbered within its server.

    See `weftwork.spec.rails.ports_of_gpu`.

    Parameters
    ----------
    fabric : whose servers
    host : index among the hosts
    gpu : of that server
    """
    node = fabric.hosts[host]
    ports = int(fabric.ports.base[node + 1] - fabric.ports.base[node])
    return list(ports_of_gpu(ports, fabric.server(int(node)).gpus, gpu))


def with_nvlink_switches(fabric: Fabric, placement: Placement) -> tuple[Placement, NDArray[np.int32]]:
    """Append a rank for the NVLink switch of every used domain.

    These ranks are for reductions in the switch.

    Parameters
    ----------
    fabric : whose servers have NVLink switches that reduce
    placement : of the ranks on GPUs

    Returns
    -------
    the placement with the switches behind the ranks, in the order of the first ranks of their domains; and shape
    (ranks,), for each rank the rank of its switch

    Raises
    ------
    ConfigError : a rank's server has no NVLink switch that reduces
    """
    nodes = fabric.hosts[placement.host]
    kind = np.zeros(len(nodes), np.int32) if fabric.node_server is None else fabric.node_server[nodes]
    for index in np.unique(kind).tolist():
        server = fabric.servers[index]
        if not server.nvls or not server.nvlink_domain_gpus:
            text = f"'{server.name}' has no NVLink switch that reduces (fabric.node.nvls)"
            raise ConfigError("fabric", [Mistake(path="fabric.node", text=text)])
    size = np.array([max(server.nvlink_domain_gpus, 1) for server in fabric.servers], np.int64)[kind]
    gpu = np.zeros(len(nodes), np.int64) if placement.gpu is None else placement.gpu.astype(np.int64)
    where = np.stack([placement.host.astype(np.int64), gpu // size])
    domains, first, of_rank = np.unique(where, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)  # by their first ranks, as algorithms number domains
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    domains, first, of_rank = domains[:, order], first[order], place[of_rank.ravel()]
    extended = replace(
        placement,
        host=np.concatenate([placement.host, domains[0]]).astype(np.int32),
        nics=np.concatenate([placement.nics, placement.nics[first]]),
        gpu=np.concatenate([gpu, -1 - domains[1]]).astype(np.int32),
    )
    return extended, (len(nodes) + of_rank).astype(np.int32)


def _gpus(fabric: Fabric, ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Host and GPU number of every GPU, server by server."""
    if not 1 <= ranks <= fabric.gpus:
        text = f"found {ranks:,}, wanted 1 to {fabric.gpus:,}, the GPUs of the fabric '{fabric.name}'"
        raise ConfigError("placement", [Mistake(path="collective.gpus", text=text)])
    each = np.array([server.gpus for server in fabric.servers], np.int64)
    kind = np.zeros(len(fabric.hosts), np.int32) if fabric.node_server is None else fabric.node_server[fabric.hosts]
    count = each[kind]
    host = np.repeat(np.arange(len(count)), count)
    return host, np.arange(len(host)) - np.repeat(np.cumsum(count) - count, count)


def _placement(fabric: Fabric, host: NDArray[np.int64], gpu: NDArray[np.int64]) -> Placement:
    """NIC ports of each rank.

    If servers differ, a rank with fewer ports repeats them in its row.
    """
    nodes = fabric.hosts[host]
    base = fabric.ports.base
    ports = base[nodes + 1] - base[nodes]
    kind = np.zeros(len(nodes), np.int32) if fabric.node_server is None else fabric.node_server[nodes]
    gpus = np.array([server.gpus for server in fabric.servers], np.int64)[kind]
    own = np.maximum(ports // gpus, 1)
    first = np.where(ports < gpus, gpu * ports // gpus, gpu * own)
    column = np.arange(int(own.max()))
    nics = first[:, None] + column[None] % own[:, None]
    return Placement(host=host.astype(np.int32), nics=nics.astype(np.int32), gpu=gpu.astype(np.int32))


def _count_within(values: NDArray[np.int32]) -> NDArray[np.int64]:
    """Number of earlier equal values, for each value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.searchsorted(ordered, ordered)
    turn = np.empty(len(values), np.int64)
    turn[order] = np.arange(len(values)) - starts
    return turn
