"""Checks of ``training``, ``jobs`` and ``stragglers``, and against the fabric.

Fills in the GPUs of every job, its first one and its copies of the model, so that the record says who runs what. A GPU
that the servers cannot hold is a mistake.
Leaves out: what needs the model, such as heads that a degree must divide (`weftwork.workload.parallelism.refuse`).
"""

from __future__ import annotations

from typing import TypeVar

from weftwork.base.fix import Settings
from weftwork.base.grammar import plural
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.scenario.devices import gpu_mistake
from weftwork.spec.scenario.fabric import FabricSection
from weftwork.spec.scenario.reader import Reader
from weftwork.spec.scenario.training import Straggler, TrainingJobSection, TrainingSection
from weftwork.spec.scenario.workload import EngineSection

__all__ = ["check_engine", "check_jobs", "check_stragglers", "check_training", "resolve_engine"]

_S = TypeVar("_S", bound=TrainingSection)

_SHAPE = ("fabric.gpus", "fabric.hosts", "fabric.topology", "fabric.radix", "fabric.leaves", "fabric.node")
_SPLITS = ("tensor", "context", "pipeline")
_GPUS = (*_SPLITS, "data", "gpus", "first_gpu")


def resolve_engine(engine: EngineSection, *, is_training: bool) -> EngineSection:
    """Fill in the engine that suits the workload."""
    if engine.fidelity:
        return engine
    return engine.model_copy(update={"fidelity": "flow" if is_training else "packet"})


def check_engine(engine: EngineSection, reader: Reader) -> None:
    """Check that several jobs run on the flow engine."""
    if not reader.is_sound("engine.fidelity") or FIDELITIES[engine.fidelity].has_jobs:
        return
    (name,) = (fidelity.name for fidelity in FIDELITIES.values() if fidelity.has_jobs)
    text = f"found '{engine.fidelity}', wanted {name}: several jobs on one fabric run as flows"
    reader.wrong("engine.fidelity", text, name)


def check_training(section: TrainingSection, fabric: FabricSection, reader: Reader) -> TrainingSection:
    """Check the single job and fill in its GPUs and copies."""
    total = fabric.gpus if reader.is_sound(*_SHAPE) else None
    first = section.first_gpu or 0
    gpus = section.gpus
    if gpus is None and total is not None:
        gpus = max(total - first, 1)
    section = section.model_copy(update={"gpus": gpus, "first_gpu": first})
    _on_the_node(section, "training", fabric, reader)
    return _in_the_fabric(_filled(section, "training", fabric, reader), "training", total, reader)


def check_jobs(
    jobs: tuple[TrainingJobSection, ...], fabric: FabricSection, reader: Reader
) -> tuple[TrainingJobSection, ...]:
    """Check several jobs, alone and together, and assign their GPUs."""
    total = fabric.gpus if reader.is_sound(*_SHAPE) else None
    if not jobs:
        reader.wrong("jobs", "found no job, wanted at least one")
    found: list[TrainingJobSection] = []
    after = 0
    for index, job in enumerate(jobs):
        path = f"jobs.{index}"
        if not reader.is_sound(path):
            continue
        product = job.tensor * job.context * job.pipeline
        gpus = job.gpus if job.gpus is not None else None if job.data is None else product * job.data
        if gpus is None and reader.is_sound(*(f"{path}.{key}" for key in ("gpus", "data"))):
            reader.wrong(
                path, "found neither gpus nor data, wanted one of them: with several jobs, no job has all GPUs"
            )
        first = after if job.first_gpu is None else job.first_gpu
        after = first + (gpus or 0)
        update = {"gpus": gpus, "first_gpu": first, "job": job.job or f"job{index}"}
        _on_the_node(job, path, fabric, reader)
        filled = _filled(job.model_copy(update=update), path, fabric, reader)
        found.append(_in_the_fabric(filled, path, total, reader))
    if len(found) == len(jobs):
        _apart(found, reader)
    return tuple(found)


def check_stragglers(
    stragglers: tuple[Straggler, ...], fabric: FabricSection, reader: Reader, *, is_training: bool
) -> None:
    """Check the stragglers."""
    if stragglers and not is_training and reader.is_sound("stragglers"):
        reader.wrong("stragglers", "means nothing without training or jobs: no GPU computes")
        return
    total = fabric.gpus if reader.is_sound(*_SHAPE) else None
    seen: dict[int, int] = {}
    for index, straggler in enumerate(stragglers):
        path = f"stragglers.{index}.gpu"
        if not reader.is_sound(path) or straggler.gpu is None:
            continue
        if total is not None and straggler.gpu >= total:
            reader.wrong(path, f"found {straggler.gpu:,}, wanted a GPU from 0 to {total - 1:,}")
        elif straggler.gpu in seen:
            reader.wrong(path, f"GPU {straggler.gpu:,} stands in stragglers.{seen[straggler.gpu]} already")
        seen.setdefault(straggler.gpu, index)


