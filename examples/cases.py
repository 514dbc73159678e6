"""What the examples share: run one scenario with some keys changed, print a table, keep a figure beside it.

Leaves out: what is asked and answered, which each example says itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import weftwork
from weftwork.hardware.prices import price_book
from weftwork.study.plan.words import short_words
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.results.seeds import interval
from weftwork.topology.bill import Bill, bill
from weftwork.topology.build import fabric_of_section

__all__ = ["Rows", "answer", "bill_of", "in_folder", "interval", "number", "plan_words", "run", "table"]

Answer = TypeVar("Answer")
Rows = list[tuple[str, ...]]  # of a table, the head first


def run(
    scenario: Path, changes: Mapping[str, str], read: Callable[[weftwork.Run], Answer], *, seeds: int = 1
) -> Answer:
    """Run a scenario in a folder that goes away again, and return what ``read`` takes from it.

    Parameters
    ----------
    scenario : the file
    changes : dotted key to value, as ``--set`` takes them
    read : takes the answer from the run
    seeds : how many runs, with the scenario's seed and those that follow
    """
    with tempfile.TemporaryDirectory() as folder:
        return read(weftwork.run(scenario, out=Path(folder) / "run", overrides=changes, seeds=seeds, what_if="all"))


def number(run: weftwork.Run, name: str) -> float:
    """One number of a run's summary.

    Raises
    ------
    UsageError : the run has no such number, as where no flow was done
    """
    value = run.value(name)
    if value is None:
        raise weftwork.UsageError(f"the run has no {name}")
    return value


def bill_of(scenario: Path, changes: Mapping[str, str]) -> Bill:
    """The bill of a scenario's fabric with some keys changed, as `weftwork cost` makes it, in prices of about 2025.

    Parameters
    ----------
    scenario : the file; a section ``sweep`` is left aside
    changes : dotted key to value, as ``--set`` takes them
    """
    read = read_scenario(scenario, {**changes, "sweep": "null"})
    return bill(fabric_of_section(read.fabric, directory=scenario.parent), price_book())


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text as a table for a terminal and for a README: the first column to the left, the others to the right.

    Examples
    --------
    >>> print(table([("case", "us"), ("alone", "87.7")]))
    case     us
    alone  87.7
    """
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def plan_words(values: Mapping[str, str]) -> str:
    """A point of a sweep over plans, such as ``TP8 PP16 DP128 mb1``.

    Parameters
    ----------
    values : text of each key that the sweep varies; keys outside ``training`` are left out
    """
    words: dict[str, bool | str] = {"true": True, "false": False}
    section = "training."
    return short_words({
        key.removeprefix(section): int(text) if text.isdigit() else words.get(text, text)
        for key, text in values.items()
        if key.startswith(section)
    })  # fmt: skip


def in_folder(file: str, name: str = "scenario.yaml") -> Path:
    """A file beside the one that asks, which passes ``__file__``."""
    return Path(file).resolve().parent / name


def answer(
    file: str, measure: Callable[[], Answer], report: Callable[[Answer], str], figure: Callable[[Answer], str]
) -> None:
    """Measure, print the table, and write the figure beside the example, which passes ``__file__``."""
    measured = measure()
    print(report(measured))
    in_folder(file, "figure.svg").write_text(figure(measured), encoding="utf-8")
