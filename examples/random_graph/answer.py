"""What the eight shortest paths buy on a random graph: prints the table of README.md and draws its figure.

python -m examples.random_graph.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SEEDS = 8
US_PS = 1e6
K_SHORTEST = {"fabric.routing": "k-shortest"}
SPRAYED = {"transport.load_balancing": "spray"}
CASES = {
    "shortest paths, one a flow": {},
    "8 shortest paths, one a flow": K_SHORTEST,
    "shortest paths, sprayed": SPRAYED,
    "2 shortest paths, sprayed": {**K_SHORTEST, "fabric.paths": "2", **SPRAYED},
    "4 shortest paths, sprayed": {**K_SHORTEST, "fabric.paths": "4", **SPRAYED},
    "8 shortest paths, sprayed": {**K_SHORTEST, **SPRAYED},
    "16 shortest paths, sprayed": {**K_SHORTEST, "fabric.paths": "16", **SPRAYED},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Means over the seeds, with the 95 % interval of the completion time of all flows."""

    name: str
    completion_us: float
    low_us: float
    high_us: float


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, float]:
        number = run.summary["completion_ps"]
        return number["value"] / US_PS, number["low"] / US_PS, number["high"] / US_PS

    found = [
        (name, cases.run(cases.in_folder(__file__), changes, read, seeds=SEEDS)) for name, changes in CASES.items()
    ]
    return [Case(name=name, completion_us=mean, low_us=low, high_us=high) for name, (mean, low, high) in found]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("case", "all done after", "95 % interval")]
    rows += [
        (case.name, f"{case.completion_us:,.0f} us", f"{case.low_us:,.0f} to {case.high_us:,.0f}") for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=case.name,
            value=case.completion_us,
            text=f"{case.completion_us:,.0f} us",
            low=case.low_us,
            high=case.high_us,
            colour=cards.BLUE if "sprayed" in case.name else cards.VERMILION,
        )
        for case in measured
    ]
    return cards.bars(
        "A permutation of 128 hosts, 4 MiB each, on a random graph of 32 switches",
        rows,
        axis=f"until the last flow is done: mean of {SEEDS} seeds, 95 % interval",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
