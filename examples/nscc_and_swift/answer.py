"""What NSCC does that Swift does not: prints the table of README.md and draws its figure.

python -m examples.nscc_and_swift.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

US_PS = 1e6
SHOWN_US = 120
NO_RECORD = {"engine.record.flows": "none"}
SWIFT = {"transport.congestion_control": "swift"}
NO_TRIMMING = {"transport.trimming": "false"}
NO_QUICK_ADAPT = {"transport.congestion_control": "{name: nscc, adapt_part: 1000000}"}
MIXED = {"transport.load_balancing": "ecmp", "transport.path_selection": "mixed"}
LATE = {"fabric.switch.ecn": "{}"}
PERMUTATION = {"traffic": "{pattern: permutation, size: 4MiB}"}
SLOW = PERMUTATION | {"faults": "[{at: 0us, link: leaf0-spine0, event: degrade, rate: 100Gbps}]"}
DRAWN = {  # beside each other in the figure, by their names there
    "incast, late marks: Swift": "Swift",
    "incast, late marks: NSCC": "NSCC",
    "incast, late marks: NSCC, no quick adapt": "NSCC, no quick adapt",
}
CASES: dict[str, dict[str, str]] = {
    "incast: Swift, no trimming": SWIFT | NO_TRIMMING,
    "incast: Swift": SWIFT,
    "incast: NSCC": {},
    "incast: NSCC, no quick adapt": NO_QUICK_ADAPT,
    "incast, late marks: Swift": SWIFT | LATE,
    "incast, late marks: NSCC": LATE,
    "incast, late marks: NSCC, no quick adapt": NO_QUICK_ADAPT | LATE,
    "permutation: Swift": SWIFT | PERMUTATION,
    "permutation: NSCC": PERMUTATION,
    "slow link: Swift": SWIFT | SLOW,
    "slow link: NSCC": SLOW,
    "slow link: Swift, mixed paths": SWIFT | MIXED | SLOW,
    "slow link: NSCC, mixed paths": MIXED | SLOW,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One load under one control: times of the last and the mean flow in us, packets sent again, windows over time."""

    name: str
    last_us: float
    mean_us: float
    again: int
    queue_mb: float
    windows: tuple[tuple[float, float], ...]


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, int, float, tuple[tuple[float, float], ...]]:
        (row,) = run.query("select max(fct_ps) as last, avg(fct_ps) as mean from flows").to_pylist()
        (link,) = run.query("select max(max_queue_bytes) as longest from links").to_pylist()
        windows = run.query(
            "select at_ps, avg(value) as mean from series where kind = 'window_bytes' group by at_ps order by at_ps"
        ).to_pylist()
        again = int(cases.number(run, "retransmissions"))
        points = tuple((one["at_ps"] / US_PS, one["mean"] / 1e3) for one in windows if one["at_ps"] <= SHOWN_US * US_PS)
        return row["last"] / US_PS, row["mean"] / US_PS, again, link["longest"] / 1e6, points

    found = [
        (name, cases.run(cases.in_folder(__file__), changes | ({} if name in DRAWN else NO_RECORD), read))
        for name, changes in CASES.items()
    ]
    return [
        Case(name=name, last_us=last, mean_us=mean, again=again, queue_mb=queue, windows=windows)
        for name, (last, mean, again, queue, windows) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("load: control", "last flow", "mean flow", "packets sent again", "longest queue")]
    rows += [
        (case.name, f"{case.last_us:,.0f} us", f"{case.mean_us:,.0f} us", f"{case.again:,}", f"{case.queue_mb:.2f} MB")
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    return cards.lines(
        "Mean window of 31 senders that send to one at once, late marks",
        [cards.Polyline(name=DRAWN[case.name], points=case.windows) for case in measured if case.name in DRAWN],
        x_axis="time, us",
        y_axis="window, kB",
        x_ticks=[(float(us), str(us)) for us in range(0, SHOWN_US + 1, 20)],
        is_log=False,
        has_dots=False,
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
