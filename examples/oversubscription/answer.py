"""What oversubscription costs: prints the table of README.md and draws its figure.

python -m examples.oversubscription.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9
RATIOS = (1, 2, 4)
ALL_REDUCE = {
    "collective.operation": "all-reduce",
    "collective.algorithm": "hierarchical",
    "collective.inner": "nvls",
    "collective.chunks": "64",
    "collective.size": "64MiB",
}
CASES = {
    "all-to-all, direct": {},
    "all-to-all, rail by rail": {"collective.algorithm": "hierarchical", "collective.chunks": "4"},
    "all-reduce, pods in turn": {**ALL_REDUCE, "collective.placement": "pods"},
    "all-reduce, packed": ALL_REDUCE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One collective: time in ms by oversubscription."""

    name: str
    took_ms: dict[int, float]


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> float:
        return float(run.query("select duration_ps from collectives").to_pylist()[0]["duration_ps"]) / MS_PS

    return [
        Case(
            name=name,
            took_ms={
                ratio: cases.run(cases.in_folder(__file__), {**changes, "fabric.oversubscription": str(ratio)}, read)
                for ratio in RATIOS
            },
        )
        for name, changes in CASES.items()
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("", *(f"{ratio}:1" for ratio in RATIOS), *(f"{ratio}:1 costs" for ratio in RATIOS[1:]))]
    for case in measured:
        costs = (f"x {case.took_ms[ratio] / case.took_ms[1]:.2f}" for ratio in RATIOS[1:])
        rows.append((case.name, *(f"{case.took_ms[ratio]:.3f} ms" for ratio in RATIOS), *costs))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    return cards.lines(
        "Fewer uplinks for 64 H100 in two pods",
        [cards.Polyline(name=case.name, points=_relative(case)) for case in measured],
        x_axis="oversubscription of the leaves",
        y_axis="times as long as at 1:1",
        x_ticks=[(float(ratio), f"{ratio}:1") for ratio in RATIOS],
    )


def _relative(case: Case) -> tuple[tuple[float, float], ...]:
    return tuple((float(ratio), took_ms / case.took_ms[1]) for ratio, took_ms in case.took_ms.items())


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
