"""From training jobs to programs.

It resolves models, parallel plans, GPUs, software and placements.

Leaves out: what a run of them says (`weftwork.study.results.training_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.engine.programs import walk
from weftwork.hardware.catalogue import SERVERS, gpu, gpu_caveats
from weftwork.spec.job import Collect, Compute
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.study.prepare.calibrated import (
    calibrated_figures,
    calibrated_software,
    calibration_caveats,
    calibration_of,
)
from weftwork.study.prepare.collective import nvlink_domains, port_rate_bps
from weftwork.study.prepare.engine_settings import transport_of
from weftwork.workload.collectives.figures import collective_caveats, collective_figures, path_latency_ps
from weftwork.workload.collectives.stepwise import stepwise
from weftwork.workload.joined_jobs import joined
from weftwork.workload.models.catalogue import model_caveats
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.size import iteration_flops, parameters
from weftwork.workload.models.software import software, software_caveats
from weftwork.workload.parallelism.memory import WEIGHT_BYTES, Memory, adam_bytes, fullest_stage
from weftwork.workload.parallelism.refuse import PlanLimits, nearest_plan, refuse, settings
from weftwork.workload.placement import PLACEMENTS, scattered
from weftwork.workload.training.closed_form import ClosedForms
from weftwork.workload.training.communication import GpuCluster
from weftwork.workload.training.programs import Extras, TrainingShape, training_job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.base.fix import Settings
    from weftwork.spec.calibration import Calibration
    from weftwork.spec.device import Server
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.training import TrainingSection

__all__ = [
    "TrainingJob",
    "TrainingSetting",
    "compute_factors",
    "gpu_numbers",
    "proposed_plan",
    "training_jobs",
    "training_programs",
    "training_setting",
]

# chosen: Llama 3 stretched its context 16 times (arXiv:2407.21783, section 3.4.2); four times that is a slip of the pen
MOST_STRETCH = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingJob:
    """One training job, resolved.

    Attributes
    ----------
    name : of the job
    section : of the scenario
    model, plan, gpu, software : what trains how on what
    memory : of the GPU that needs most, item by item
    job, shape : its programs, and what their milestones mean
    """

    name: str
    section: TrainingSection
    model: Model
    plan: Parallelism
    gpu: Gpu
    software: Software
    memory: Memory
    job: Job
    shape: TrainingShape

    @property
    def model_flops(self) -> float:
        """FLOPs of one iteration without recomputation."""
        return iteration_flops(self.model, self.plan)

    @property
    def peak_flops(self) -> float:
        """Nominal FLOP/s of the GPU in the precision of the plan."""
        peaks = {"bf16": self.gpu.bf16_flops, "nvfp4": self.gpu.fp4_flops}
        return peaks.get(self.plan.precision, self.gpu.fp8_flops)

    @property
    def checkpoint_ps(self) -> int:
        """Time for which a checkpoint blocks training."""
        return _checkpoint_ps(self.section, self.model, self.plan)

    @property
    def words(self) -> str:
        """The plan in words, such as ``TP 8, PP 4, DP 2``.

        Degrees of 1 are left out.
        """
        plan = self.plan
        degrees = (("TP", plan.tensor), ("CP", plan.context), ("PP", plan.pipeline), ("DP", plan.data),
                   ("EP", plan.expert))  # fmt: skip
        split = [f"{name} {degree}" for name, degree in degrees if degree > 1] or ["one GPU"]
        virtual = [f"{plural(plan.virtual_stages, 'virtual stage')}"] if plan.virtual_stages > 1 else []
        zero = [f"ZeRO {plan.zero}"] if plan.zero and plan.data * plan.context > 1 else []
        batches = f"{plural(plan.micro_batches, 'micro batch', 'micro batches')} of {plan.micro_batch}"
        return ", ".join([*split, *virtual, *zero, batches])


def training_jobs(
    scenario: Scenario, fabric: Fabric, placement: Placement | None = None
) -> tuple[list[TrainingJob], list[Mistake], dict[str, Caveat]]:
    """Resolve the training jobs of a scenario.

    Parameters
    ----------
    scenario : that was read
    fabric : on which it runs
    placement : of the ranks of the section ``training``; None: as the scenario says

    Returns
    -------
    the jobs that can be, what is wrong with the others, and what is uncertain of all; all empty for other workloads
    """
    found: list[TrainingJob] = []
    mistakes: list[Mistake] = []
    caveats: dict[str, Caveat] = {}
    for index, section in enumerate(scenario.trainings):
        path = "training" if scenario.training is not None else f"jobs.{index}"
        try:
            job, own = _job(scenario, fabric, section, path, placement)
        except ConfigError as error:
            mistakes += error.mistakes
            continue
        found.append(job)
        caveats |= own
    if scenario.stragglers and scenario.engine.fidelity != "flow":
        text = "found slower GPUs, wanted none: the packet engine has no stragglers; take engine.fidelity: flow"
        mistakes.append(Mistake(path="stragglers", text=text))
    return found, mistakes, caveats


def training_programs(scenario: Scenario, fabric: Fabric, jobs: Sequence[TrainingJob]) -> tuple[Job, dict[str, Caveat]]:
    """All training jobs as one job, with collectives for the scenario's engine.

    Parameters
    ----------
    scenario : its fidelity; packets know collectives only as sends and receives
    fabric : whose NVLink domains those go through
    jobs : of `training_jobs`

    Returns
    -------
    the job, and what a user should know of it

    Raises
    ------
    ConfigError : two jobs are on one GPU, or the engine cannot run the job
    """
    job = joined([one.job for one in jobs])
    if scenario.engine.fidelity == "flow":
        return job, {}
    domain = nvlink_domains(fabric, job.placement)
    if domain is None:
        domain = np.arange(job.ranks, dtype=np.int64)
    text = (
        "collectives run as rings and direct exchanges, step by step, and block their stream, so no tensor and context "
        "traffic is hidden; trees and reducing switches are replaced by rings of as many bytes"
    )
    server = _server(fabric)
    near_ps = server.nvlink_latency_ps if server.nvlink_rate_bps else server.pcie_latency_ps
    steps = stepwise(job, domain, near_latency_ps=near_ps, far_latency_ps=path_latency_ps(fabric))
    return steps, caveats_by_subject([Caveat(subject="training.packets", kind="approximate", text=text)])


def gpu_numbers(fabric: Fabric, placement: Placement) -> NDArray[np.int64]:
    """GPU of each rank, counted over all servers from 0; shape (ranks,)."""
    local = 0 if placement.gpu is None else placement.gpu
    return np.asarray(placement.host.astype(np.int64) * _server(fabric).gpus + local, np.int64)


def compute_factors(scenario: Scenario, fabric: Fabric, placement: Placement) -> NDArray[np.float64] | None:
    """Factor of each rank's computing time; None if all ranks are alike.

    Parameters
    ----------
    scenario : its stragglers
    fabric, placement : which GPU each rank is
    """
    if not scenario.stragglers:
        return None
    number = gpu_numbers(fabric, placement)
    factor = np.ones(len(number))
    for slow in scenario.stragglers:
        factor[number == slow.gpu] = slow.factor
    return factor


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSetting:
    """The parts of a training job that do not depend on its plan.

    Attributes
    ----------
    model, gpu, software : what trains on what
    cluster : what collectives must know of the machine
    placement : of its GPUs
    figures_caveats : what is uncertain of the figures of collectives
    """

    model: Model
    gpu: Gpu
    software: Software
    cluster: GpuCluster
    placement: Placement
    figures_caveats: dict[str, Caveat]

    def closed_forms(self) -> ClosedForms:
        """Times of its plans, still empty."""
        return ClosedForms(
            model=self.model,
            gpu=self.gpu,
            software=self.software,
            cluster=self.cluster,
            placement=self.placement,
        )


def training_setting(
    scenario: Scenario, fabric: Fabric, section: TrainingSection, path: str = "training"
) -> TrainingSetting:
    """Resolve the plan-independent parts of a training job.

    Parameters
    ----------
    scenario : that was read
    fabric : on which it runs
    section : of the job
    path : of the section in the scenario

    Raises
    ------
    ConfigError : with what is wrong with the model, the GPU or the servers
    """
    server = _server(fabric)
    what = _model(section.model, f"{path}.model")
    first, gpus = section.first_gpu or 0, section.gpus or fabric.gpus
    chip = gpu(_gpu_name(section, server, path), path=f"{path}.gpu")
    calibration = calibration_of(scenario)
    made = _software(section, path, calibration)
    if made.exchange_multiprocessors >= chip.streaming_multiprocessors:
        wanted = f"wanted fewer than the {chip.streaming_multiprocessors} of '{chip.name}'"
        text = f"found {made.exchange_multiprocessors}, {wanted}: some must be left for computing"
        raise ConfigError(path, [Mistake(path=f"{path}.software.exchange_multiprocessors", text=text)])
    order = PLACEMENTS[section.placement](fabric, first + gpus, seed=scenario.engine.seed)
    figures = collective_figures(
        server,
        nic_port_rate_bps=port_rate_bps(fabric),
        gpu=chip.name,
        nic=fabric.nics[fabric.node_device[int(fabric.hosts[0])]].name,
        network_latency_ps=path_latency_ps(fabric),
        payload_share=transport_of(scenario.transport).payload_share,
    )
    figures = calibrated_figures(figures, calibration)
    return TrainingSetting(
        model=what,
        gpu=chip,
        software=made,
        cluster=GpuCluster(domain_gpus=max(1, server.nvlink_domain_gpus), figures=figures),
        placement=_part(order, first, first + gpus),
        figures_caveats=collective_caveats(figures),
    )


def _job(
    scenario: Scenario, fabric: Fabric, section: TrainingSection, path: str, placement: Placement | None
) -> tuple[TrainingJob, dict[str, Caveat]]:
    what = _model(section.model, f"{path}.model")
    gpus = section.gpus or fabric.gpus
    _refuse_absurd(section, what, path)
    plan = section.parallelism(what)
    if section.data is None:
        plan = plan.model_copy(update={"data": gpus // (plan.tensor * plan.context * plan.pipeline)})
    chip = gpu(_gpu_name(section, _server(fabric), path), path=f"{path}.gpu")
    calibration = calibration_of(scenario)
    made = _software(section, path, calibration)
    refuse(
        what,
        plan,
        gpus=gpus,
        gpu=chip,
        memory_bytes=section.memory_bytes,
        has_flash_attention=made.has_flash_attention,
        path=path,
    )
    setting = training_setting(scenario, fabric, section, path)
    job, shape = training_job(
        what,
        plan,
        gpu=chip,
        software=made,
        cluster=setting.cluster,
        placement=setting.placement if placement is None else placement,
        extras=_extras(section, what, plan),
        name=section.name,
    )
    _refuse_endless(job, path)
    caveats = {
        **({} if section.model.endswith(".json") else model_caveats(what.name)),
        **gpu_caveats(chip.name),
        **software_caveats(made.name),
        **setting.figures_caveats,
        **assumed_sequence(section, what, path),
        **scattered(section.placement, f"{path}.placement"),
        **calibration_caveats(scenario, calibration),
    }
    return (
        TrainingJob(
            name=section.name,
            section=section,
            model=what,
            plan=plan,
            gpu=chip,
            software=made,
            memory=fullest_stage(what, plan, has_flash_attention=made.has_flash_attention),
            job=job,
            shape=shape,
        ),
        caveats,
    )


def _software(section: TrainingSection, path: str, calibration: Calibration | None) -> Software:
    """The preset with the scenario's fields and the fitted constants."""
    usual = software(section.software.model, path=f"{path}.software")
    return calibrated_software(section.software.on(usual), section.software, calibration)


