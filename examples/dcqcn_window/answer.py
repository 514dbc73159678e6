"""What a window buys DCQCN: prints the table of README.md and draws its figure.

python -m examples.dcqcn_window.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

WINDOWS_BDPS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
US_PS = 1e6
INCAST_BYTES = 15 * 16 * 2**20
LINE_BPS = 400e9


def _dcqcn(keys: str = "") -> dict[str, str]:
    return {"transport.congestion_control": f"{{name: dcqcn{keys}}}"}


ALONE = {"traffic.senders": "1", "traffic.receiver": "31"}
CASES = {
    "alone": _dcqcn() | ALONE,
    "no congestion control": {"transport.congestion_control": "none"},
    "DCQCN, no window": _dcqcn(),
    **{f"DCQCN, window of {bdps:g} BDP": _dcqcn(f", window_bdps: {bdps:g}") for bdps in WINDOWS_BDPS},
    "DCQCN, 1 BDP whatever the rate": _dcqcn(", window_bdps: 1, window_follows_rate: false"),
    "window of 1 BDP, no DCQCN": {"transport.congestion_control": "fixed-window"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case: completion times of the victim and of the last sender in us, pauses, and the longest queue in MB."""

    name: str
    victim_us: float
    incast_us: float
    pauses: int
    queue_mb: float


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, int, float]:
        (row,) = run.query(
            "select max(fct_ps) filter (source = 'host10') as victim, max(fct_ps) filter (source <> 'host10') as incast"
            " from flows"
        ).to_pylist()
        (port,) = run.query("select max(max_queue_bytes) as longest from links where name = 'leaf0->host0'").to_pylist()
        return row["victim"] / US_PS, row["incast"] / US_PS, int(cases.number(run, "pauses")), port["longest"] / 1e6

    found = [(name, cases.run(cases.in_folder(__file__), changes, read)) for name, changes in CASES.items()]
    return [
        Case(name=name, victim_us=victim, incast_us=incast, pauses=pauses, queue_mb=queue)
        for name, (victim, incast, pauses, queue) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    alone_us = measured[0].victim_us
    rows = [("case", "victim", "slower", "last of the incast", "pauses", "longest queue")]
    for case in measured:
        others = (f"{case.incast_us:,.0f} us", f"{case.pauses:,}", f"{case.queue_mb:.2f} MB")
        row = (case.name, f"{case.victim_us:,.0f} us", f"x {case.victim_us / alone_us:.2f}")
        rows.append((*row, *(others if case.name != "alone" else ("",) * 3)))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    by_name = {case.name: case for case in measured}
    with_window = [(bdps, by_name[f"DCQCN, window of {bdps:g} BDP"]) for bdps in WINDOWS_BDPS]
    lines = (
        ("victim", [(bdps, case.victim_us / 1e3) for bdps, case in with_window]),
        ("last of the incast", [(bdps, case.incast_us / 1e3) for bdps, case in with_window]),
    )
    unlimited_ms = by_name["DCQCN, no window"].victim_us / 1e3
    return cards.lines(
        "A victim beside an incast of 15 to 1, under DCQCN with a window",
        [cards.Polyline(name=name, points=tuple(points)) for name, points in lines],
        x_axis="window, bandwidth-delay products",
        y_axis="completion time, ms",
        x_ticks=[(bdps, f"{bdps:g}") for bdps in WINDOWS_BDPS],
        bound=(unlimited_ms, "the victim without a window"),
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
