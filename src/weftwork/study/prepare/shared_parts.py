"""Parts that runs of one process share, each made once.

They are the fabric and the programs of training jobs.

Only workers that run many points share; what they keep are the last few of each, by all that they follow from.
Leaves out: fabrics from files and from Python files of the user's own, and tables of engines, which hold seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from weftwork.base.findings import Findings
from weftwork.base.sharing import is_sharing
from weftwork.spec.calibration import read_calibration
from weftwork.study.prepare.training import training_jobs
from weftwork.topology.build import fabric_of_section

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Placement
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["forget", "shared_fabric", "shared_jobs"]

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
    jobs: _Kept[tuple[Fabric, list[TrainingJob], Findings]] = field(default_factory=_Kept)


_parts: Final = _Shared()  # empty in a process that does not share


def forget() -> None:
    """Drop all parts that are kept."""
    _parts.fabrics, _parts.jobs = _Kept(), _Kept()


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
    return make() if is_own or not is_sharing() else _parts.fabrics.get(section, make)


def shared_jobs(
    scenario: Scenario,
    fabric: Fabric,
    findings: Findings,
    placement: Placement | None,
    known: Sequence[TrainingJob] = (),
) -> list[TrainingJob]:
    """As `training_jobs`, with equal sections on one fabric made once."""
    if not is_sharing() or placement is not None or not scenario.trainings:
        return training_jobs(scenario, fabric, findings, placement, known)
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

    def make() -> tuple[Fabric, list[TrainingJob], Findings]:
        of_jobs = Findings(source=scenario.source)
        return fabric, training_jobs(scenario, fabric, of_jobs, placement, known), of_jobs

    _, jobs, of_jobs = _parts.jobs.get(key, make)
    findings.join(of_jobs)
    return list(jobs)
