"""What a slow NIC costs under each of five plans: prints the table of README.md and draws its figure.

python -m examples.slow_nic_by_plan.answer
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

SHARES = (1.0, 0.5, 0.25, 0.1)  # of the PCIe rate that the NIC has left


def _fault(share: float) -> str:
    return "[]" if share == 1 else f"[{{at: 0ps, nic: host5/nic3, event: slow, fraction: {share}}}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A plan: time of an iteration in s by the share of PCIe rate left, and what is exposed with a whole NIC."""

    name: str
    took_s: dict[float, float]
    exposed: float

    def costs(self, share: float) -> float:
        """By how much longer an iteration takes than with a whole NIC."""
        return self.took_s[share] / self.took_s[1.0] - 1


def measure() -> list[Case]:
    """Run the sweep of the scenario, crossed with what the NIC has left."""
    faults = {_fault(share): share for share in SHARES}
    with tempfile.TemporaryDirectory() as folder:
        result = sweep.run_sweep(
            cases.in_folder(__file__), settings={"faults": ",".join(faults)}, out=Path(folder) / "sweep"
        ).result
    if result is None:
        raise KeyboardInterrupt
    found: dict[str, Case] = {}
    for row in result.rows:
        name = cases.plan_words(row.values)
        exposed = row.numbers["exposed_share"]["value"]
        case = found.setdefault(name, Case(name=name, took_s={}, exposed=exposed))
        case.took_s[faults[row.values["faults"]]] = row.numbers["iteration_ps"]["value"] / SECOND_PS
    return list(found.values())


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [
        (
            "plan",
            "whole NIC",
            "exposed",
            *(f"{share:.0%} left" for share in SHARES[1:]),
            *(f"{share:.0%} costs" for share in SHARES[1:]),
        )
    ]
    rows += [
        (
            case.name,
            f"{case.took_s[1.0]:.3f} s",
            f"{100 * case.exposed:.1f} %",
            *(f"{case.took_s[share]:.3f} s" for share in SHARES[1:]),
            *(f"{100 * case.costs(share):.2f} %" for share in SHARES[1:]),
        )
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    return cards.lines(
        "One slow NIC of 128: what an iteration takes longer, by plan",
        [
            cards.Polyline(name=case.name, points=tuple((1 / share, 100 * case.costs(share)) for share in SHARES))
            for case in measured
        ],
        x_axis="share of its PCIe rate that the NIC has left",
        y_axis="an iteration takes longer by, %",
        x_ticks=[(1 / share, f"{share:.0%}") for share in SHARES],
        is_log=False,
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