def proposed_plan(section: TrainingSection, node: str, path: str) -> Settings | None:
    """The settings of the nearest plan that all rules accept, or None.

    None, too, if the model or the GPU is wrong, which has a mistake of its own.

    Parameters
    ----------
    section : of a job, with its GPUs
    node : name of its servers in the catalogue
    path : of the section
    """
    row = SERVERS.get(node)
    usual = None if row is None or "gpu" not in row.figures else str(row.value("gpu"))
    name = section.gpu or usual
    try:
        what = _model(section.model, f"{path}.model")
        chip = None if name is None else gpu(name, path=f"{path}.gpu")
        made = _software(section, path, None)
    except ConfigError:
        return None
    limits = PlanLimits(
        model=what,
        gpus=section.gpus or 1,
        gpu=chip,
        memory_bytes=section.memory_bytes,
        has_flash_attention=made.has_flash_attention,
    )
    plan = section.parallelism(what)
    near = nearest_plan(limits, plan)
    if near is None:
        return None
    fix = settings(plan, near, path=path)
    return fix if fix.values else None


def _refuse_absurd(section: TrainingSection, what: Model, path: str) -> None:
    """Refuse a sequence much longer than the model's, unless forced."""
    limit = MOST_STRETCH * what.sequence
    if section.force or section.sequence is None or section.sequence <= limit:
        return
    text = (
        f"found {plural(section.sequence, 'token')}, {section.sequence / what.sequence:,.0f} times the"
        f" {what.sequence:,} tokens of '{what.name}', wanted at most {limit:,}; to use it anyway, set {path}.force:"
        " true"
    )
    raise ConfigError("training", [Mistake(path=f"{path}.sequence", text=text, fix=str(what.sequence))])


