"""One collective of some GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.grammar import plural
from weftwork.base.units import SIZE, format_quantity
from weftwork.study.prepare.calibrated import calibration_caveats, calibration_of
from weftwork.study.prepare.collective import collective_job
from weftwork.study.prepare.likeness import likeness_of_collective
from weftwork.study.prepare.unjoined import joining_algorithm
from weftwork.study.prepare.workload import WorkloadRoad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.topology import FabricSize
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["ROAD"]


def _make_job(scenario: Scenario, fabric: Fabric, _jobs: Sequence[TrainingJob], findings: Findings) -> Job:
    section, calibration = scenario.collective_section, calibration_of(scenario)
    job = collective_job(section, fabric, findings, seed=scenario.engine.seed, calibration=calibration)
    findings.note_each(calibration_caveats(scenario, calibration).values())
    return job


def _count_asked(scenario: Scenario, _size: FabricSize, gpus: int) -> dict[str, int]:
    return {"ranks": scenario.collective_section.gpus or gpus}


def _large_keys(scenario: Scenario) -> list[str]:
    section = scenario.collective_section
    counts = [(section.repeat, "repeat"), (section.chunks, "chunks"), (section.gpus or 0, "gpus")]
    return [f"collective.{key}" for count, key in sorted(counts, reverse=True) if count > 1]


def _words(prepared: Prepared) -> str:
    section = prepared.scenario.collective_section
    size = "" if section.operation == "barrier" else f" of {format_quantity(SIZE, section.size_bytes)}"
    times = f", {section.repeat:,} times" if section.repeat > 1 else ""
    return f"{prepared.job.name}{size} among {plural(prepared.job.gpus, 'GPU')}{times}"


ROAD = WorkloadRoad(
    make_job=_make_job,
    count_asked=_count_asked,
    large_keys=_large_keys,
    words=_words,
    likeness=likeness_of_collective,
    joining_algorithm=joining_algorithm,
)
