"""From training jobs to programs.

It resolves models, parallel plans, GPUs, software and placements.

Leaves out: what a run of them says (`weftwork.study.results.training_tables`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.clock import NEVER_PS, SECOND_PS
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.engine.programs import walk
from weftwork.hardware.catalogue import gpu, gpu_caveats, nodes, server_gpu
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.job import Collect, Compute, Notify
from weftwork.spec.scenario.devices import gpu_mistake
from weftwork.spec.training import Gpu, Model, Parallelism, Software
from weftwork.study.prepare.calibrated import (
    calibrated_figures,
    calibrated_software,
    calibration_caveats,
    calibration_of,
)
from weftwork.study.prepare.collective import nvlink_domains
from weftwork.study.prepare.engine_settings import transport_of
from weftwork.study.prepare.recipe_defaults import recipe_caveats
from weftwork.workload.collectives.crossed import crossed
from weftwork.workload.collectives.figures import collective_caveats, collective_figures, path_latency_ps
from weftwork.workload.collectives.stepwise import stepwise
from weftwork.workload.joined_jobs import joined
from weftwork.workload.models.adapters import adapter_parameters
from weftwork.workload.models.catalogue import model_caveats
from weftwork.workload.models.huggingface import model_of
from weftwork.workload.models.size import iteration_flops, parameters
from weftwork.workload.models.software import software, software_caveats
from weftwork.workload.parallelism.memory import WEIGHT_BYTES, Memory, adam_bytes, fullest_stage
from weftwork.workload.parallelism.refuse import PlanLimits, nearest_plan, refuse, settings
from weftwork.workload.placement import placed, scattered
from weftwork.workload.slow_ranks import slowed
from weftwork.workload.training.closed_form import ClosedForms
from weftwork.workload.training.communication import Communication, GpuCluster
from weftwork.workload.training.programs import Extras, TrainingShape, job_of_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weftwork.base.findings import Findings
    from weftwork.base.fix import Settings
    from weftwork.spec.calibration import Calibration
    from weftwork.spec.device import Server
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job, Placement
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.topology import FabricSize
    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.study.prepare.prepared import Prepared

__all__ = [
    "TrainingJob",
    "TrainingSetting",
    "compute_factors",
    "gpu_numbers",
    "proposed_plan",
    "training_jobs",
    "training_programs",
    "training_setting",
    "words_of_training",
]

# chosen: Llama 3 stretched its context 16 times (arXiv:2407.21783, section 3.4.2); four times that is a slip of the pen
MOST_STRETCH = 64
_NAMED_JOBS: Final = 3  # chosen: in a heading; the table jobs has all


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
    calls : communication from which the programs were written
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
    calls: Communication

    @property
    def model_flops(self) -> float:
        """FLOPs of one iteration without recomputation."""
        return iteration_flops(self.model, self.plan)

    @property
    def trained_parameters(self) -> int:
        """Parameters that an iteration updates: those of the model, or of its adapters."""
        return adapter_parameters(self.model, self.plan) if self.plan.has_lora else parameters(self.model).total

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
        lora = [f"LoRA of rank {plan.lora_rank}"] if plan.has_lora else []
        return ", ".join([*split, *virtual, *zero, batches, *lora])


def training_jobs(
    scenario: Scenario,
    fabric: Fabric,
    findings: Findings,
    placement: Placement | None = None,
    known: Sequence[TrainingJob] = (),
) -> list[TrainingJob]:
    """Resolve the training jobs of a scenario.

    Parameters
    ----------
    scenario : that was read
    fabric : on which it runs
    findings : take what is wrong with jobs, and what is uncertain of the others
    placement : of the ranks of the section ``training``; None: as the scenario says
    known : jobs of a similar run, whose programs are taken where they would be written alike

    Returns
    -------
    the feasible jobs; none for other workloads
    """
    found: list[TrainingJob] = []
    for index, section in enumerate(scenario.trainings):
        path = scenario.job_path(index)
        try:
            similar = known[index] if index < len(known) else None
            job = _job(scenario, fabric, section, path, placement, similar, findings)
        except ConfigError as error:
            findings.include(error.mistakes)
            continue
        found.append(job)
    return found


def count_trained(scenario: Scenario, _size: FabricSize, gpus: int) -> dict[str, int]:
    """Ranks of the training jobs of a scenario on a fabric of ``gpus`` GPUs."""
    return {"ranks": sum(section.gpus or gpus for section in scenario.trainings)}


def training_programs(scenario: Scenario, fabric: Fabric, jobs: Sequence[TrainingJob], findings: Findings) -> Job:
    """All training jobs as one job, with collectives for the scenario's engine.

    Parameters
    ----------
    scenario : its fidelity; packets know collectives only as sends and receives, and slow GPUs only as programs
    fabric : whose NVLink domains those go through
    jobs : of `training_jobs`
    findings : take a note on what packets leave out

    Raises
    ------
    ConfigError : two jobs are on one GPU, or the engine cannot run the job
    """
    job = joined([one.job for one in jobs])
    if FIDELITIES[scenario.engine.fidelity].has_collectives:
        return job
    factor = compute_factors(scenario, fabric, job.placement)
    job = job if factor is None else slowed(job, factor)
    domain = nvlink_domains(fabric, job.placement)
    if domain is None:
        domain = np.arange(job.ranks, dtype=np.int64)
    text = (
        "collectives run as rings and direct exchanges, step by step, and block their stream, so no tensor and context "
        "traffic is hidden; trees and reducing switches are replaced by rings of as many bytes"
    )
    server = _server(fabric)
    near_ps = server.nvlink_latency_ps if server.nvlink_rate_bps else server.pcie_latency_ps
    far_ps = path_latency_ps(crossed(fabric, job.placement))
    findings.note("training.packets", "approximate", text)
    return stepwise(job, domain, near_latency_ps=near_ps, far_latency_ps=far_ps)


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
    chip = _gpu(section, _gpu_name(section, server, path), path)
    calibration = calibration_of(scenario)
    made = _software(section, path, calibration)
    if made.exchange_multiprocessors >= chip.streaming_multiprocessors:
        wanted = f"wanted fewer than the {chip.streaming_multiprocessors} of '{chip.name}'"
        text = f"found {made.exchange_multiprocessors}, {wanted}: some must be left for computing"
        raise ConfigError(path, [Mistake(path=f"{path}.software.exchange_multiprocessors", text=text)])
    order = placed(fabric, first + gpus, section, seed=scenario.engine.seed)
    placement = _part(order, first, first + gpus)
    path_of_job = crossed(fabric, placement)
    figures = collective_figures(
        server,
        nic_port_rate_bps=path_of_job.port_bps,
        gpu=chip.name,
        nic=fabric.nics[fabric.node_device[int(fabric.hosts[0])]].name,
        network_latency_ps=path_latency_ps(path_of_job),
        payload_share=transport_of(scenario.transport).payload_share,
    )
    figures = calibrated_figures(figures, calibration)
    return TrainingSetting(
        model=what,
        gpu=chip,
        software=made,
        cluster=GpuCluster(
            domain_gpus=max(1, server.nvlink_domain_gpus), figures=figures, host_rate_bps=server.host_link_bps
        ),
        placement=placement,
        figures_caveats=collective_caveats(figures),
    )


def _job(
    scenario: Scenario,
    fabric: Fabric,
    section: TrainingSection,
    path: str,
    placement: Placement | None,
    known: TrainingJob | None,
    findings: Findings,
) -> TrainingJob:
    what = _model(section.model, f"{path}.model")
    gpus = section.gpus or fabric.gpus
    _refuse_absurd(section, what, path)
    plan = section.parallelism(what)
    if section.data is None:
        plan = plan.model_copy(update={"data": gpus // (plan.tensor * plan.context * plan.pipeline)})
    chip = _gpu(section, _gpu_name(section, _server(fabric), path), path)
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
    calls = Communication(
        model=what,
        plan=plan,
        software=made,
        cluster=setting.cluster,
        placement=setting.placement if placement is None else placement,
    )
    if known is not None and known.section == section and known.gpu == chip and calls.writes_as(known.calls):
        job, shape = known.job, known.shape
    else:
        job, shape = job_of_calls(calls, gpu=chip, extras=_extras(section, what, plan), name=section.name)
        _refuse_endless(job, path)
    caveats = {
        **({} if section.model.endswith(".json") else model_caveats(what.name)),
        **gpu_caveats(chip.name, rates=section.rates, sustained_rate=section.sustained_rate),
        **_software_caveats(section, made.name),
        **setting.figures_caveats,
        **assumed_sequence(section, what, path),
        **recipe_caveats(section, path),
        **scattered(section.placement, f"{path}.placement"),
        **_offloading_caveats(plan, path),
        **calibration_caveats(scenario, calibration),
    }
    resolved = TrainingJob(
        name=section.name,
        section=section,
        model=what,
        plan=plan,
        gpu=chip,
        software=made,
        memory=fullest_stage(what, plan, has_flash_attention=made.has_flash_attention),
        job=job,
        shape=shape,
        calls=calls,
    )
    findings.note_each(caveats.values())
    return resolved


def _gpu(section: TrainingSection, name: str, path: str) -> Gpu:
    return gpu(name, path=f"{path}.gpu", rates=section.rates, sustained_rate=section.sustained_rate)


# What is fitted or chosen beside the best shape of a benchmark, and is 1 beside measured rates of products
_BESIDE_BEST_SHAPE: Final = ("matmul_efficiency", "fp8_efficiency")


def _software(section: TrainingSection, path: str, calibration: Calibration | None) -> Software:
    """The preset with the scenario's fields and the fitted constants."""
    usual = software(section.software.model, path=f"{path}.software")
    if section.rates == "measured":
        fitted = [name for name in _BESIDE_BEST_SHAPE if calibration is not None and name in calibration.values]
        if fitted:
            text = f"the calibration has {' and '.join(fitted)}, which were fitted with the rates of the best shape"
            raise ConfigError(path, [Mistake(path=f"{path}.rates", text=text, fix="best-shape")])
        usual = usual.model_copy(update=dict.fromkeys(_BESIDE_BEST_SHAPE, 1.0))
    return calibrated_software(section.software.on(usual), section.software, calibration)


