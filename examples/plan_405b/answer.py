"""Which plan for Llama 3.1 405B on 16,384 GPUs: prints the table of README.md and draws its figure.

python -m examples.plan_405b.answer
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from examples import cases

from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.study.plan.words import KINDS
from weftwork.study.sweep import sweep

__all__ = ["Case", "figure", "measure", "report"]

PAPER = "TP8 PP16x8 DP128 ZeRO2 mb1 balanced"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A plan: time of an iteration in s, its MFU, memory of the fullest GPU in GB, and seconds by kind of time."""

    name: str
    took_s: float
    mfu: float
    memory_gb: float
    spent_s: Mapping[str, float]


def measure() -> list[Case]:
    """Run the plans of the scenario."""
    with tempfile.TemporaryDirectory() as folder:
        result = sweep.run_sweep(cases.in_folder(__file__), out=Path(folder) / "sweep").result
    if result is None:
        raise KeyboardInterrupt
    found = []
    for row in result.rows:
        numbers = {name: one["value"] for name, one in row.numbers.items()}
        found.append(
            Case(
                name=cases.plan_words(row.values),
                took_s=numbers["iteration_ps"] / SECOND_PS,
                mfu=numbers["mfu"],
                memory_gb=numbers["memory_bytes"] / 1e9,
                spent_s={words: numbers[key] / SECOND_PS for key, words in KINDS.items() if key in numbers},
            )
        )
    return found


def report(measured: list[Case]) -> str:
    """The table of README.md, with the kinds of time that some plan has 50 ms of, in s."""
    kinds = [kind for kind in KINDS.values() if any(case.spent_s.get(kind, 0.0) > 0.05 for case in measured)]
    rows = [("plan", "iteration", "MFU", "memory", *kinds)]
    rows += [
        (
            case.name,
            f"{case.took_s:.3f} s",
            f"{100 * case.mfu:.1f} %",
            f"{case.memory_gb:.1f} GB",
            *(f"{case.spent_s.get(kind, 0.0):.3f}" for kind in kinds),
        )
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=case.name,
            value=case.took_s,
            text=f"{case.took_s:.2f} s, MFU {100 * case.mfu:.1f} %",
            colour=cards.VERMILION if case.name == PAPER else cards.BLUE,
        )
        for case in measured
    ]
    return cards.bars(
        "Llama 3.1 405B on 16,384 H100: the best plans and that of the paper", rows, axis="time of an iteration, s"
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
