"""The workload of a scenario: which kind it is, and its section.

Whoever asks which kind a workload is asks `WorkloadAccess.workload_kind`; code of one kind takes the section of that
kind. Leaves out: the keys of the sections (`weftwork.spec.scenario.workload`, `weftwork.spec.scenario.training`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.workloads import WORKLOADS, WorkloadKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    from weftwork.spec.scenario.training import TrainingSection
    from weftwork.spec.scenario.workload import CollectiveSection, TrafficSection

__all__ = ["ONE_OF", "ONE_WORKLOAD", "WorkloadAccess"]

AnySection = TypeVar("AnySection", bound=BaseModel)

ONE_OF = f"exactly one of {', '.join(list(WORKLOADS)[:-1])} and {list(WORKLOADS)[-1]}"
ONE_WORKLOAD = f"missing a workload, wanted {ONE_OF}"


class WorkloadAccess:
    """What a scenario says of its workload."""

    if TYPE_CHECKING:
        collective: CollectiveSection | None
        traffic: TrafficSection | None
        training: TrainingSection | None
        jobs: tuple[TrainingSection, ...]
        source: Any

        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self: ...  # noqa: D102 - pydantic's

    @property
    def workload(self) -> CollectiveSection | TrafficSection | TrainingSection:
        """The workload of the scenario; the first of several training jobs."""
        found = next((one for one in (self.collective, self.traffic, *self.trainings) if one is not None), None)
        if found is None:
            raise ConfigError(self.source, [Mistake(path="file", text=ONE_WORKLOAD)])
        return found

    @property
    def workload_kind(self) -> WorkloadKind:
        """The kind of the workload."""
        name = next((name for name in WORKLOADS if getattr(self, name)), None)
        if name is None:
            raise ConfigError(self.source, [Mistake(path="file", text=ONE_WORKLOAD)])
        return WORKLOADS[name]

    @property
    def collective_section(self) -> CollectiveSection:
        """The collective of a scenario whose workload is one."""
        return self._wanted("collective", self.collective)

    @property
    def traffic_section(self) -> TrafficSection:
        """The traffic of a scenario whose workload is a pattern."""
        return self._wanted("traffic", self.traffic)

    @property
    def training_section(self) -> TrainingSection:
        """The training job of a scenario whose workload is a single one."""
        return self._wanted("training", self.training)

    def _wanted(self, name: str, section: AnySection | None) -> AnySection:
        if section is None:
            raise TypeError(f"the workload of the scenario is {self.workload_kind.name}, wanted {name}")
        return section

    @property
    def placed_sections(self) -> tuple[tuple[str, CollectiveSection | TrainingSection], ...]:
        """Sections that place ranks, each with its path."""
        jobs = [(self.job_path(index), job) for index, job in enumerate(self.trainings)]
        return (*jobs, *([] if self.collective is None else [("collective", self.collective)]))

    @property
    def has_library_latencies(self) -> bool:
        """Whether latencies of a library are part of its time: not of a collective with protocol ``none``."""
        return self.collective is None or self.collective.protocol != "none"

    def with_job(self, index: int, section: TrainingSection) -> Self:
        """The scenario with another section for one of its training jobs.

        Parameters
        ----------
        index : of the job, 0 for the only one
        section : in place of its section
        """
        if self.training is not None:
            return self.model_copy(update={"training": section})
        return self.model_copy(update={"jobs": (*self.jobs[:index], section, *self.jobs[index + 1 :])})

    def job_path(self, index: int) -> str:
        """Section of a training job, such as ``jobs.1``."""
        return "training" if self.training is not None else f"jobs.{index}"

    @property
    def repeats(self) -> int:
        """How many times the workload runs, one after the other."""
        return 1 if self.collective is None else self.collective.repeat

    @property
    def trainings(self) -> tuple[TrainingSection, ...]:
        """The training jobs, one or several; empty for other workloads."""
        return self.jobs if self.training is None else (self.training,)
