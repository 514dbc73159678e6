"""Planned paths against spraying: prints the table of README.md and draws its figure.

python -m examples.planned_paths.answer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SEEDS: Final = 8
US_PS: Final = 1e6
TOLERANT: Final = {"transport.reorder_tolerant": "true", "transport.recovery": "selective-repeat"}
WAYS: Final[dict[str, dict[str, str]]] = {
    "ECMP": {},
    "planned, constrained shortest paths": {"fabric.engineering.scheme": "constrained-shortest-paths"},
    "planned, greedy": {"fabric.engineering.scheme": "greedy"},
    "planned, placement": {"fabric.engineering.scheme": "placement"},
    "sprayed by the switches": {"transport.load_balancing": "switch-spray", **TOLERANT},
}
DEAD: Final[dict[str, str]] = {"faults": "[{at: 10us, link: leaf0-spine0, event: down}]"}
AGAIN: Final[dict[str, str]] = {"fabric.engineering.interval": "40us"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Means over the seeds until the last flow is done, with the 95 % interval."""

    name: str
    is_whole: bool
    completion_us: float
    low_us: float
    high_us: float


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, float]:
        number = run.summary["completion_ps"]
        return number["value"] / US_PS, number["low"] / US_PS, number["high"] / US_PS

    found: list[Case] = []
    for is_whole in (True, False):
        for name, changes in WAYS.items():
            more = {} if is_whole else DEAD
            if not is_whole and name.startswith("planned"):
                more = DEAD | AGAIN
            mean, low, high = cases.run(cases.in_folder(__file__), {**changes, **more}, read, seeds=SEEDS)
            label = name if is_whole else f"{name}, a link dies"
            found.append(Case(name=label, is_whole=is_whole, completion_us=mean, low_us=low, high_us=high))
    return found


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows: list[tuple[str, ...]] = [("case", "all links", "95 % interval", "a link dies", "95 % interval")]
    for whole, dead in zip(
        [case for case in measured if case.is_whole], [case for case in measured if not case.is_whole], strict=True
    ):
        cells = [
            text
            for case in (whole, dead)
            for text in (f"{case.completion_us:,.0f} us", f"{case.low_us:,.0f} to {case.high_us:,.0f}")
        ]
        rows.append((whole.name, *cells))
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
            colour=cards.BLUE if case.is_whole else cards.VERMILION,
        )
        for case in measured
    ]
    return cards.bars(
        "A permutation of 64 hosts, 4 MiB each, on 8 leaves and 8 spines",
        rows,
        axis=f"until the last flow is done: mean of {SEEDS} seeds, 95 % interval",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