def _filled(section: _S, path: str, fabric: FabricSection, reader: Reader) -> _S:
    """The section with its number of model copies.

    The copies together use its GPUs.
    """
    if section.virtual_stages > 1 and reader.is_sound(
        *(f"{path}.{key}" for key in ("virtual_stages", "pipeline", "schedule"))
    ):
        if section.pipeline == 1:
            text = f"found {section.virtual_stages}, which means nothing with pipeline 1: there is no bubble to shorten"
            reader.wrong(f"{path}.virtual_stages", text, "1")
        elif section.schedule != "1f1b":
            what = f"means nothing with schedule {section.schedule}"
            text = f"found {section.virtual_stages}, which {what}, only with 1f1b"
            reader.wrong(f"{path}.virtual_stages", text, "1")
    if section.gpus is None or not reader.is_sound(*(f"{path}.{key}" for key in _GPUS)):
        return section
    gpus, product = section.gpus, section.tensor * section.context * section.pipeline
    shown = f"tensor {section.tensor} x context {section.context} x pipeline {section.pipeline}"
    if gpus % product:
        key = _guilty(section, path, reader)
        text = f"{shown} = {product:,}, wanted a divisor of the {plural(gpus, 'GPU')}"
        reader.wrong(f"{path}.{key}", text, _near_plan(section, path, fabric, reader))
        return section
    if section.data is not None and section.data * product != gpus:
        text = f"found {section.data:,}, wanted {gpus // product:,}, so that {shown} x data = {plural(gpus, 'GPU')}"
        reader.wrong(f"{path}.data", text, _near_plan(section, path, fabric, reader))
    return section.model_copy(update={"data": gpus // product})


def _on_the_node(section: TrainingSection, path: str, fabric: FabricSection, reader: Reader) -> None:
    """Check that the servers hold the GPU of the section."""
    if section.gpu is None or not reader.is_sound(f"{path}.gpu", "fabric.node", "fabric.node.model"):
        return
    key = "fabric.node.model" if "fabric.node.model" in reader.places.lines else "fabric.node"
    if (mistake := gpu_mistake(section.gpu, fabric.node.model, reader.nodes, node_key=key)) is not None:
        reader.wrong(f"{path}.gpu", *mistake)


def _near_plan(section: TrainingSection, path: str, fabric: FabricSection, reader: Reader) -> Settings | None:
    """The nearest degrees that all rules accept; None if none is known.

    A degree that only divides the GPUs would be refused by the heads of the model, its experts, the batch or memory.
    """
    is_sound = reader.is_sound(path) and not any(bad.startswith(f"{path}.") for bad in reader.bad)
    if reader.propose_plan is None or section.gpus is None or not is_sound or not reader.is_sound("fabric.node"):
        return None
    return reader.propose_plan(section, fabric.node.model, path)


def _guilty(section: TrainingSection, path: str, reader: Reader) -> str:
    """The degree to blame if the degrees do not divide the GPUs.

    It is a degree that the user wrote and that does not divide them.
    """
    given = [key for key in _SPLITS if f"{path}.{key}" in reader.places.lines] or list(_SPLITS)
    return next((key for key in given if (section.gpus or 0) % getattr(section, key)), given[-1])


def _in_the_fabric(section: _S, path: str, total: int | None, reader: Reader) -> _S:
    """Return the section after checking that the fabric has its GPUs."""
    if total is None or section.gpus is None or not reader.is_sound(f"{path}.gpus", f"{path}.first_gpu"):
        return section
    first = section.first_gpu or 0
    if first >= total:
        reader.wrong(f"{path}.first_gpu", f"found {first:,}, wanted a GPU from 0 to {total - 1:,}")
    elif first + section.gpus > total:
        key = reader.which(f"{path}.gpus", f"{path}.data")
        here = key if key in reader.places.lines else path
        rest = f", with {total - first:,} left from GPU {first:,} on" if first else ""
        reader.wrong(here, f"needs {plural(section.gpus, 'GPU')}, but the fabric has {total:,}{rest}")
    return section


def _apart(jobs: list[TrainingJobSection], reader: Reader) -> None:
    """Check that jobs have different names and separate GPUs."""
    names: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.name in names:
            key = f"jobs.{index}.name"
            reader.wrong(key, f"'{job.name}' is the name of jobs.{names[job.name]} too, wanted another name")
        names.setdefault(job.name, index)
        for before, other in enumerate(jobs[:index]):
            if job.placement != other.placement or job.gpus is None or other.gpus is None:
                continue
            first, last = max(job.first_gpu or 0, other.first_gpu or 0), min(_end(job), _end(other))
            if first < last and reader.is_sound(f"jobs.{index}.gpus", f"jobs.{before}.gpus", f"jobs.{index}.first_gpu"):
                text = f"GPUs {first:,} to {last - 1:,} belong to jobs.{before} too; wanted other GPUs"
                reader.wrong(f"jobs.{index}.first_gpu", text, str(_end(other)))


def _end(job: TrainingJobSection) -> int:
    return (job.first_gpu or 0) + (job.gpus or 0)
