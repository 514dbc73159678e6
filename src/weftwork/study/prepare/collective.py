"""From the section ``collective`` of a scenario to its job: the call, the algorithm's programs, and where ranks live.

Leaves out: what algorithms do (`weftwork.workload.collectives`), how ranks are placed (`weftwork.workload.placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.closed_form import GroupShape, extra_launch_ps
from weftwork.workload.collectives.figures import collective_facts, collective_figures
from weftwork.workload.collectives.protocols import software
from weftwork.workload.placement import PLACEMENTS, with_nvlink_switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.workload import CollectiveSection

__all__ = ["collective_job", "domain_ranks", "nvlink_domains"]

NO_DOMAINS: Final = (
    "these ranks are not whole NVLink domains of one length in rank order, so that the algorithm knows of no domain: "
    "every step has the software latency of one over the network, and hierarchical has no inside"
)
_LATENCIES = ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")


def collective_job(section: CollectiveSection, fabric: Fabric, *, seed: int) -> tuple[Job, dict[str, str]]:
    """Make the job of a collective, and say what is uncertain of its software.

    Parameters
    ----------
    section : of a scenario that has been checked
    fabric : whose GPUs take part
    seed : of a random placement

    Raises
    ------
    ConfigError : there are too few GPUs, or the algorithm cannot do this; with all mistakes
    """
    ranks = fabric.gpus if section.gpus is None else section.gpus
    if ranks > fabric.gpus:
        text = f"found {ranks:,}, wanted at most {fabric.gpus:,}, the GPUs of the fabric"
        raise ConfigError("collective", [Mistake(path="collective.gpus", text=text)])
    placement = PLACEMENTS[section.placement](fabric, ranks, seed=seed)
    call, facts = _call(section, fabric, placement, ranks)
    found = schedule(section.algorithm or "", call)
    if found.switches:
        placement, _ = with_nvlink_switches(fabric, placement)
    return found.job(placement), facts


def _call(section: CollectiveSection, fabric: Fabric, placement: Placement, ranks: int) -> tuple[Call, dict[str, str]]:
    domain = domain_ranks(fabric, placement)
    unused = {"collective.placement": NO_DOMAINS} if domain == 1 and _shares_nvlink(fabric, placement) else {}
    given = {name: getattr(section, name) for name in _LATENCIES}
    known: dict[str, Any] = {name: own for name, own in given.items() if own is not None}
    facts: dict[str, str] = {}
    if section.protocol != "none":
        usual = software(section.protocol, ALGORITHMS.load(section.algorithm or "").name)
        figures = collective_figures(fabric.servers[0], nic_port_rate_bps=0)
        group = GroupShape(members=ranks, per_domain=domain, domain_gpus=domain)
        launch_ps = usual.base_latency_ps + extra_launch_ps(section.operation, group, section.size_bytes, figures)
        usual_latencies = {name: getattr(usual, name) for name in _LATENCIES} | {"base_latency_ps": round(launch_ps)}
        known = usual_latencies | known
        known["protocol_efficiency"] = usual.protocol_efficiency
        facts = {key: text for key, text in usual.facts.items() if not _is_given(key, given)}
        facts |= collective_facts(figures)
    call = Call(
        operation=section.operation,
        ranks=ranks,
        size_bytes=section.size_bytes,
        channels=domain * placement.nics.shape[1] if section.channels is None else section.channels,
        chunks=section.chunks,
        least_chunk_bytes=section.least_chunk_bytes,
        domain=domain,
        options=section.options,
        root=section.root or 0,
        shift=section.shift,
        repeat=section.repeat,
        nic_columns=placement.nics.shape[1],
        **known,
    )
    return call, facts | unused


def _is_given(key: str, given: Mapping[str, int | None]) -> bool:
    """Whether a figure of the protocol gave way to one of the user's."""
    return any(key.endswith(f"_{name}") and own is not None for name, own in given.items())


def domain_ranks(fabric: Fabric, placement: Placement) -> int:
    """Ranks of one NVLink domain that follow each other; 1 where domains are not whole blocks of ranks of one length.

    Parameters
    ----------
    fabric : its servers
    placement : of ranks on them
    """
    domain = nvlink_domains(fabric, placement)
    if domain is None:
        return 1
    begins = np.flatnonzero(np.diff(domain, prepend=-1))
    lengths = np.diff(begins, append=len(domain))
    is_regular = len(np.unique(lengths)) == 1 and len(np.unique(domain)) == len(begins)
    return int(lengths[0]) if is_regular else 1


def nvlink_domains(fabric: Fabric, placement: Placement) -> NDArray[np.int64] | None:
    """Which NVLink domain each rank is in, or None where a server has none.

    Parameters
    ----------
    fabric : its servers
    placement : of ranks on them

    Returns
    -------
    shape (ranks,), a number of each domain of the fabric
    """
    gpu = placement.gpu
    if gpu is None:
        return None
    node = fabric.hosts[placement.host]
    per_domain = np.array([fabric.server(int(where)).nvlink_domain_gpus for where in node], np.int64)
    if (per_domain < 2).any():
        return None
    return np.asarray(node * (int(gpu.max()) + 1) + gpu // per_domain, np.int64)


def _shares_nvlink(fabric: Fabric, placement: Placement) -> bool:
    domain = nvlink_domains(fabric, placement)
    return domain is not None and len(np.unique(domain)) < len(domain)
