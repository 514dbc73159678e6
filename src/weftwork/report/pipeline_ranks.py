"""Ranks, GPUs and stragglers of the rows of a pipeline.

Reads the scenario and the tables `jobs` and `segments` of a run's folder. Leaves out: which ranks of a stage those are
that did not do the same as the others; the tables have their number alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.report.pipeline import Pipeline, PipelineRow
    from weftwork.store.runs import Run

__all__ = ["RowRanks", "SlowGpu", "row_ranks", "stragglers_of"]

_PIPELINE_LAST: Final = "tp-cp-dp-pp"  # the order of ranks in which those of a stage follow each other
_MOST_RANGES: Final = 4  # chosen: of the ranks of a stage; more would fill the table


@dataclass(frozen=True, kw_only=True, slots=True)
class RowRanks:
    """Meaning of a row of the pipeline in words.

    Attributes
    ----------
    rank : the rank that is shown, and its GPU
    stands_for : the ranks that did the same at the same time
    factor : times that the rank takes for what others compute in one; 1 where it is no straggler
    """

    rank: str
    stands_for: str
    factor: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SlowGpu:
    """A GPU that computes slower.

    Attributes
    ----------
    gpu : number in the fabric, server by server
    factor : times that it takes for what others compute in one
    """

    gpu: int
    factor: float


def stragglers_of(run: Run) -> list[SlowGpu]:
    """The stragglers of the scenario, in its order."""
    listed = yaml.safe_load(run.scenario).get("stragglers") or []
    return [SlowGpu(gpu=int(one["gpu"]), factor=float(one["factor"])) for one in listed]


def row_ranks(run: Run, pipeline: Pipeline) -> list[RowRanks]:
    """Rank, GPU and represented ranks of each row of the pipeline.

    Parameters
    ----------
    run : of training jobs, one seed
    pipeline : of `weftwork.report.pipeline.read_pipeline`
    """
    scenario = yaml.safe_load(run.scenario)
    slow = {one.gpu: one.factor for one in stragglers_of(run)}
    plans = _plans(scenario, run.table("jobs").to_pylist())
    each = _gpus_of_a_server(scenario)
    rows_of: dict[tuple[str, int], int] = {}
    for row in pipeline.rows:
        rows_of[row.job, row.stage] = rows_of.get((row.job, row.stage), 0) + 1
    return [
        RowRanks(
            rank=_rank(row, each),
            stands_for=_stands_for(row, _stage_ranges(plans.get(row.job), row.stage)),
            factor=slow.get(row.gpu, 1.0),
        )
        for row in pipeline.rows
    ]


def _rank(row: PipelineRow, gpus_of_a_server: int | None) -> str:
    if gpus_of_a_server is None:
        return f"rank {row.rank} (GPU {row.gpu})"
    server, gpu = divmod(row.gpu, gpus_of_a_server)
    return f"rank {row.rank} (server {server}, GPU {gpu})"


def _stands_for(row: PipelineRow, ranges: list[range] | None) -> str:
    """Ranks of a stage with equal activity, or their number."""
    if row.ranks == 1:
        return "only itself"
    if ranges is None:
        return plural(row.ranks, "rank")
    of_stage = sum(map(len, ranges))
    shown = ", ".join(_range(one) for one in ranges[:_MOST_RANGES])
    more = f" and {sum(map(len, ranges[_MOST_RANGES:])):,} more" if len(ranges) > _MOST_RANGES else ""
    if of_stage == row.ranks:
        return f"ranks {shown}{more}"
    return f"{row.ranks:,} of the {plural(of_stage, 'rank')} {shown}{more}"


def _range(found: range) -> str:
    return f"{found[0]}" if len(found) == 1 else f"{found[0]}\u2013{found[-1]}"


def _plans(scenario: Mapping[str, Any], jobs: list[dict[str, Any]]) -> dict[str, tuple[Mapping[str, Any], int]]:
    """The plan and the GPUs of each job, by name."""
    sections = [scenario["training"]] if scenario.get("training") else scenario.get("jobs") or []
    if len(sections) != len(jobs):
        return {}
    return {job["job"]: (plan, int(job["gpus"])) for job, plan in zip(jobs, sections, strict=True)}


def _stage_ranges(plan: tuple[Mapping[str, Any], int] | None, stage: int) -> list[range] | None:
    """Ranks of a stage as ranges.

    None if the scenario does not say how ranks are numbered.
    """
    if plan is None:
        return None
    section, gpus = plan
    tensor, context, pipeline = (int(section.get(name) or 0) for name in ("tensor", "context", "pipeline"))
    if not tensor * context * pipeline or "order" not in section:
        return None
    if section["order"] == _PIPELINE_LAST:
        each = gpus // pipeline
        return [range(stage * each, (stage + 1) * each)]
    each = tensor * context
    return [range(first, first + each) for first in range(stage * each, gpus, each * pipeline)]


def _gpus_of_a_server(scenario: Mapping[str, Any]) -> int | None:
    """GPUs of each server; None if the scenario does not say."""
    fabric = scenario.get("fabric", {})
    gpus, servers = fabric.get("gpus"), fabric.get("hosts")
    if not isinstance(gpus, int) or not isinstance(servers, int) or servers < 1 or gpus % servers:
        return None
    return gpus // servers
