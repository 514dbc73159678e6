"""How long nccl-tests takes, in closed form: the fastest of NCCL's algorithms and protocols at a size.

For g GPUs in N domains and a protocol of efficiency f, with latency l of a hop inside and L between domains, W bus
bytes take: ring ``alpha + (c (g - 1) - c N) l + c N L + W / (f B)``, c = 2 for an all-reduce, else 1; tree, for that,
``alpha + 2 (7 l + log2 N L) + ramp log2 N W / (W + ramp_bytes) + W / (.92 f B)``. B is what the ring gets of NVLink or
the NICs of a domain carry, whichever is less; on two domains a tree with reductions in the switch sends its bytes once.
An all-to-all is bound by the NIC: ``S (g - d) / g / NIC + alpha + (g - 1) peer`` for d GPUs of a domain.
Source: NCCL, src/graph/tuning.cc, for the shape of the formulas; figures.toml; `HOPS`.
Leaves out: NVLSTree beyond two domains as an algorithm of its own, PAT, and limits of a channel's bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.workload.collectives.cost import TREE_EFFICIENCY, CollectiveFigures, ramp_ps

__all__ = ["HOPS", "Hops", "nccl_time_ps"]

PEER_PS: Final = 500_000  # chosen: CPU and NIC time to post a send to one more peer
TREE_HOPS: Final = 7  # inside a domain of eight, up and down
BUS_FACTOR: Final = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Hops:
    """A protocol: its share of the bandwidth, and latencies of a hop of a ring and of a tree."""

    efficiency: float
    ring_local_ps: int
    ring_network_ps: int
    tree_local_ps: int
    tree_network_ps: int


# Latencies: aliyun/SimAI, send_lat, a prior that knows none of the fabrics here; read second-hand, unverified.
# Efficiencies: NCCL, src/graph/tuning.cc, where LL moves a quarter and LL128 0.92 of what Simple does.
HOPS: Final = {
    "ll": Hops(
        efficiency=0.25,
        ring_local_ps=7_200_000,
        ring_network_ps=9_300_000,
        tree_local_ps=7_400_000,
        tree_network_ps=11_800_000,
    ),
    "ll128": Hops(
        efficiency=0.92,
        ring_local_ps=15_900_000,
        ring_network_ps=18_000_000,
        tree_local_ps=15_250_000,
        tree_network_ps=22_500_000,
    ),
    "simple": Hops(
        efficiency=1.0,
        ring_local_ps=11_800_000,
        ring_network_ps=22_400_000,
        tree_local_ps=12_400_000,
        tree_network_ps=22_400_000,
    ),
}


def nccl_time_ps(
    operation: str,
    *,
    gpus: int,
    domain_gpus: int,
    size_bytes: int,
    figures: CollectiveFigures,
    network_efficiency: float,
    latency_scale: float = 1.0,
) -> float:
    """Time of one operation among whole domains.

    Parameters
    ----------
    operation : all-reduce, all-gather, reduce-scatter or all-to-all
    gpus : that take part
    domain_gpus : GPUs of an NVLink domain, a divisor of ``gpus``
    size_bytes : as nccl-tests counts it
    figures : of the servers
    network_efficiency : of the NICs, headers included
    latency_scale : of the latency of a hop; 1 is the prior

    Raises
    ------
    ConfigError : no such operation, or no whole number of domains
    """
    _check(operation, gpus, domain_gpus)
    domains = gpus // domain_gpus
    nic_bps = figures.network_rate_bps * network_efficiency
    if operation == "all-to-all":
        return figures.alpha_ps + max(
            _bytes_ps(size_bytes * (domain_gpus - 1) / gpus, figures.ring_bus_bandwidth_bps),
            _bytes_ps(size_bytes * (gpus - domain_gpus) / gpus, nic_bps) + (gpus - 1) * PEER_PS,
        )
    factor = BUS_FACTOR[operation]
    bus_bytes = factor * (gpus - 1) / gpus * size_bytes
    if domains == 1:
        bandwidth = figures.ring_bus_bandwidth_bps
        if operation == "all-reduce":
            bandwidth = max(bandwidth, figures.nvls_bus_bandwidth_bps)
        return figures.alpha_ps + _bytes_ps(bus_bytes, bandwidth) + ramp_ps(bus_bytes, gpus, figures)
    node_bps = nic_bps * domain_gpus
    ring_bps = min(figures.ring_bus_bandwidth_bps, node_bps)
    times = []
    for hops in HOPS.values():
        local, network = factor * (gpus - 1 - domains), factor * domains
        steps_ps = local * hops.ring_local_ps + network * hops.ring_network_ps
        times.append(latency_scale * steps_ps + _bytes_ps(bus_bytes, ring_bps * hops.efficiency))
        if operation == "all-reduce":
            steps_ps = 2 * (TREE_HOPS * hops.tree_local_ps + round(log2(domains) * hops.tree_network_ps))
            fill_ps = log2(domains) * ramp_ps(bus_bytes, gpus, figures)
            times.append(
                latency_scale * steps_ps
                + fill_ps
                + _bytes_ps(bus_bytes, _tree_bps(figures, node_bps, domains) * hops.efficiency)
            )
    return figures.alpha_ps + min(times)


def _tree_bps(figures: CollectiveFigures, node_bps: float, domains: int) -> float:
    """Bus bandwidth of a tree: its bytes go up once and down once, so that two domains send each way once."""
    if domains > 2:
        return node_bps * TREE_EFFICIENCY
    return min(figures.nvls_bus_bandwidth_bps or figures.ring_bus_bandwidth_bps, 2 * node_bps)


def _bytes_ps(size_bytes: float, rate_bps: float) -> float:
    return size_bytes * 8 * SECOND_PS / rate_bps


def _check(operation: str, gpus: int, domain_gpus: int) -> None:
    mistakes = []
    if operation not in {*BUS_FACTOR, "all-to-all"}:
        text = f"found '{operation}', wanted {', '.join(BUS_FACTOR)} or all-to-all"
        mistakes.append(Mistake(path="collective.operation", text=text))
    if gpus < 2 or gpus % domain_gpus:
        text = f"found {gpus}, wanted whole domains of {domain_gpus} GPUs"
        mistakes.append(Mistake(path="collective.gpus", text=text))
    if mistakes:
        raise ConfigError("collective", mistakes)
