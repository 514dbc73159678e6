"""What PFC does to a victim flow: prints the table of README.md and draws its figure.

python -m examples.pfc_victim.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

CASES = {
    "alone": {"traffic.senders": "1", "traffic.receiver": "31"},
    "PFC, no congestion control": {},
    "PFC, DCQCN": {"transport.congestion_control": "dcqcn"},
    "PFC, window of one BDP": {"transport.congestion_control": "fixed-window"},
    "no PFC: packets are dropped": {"transport.flow_control": "none", "transport.recovery": "selective-repeat"},
}
US_PS = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """What one case came to: completion times of the victim and of the last sender of the incast, in us."""

    name: str
    victim_us: float
    incast_us: float
    pauses: int
    drops: int


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, int, int]:
        rows = run.query(
            "select max(fct_ps) filter (source = 'host10') as victim, max(fct_ps) filter (source <> 'host10') as incast"
            " from flows"
        ).to_pylist()[0]
        return (
            rows["victim"] / US_PS,
            rows["incast"] / US_PS,
            int(cases.number(run, "pauses")),
            int(cases.number(run, "drops")),
        )

    found = [(name, cases.run(cases.in_folder(__file__), changes, read)) for name, changes in CASES.items()]
    return [
        Case(name=name, victim_us=victim, incast_us=incast, pauses=pauses, drops=drops)
        for name, (victim, incast, pauses, drops) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    alone_us = measured[0].victim_us
    rows = [("case", "victim", "slower", "last of the incast", "pauses", "drops")]
    for case in measured:
        others = (
            (f"{case.incast_us:,.0f} us", f"{case.pauses:,}", f"{case.drops:,}") if case.name != "alone" else ("",) * 3
        )
        rows.append((case.name, f"{case.victim_us:,.1f} us", f"x {case.victim_us / alone_us:.1f}", *others))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    alone_us = measured[0].victim_us
    colours = {"alone": cards.GREEN, "PFC, no congestion control": cards.VERMILION}
    rows = [
        cards.Bar(
            name=case.name,
            value=case.victim_us,
            text=f"{case.victim_us:,.0f} us",
            colour=colours.get(case.name, cards.BLUE),
        )
        for case in measured
    ]
    return cards.bars(
        "A flow that shares no congested port, beside an incast of 15 to 1",
        rows,
        axis="completion time of the victim, 4 MiB at 400 Gb/s",
        bound=(alone_us, "alone"),
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
