"""Which control for an all-reduce beside an incast: prints the table of README.md and draws its figure.

python -m examples.cc_beside_incast.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

US_PS = 1e6
TELEMETRY = {"fabric.switch.telemetry": "true"}
SPRAYED = {
    "transport.load_balancing": "spray",
    "transport.flow_control": "none",
    "transport.recovery": "selective-repeat",
    "transport.trimming": "true",
}


def _under(control: str, variant: str = "", **more: str) -> dict[str, str]:
    chosen = f"{{name: {control}, variant: {variant}}}" if variant else control
    return {"transport.congestion_control": chosen} | more


ALONE = {"traffic.incast": "0B"}
CASES = {
    "no incast": _under("none") | ALONE,
    "none": _under("none"),
    "DCQCN": _under("dcqcn"),
    "TIMELY": _under("timely"),
    "DCQCN, window": _under("dcqcn", "hpcc-repo-window"),
    "TIMELY, window": _under("timely", "hpcc-repo-window"),
    "fixed window": _under("fixed-window"),
    "CUBIC": _under("cubic"),
    "BBR": _under("bbr"),
    "DCTCP": _under("dctcp"),
    "Swift": _under("swift"),
    "Falcon": _under("falcon"),
    "PowerTCP": _under("powertcp"),
    "PCC Vivace": _under("vivace"),
    "HPCC": _under("hpcc") | TELEMETRY,
    "sprayed, no incast": _under("fixed-window") | SPRAYED | ALONE,
    "sprayed, fixed window": _under("fixed-window") | SPRAYED,
    "sprayed, Swift": _under("swift") | SPRAYED,
    "sprayed, NSCC": _under("nscc") | SPRAYED,
    "sprayed, RCCC": _under("rccc") | SPRAYED,
    "sprayed, NDP": _under("ndp") | SPRAYED,
    "sprayed, EQDS": _under("eqds") | SPRAYED,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One case: ends of the all-reduce and of the incast in us, pauses, and the longest queue of the incast in MB."""

    name: str
    all_reduce_us: float
    incast_us: float
    pauses: int
    queue_mb: float


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float, int, float]:
        (row,) = run.query(
            "select max(delivered_ps) filter (source_rank % 2 = 0) as all_reduce,"
            " coalesce(max(delivered_ps) filter (source_rank % 2 = 1), 0) as incast from flows"
        ).to_pylist()
        (link,) = run.query("select max(max_queue_bytes) as longest from links where name = 'leaf0->host1'").to_pylist()
        return (
            row["all_reduce"] / US_PS,
            row["incast"] / US_PS,
            int(cases.number(run, "pauses")),
            link["longest"] / 1e6,
        )

    found = [(name, cases.run(cases.in_folder(__file__), changes, read)) for name, changes in CASES.items()]
    return [
        Case(name=name, all_reduce_us=all_reduce, incast_us=incast, pauses=pauses, queue_mb=queue)
        for name, (all_reduce, incast, pauses, queue) in found
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    alone_us = measured[0].all_reduce_us
    rows = [("control", "all-reduce", "slower", "last of the incast", "pauses", "longest queue")]
    for case in measured:
        row = (case.name, f"{case.all_reduce_us:,.0f} us", f"x {case.all_reduce_us / alone_us:.2f}")
        others = (f"{case.incast_us:,.0f} us", f"{case.pauses:,}", f"{case.queue_mb:.2f} MB")
        rows.append((*row, *(others if case.incast_us else ("",) * 3)))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    alone_us = measured[0].all_reduce_us
    rows = [
        cards.Bar(
            name=case.name,
            value=case.all_reduce_us,
            text=f"{case.all_reduce_us:,.0f} us",
            colour=cards.GREEN if not case.incast_us else cards.VERMILION if case.pauses else cards.BLUE,
        )
        for case in measured
    ]
    return cards.bars(
        "A ring all-reduce of 16 MiB beside an incast of 15 to 1",
        rows,
        axis="time of the all-reduce on 16 hosts at 400 Gb/s; red: switches pause each other",
        bound=(alone_us, "no incast"),
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
