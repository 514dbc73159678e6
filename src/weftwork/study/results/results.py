"""From a finished run to its tables and numbers.

One call serves every kind of run.

Leaves out: the answer (`weftwork.study.answer`), and the folder itself (`weftwork.store.runs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat
from weftwork.spec.result import TABLES
from weftwork.study.results.calibrated_interval import calibrated_summary
from weftwork.study.results.loss_range import loss_caveats
from weftwork.study.results.memory_margin import memory_caveats
from weftwork.study.results.record import about, message_rows, summarise, table
from weftwork.study.results.training_tables import CaseRun, bracket_caveats, job_times, training_rows, training_summary
from weftwork.study.results.unmeasured_rate import unmeasured_summary
from weftwork.study.results.victims import victim_rows
from weftwork.study.results.waits import wait_rows
from weftwork.study.run.ending import status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Execution

__all__ = ["CaseRun", "RunNumbers", "run_numbers"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNumbers:
    """The tables and numbers of a run.

    Attributes
    ----------
    status : how it ended, see `Run.status`
    digest : SHA-256 over every completion time and counter
    about : what ran, in words
    caveats : what a user should know of devices, software and engine
    summary : numbers by name
    tables : all of `weftwork.spec.result`
    """

    status: str
    digest: str
    about: Mapping[str, str]
    caveats: Mapping[str, Caveat]
    summary: Mapping[str, Quantity]
    tables: Mapping[str, pa.Table]


def run_numbers(prepared: Prepared, execution: Execution, cases: Sequence[CaseRun] = ()) -> RunNumbers:
    """Make tables and numbers of a run.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    cases : what one can buy, as it was simulated
    """
    outcome, flows = execution.outcome, execution.flows
    spent = job_times(prepared, flows) if prepared.scenario.workload_kind.is_training and flows is not None else None
    rows = message_rows(prepared, execution) | training_rows(prepared, execution, spent, cases)
    rows |= wait_rows(prepared, execution)
    tables = {name: table(name, rows.get(name) or _no_rows(name)) for name in TABLES}
    tables["victims"] = table("victims", victim_rows(prepared, execution, tables["flows"]) or _no_rows("victims"))
    summary = training_summary(prepared, spent, tables) | summarise(prepared, execution, tables)
    summary |= calibrated_summary(prepared, summary) | unmeasured_summary(prepared, summary)
    return RunNumbers(
        status=status(prepared, execution),
        digest=outcome.digest(),
        about=about(prepared),
        caveats={**prepared.notes, **outcome.caveats} | _caveats(prepared, execution),
        summary=summary,
        tables=tables,
    )


def _no_rows(name: str) -> dict[str, tuple[()]]:
    """Columns of an empty table."""
    return {column.name: () for column in TABLES[name]}


def _caveats(prepared: Prepared, execution: Execution) -> dict[str, Caveat]:
    """What is known when a run has ended, or follows from its jobs."""
    of_memory = memory_caveats(prepared) if prepared.scenario.workload_kind.is_training else {}
    return bracket_caveats(prepared, execution) | of_memory | loss_caveats(prepared, execution)
