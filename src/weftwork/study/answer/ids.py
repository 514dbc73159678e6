"""Ids of places for culprits: ports of links, servers and switches with their links, GPUs and stages.

Leaves out: what is the matter there (`weftwork.study.answer.suspicions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.spec.answer import CulpritIds
from weftwork.study.prepare.training import gpu_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.fabric import Fabric
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["ids_of_gpu", "ids_of_links", "ids_of_nics", "ids_of_nodes", "ids_of_stage"]


def ids_of_links(fabric: Fabric, links: Sequence[int]) -> CulpritIds:
    """Both ports of each link, in the order of the links."""
    return CulpritIds(ports=_ends(fabric, links))


def ids_of_nodes(fabric: Fabric, nodes: Sequence[int]) -> CulpritIds:
    """Servers or switches, and both ports of each of their links."""
    base = fabric.ports.base
    own = [port for node in nodes for port in range(int(base[node]), int(base[node + 1]))]
    return ids_of_nics(fabric, own, nodes=nodes)


def ids_of_nics(fabric: Fabric, ports: Sequence[int], nodes: Sequence[int] | None = None) -> CulpritIds:
    """Ports with the other ends of their links, and the nodes that have them."""
    links = dict.fromkeys(fabric.ports.link[np.array(ports, np.int64)].tolist())
    owners = dict.fromkeys(fabric.ports.node[np.array(ports, np.int64)].tolist() if nodes is None else nodes)
    return CulpritIds(ports=_ends(fabric, tuple(links)), nodes=tuple(int(node) for node in owners))


def ids_of_gpu(prepared: Prepared, gpu: int) -> CulpritIds:
    """A GPU, its ranks and its server."""
    if not prepared.scenario.workload_kind.is_training:
        return CulpritIds(gpus=(gpu,))
    placement = prepared.job.placement
    ranks = np.flatnonzero(gpu_numbers(prepared.fabric, placement) == gpu)
    return CulpritIds(gpus=(gpu,), ranks=tuple(ranks.tolist()), nodes=_servers(prepared, ranks.tolist()))


def ids_of_stage(prepared: Prepared, job: int, stage: int) -> CulpritIds:
    """A stage of a job, and its servers; its ranks are those of the stage."""
    programs = np.flatnonzero((prepared.job_of_program == job) & (prepared.stage_of_program == stage))
    ranks = np.flatnonzero(np.isin(prepared.job.rank_program, programs))
    return CulpritIds(jobs=(job,), stage=stage, nodes=_servers(prepared, ranks.tolist()))


def _servers(prepared: Prepared, ranks: Sequence[int]) -> tuple[int, ...]:
    hosts = np.unique(prepared.job.placement.host[np.array(ranks, np.int64)])
    return tuple(prepared.fabric.hosts[hosts].tolist())


def _ends(fabric: Fabric, links: Sequence[int]) -> tuple[int, ...]:
    """The two ports of each link, in the order of the links."""
    order = np.argsort(fabric.ports.link, kind="stable").reshape(-1, 2)  # every link has two
    return tuple(order[np.array(links, np.int64)].reshape(-1).tolist())
