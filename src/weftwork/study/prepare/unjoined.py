"""Refuse a job that sends between NIC ports without a path.

The error names the pair, the reason and the nearest remedy.

Leaves out: which messages those are (`weftwork.engine.unjoined`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.engine.unjoined import first_unjoined
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.collective import collective_job
from weftwork.workload.collectives.catalogue import ALGORITHMS

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.workload import CollectiveSection

__all__ = ["refuse_unjoined"]

_BY_RAIL: Final = "hierarchical"  # the algorithm whose messages change rails inside servers


def refuse_unjoined(scenario: Scenario, fabric: Fabric, job: Job) -> None:
    """Refuse a job that would only run into timeouts.

    Parameters
    ----------
    scenario : whose key made the job
    fabric, job : that no engine has found anything wrong with

    Raises
    ------
    ConfigError : two ranks send to each other over ports that no path joins
    """
    found = first_unjoined(fabric, job)
    if found is None:
        return
    joined = "a fabric whose rails and planes are joined (topology: rail-optimized, one plane)"
    section = scenario.collective
    if section is not None:
        by_rail = section.algorithm != _BY_RAIL and _joins(scenario, section, fabric)
        way = f"an algorithm that changes rails inside servers, such as {_BY_RAIL}, or " if by_rail else ""
        raise _refused(scenario, "collective.algorithm", f"{found.text}; wanted {way}{joined}", _BY_RAIL * by_rail)
    path = "traffic.pattern" if scenario.traffic is not None else "training" if scenario.training else "jobs"
    raise _refused(scenario, path, f"{found.text}; wanted {joined}", "")


def _joins(scenario: Scenario, section: CollectiveSection, fabric: Fabric) -> bool:
    """Whether the ranks of a collective can reach each other where messages change rails inside servers.

    They cannot in servers without NVLink, whose GPUs have no other way to each other.
    """
    if section.operation not in ALGORITHMS.load(_BY_RAIL).operations:
        return False
    update = {"algorithm": _BY_RAIL, "options": ALGORITHMS[_BY_RAIL].options()}
    try:
        job, _ = collective_job(
            section.model_copy(update=update),
            fabric,
            seed=scenario.engine.seed,
            calibration=calibration_of(scenario),
        )
    except ConfigError:
        return False
    return first_unjoined(fabric, job) is None


def _refused(scenario: Scenario, path: str, text: str, fix: str) -> ConfigError:
    return ConfigError(scenario.source, [Mistake(path=path, text=text, fix=fix or None)])
