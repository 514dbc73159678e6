"""Parts that runs of one process share, each made once.

They are the fabric and the programs of training jobs.

Only workers that run many points share; what they keep are the last few of each, by all that they follow from.
Leaves out: fabrics from files and from Python files of the user's own, and tables of engines, which hold seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from weftwork.spec.calibration import read_calibration
from weftwork.study.prepare.training import training_jobs
from weftwork.topology.build import fabric_of_section

if TYPE_CHECKING:
    from weftwork.base.caveat import Caveat
    from weftwork.base.errors import Mistake
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["share", "shared_fabric", "shared_jobs"]

KEPT: Final = 3  # chosen: a sweep has as many fabrics at a time at the most, unless its keys are fabrics

Made = TypeVar("Made")


@dataclass(slots=True)
class _Kept(Generic[Made]):
    """The most recent parts, by the key that they follow from."""

    found: list[tuple[object, Made]] = field(default_factory=list)

    def get(self, key: object, make: Callable[[], Made]) -> Made:
        """The part of an equal key, or a new one."""
        for known, made in self.found:
            if known == key:
                return made
        made = make()
        self.found = [*self.found[-KEPT + 1 :], (key, made)]
        return made


@dataclass(slots=True)
class _Shared:
    """The parts that a process keeps."""

    fabrics: _Kept[Fabric] = field(default_factory=_Kept)
    jobs: _Kept[tuple[Fabric, tuple[list[TrainingJob], list[Mistake], dict[str, Caveat]]]] = field(
        default_factory=_Kept
    )


_processes: list[_Shared] = []  # one, in a process that shares


def share() -> None:
    """Keep parts of runs in this process, from this call on."""
    if not _processes:
        _processes.append(_Shared())


def shared_fabric(scenario: Scenario) -> Fabric:
    """Build the fabric of a scenario, or reuse that of an equal section.

    Raises
    ------
    ConfigError, CodeError : as `weftwork.topology.build.fabric_of_section`
    """
    section = scenario.fabric
    directory = Path(scenario.source).parent

    def make() -> Fabric:
        return fabric_of_section(section, directory=directory)

    is_own = section.file is not None or str(section.topology).endswith(".py")
    return make() if is_own or not _processes else _processes[0].fabrics.get(section, make)


def shared_jobs(
    scenario: Scenario, fabric: Fabric, placement: Placement | None
) -> tuple[list[TrainingJob], list[Mistake], dict[str, Caveat]]:
    """As `training_jobs`, with equal sections on one fabric made once."""
    if not _processes or placement is not None or not scenario.trainings:
        return training_jobs(scenario, fabric, placement)
    draws = any(section.placement.startswith("random") for section in scenario.trainings)
    key = (
        id(fabric),  # the fabric is kept as long as its jobs: equal ids are one fabric
        scenario.trainings,
        scenario.transport,
        scenario.stragglers,
        None if scenario.calibration is None else read_calibration(Path(scenario.calibration)).digest,
        scenario.engine.fidelity,
        scenario.engine.seed if draws else None,
    )
    kept = _processes[0].jobs
    _, (jobs, mistakes, caveats) = kept.get(key, lambda: (fabric, training_jobs(scenario, fabric, placement)))
    return list(jobs), list(mistakes), dict(caveats)
