"""The section ``traffic`` of a scenario as a job."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weftwork.spec.job import Job
from weftwork.spec.scenario.choice import PatternInput
from weftwork.spec.scenario.choices import PATTERNS
from weftwork.study.prepare.queue_pairs import queue_pairs_of_patterns
from weftwork.workload.placement import first_gpus

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["traffic_job"]


def traffic_job(scenario: Scenario, fabric: Fabric) -> Job:
    """Make the job of a pattern of traffic between hosts.

    Parameters
    ----------
    scenario : that was read
    fabric : on whose hosts it runs

    Raises
    ------
    ConfigError : the pattern does not fit the fabric; with all reasons
    CodeError : a pattern of the user's own is wrong; with file and line
    """
    section = scenario.traffic_section
    first_ports = fabric.ports.link[fabric.ports.base[fabric.hosts]]  # patterns use the first NIC port of a host
    given = PatternInput(
        hosts=len(fabric.hosts),
        host_rate_bps=int(fabric.links["rate_bps"][first_ports].sum()),
        seed=scenario.engine.seed,
        priority=-1 if section.priority is None else section.priority,
        queue_pairs=queue_pairs_of_patterns(scenario),
    )
    pattern = PATTERNS.load(section.pattern)
    with PATTERNS.blaming(section.pattern):
        made = pattern.job(section.options, given)
    return replace(PATTERNS.want(section.pattern, made, Job, "job"), placement=first_gpus(fabric))
