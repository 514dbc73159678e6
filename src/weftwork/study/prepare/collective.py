"""From the section ``collective`` of a scenario to its job: the call, the algorithm's programs, and where ranks live.

Leaves out: what algorithms do (`weftwork.workload.collectives`), how ranks are placed (`weftwork.workload.placement`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS, schedule
from weftwork.workload.collectives.closed_form import OPERATIONS, GroupShape, alone, extra_launch_ps, methods
from weftwork.workload.collectives.figures import collective_caveats, collective_figures, path_latency_ps
from weftwork.workload.collectives.protocols import software
from weftwork.workload.placement import PLACEMENTS, scattered, with_nvlink_switches

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.workload import CollectiveSection

__all__ = ["collective_job", "domain_ranks", "nvlink_domains", "port_rate_bps", "protocol_used"]

NO_DOMAINS: Final = Caveat(
    subject="collective.placement",
    kind="note",
    text="these ranks are not whole NVLink domains of one length in rank order, so that the algorithm knows of no"
    " domain: every step has the software latency of one over the network, and hierarchical has no inside",
)
_LATENCIES = ("base_latency_ps", "local_step_latency_ps", "step_latency_ps")


def collective_job(section: CollectiveSection, fabric: Fabric, *, seed: int) -> tuple[Job, dict[str, Caveat]]:
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
    section, chosen = _with_protocol(section, fabric, domain_ranks(fabric, placement), ranks)
    call, caveats = _call(section, fabric, placement, ranks)
    found = schedule(section.algorithm or "", call)
    if found.switches:
        placement, _ = with_nvlink_switches(fabric, placement)
    return found.job(placement), caveats | chosen


def protocol_used(section: CollectiveSection, fabric: Fabric, *, seed: int) -> str:
    """Name the protocol of a collective: the section's, or the one that ``auto`` takes at this size.

    Parameters
    ----------
    section, fabric, seed : as for `collective_job`

    Raises
    ------
    ConfigError : ``auto`` has no protocols to choose among
    """
    if section.protocol != "auto":
        return section.protocol
    ranks = fabric.gpus if section.gpus is None else section.gpus
    domain = domain_ranks(fabric, PLACEMENTS[section.placement](fabric, ranks, seed=seed))
    return _with_protocol(section, fabric, domain, ranks)[0].protocol


def port_rate_bps(fabric: Fabric) -> int:
    """What one NIC port carries, by its link or by the host interface behind it; of ports that differ the slowest."""
    ports = fabric.ports
    node = int(fabric.hosts[0])
    link_bps = int(fabric.links["rate_bps"][ports.link[ports.base[node] : ports.base[node + 1]]].min())
    pcie_bps = fabric.nics[fabric.node_device[node]].pcie_rate_bps
    return min(link_bps, pcie_bps) if pcie_bps else link_bps


def _with_protocol(
    section: CollectiveSection, fabric: Fabric, domain: int, ranks: int
) -> tuple[CollectiveSection, dict[str, Caveat]]:
    """The section with the protocol that ``auto`` takes, and a note of that."""
    if section.protocol != "auto":
        return section, {}
    figures = collective_figures(
        fabric.servers[0], nic_port_rate_bps=port_rate_bps(fabric), network_latency_ps=path_latency_ps(fabric)
    )
    name = ALGORITHMS.load(section.algorithm or "").name
    group = GroupShape(members=ranks, per_domain=domain, domain_gpus=max(domain, fabric.servers[0].nvlink_domain_gpus))
    is_known = section.operation in OPERATIONS and ranks > 1
    ways = methods(section.operation, group, figures) if is_known else ()
    found = [alone(section.operation, way, group, section.size_bytes, figures) for way in ways if way.algorithm == name]
    if not found:
        text = f"found 'auto', but {section.operation} by {name} has no closed form here to choose a protocol by"
        wanted = "wanted simple, ll128, ll or none"
        raise ConfigError("collective", [Mistake(path="collective.protocol", text=f"{text}; {wanted}", fix="simple")])
    protocol = min(found, key=lambda one: one.time_ps).method.protocol
    text = f"auto took {protocol}, the fastest of {name} at {section.size_bytes:,} bytes by the closed form"
    note = caveats_by_subject([Caveat(subject="collective.protocol", kind="note", text=text)])
    return section.model_copy(update={"protocol": protocol}), note


def _call(
    section: CollectiveSection, fabric: Fabric, placement: Placement, ranks: int
) -> tuple[Call, dict[str, Caveat]]:
    domain = domain_ranks(fabric, placement)
    unused = caveats_by_subject([NO_DOMAINS]) if domain == 1 and _shares_nvlink(fabric, placement) else {}
    given = {name: getattr(section, name) for name in _LATENCIES}
    known: dict[str, Any] = {name: own for name, own in given.items() if own is not None}
    caveats: dict[str, Caveat] = {}
    if section.protocol != "none":
        usual = software(section.protocol, ALGORITHMS.load(section.algorithm or "").name)
        figures = collective_figures(fabric.servers[0], nic_port_rate_bps=0)
        group = GroupShape(members=ranks, per_domain=domain, domain_gpus=domain)
        launch_ps = usual.base_latency_ps + extra_launch_ps(section.operation, group, section.size_bytes, figures)
        usual_latencies = {name: getattr(usual, name) for name in _LATENCIES} | {"base_latency_ps": round(launch_ps)}
        known = usual_latencies | known
        known["protocol_efficiency"] = usual.protocol_efficiency
        caveats = {key: caveat for key, caveat in usual.caveats.items() if not _is_given(key, given)}
        caveats |= collective_caveats(figures)
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
    placed = scattered(section.placement, "collective.placement")
    if unused and placed:
        text = "; ".join(one["collective.placement"].text for one in (placed, unused))
        placed = caveats_by_subject([replace(NO_DOMAINS, text=text)])
    return call, caveats | unused | placed


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
