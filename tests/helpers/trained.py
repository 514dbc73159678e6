"""Training jobs on servers of the catalogue, for tests."""

from __future__ import annotations

import numpy as np

from weftwork.hardware.catalogue import gpu, node
from weftwork.spec.job import Job, Placement
from weftwork.spec.training import Model, Parallelism, Software
from weftwork.workload.collectives.figures import collective_figures
from weftwork.workload.training.communication import GpuCluster
from weftwork.workload.training.programs import Extras, TrainingShape, training_job

SMALL = Model(
    name="small",
    layers=8,
    hidden=1024,
    heads=16,
    key_value_heads=16,
    head_dim=64,
    ffn=4096,
    vocabulary=32_000,
    has_tied_embeddings=False,
)
EXPERTS = SMALL.model_copy(
    update={
        "name": "experts",
        "experts": 16,
        "experts_per_token": 2,
        "expert_ffn": 512,
        "expert_layers": 6,
        "shared_ffn": 512,
    }
)
QUIET = Software(latency_scale=0, launch_ps=0)  # messages take no time beyond their bytes


def packed(ranks: int, gpus: int) -> Placement:
    """Ranks on servers of so many GPUs, each with a port of its own."""
    rank = np.arange(ranks, dtype=np.int32)
    return Placement(host=rank // gpus, nics=(rank % gpus)[:, None], gpu=rank % gpus)


def job_of(
    model: Model,
    plan: Parallelism,
    *,
    server: str = "dgx-h100",
    software: Software = QUIET,
    gpus: int = 0,
    extras: Extras | None = None,
) -> tuple[Job, TrainingShape]:
    """A job on servers of one kind.

    Parameters
    ----------
    gpus : that a server gives to the job, which are one NVLink domain; 0: all
    """
    found = node(server)
    assert found.nic_port_rate_bps is not None
    figures = collective_figures(found.server, nic_port_rate_bps=found.nic_port_rate_bps)
    each = gpus or found.server.gpus
    return training_job(
        model,
        plan,
        gpu=gpu("h100"),
        software=software,
        cluster=GpuCluster(domain_gpus=each, figures=figures, host_rate_bps=found.server.host_link_bps),
        placement=packed(plan.ranks, each),
        extras=extras,
    )