def _software_caveats(section: TrainingSection, name: str) -> dict[str, Caveat]:
    caveats = software_caveats(name)
    if section.rates == "measured":
        return {key: caveat for key, caveat in caveats.items() if key.rpartition(".")[2] not in _BESIDE_BEST_SHAPE}
    return caveats


def proposed_plan(section: TrainingSection, node: str, path: str) -> Settings | None:
    """The settings of the nearest plan that all rules accept, or None.

    None, too, if the model or the GPU is wrong, which has a mistake of its own.

    Parameters
    ----------
    section : of a job, with its GPUs
    node : name of its servers in the catalogue
    path : of the section
    """
    name = section.gpu or server_gpu(node)
    try:
        what = _model(section.model, f"{path}.model")
        chip = None if name is None else _gpu(section, name, path)
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


def _offloading_caveats(plan: Parallelism, path: str) -> dict[str, Caveat]:
    """What the transfers of offloaded activations leave out."""
    if not plan.offloaded_layers:
        return {}
    text = (
        "each GPU has its link to the host for its transfers alone: what NICs, other GPUs of a PCIe switch or GPUs"
        " without NVLink move over the same PCIe at the same time is left out"
    )
    return caveats_by_subject([Caveat(subject=f"{path}.offloaded_layers", kind="approximate", text=text)])


