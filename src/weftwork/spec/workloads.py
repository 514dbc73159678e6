"""The kinds of workload: what a scenario with each of them is asked for.

A row is a section of a scenario, of which a scenario has one.
Leaves out: the keys of the sections (`weftwork.spec.scenario`); how the job of a workload is made
(`weftwork.study.prepare.workload`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["WORKLOADS", "WorkloadKind"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadKind:
    """A kind of workload.

    Attributes
    ----------
    name : of the section
    headline : number of the summary that is its time
    calibrated_as : as what constants of a calibration belong to it; empty where none does
    is_training : whether it is training jobs
    is_collective : whether it is one collective, which may repeat
    is_single_job : whether it is one training job, which has the fabric for itself
    has_steps : whether its messages wait for each other
    blamed_key : key that a fabric which does not join its ranks is blamed on
    unmeasured : why a run of it without a likeness has no measured times
    noun : one of it in words, such as ``a collective``
    name_key : key of the section that names the work
    title : the work in words, with ``{name}`` for the value of that key
    work_keys : keys of the section with which the same work is another amount of it; empty: all of them
    is_list : whether the section is a list, each part of which has these keys
    placement_key : key that places its ranks, all at once; empty where there is none
    calibrates_transport : whether the network efficiency of a calibration is one of its transport, and not of software
    """

    name: str
    headline: str
    calibrated_as: Literal["training", "collective", ""]
    is_training: bool
    is_collective: bool = False
    is_single_job: bool = False
    has_steps: bool
    blamed_key: str
    unmeasured: str
    noun: str
    name_key: str
    title: str = "{name}"
    work_keys: tuple[str, ...] = ()
    is_list: bool = False
    placement_key: str = ""
    calibrates_transport: bool = False


_WORK_OF_TRAINING: Final = ("global_batch", "sequence", "iterations")
_WORKLOADS: Final = (
    WorkloadKind(
        name="collective",
        headline="collective_duration_ps",
        calibrated_as="collective",
        is_training=False,
        is_collective=True,
        has_steps=True,
        blamed_key="collective.algorithm",
        unmeasured="the servers have no GPU of the catalogue",
        noun="a collective",
        name_key="operation",
        work_keys=("size", "gpus", "repeat"),
        placement_key="collective.placement",
        calibrates_transport=True,
    ),
    WorkloadKind(
        name="traffic",
        headline="completion_ps",
        calibrated_as="",
        is_training=False,
        has_steps=False,
        blamed_key="traffic.pattern",
        unmeasured="no times of traffic patterns are published",
        noun="a traffic pattern",
        name_key="pattern",
        title="{name} traffic",
    ),
    WorkloadKind(
        name="training",
        headline="iteration_ps",
        calibrated_as="training",
        is_training=True,
        is_single_job=True,
        has_steps=True,
        blamed_key="training",
        unmeasured="several jobs share the fabric",
        noun="a training job",
        name_key="model",
        work_keys=_WORK_OF_TRAINING,
        placement_key="training.placement",
    ),
    WorkloadKind(
        name="jobs",
        headline="iteration_ps",
        calibrated_as="training",
        is_training=True,
        has_steps=True,
        blamed_key="jobs",
        unmeasured="several jobs share the fabric",
        noun="a training job",
        name_key="model",
        work_keys=_WORK_OF_TRAINING,
        is_list=True,
    ),
)
WORKLOADS: Final[dict[str, WorkloadKind]] = {workload.name: workload for workload in _WORKLOADS}
