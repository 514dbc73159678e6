"""The road of a workload: how its job is made, and what of its keys makes a run large.

Each workload is a file of `weftwork.study.prepare.workloads`, which offers one record.
Leaves out: what a workload is asked for (`weftwork.spec.workloads`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.base.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weftwork.base.findings import Findings
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.job import Job
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.scenario.topology import FabricSize
    from weftwork.study.prepare.likeness import Likeness
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob

__all__ = ["ROADS", "WorkloadRoad"]


def _no_algorithm(_scenario: Scenario, _fabric: Fabric) -> str:
    """No algorithm of a workload that has none."""
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadRoad:
    """How a workload goes from its section to a job.

    Attributes
    ----------
    make_job : the job of a scenario on a fabric, whose training jobs are resolved; the findings take notes on its
        software
    count_asked : ranks, messages, queue pairs and payload as far as the keys tell them, from the scenario, the size of
        its fabric and the GPUs of that; by names of `weftwork.study.prepare.estimate.Amounts`
    large_keys : keys that make the job large, the largest first
    words : a run of it in words, such as ``an iteration of llama-3-70b on 64 GPUs``
    likeness : what the time of a run is a time of; None where nothing measured can be like it
    joining_algorithm : algorithm by which its ranks reach each other where those of the scenario do not; empty if none
    """

    make_job: Callable[[Scenario, Fabric, Sequence[TrainingJob], Findings], Job]
    count_asked: Callable[[Scenario, FabricSize, int], Mapping[str, int]]
    large_keys: Callable[[Scenario], list[str]]
    words: Callable[[Prepared], str]
    likeness: Callable[[Prepared], Likeness | None]
    joining_algorithm: Callable[[Scenario, Fabric], str] = _no_algorithm


ROADS: Final[Folder[WorkloadRoad]] = Folder(
    "workload", package="weftwork.study.prepare.workloads", constant="ROAD", record=WorkloadRoad
)