def _refuse_endless(job: Job, path: str) -> None:
    """Refuse an operation that outlasts simulated time, by its label."""
    for _, operation, _ in walk(job):
        duration_ps = 0
        if isinstance(operation, Compute):
            duration_ps = operation.duration_ps
        elif isinstance(operation, Collect):
            duration_ps = operation.overhead_ps
        elif isinstance(operation, Notify):
            duration_ps = operation.after_ps
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
        # a scenario refused it when it was read; a fabric of a file or of Python names its servers only here
        if (mistake := gpu_mistake(section.gpu, server.name, nodes(), node_key="fabric.node")) is not None:
            text, _ = mistake
            raise ConfigError("training", [Mistake(path=f"{path}.gpu", text=text, fix=server_gpu(server.name))])
        return section.gpu
    name = server_gpu(server.name)
    if name is None:
        text = f"is missing, wanted a GPU: the server '{server.name}' of the fabric names no GPU"
        raise ConfigError("training", [Mistake(path=f"{path}.gpu", text=text, fix="h100")])
    return name


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
    trained = adapter_parameters(what, plan) if plan.has_lora else parameters(what).total
    size = (WEIGHT_BYTES + adam_bytes(plan)) * trained if saved.size_bytes is None else saved.size_bytes
    return size * 8 * SECOND_PS // (saved.rate_bps * plan.ranks)


def words_of_training(prepared: Prepared) -> str:
    """Training jobs in words, for the head of a run.

    Parameters
    ----------
    prepared : the run
    """
    jobs = prepared.jobs
    if len(jobs) == 1:
        return f"an iteration of {jobs[0].model.name} on {plural(jobs[0].plan.ranks, 'GPU')} ({jobs[0].words})"
    told = [f"{job.name} ({job.model.name} on {plural(job.plan.ranks, 'GPU')})" for job in jobs[:_NAMED_JOBS]]
    more = [f"{len(jobs) - len(told):,} more"] if len(jobs) > len(told) else []
    return f"{plural(len(jobs), 'training job')} on one fabric: {', '.join(told + more)}"
