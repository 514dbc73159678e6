"""How long an all-reduce takes on 64 H100: prints the table of README.md and draws its figure.

python -m examples.all_reduce_64.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9
BYTE_PER_S = 8e9  # bits per second in 10^9 bytes per second
MIB = 1 << 20
SIZES_MIB = (1, 4, 16, 64, 256, 1024)
CASES = {
    "hierarchical, NVLS": {},
    "ring": {"collective.algorithm": "ring", "collective.inner": "null", "collective.chunks": "4"},
    "double binary tree": {"collective.algorithm": "tree", "collective.inner": "null", "collective.chunks": "64"},
    "halving and doubling": {
        "collective.algorithm": "halving-doubling",
        "collective.inner": "null",
        "collective.chunks": "4",
    },
    "direct": {"collective.algorithm": "direct", "collective.inner": "null", "collective.chunks": "1"},
}
LARGEST_MIB = {"halving and doubling": 16, "direct": 4}  # beyond it they are far behind, and slow to simulate


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One algorithm: time in ms and bus bandwidth in 10^9 bytes per second, by size in MiB."""

    name: str
    took_ms: dict[int, float]
    bus: dict[int, float]


def measure() -> list[Case]:
    """Run all cases."""

    def read(run: weftwork.Run) -> tuple[float, float]:
        row = run.query("select duration_ps, bus_bandwidth_bps from collectives").to_pylist()[0]
        return row["duration_ps"] / MS_PS, row["bus_bandwidth_bps"] / BYTE_PER_S

    measured = []
    for name, changes in CASES.items():
        sizes = [size for size in SIZES_MIB if size <= LARGEST_MIB.get(name, SIZES_MIB[-1])]
        found = {
            size: cases.run(cases.in_folder(__file__), {**changes, "collective.size": f"{size}MiB"}, read)
            for size in sizes
        }
        took_ms, bus = ({size: pair[index] for size, pair in found.items()} for index in (0, 1))
        measured.append(Case(name=name, took_ms=took_ms, bus=bus))
    return measured


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("time, ms", *(_size(size) for size in SIZES_MIB), "bus bandwidth")]
    for case in measured:
        largest = max(case.bus)
        cells = (f"{case.took_ms[size]:.3f}" if size in case.took_ms else "" for size in SIZES_MIB)
        rows.append((case.name, *cells, f"{case.bus[largest]:.0f} GB/s at {_size(largest)}"))
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    return cards.lines(
        "All-reduce on 64 H100: eight DGX H100, one 400 Gb/s rail for each GPU",
        [
            cards.Polyline(name=case.name, points=tuple((float(size), bus) for size, bus in case.bus.items()))
            for case in measured
        ],
        x_axis="bytes of each GPU",
        y_axis="bus bandwidth, GB/s",
        x_ticks=[(float(size), _size(size)) for size in SIZES_MIB],
    )


def _size(size_mib: int) -> str:
    return f"{size_mib // 1024} GiB" if size_mib >= 1024 else f"{size_mib} MiB"


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
