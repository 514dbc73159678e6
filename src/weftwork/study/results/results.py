"""From a finished run to the contents of its folder.

One call serves every kind of run.

Leaves out: the folder itself (`weftwork.store.runs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.spec.result import TABLES
from weftwork.study.answer.answer import answer_of
from weftwork.study.results.calibrated_interval import calibrated_summary
from weftwork.study.results.ending import status
from weftwork.study.results.memory_margin import memory_caveats
from weftwork.study.results.record import about, message_rows, summarise, table
from weftwork.study.results.training_tables import bracket_caveats, job_times, training_rows, training_summary
from weftwork.study.results.unmeasured_rate import unmeasured_summary
from weftwork.study.results.waits import wait_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weftwork.spec.answer import Answer
    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["Results", "results"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The tables and numbers of a run.

    Attributes
    ----------
    status : how it ended, see `Run.status`
    digest : SHA-256 over every completion time and counter
    about : what ran, in words
    caveats : what a user should know of devices, software and engine
    summary : numbers by name
    tables : all of `weftwork.spec.result`
    answer : what it took, what limited it, who is to blame
    """

    status: str
    digest: str
    about: Mapping[str, str]
    caveats: Mapping[str, Caveat]
    summary: Mapping[str, Quantity]
    tables: Mapping[str, pa.Table]
    answer: Answer


def results(prepared: Prepared, execution: Execution) -> Results:
    """Make tables and numbers of a run.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    outcome, flows = execution.outcome, execution.flows
    spent = job_times(prepared, flows) if prepared.jobs and flows is not None else None
    rows = message_rows(prepared, execution) | training_rows(prepared, execution, spent)
    rows |= wait_rows(prepared, execution)
    tables = {
        name: table(name, rows.get(name, {column.name: () for column in columns})) for name, columns in TABLES.items()
    }
    summary = training_summary(prepared, spent, tables) | summarise(prepared, execution, tables)
    summary |= calibrated_summary(prepared, summary) | unmeasured_summary(prepared, summary)
    return Results(
        status=status(prepared, execution),
        digest=outcome.digest(),
        about=about(prepared),
        caveats=prepared.fabric.caveats | outcome.caveats | _caveats(prepared, execution),
        summary=summary,
        tables=tables,
        answer=answer_of(prepared, execution, summary=summary, tables=tables),
    )


def _caveats(prepared: Prepared, execution: Execution) -> dict[str, Caveat]:
    """What is known when a run has ended, or follows from its jobs."""
    return bracket_caveats(prepared, execution) | memory_caveats(prepared) | _refused(execution)


def _refused(execution: Execution) -> dict[str, Caveat]:
    """What-if variants that could not be simulated."""
    return caveats_by_subject(
        Caveat(
            subject=f"what_if.{world.name}",
            kind="note",
            text=f"was not simulated: {reason}",
        )
        for world, reason in execution.refused
    )
