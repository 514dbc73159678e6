"""What a time is a time of, as far as measurements can be like it.

Leaves out: which measurements there are (`weftwork.data.scored`); which are near (`weftwork.study.answer.interval`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.hardware.catalogue import server_gpu
from weftwork.study.prepare.workload import ROADS

if TYPE_CHECKING:
    from weftwork.spec.training import Gpu, Model, Parallelism, ProductRates, Software
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["DENSE", "EXPERTS", "LORA", "Likeness", "family", "likeness_of"]

DENSE: Final = "dense models"
EXPERTS: Final = "mixtures of experts"
LORA: Final = "LoRA"  # of any model: what an iteration of adapters lacks is the same (mlperf-lora)


def family(software: str) -> str:
    """The name of a software without its release.

    Examples
    --------
    >>> family("megatron-bridge-26.06"), family("plain")
    ('megatron-bridge', 'plain')
    """
    return re.sub(r"-\d+(\.\d+)+$", "", software)


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    """By what a time is compared with measurements.

    Attributes
    ----------
    gpu : in the catalogue
    kind : of model, or the operation of a collective
    gpus : of the job, or ranks of the collective
    precision, software : of training; empty for a collective
    size_bytes : of a collective, as nccl-tests counts it; 0 for training
    rates : of dense products, of training
    """

    gpu: str
    kind: str
    gpus: int
    precision: str = ""
    software: str = ""
    size_bytes: int = 0
    rates: ProductRates = "best-shape"

    @classmethod
    def of_training(cls, model: Model, plan: Parallelism, gpu: Gpu, software: Software) -> Likeness:
        """Compare an iteration.

        Parameters
        ----------
        model, plan, gpu, software : of the job
        """
        kind = LORA if plan.has_lora else EXPERTS if model.experts else DENSE
        return cls(gpu=gpu.name, kind=kind, gpus=plan.ranks, precision=plan.precision, software=software.name)

    @classmethod
    def of_collective(cls, operation: str, gpu: str, ranks: int, *, hosts: int, size_bytes: int) -> Likeness:
        """Compare a collective.

        Parameters
        ----------
        operation, gpu, ranks, size_bytes : of the collective
        hosts : that it runs on
        """
        where = "in one server" if hosts == 1 else "between servers"
        return cls(gpu=gpu, kind=f"{operation}s {where}", gpus=ranks, size_bytes=size_bytes)


def likeness_of(prepared: Prepared) -> Likeness | None:
    """What the time of a run is a time of.

    None where nothing measured can be like it: several jobs, messages of a traffic pattern, servers without GPUs.

    Parameters
    ----------
    prepared : the run
    """
    return ROADS[prepared.scenario.workload_kind.name].likeness(prepared)


def likeness_of_training(prepared: Prepared) -> Likeness | None:
    """Likeness of a training job that has the fabric for itself.

    Parameters
    ----------
    prepared : the run
    """
    if len(prepared.jobs) != 1:
        return None
    (job,) = prepared.jobs
    return replace(Likeness.of_training(job.model, job.plan, job.gpu, job.software), rates=job.section.rates)


def likeness_of_collective(prepared: Prepared) -> Likeness | None:
    """Likeness of a collective; None where the servers have no GPU of the catalogue.

    Parameters
    ----------
    prepared : the run
    """
    section = prepared.scenario.collective_section
    gpu = server_gpu(prepared.fabric.servers[0].name)
    if gpu is None:
        return None
    ranks = prepared.fabric.gpus if section.gpus is None else section.gpus
    hosts = len(np.unique(prepared.job.placement.host))
    return Likeness.of_collective(section.operation, gpu, ranks, hosts=hosts, size_bytes=section.size_bytes)
