"""Rows of a sweep from a pool's outcomes and run folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weftwork.base.caveat import assumed_texts
from weftwork.spec.endings import ending_of_all
from weftwork.spec.sweep import SweepRow
from weftwork.store.runs import Run
from weftwork.study.results.seeds import mean_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from weftwork.study.pool.work import PoolOutcome
    from weftwork.study.sweep.points import SweepPlan

__all__ = ["rows_of_sweep"]


def rows_of_sweep(plan: SweepPlan, outcomes: Mapping[int, PoolOutcome], runs: Path) -> list[SweepRow]:
    """A row for each point.

    Parameters
    ----------
    plan : what was asked for
    outcomes : by the place of the run in the pool; those that are missing have not run
    runs : folder of the run folders
    """
    wanted = max((len(points) for points in plan.points), default=0)
    rows = []
    for place, (values, points) in enumerate(zip(plan.values, plan.points, strict=True)):
        ended = [(point, outcomes.get(point.place)) for point in points]
        found = [Run(runs / point.folder) for point, outcome in ended if outcome is not None and outcome.has_folder]
        failed = next((one for _, one in ended if one is not None and not one.has_folder), None)
        status = ending_of_all(run.status for run in found)
        reason = ""
        if place in plan.refused:
            status, reason = "refused", plan.refused[place]
        elif failed is not None:
            status, reason = failed.end, failed.reason
        elif len(found) < len(points):
            status, reason = "missing", "the sweep was ended before"
        numbers = [run.summary for run in found]
        rows.append(
            SweepRow(
                place=place,
                values=dict(values),
                status=status,
                reason=reason,
                wanted=wanted,
                runs=tuple(f"{runs.name}/{run.path.name}" for run in found),
                digests=tuple(str(run.provenance["digest"]) for run in found),
                numbers={} if not numbers else mean_numbers(numbers) if wanted > 1 else numbers[0],
                assumed=assumed_texts(caveat for run in found for caveat in run.caveats),
            )
        )
    return rows
