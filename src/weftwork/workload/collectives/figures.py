"""Figures of servers and network for collectives: rates, latencies, fitted values.

Rates and latencies are those of the fabric that is run, so that a faster NVLink is a faster collective. What software
adds to the protocols' latencies (launch, ramp) is fitted by GPU on published curves; figures.toml names the source of
each figure. What the software of a kind of NIC adds (networks.toml) is what its makers tell NCCL's tuner.
Leaves out: NICs and paths that differ inside one job; the slowest port and the path through one leaf stand for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.hardware.catalogue import SERVERS
from weftwork.spec.device import Server
from weftwork.workload.collectives.crossed import Crossed

__all__ = ["FIGURES", "NETWORKS", "CollectiveFigures", "collective_caveats", "collective_figures", "path_latency_ps"]

FIGURES: Final = Catalogue("collective figures", Path(__file__).with_name("figures.toml"))
NETWORKS: Final = Catalogue("network of collectives", Path(__file__).with_name("networks.toml"))
RAMP_STEPS: Final = 7  # the ramp was fitted on eight GPUs: seven steps
_SAME: Final = {"h200": "h100", "gb200": "b200", "b300": "b200", "gb300": "b200"}  # NVLink of one generation


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectiveFigures:
    """Rates and latencies of GPU groups in one kind of server.

    Attributes
    ----------
    name : row of figures.toml
    launch_ps : of any collective, besides the latencies of its protocol
    ramp_ps, ramp_bytes, ramp_steps : filling of pipelines: W bytes take ramp_ps W / (W + ramp_bytes) more
    has_nvls : whether NVLink switches reduce, and the GPU has what asks them to
    nvlink_rate_bps, nvlink_latency_ps : of a message of one GPU, one direction; of PCIe where there is no NVLink
    network_rate_bps : of all NIC ports of a GPU together, headers included
    payload_share : of it, that is data
    network_latency_ps : of a message to another server of the same leaf, besides its serialisation
    nic_ports_of_a_gpu : at least one
    network : row of networks.toml, of which the fields below are
    nic_latency_ps, nic_flush_ps : that the software of the NIC adds to a step over the network, and to one of Simple
    post_ps : of the host, for each step of a ring through several domains
    peer_ps : of each peer of an all-to-all
    network_share : of the NIC's rate that this software gets, beyond headers
    buffer_scale : of NCCL's buffer
    nvls_tree_chunk_bytes : of a channel of NVLSTree
    """

    name: str
    launch_ps: int
    ramp_ps: int
    ramp_bytes: int
    ramp_steps: int
    has_nvls: bool
    nvlink_rate_bps: int
    nvlink_latency_ps: int
    network_rate_bps: int
    payload_share: float
    network_latency_ps: int
    nic_ports_of_a_gpu: int
    network: str = "other"
    nic_latency_ps: int = 0
    nic_flush_ps: int = 0
    post_ps: int = 0
    peer_ps: int = 0
    network_share: float = 1.0
    buffer_scale: int = 1
    nvls_tree_chunk_bytes: int = 131_072


def collective_figures(
    server: Server,
    *,
    nic_port_rate_bps: int,
    gpu: str | None = None,
    nic: str | None = None,
    network_latency_ps: int = 0,
    payload_share: float = 1.0,
) -> CollectiveFigures:
    """Figures of a server.

    Parameters
    ----------
    server : its NVLink and NIC ports
    nic_port_rate_bps : of one port
    gpu : in the catalogue of GPUs; by default that of the catalogue's server of this name
    nic : in the catalogue of NICs; by default that of the catalogue's server of this name
    network_latency_ps, payload_share : see `CollectiveFigures`

    Returns
    -------
    those of the GPU, or those of ``other`` where its collectives were never measured
    """
    row = SERVERS.get(server.name)
    if gpu is None:
        gpu = str(row.value("gpu")) if row is not None and "gpu" in row.figures else "other"
    if nic is None:
        nic = str(row.value("nic")) if row is not None and "nic" in row.figures else "other"
    over = NETWORKS.get(nic, NETWORKS["other"])
    found = FIGURES.get(_SAME.get(gpu, gpu), FIGURES["other"])
    has_nvlink = server.nvlink_rate_bps > 0
    return CollectiveFigures(
        name=found.name,
        launch_ps=int(found.value("launch_ps")),
        ramp_ps=int(found.value("ramp_ps")),
        ramp_bytes=int(found.value("ramp_bytes")),
        ramp_steps=RAMP_STEPS,
        has_nvls=has_nvlink and server.nvls and bool(found.value("nvls")),
        nvlink_rate_bps=server.nvlink_rate_bps if has_nvlink else server.pcie_rate_bps,
        nvlink_latency_ps=server.nvlink_latency_ps if has_nvlink else server.pcie_latency_ps,
        network_rate_bps=nic_port_rate_bps * server.nic_ports // server.gpus,
        payload_share=payload_share,
        network_latency_ps=network_latency_ps,
        nic_ports_of_a_gpu=max(1, server.nic_ports // server.gpus),
        network=over.name,
        nic_latency_ps=int(over.value("nic_latency_ps")),
        nic_flush_ps=int(over.value("nic_flush_ps")),
        post_ps=int(over.value("post_ps")),
        peer_ps=int(over.value("peer_ps")),
        network_share=float(over.value("share")),
        buffer_scale=int(over.value("buffer_scale")),
        nvls_tree_chunk_bytes=int(over.value("nvls_tree_chunk_bytes")),
    )


def path_latency_ps(path: Crossed) -> int:
    """Latency of a message between two hosts of one leaf.

    Neighbours of a ring are mostly on one leaf. Propagation of the longest cable to a host, forwarding of the slowest
    switch that the job crosses, and what the receiving NIC takes.

    Parameters
    ----------
    path : of the job, whose hosts hang on switches, or on each other
    """
    return max(2 * path.to_leaf_ps + path.forwarding_ps, path.to_host_ps) + path.nic_ps


def collective_caveats(figures: CollectiveFigures) -> dict[str, Caveat]:
    """Caveats among the figures of a server, by ``collectives.row.key``.

    They are fitted, chosen or unverified figures.
    """
    own = [*FIGURES[figures.name].caveats().values(), *NETWORKS[figures.network].caveats().values()]
    return caveats_by_subject(replace(caveat, subject=f"collectives.{caveat.subject}") for caveat in own)
