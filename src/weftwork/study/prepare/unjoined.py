"""Refuse a job that sends between NIC ports without a path.

The error names the pair, the reason and the nearest remedy.

Leaves out: which messages those are (`weftwork.engine.unjoined`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.folder import is_path
from weftwork.engine.unjoined import first_unjoined
from weftwork.study.prepare.calibrated import calibration_of
from weftwork.study.prepare.collective import collective_job
from weftwork.study.prepare.workload import ROADS
from weftwork.workload.collectives.catalogue import ALGORITHMS

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.workload import CollectiveSection

__all__ = ["refuse_unjoined"]


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
    kind = scenario.workload_kind
    by_rail = ROADS[kind.name].joining_algorithm(scenario, fabric)
    way = f"an algorithm that changes rails inside servers, such as {by_rail}, or " if by_rail else ""
    raise _refused(scenario, kind.blamed_key, f"{found.text}; wanted {way}{joined}", by_rail)


def joining_algorithm(scenario: Scenario, fabric: Fabric) -> str:
    """The first algorithm by which the ranks of a collective reach each other; empty if there is none.

    Its messages change rails inside servers, which servers without NVLink cannot do: their GPUs have no other way to
    each other.

    Parameters
    ----------
    scenario : with a collective
    fabric : on which it runs
    """
    section = scenario.collective_section
    label = section.algorithm or ""
    if (label in ALGORITHMS or is_path(label)) and ALGORITHMS.load(label).changes_rails:
        return ""
    by_rail = [name for name, offer in ALGORITHMS.items() if offer.changes_rails]
    return next((name for name in by_rail if _joins(scenario, section, fabric, name)), "")


def _joins(scenario: Scenario, section: CollectiveSection, fabric: Fabric, algorithm: str) -> bool:
    """Whether the ranks of a collective reach each other by an algorithm."""
    if section.operation not in ALGORITHMS[algorithm].operations:
        return False
    update = {"algorithm": algorithm, "options": ALGORITHMS[algorithm].options()}
    try:
        job = collective_job(
            section.model_copy(update=update),
            fabric,
            Findings(source=scenario.source),
            seed=scenario.engine.seed,
            calibration=calibration_of(scenario),
        )
    except ConfigError:
        return False
    return first_unjoined(fabric, job) is None


def _refused(scenario: Scenario, path: str, text: str, fix: str) -> ConfigError:
    return ConfigError(scenario.source, [Mistake(path=path, text=text, fix=fix or None)])
