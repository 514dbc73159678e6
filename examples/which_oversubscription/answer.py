"""Which oversubscription for two models: prints the table of README.md and draws its figure.

python -m examples.which_oversubscription.answer
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from examples import cases

from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.study.sweep import sweep

__all__ = ["Case", "figure", "measure", "report"]

MODEL, RATIO = "training.model", "fabric.oversubscription"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A model: time of an iteration in s, and its exposed communication as a share, by oversubscription."""

    name: str
    took_s: dict[int, float]
    exposed: dict[int, float]


def measure() -> list[Case]:
    """Run the sweep of the scenario."""
    with tempfile.TemporaryDirectory() as folder:
        result = sweep.run_sweep(cases.in_folder(__file__), out=Path(folder) / "sweep").result
    if result is None:
        raise KeyboardInterrupt
    found: dict[str, Case] = {}
    for row in result.rows:
        case = found.setdefault(row.values[MODEL], Case(name=row.values[MODEL], took_s={}, exposed={}))
        ratio = int(row.values[RATIO])
        case.took_s[ratio] = row.numbers["iteration_ps"]["value"] / SECOND_PS
        case.exposed[ratio] = row.numbers["exposed_share"]["value"]
    return list(found.values())


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    ratios = list(measured[0].took_s)
    head = ("", *(f"{ratio}:1" for ratio in ratios), *(f"{ratio}:1 costs" for ratio in ratios[1:]))
    rows = [(*head, *(f"exposed at {ratio}:1" for ratio in ratios))]
    for case in measured:
        costs = (f"{100 * (case.took_s[ratio] / case.took_s[ratios[0]] - 1):.1f} %" for ratio in ratios[1:])
        exposed = (f"{100 * case.exposed[ratio]:.1f} %" for ratio in ratios)
        rows.append((case.name, *(f"{case.took_s[ratio]:.2f} s" for ratio in ratios), *costs, *exposed))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    ratios = list(measured[0].took_s)
    return cards.lines(
        "Fewer uplinks for 2,048 H100 in pods of four servers",
        [
            cards.Polyline(
                name=case.name,
                points=tuple((float(ratio), took_s / case.took_s[ratios[0]]) for ratio, took_s in case.took_s.items()),
            )
            for case in measured
        ],
        x_axis="oversubscription of the leaves",
        y_axis="times as long as at 1:1",
        x_ticks=[(float(ratio), f"{ratio}:1") for ratio in ratios],
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
