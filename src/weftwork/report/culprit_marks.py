"""Faults and culprit as marks on the charts and rows of a page.

Reads `summary.json` and the table `events` of a run's folder. Leaves out: culprits that have no time and no row, such
as a setting; the three lines name them (`weftwork.report.three_lines`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.spec.scenario.faults import is_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.report.pipeline import PipelineRow
    from weftwork.spec.answer import Culprit
    from weftwork.store.runs import Run

__all__ = ["TO_BLAME", "FaultTime", "fault_times", "faults_of", "is_culprit_row", "is_to_blame"]

TO_BLAME: Final = "to blame"
_WITH_ROWS: Final = ("gpu", "stage", "job")  # kinds of culprits that have rows of the pipeline


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultTime:
    """A fault of the scenario, with its begin and end.

    Attributes
    ----------
    text : what happened, such as ``leaf0-spine1 down``
    start_ps, end_ps : from when to when; None where nothing undid it
    is_culprit : whether its place is to blame
    """

    text: str
    start_ps: int
    end_ps: int | None
    is_culprit: bool


def faults_of(run: Run) -> list[dict[str, Any]]:
    """The faults of a run by time: ``detail``, ``where``, ``at_ps``."""
    rows: list[dict[str, Any]] = run.query(
        "select detail, place, at_ps from events where event = 'fault' order by at_ps"
    ).to_pylist()
    return rows


def is_to_blame(run: Run, where: str) -> bool:
    """Whether a link, switch or NIC is the culprit of a run."""
    return run.answer.culprit.name == where


def fault_times(run: Run) -> list[FaultTime]:
    """The faults of a run, each with its end.

    A fault ends at its own end, when the link comes up, or with the next fault at the same place.
    """
    open_at: dict[str, FaultTime] = {}
    found: list[FaultTime] = []
    for row in faults_of(run):
        where, at_ps = row["place"], int(row["at_ps"])
        if (before := open_at.pop(where, None)) is not None:
            found.append(_until(before, at_ps))
        if is_end(row["detail"]):
            continue
        text = f"{where} {row['detail']}"
        open_at[where] = FaultTime(text=text, start_ps=at_ps, end_ps=None, is_culprit=is_to_blame(run, where))
    return sorted([*found, *open_at.values()], key=lambda one: one.start_ps)


def _until(fault: FaultTime, end_ps: int) -> FaultTime:
    return FaultTime(text=fault.text, start_ps=fault.start_ps, end_ps=end_ps, is_culprit=fault.is_culprit)


def is_culprit_row(culprit: Culprit, row: PipelineRow, *, jobs: Sequence[str]) -> bool:
    """Whether a row of the pipeline belongs to the culprit.

    The culprit is its GPU, its stage, or its job.

    Parameters
    ----------
    culprit : of the run
    row : of `weftwork.report.pipeline.read_pipeline`
    jobs : names of those that the run has, in their order
    """
    ids = culprit.ids
    if ids is None or culprit.kind not in _WITH_ROWS:
        return False
    if culprit.kind == "gpu":
        return row.gpu in ids.gpus
    is_its_job = tuple(jobs.index(row.job) for _ in ids.jobs) == ids.jobs  # of several jobs none has rows of its own
    return is_its_job and (culprit.kind == "job" or row.stage == ids.stage)
