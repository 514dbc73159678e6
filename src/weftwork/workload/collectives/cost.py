"""Cost of a collective as one operation of a program (`weftwork.spec.job.Collect`): overhead, bytes and efficiencies.

In one NVLink domain W bus bytes take alpha + W / B + ramp (g - 1) / 7 W / (W + ramp_bytes): a launch, a bandwidth and
the filling of a pipeline. Across domains they take alpha of the domain and of the network, a latency for each step of a
ring between domains (or of a tree, where that is faster for an all-reduce), and as long as NICs and NVLink need.
Engines know the rates of links, so that B becomes an efficiency: B over the rate of the server's NVLink.
Source: W as nccl-tests counts it, doc/PERFORMANCE.md; figures.toml names the source of each figure.
Leaves out: NCCL's protocols LL and LL128, which `weftwork.workload.collectives.nccl_time` has; PAT; SHARP in a fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from weftwork.base.catalogue import Catalogue
from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.hardware.catalogue import SERVERS
from weftwork.spec.device import Server
from weftwork.spec.training import Software

__all__ = [
    "FIGURES",
    "CollectiveCost",
    "CollectiveFigures",
    "collective_cost",
    "collective_facts",
    "collective_figures",
]

FIGURES: Final = Catalogue("collective figures", Path(__file__).with_name("figures.toml"))
BUS_FACTOR: Final = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1}  # times (n - 1) / n
TREE_EFFICIENCY: Final = 0.92  # NCCL, src/graph/tuning.cc: a tree gets .92 of the bandwidth of a ring
WHOLE_GPUS: Final = 8  # chosen: so many of a domain of 72 reduce in the switch too
RAMP_GPUS: Final = 7  # the ramp was fitted on eight GPUs: seven steps
_SAME: Final = {"h200": "h100", "gb200": "b200", "b300": "b200", "gb300": "b200"}  # NVLink of one generation


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveFigures:
    """What groups of GPUs of one kind of server get.

    Attributes
    ----------
    name : row of figures.toml
    alpha_ps : of any collective
    ramp_ps, ramp_bytes : filling of the pipeline, for eight GPUs
    ring_bus_bandwidth_bps, nvls_bus_bandwidth_bps : nccl-tests' bus bandwidth in a domain; 0: no reductions in switches
    nvlink_rate_bps : of the server's NVLink, one GPU, one direction, as engines have it
    network_rate_bps : of all NIC ports of a GPU together, headers included
    """

    name: str
    alpha_ps: int
    ramp_ps: int
    ramp_bytes: int
    ring_bus_bandwidth_bps: int
    nvls_bus_bandwidth_bps: int
    nvlink_rate_bps: int
    network_rate_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveCost:
    """Fields of a `Collect` by their names."""

    overhead_ps: int
    amount_bytes: int
    pattern: Literal["ring", "all-to-all"]
    local_efficiency: float
    network_efficiency: float


def collective_figures(server: Server, *, nic_port_rate_bps: int, gpu: str | None = None) -> CollectiveFigures:
    """Figures of a server.

    Parameters
    ----------
    server : its NVLink and NIC ports
    nic_port_rate_bps : of one port
    gpu : in the catalogue of GPUs; by default that of the catalogue's server of this name

    Returns
    -------
    those of the GPU, or those of ``other`` where its NVLink was never measured: bus bandwidth is then the NVLink's rate
    """
    if gpu is None:
        row = SERVERS.get(server.name)
        gpu = str(row.value("gpu")) if row is not None and "gpu" in row.figures else "other"
    name = _SAME.get(gpu, gpu)
    found = FIGURES.get(name, FIGURES["other"])
    link_bps = server.nvlink_rate_bps or server.pcie_rate_bps
    is_measured = found.name != "other" and server.nvlink_rate_bps > 0
    nvls = found.figures.get("nvls_bus_bandwidth_bps")
    return CollectiveFigures(
        name=found.name,
        alpha_ps=int(found.value("alpha_ps")),
        ramp_ps=int(found.value("ramp_ps")),
        ramp_bytes=int(found.value("ramp_bytes")),
        ring_bus_bandwidth_bps=int(found.value("ring_bus_bandwidth_bps")) if is_measured else link_bps,
        nvls_bus_bandwidth_bps=int(nvls.value) if nvls is not None and is_measured and server.nvls else 0,
        nvlink_rate_bps=link_bps,
        network_rate_bps=nic_port_rate_bps * server.nic_ports // server.gpus,
    )


def collective_facts(figures: CollectiveFigures) -> dict[str, str]:
    """What is fitted, chosen or unverified among the figures of a server, by ``collectives.row.key``."""
    return {f"collectives.{key}": text for key, text in FIGURES[figures.name].facts().items()}


def collective_cost(
    operation: str,
    *,
    members: int,
    per_domain: int,
    domain_gpus: int,
    size_bytes: float,
    figures: CollectiveFigures,
    software: Software,
) -> CollectiveCost:
    """Cost of one collective operation of a group that has the machine to itself, or shares it with its like.

    Parameters
    ----------
    operation : all-reduce, all-gather, reduce-scatter or all-to-all
    members : of the group, at least one
    per_domain : members that share an NVLink domain, where most do
    domain_gpus : of one NVLink domain
    size_bytes : as nccl-tests counts it: the whole buffer, also of an all-gather or reduce-scatter
    figures : of the servers
    software : whose latencies and efficiency of the network hold

    Raises
    ------
    ConfigError : no such operation, or no members
    """
    _check(operation, members, per_domain)
    pattern: Literal["ring", "all-to-all"] = "all-to-all" if operation == "all-to-all" else "ring"
    if members == 1 or size_bytes <= 0:
        return CollectiveCost(
            overhead_ps=0, amount_bytes=0, pattern=pattern, local_efficiency=1.0, network_efficiency=1.0
        )
    bus_bytes = BUS_FACTOR[operation] * (members - 1) / members * size_bytes
    is_local = members == per_domain
    whole = is_local and members >= min(WHOLE_GPUS, domain_gpus)
    local = local_bandwidth_bps(operation, figures, is_whole=whole) / figures.nvlink_rate_bps
    network = software.network_efficiency
    if is_local:
        overhead_ps = figures.alpha_ps + ramp_ps(bus_bytes, members, figures)
        network = 1.0
    else:
        overhead_ps, share = _between_domains(operation, members, per_domain, bus_bytes, figures, software)
        network *= share
    return CollectiveCost(
        overhead_ps=round(overhead_ps),
        amount_bytes=round(size_bytes if pattern == "all-to-all" else bus_bytes),
        pattern=pattern,
        local_efficiency=local,
        network_efficiency=network,
    )


def local_bandwidth_bps(operation: str, figures: CollectiveFigures, *, is_whole: bool) -> int:
    """Bus bandwidth inside a domain: that of switches that reduce for an all-reduce of a whole domain, else of rings.

    Parameters
    ----------
    operation : as in `collective_cost`
    figures : of the servers
    is_whole : whether the group is a whole NVLink domain, or eight GPUs of it
    """
    if operation == "all-reduce" and is_whole and figures.nvls_bus_bandwidth_bps:
        return figures.nvls_bus_bandwidth_bps
    return figures.ring_bus_bandwidth_bps


def ramp_ps(bus_bytes: float, members: int, figures: CollectiveFigures) -> float:
    """Time to fill the pipeline of a collective inside a domain.

    Parameters
    ----------
    bus_bytes : that the busiest link carries
    members : of the group; more than eight fill it no slower than eight
    figures : of the servers
    """
    return figures.ramp_ps * min(1.0, (members - 1) / RAMP_GPUS) * bus_bytes / (bus_bytes + figures.ramp_bytes)


def _between_domains(
    operation: str,
    members: int,
    per_domain: int,
    bus_bytes: float,
    figures: CollectiveFigures,
    software: Software,
) -> tuple[float, float]:
    """Overhead, and the share of a ring's bandwidth that is left: a tree has fewer steps and less bandwidth."""
    domains = -(-members // per_domain)
    launch_ps = software.network_latency_ps
    if operation == "all-to-all":
        return launch_ps + (domains - 1) * software.network_step_ps, 1.0
    launch_ps += figures.alpha_ps
    factor = BUS_FACTOR[operation]
    ring_ps = launch_ps + factor * (domains - 1) * software.network_step_ps
    if operation != "all-reduce":
        return ring_ps, 1.0
    tree_ps = launch_ps + factor * (domains - 1).bit_length() * software.network_step_ps
    rate_bps = figures.network_rate_bps * software.network_efficiency * per_domain
    bytes_ps = bus_bytes * 8 * SECOND_PS / rate_bps
    if tree_ps + bytes_ps / TREE_EFFICIENCY < ring_ps + bytes_ps:
        return tree_ps, TREE_EFFICIENCY
    return ring_ps, 1.0


def _check(operation: str, members: int, per_domain: int) -> None:
    mistakes = []
    if operation not in BUS_FACTOR:
        text = f"found '{operation}', wanted {', '.join(BUS_FACTOR)}"
        mistakes.append(Mistake(path="collective.operation", text=text))
    if not 1 <= per_domain <= members:
        text = f"found {per_domain} of {members} members in an NVLink domain, wanted 1 to {members}"
        mistakes.append(Mistake(path="collective.members", text=text))
    if mistakes:
        raise ConfigError("collective", mistakes)
