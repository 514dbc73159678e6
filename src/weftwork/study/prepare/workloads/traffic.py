"""A pattern of traffic between hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.spec.scenario.choice import PatternInput
from weftwork.spec.scenario.choices import PATTERNS
from weftwork.spec.scenario.kinds import Whole
from weftwork.spec.scenario.rows import rows_of
from weftwork.study.prepare.queue_pairs import queue_pairs_of_patterns
from weftwork.study.prepare.traffic import traffic_job
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


def _make_job(scenario: Scenario, fabric: Fabric, _jobs: Sequence[TrainingJob], _findings: Findings) -> Job:
    return traffic_job(scenario, fabric)


def _count_asked(scenario: Scenario, size: FabricSize, _gpus: int) -> dict[str, int]:
    section = scenario.traffic_section
    pattern = PATTERNS.load(section.pattern)
    if pattern.size is None or size.hosts < 2:  # the pattern itself refuses a lonely host
        return {"ranks": size.hosts}
    given = PatternInput(
        hosts=size.hosts,
        host_rate_bps=1,
        seed=scenario.engine.seed,
        priority=-1,
        queue_pairs=queue_pairs_of_patterns(scenario),
    )
    with PATTERNS.blaming(section.pattern):
        sent = pattern.size(section.options, given)
    return {
        "ranks": size.hosts,
        "messages": sent.messages,
        "queue_pairs": sent.queue_pairs,
        "payload_bytes": sent.payload_bytes,
    }


def _large_keys(scenario: Scenario) -> list[str]:
    options = scenario.traffic_section.options
    counts = [
        (getattr(options, name), row.key) for name, row in rows_of(type(options)).items() if isinstance(row.kind, Whole)
    ]
    large = sorted(((count, key) for count, key in counts if count is not None and count > 1), reverse=True)
    return [*(f"traffic.{key}" for _, key in large), "fabric.hosts"]


def _words(prepared: Prepared) -> str:
    section = prepared.scenario.traffic_section
    with PATTERNS.blaming(section.pattern):
        return PATTERNS.load(section.pattern).words(section.options, prepared.job)


ROAD = WorkloadRoad(
    make_job=_make_job,
    count_asked=_count_asked,
    large_keys=_large_keys,
    words=_words,
    likeness=lambda _: None,
)
