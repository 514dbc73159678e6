"""What ECMP does to few large flows: prints the table of README.md and draws its figure.

python -m examples.ecmp_large_flows.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SEEDS = 8
US_PS = 1e6
TOLERANT = {"transport.reorder_tolerant": "true"}
INGRESS_TOO = {"fabric.switch.hash.fields": "[src_ip, dst_ip, protocol, src_port, dst_port, in_port]"}
ALIKE = {"fabric.switch.hash.seed": "0", "fabric.switch.hash.offset": "0"}
SPRAYED = {"transport.load_balancing": "spray", **TOLERANT}
CASES = {
    "ECMP, one hash everywhere": ALIKE,
    "ECMP, ingress port hashed too": {**ALIKE, **INGRESS_TOO},
    "ECMP, each tier its own bits": {},
    "sprayed by the NIC, one hash": {**SPRAYED, **ALIKE},
    "sprayed by the NIC, ingress port too": {**SPRAYED, **ALIKE, **INGRESS_TOO},
    "sprayed by the NIC, each tier its own bits": SPRAYED,
    "sprayed by the switches": {"transport.load_balancing": "switch-spray", **TOLERANT},
    "least loaded port": {"transport.load_balancing": "least-loaded", **TOLERANT},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Means over the seeds, with the 95 % interval of the completion time of all flows."""

    name: str
    completion_us: float
    low_us: float
    high_us: float
    ideal_us: float


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, float]:
        number = run.summary["completion_ps"]
        return number["value"] / US_PS, number["low"] / US_PS, number["high"] / US_PS

    ideal_us = cases.run(
        cases.in_folder(__file__),
        {"traffic.pattern": "incast", "traffic.senders": "1", "traffic.receiver": "127"},
        lambda run: cases.number(run, "completion_ps") / US_PS,
    )
    found = [
        (name, cases.run(cases.in_folder(__file__), changes, read, seeds=SEEDS)) for name, changes in CASES.items()
    ]
    return [
        Case(name=name, completion_us=mean, low_us=low, high_us=high, ideal_us=ideal_us)
        for name, (mean, low, high) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("case", "all done after", "95 % interval", "slower than alone")]
    rows += [
        (
            case.name,
            f"{case.completion_us:,.0f} us",
            f"{case.low_us:,.0f} to {case.high_us:,.0f}",
            f"x {case.completion_us / case.ideal_us:.1f}",
        )
        for case in measured
    ]
    rows.append(("one flow alone", f"{measured[0].ideal_us:,.0f} us", "", ""))
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
            colour=cards.VERMILION if case.name == "ECMP, one hash everywhere" else cards.BLUE,
        )
        for case in measured
    ]
    return cards.bars(
        "A permutation of 128 hosts, 4 MiB each, on a non-blocking fat tree",
        rows,
        axis=f"until the last flow is done: mean of {SEEDS} seeds, 95 % interval",
        bound=(measured[0].ideal_us, "one flow alone"),
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