def assumed_sequence(section: TrainingSection, model: Model, path: str = "training") -> dict[str, Caveat]:
    """Caveat of a job whose sequence neither the scenario nor the file of its model states."""
    if section.sequence or section.phase == "long-context" or model.has_stated_sequence:
        return {}
    key = f"{path}.sequence"
    why = f"{Path(section.model).name} has no max_position_embeddings"
    text = f"{key} is {plural(model.sequence, 'token')}, since {why}"
    return caveats_by_subject([Caveat(subject=key, kind="assumed", text=text)])


def _refuse_endless(job: Job, path: str) -> None:
    """Refuse an operation that outlasts simulated time, by its label."""
    for _, operation, _ in walk(job):
        duration_ps = 0
        if isinstance(operation, Compute):
            duration_ps = operation.duration_ps
        elif isinstance(operation, Collect):
            duration_ps = operation.overhead_ps
        if duration_ps >= NEVER_PS:
            what = job.labels[operation.label] if isinstance(operation, Compute | Collect) else "computing"
            text = (
                f"an operation of '{what}' would take longer than simulated time, {NEVER_PS // SECOND_PS:,} s; look at"
                f" the figures of {path}.software, {path}.gpu and fabric.node"
            )
            raise ConfigError("training", [Mistake(path=path, text=text)])


