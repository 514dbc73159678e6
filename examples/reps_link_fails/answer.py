"""What REPS buys when a link fails: prints the table of README.md and draws its figure.

python -m examples.reps_link_fails.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

US_PS = 1e6
LINKS = {
    "all links as built": "[]",
    "one link at 200 Gb/s": "[{at: 0us, link: leaf0-spine0, event: degrade, rate: 200Gbps}]",
    "one link down for 200 us": "[{at: 50us, link: leaf0-spine0, event: down, for: 200us}]",
}
BALANCING = {
    "ECMP": {"transport.load_balancing": "ecmp"},
    "spray": {"transport.load_balancing": "spray"},
    "oblivious": {"transport.load_balancing": "oblivious"},
    "REPS": {"transport.load_balancing": "reps"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """When the middle and the last message were delivered, and how many packets were lost and sent again."""

    name: str
    middle_us: float
    last_us: float
    lost: int
    again: int


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, int, int]:
        flows = run.query("select median(delivered_ps) as middle, max(delivered_ps) as last from flows").to_pylist()[0]
        lost = int(cases.number(run, "drops"))
        return flows["middle"] / US_PS, flows["last"] / US_PS, lost, int(cases.number(run, "retransmissions"))

    found = []
    for links, faults in LINKS.items():
        for name, changes in BALANCING.items():
            middle_us, last_us, lost, again = cases.run(cases.in_folder(__file__), {"faults": faults, **changes}, read)
            case = Case(name=f"{links}: {name}", middle_us=middle_us, last_us=last_us, lost=lost, again=again)
            found.append(case)
    return found


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("links and load balancing", "middle message", "last message", "packets lost", "sent again")]
    rows += [
        (case.name, f"{case.middle_us:,.0f} us", f"{case.last_us:,.0f} us", f"{case.lost:,}", f"{case.again:,}")
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [cards.Bar(name=case.name, value=case.last_us, text=f"{case.last_us:,.0f} us") for case in measured]
    return cards.bars("16 flows on 16 uplinks: the last message of 8 MB", rows, axis="last message, us")


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
