"""Which fabric for Llama 3.1 405B on 16,384 GPUs: prints the table of README.md and draws its figure.

python -m examples.which_fabric_405b.answer
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from examples import cases

from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.study.design import search

__all__ = ["Case", "figure", "measure", "report"]

NAMED = {  # losers that the README speaks of, by their keys
    "rail-optimized, tomahawk-5, 400Gbps": "rail-optimized of three tiers",
    "rail-optimized, tomahawk-5, 400Gbps, 2 planes": "rail-optimized in two planes",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A fabric: dollars, watts, seconds of an iteration, its switches, and whether it is on the front or its knee."""

    name: str
    price_usd: float
    power_w: float
    took_s: float
    switches: int
    is_front: bool
    is_knee: bool
    counted: int
    left: int


def _millions(value_usd: float) -> str:
    """Dollars for a table whose column has one digit behind the point."""
    return f"${value_usd / 1e6:,.1f}M"


def _watts(value_w: float) -> str:
    """Watts for the same table."""
    return f"{value_w / 1e6:,.2f} MW" if value_w >= 1e6 else f"{value_w / 1e3:,.1f} kW"


def measure() -> list[Case]:
    """Design the fabric, and keep the front and the losers that are named."""
    with tempfile.TemporaryDirectory() as folder:
        question = search.DesignQuestion(file=cases.in_folder(__file__))
        found = search.design(question, Path(folder) / "design")
    if found.end != "done":
        raise KeyboardInterrupt
    kept = [one for one in found.ran if one.name in found.front or one.built.candidate.words in NAMED]
    return [
        Case(
            name=one.built.candidate.words,
            price_usd=one.costs[0],
            power_w=one.costs[1],
            took_s=one.costs[2] / SECOND_PS,
            switches=sum(one.built.switches),
            is_front=one.name in found.front,
            is_knee=one.name == found.knee,
            counted=found.counted,
            left=len(found.ran),
        )
        for one in sorted(kept, key=lambda one: one.costs)
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    knee = next(case for case in measured if case.is_knee)
    rows = [("fabric", "switches", "money", "power", "iteration", "against the knee", "")]
    rows += [
        (
            case.name,
            f"{case.switches:,}",
            _millions(case.price_usd),
            _watts(case.power_w),
            f"{case.took_s:.2f} s",
            _against(case, knee),
            "knee" if case.is_knee else "front" if case.is_front else "",
        )
        for case in measured
    ]
    return cases.table(rows)


def _against(case: Case, knee: Case) -> str:
    dearer, slower = case.price_usd / knee.price_usd - 1, case.took_s / knee.took_s - 1
    return f"{100 * dearer:+.0f} % money, {100 * slower:+.1f} % time"


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=case.name.replace(", tomahawk-5", "").replace(" at the leaf", "")
            + (", the knee" if case.is_knee else ""),
            value=case.price_usd / 1e6,
            text=f"{_millions(case.price_usd)}, {case.took_s:.2f} s",
            colour=cards.VERMILION if not case.is_front else cards.BLUE,
        )
        for case in measured
    ]
    return cards.bars("Llama 3.1 405B on 16,384 H100: the front (blue) and two beside it", rows, axis="money, M$")


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
