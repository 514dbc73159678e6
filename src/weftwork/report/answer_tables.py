"""The tables under the three lines of an answer in a terminal.

They are short enough for the whole answer to fit one screen.

Numbers that the three lines tell are left out. Leaves out: sentences (`weftwork.report.answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from weftwork.base.grammar import plural
from weftwork.report.pipeline import is_training, time_by_kind
from weftwork.report.tables import busiest_groups, pausing_ports
from weftwork.report.three_lines import told_numbers
from weftwork.report.training_answer import is_bound, jobs_of, what_if_change, what_if_of
from weftwork.report.words import amount, amounts_apart, label
from weftwork.spec.numbers import numbers_shown
from weftwork.spec.time_kinds import TIME_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from weftwork.store.runs import Run

__all__ = ["answer_tables"]

_LEAST: Final = 0.001  # chosen: of an iteration; the page and summary.json have what takes less
_MOST_JOBS: Final = 4  # chosen: as many fit 80 columns
_LINKS: Final = 5  # chosen: rows of a table that is looked at, not read
_PAUSES: Final = 3  # chosen: below the table of links


def answer_tables(run: Run, console: Console, *, finished: tuple[int, int]) -> list[Table]:
    """Make the tables of a run of one seed or several.

    Parameters
    ----------
    run : that was written
    console : where they are to stand, two side by side where both fit
    finished : how many of its seeds delivered everything, and how many count
    """
    if run.seeds:
        return [_seeds(run, *finished)]
    if is_training(run):
        return _training(run, console)
    return [table for table in (_links(run), _pauses(run)) if table.row_count]


def _seeds(run: Run, done: int, counted: int) -> Table:
    partial = "" if done == counted else f", {done} finished"
    table = _table(f"mean of {plural(counted, 'seed')}{partial}", "mean", "95 % from", "to")
    told = told_numbers(run)
    for name in (number.name for number in numbers_shown("key")):
        if name in run.summary and name not in told and run.value(name) is not None:
            number = run.summary[name]
            table.add_row(label(name), *(amount(number[key], number["unit"]) for key in ("value", "low", "high")))
    return table


def _links(run: Run) -> Table:
    """The busiest links after the link that limited the run."""
    limit = run.answer.limited_by.name
    rest = [row for row in busiest_groups(run, _LINKS + 1) if row["name"] != limit][:_LINKS]
    table = _table("next busiest links", "rate", "in use", "longest queue", "marks", "drops")
    for row in rest:
        table.add_row(row["names"], row["rate"], row["use"], row["queue"], row["marks"], row["drops"])
    return table


def _pauses(run: Run) -> Table:
    table = _table("paused longest", "for", "pause frames")
    for row in pausing_ports(run, _PAUSES).to_pylist():
        table.add_row(row["name"], amount(row["paused_ps"], "ps"), f"{row['pauses']:,}")
    return table


def _training(run: Run, console: Console) -> list[Table]:
    """The parts of an iteration, and its time in the what-if cases."""
    jobs = [job for job in jobs_of(run) if job["iteration_ps"] is not None]
    if not jobs:
        return []
    shown = jobs[:_MOST_JOBS]
    tables = [table for table in (_spent(run, shown), _cases(run, shown)) if table.row_count]
    if sum(console.measure(table).maximum for table in tables) < console.width:
        beside = Table.grid(padding=(0, 1, 0, 0))
        beside.add_row(*tables)
        tables = [beside]
    if len(jobs) > len(shown):
        tables[-1].caption = f"{plural(len(jobs) - len(shown), 'more job')}: see weftwork report, or --json"
    return tables


def _spent(run: Run, jobs: Sequence[Mapping[str, Any]]) -> Table:
    spent = [time_by_kind(run, job["job"]) for job in jobs]
    table = _table("time goes to", *(["time"] if len(jobs) == 1 else [job["job"] for job in jobs]))
    for name, kind in TIME_KINDS.items():
        parts = [own.get(name, 0.0) for own in spent]
        if any(ps >= _LEAST * job["iteration_ps"] for ps, job in zip(parts, jobs, strict=True)):
            table.add_row(kind.words, *(amount(ps or None, "ps") for ps in parts))
    return table


def _cases(run: Run, jobs: Sequence[Mapping[str, Any]]) -> Table:
    cases = [{case["change"]: case for case in what_if_of(run, job["job"])} for job in jobs]
    names = dict.fromkeys(name for own in cases for name in own)
    heads = ["time", "change"] if len(jobs) == 1 else [job["job"] for job in jobs]
    table = _table("what it would be with", *heads)
    times = [_case_times(own, job["iteration_ps"]) for own, job in zip(cases, jobs, strict=True)]
    for name in names:
        cells = [own.get(name, "-") for own in times]
        if len(jobs) == 1:
            cells.append(what_if_change(cases[0][name], jobs[0]))
        table.add_row(name, *cells)
    return table


def _case_times(cases: Mapping[str, Mapping[str, Any]], iteration_ps: float) -> dict[str, str]:
    """The times of what-if cases, with the digits that tell them from each other and from the time of the run."""
    times = amounts_apart([iteration_ps, *(case["iteration_ps"] for case in cases.values())], "ps")
    return {
        name: f"{'>= ' if is_bound(case) else ''}{time}"
        for (name, case), time in zip(cases.items(), times[1:], strict=True)
    }


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
