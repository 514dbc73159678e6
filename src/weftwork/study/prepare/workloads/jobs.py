"""Iterations of several training jobs on one fabric."""

from __future__ import annotations

from weftwork.study.prepare.likeness import likeness_of_training
from weftwork.study.prepare.training import count_trained, training_programs, words_of_training
from weftwork.study.prepare.workload import WorkloadRoad

__all__ = ["ROAD"]


ROAD = WorkloadRoad(
    make_job=training_programs,
    count_asked=count_trained,
    large_keys=lambda _: ["jobs.iterations", "jobs.global_batch"],
    words=words_of_training,
    likeness=likeness_of_training,
)
