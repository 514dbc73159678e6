"""What a failed cube costs with and without optical switches: prints the tables of README.md and draws its figure.

python -m examples.failed_cube.answer
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from examples import cases

import weftwork
from weftwork.report.figures import cards
from weftwork.topology.tpu_slices import chips_word, largest_slice, place_slice

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9
CUBES = 8
SLICE = (4, 8, 8)
FAILED = (0, 7)  # opposite corners of the pod, so that no block of four cubes is left
HEALTHY = (0.99, 0.999)  # share of time in which a cube is healthy


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """The largest slice up to four cubes, its all-reduce, and how often no slice of four cubes fits."""

    name: str
    sides: tuple[int, int, int]
    took_ms: float
    missing: dict[float, float]


def _missing(share: float, *, has_optical: bool) -> float:
    """Probability that the slice does not fit, over all states of independent cubes."""
    total = 0.0
    for state in product((True, False), repeat=CUBES):
        failed = [cube for cube, is_healthy in enumerate(state) if not is_healthy]
        if place_slice(SLICE, cubes=CUBES, failed=failed, has_optical=has_optical) is None:
            total += share ** (CUBES - len(failed)) * (1 - share) ** len(failed)
    return total


def measure() -> list[Case]:
    """Run the largest slice that fits, with and without optical switches, before and after the failures."""
    found = []
    for word, has_optical in (("optical switches", True), ("fixed cables", False)):
        for state, failed in (("all healthy", ()), ("two cubes failed", FAILED)):
            sides = largest_slice(cubes=CUBES, failed=failed, has_optical=has_optical, most=4)
            if sides is None:
                raise weftwork.UsageError("no cube is healthy")
            changes = {
                "fabric.slice": str(list(sides)),
                "fabric.failed_cubes": str([f"cube{cube}" for cube in failed]),
                "fabric.optical_switches": str(has_optical).lower(),
            }
            took_ms = cases.run(
                cases.in_folder(__file__), changes, lambda run: cases.number(run, "completion_ps") / MS_PS
            )
            missing = {share: _missing(share, has_optical=has_optical) for share in HEALTHY}
            found.append(Case(name=f"{word}, {state}", sides=sides, took_ms=took_ms, missing=missing))
    return found


def report(measured: list[Case]) -> str:
    """The tables of README.md."""
    rows = [("case", "slice", "all-reduce")]
    rows += [(case.name, chips_word(case.sides), f"{case.took_ms:.2f} ms") for case in measured]
    often = [("a slice of 4 cubes is unavailable", *(f"cubes healthy {100 * share:g} %" for share in HEALTHY))]
    often += [
        (f"{case.name.partition(',')[0]}, any cubes", *(f"{case.missing[share]:.1e}" for share in HEALTHY))
        for case in measured[::2]
    ]
    often.append(("four given cubes, until repair", *(f"{1 - share**4:.1e}" for share in HEALTHY)))
    return f"{cases.table(rows)}\n\n{cases.table(often)}"


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=case.name,
            value=case.took_ms,
            text=f"{case.took_ms:.2f} ms, {chips_word(case.sides)}",
            colour=cards.BLUE if case.name.startswith("optical") else cards.VERMILION,
        )
        for case in measured
    ]
    return cards.bars("A pod of eight cubes, a slice of up to four", rows, axis="an all-reduce of 1 GiB takes, ms")


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
