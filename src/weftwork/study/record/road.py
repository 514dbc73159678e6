"""The road of a prepared run: the engine, the worlds beside it, its numbers and its answer.

Leaves out: the folder (`weftwork.study.record.run`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.study.answer.answer import answer_of
from weftwork.study.answer.asking import AskedExecution, with_worlds
from weftwork.study.results.results import CaseRun, RunNumbers, run_numbers
from weftwork.study.run.execute import execute as run_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weftwork.engine.capture import CaptureRequest
    from weftwork.spec.answer import Answer
    from weftwork.study.answer.suspicion import Suspicion
    from weftwork.study.answer.worlds import Extent
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.run.execute import Progress

__all__ = ["Results", "execute", "results"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Results(RunNumbers):
    """The tables, numbers and answer of a run.

    Attributes
    ----------
    answer : what it took, what limited it, who is to blame
    """

    answer: Answer


def execute(
    prepared: Prepared,
    on_progress: Callable[[Progress], None] | None = None,
    *,
    what_if: Extent = "auto",
    capture: CaptureRequest | None = None,
    suspicions: Mapping[str, Suspicion] | None = None,
) -> AskedExecution:
    """Execute a prepared run on the engine of its scenario, and other worlds beside it.

    Parameters
    ----------
    prepared : from `weftwork.study.prepare.prepare`
    on_progress : called at the start and about ten times a second; may raise KeyboardInterrupt to stop the run
    what_if : which other worlds are simulated besides: ``auto``: those that cost less than the run itself; ``all``;
        ``none``
    capture : frames to keep of the run itself, which is on packets; None: none
    suspicions : kinds of suspects of a user's own, of `weftwork.study.answer.suspects.own_suspicions`; None: none
    """
    execution = run_engine(prepared, on_progress, capture=capture)
    return with_worlds(prepared, execution, on_progress, what_if=what_if, suspicions=suspicions)


def results(prepared: Prepared, execution: AskedExecution) -> Results:
    """Make tables, numbers and the answer of a run.

    Parameters
    ----------
    prepared : what was run
    execution : of it
    """
    cases = [
        CaseRun(case=world.case, job=world.job, prepared=other, execution=ran) for world, other, ran in execution.worlds
    ]
    numbers = run_numbers(prepared, execution, cases)
    known = {field.name: getattr(numbers, field.name) for field in fields(RunNumbers)}
    known["caveats"] = {**numbers.caveats, **_refused(execution)}
    answer = answer_of(prepared, execution, summary=numbers.summary, tables=numbers.tables)
    return Results(**known, answer=answer)


def _refused(execution: AskedExecution) -> dict[str, Caveat]:
    """What-if variants that could not be simulated."""
    return caveats_by_subject(
        Caveat(
            subject=f"what_if.{world.name}",
            kind="note",
            text=f"was not simulated: {reason}",
        )
        for world, reason in execution.refused
    )