def _model(name: str, path: str) -> Model:
    """The model of the catalogue or of a file.

    A mistake in a file names the file.
    """
    try:
        return model_of(name, path=path)
    except ConfigError as error:
        found = [
            mistake
            if mistake.path == path
            else Mistake(path=path, text=f"{error.source}: {mistake.path} {mistake.text}", fix=mistake.fix)
            for mistake in error.mistakes
        ]
        raise ConfigError(error.source, found) from error


def _server(fabric: Fabric) -> Server:
    """The server of the fabric's hosts; several kinds are refused."""
    if len(fabric.servers) > 1:
        names = ", ".join(server.name for server in fabric.servers)
        text = f"the fabric has servers of several kinds ({names}), wanted one kind for a training job"
        raise ConfigError("fabric", [Mistake(path="fabric", text=text)])
    return fabric.servers[0]


def _gpu_name(section: TrainingSection, server: Server, path: str) -> str:
    if section.gpu is not None:
        return section.gpu
    row = SERVERS.get(server.name)
    if row is None or "gpu" not in row.figures:
        text = f"is missing, wanted a GPU: the server '{server.name}' of the fabric names no GPU"
        raise ConfigError("training", [Mistake(path=f"{path}.gpu", text=text, fix="h100")])
    return str(row.value("gpu"))


def _part(order: Placement, first: int, last: int) -> Placement:
    """The ranks of a placement from ``first`` up to ``last``, exclusive."""
    gpus = None if order.gpu is None else order.gpu[first:last]
    return replace(order, host=order.host[first:last], nics=order.nics[first:last], gpu=gpus)


def _extras(section: TrainingSection, what: Model, plan: Parallelism) -> Extras:
    return Extras(
        iterations=section.iterations,
        loading_ps=section.loading_ps,
        checkpoint_ps=_checkpoint_ps(section, what, plan),
        checkpoint_every=0 if section.checkpoint is None else section.checkpoint.every,
    )


def _checkpoint_ps(section: TrainingSection, what: Model, plan: Parallelism) -> int:
    saved = section.checkpoint
    if saved is None or saved.is_asynchronous:
        return 0
    each = WEIGHT_BYTES + (0 if plan.has_lora else adam_bytes(plan))
    size = each * parameters(what).total if saved.size_bytes is None else saved.size_bytes
    return size * 8 * SECOND_PS // (saved.rate_bps * plan.ranks)
