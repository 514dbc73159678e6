"""What minimal and adaptive routing cost two jobs on a dragonfly: prints the table of README.md and draws its figure.

python -m examples.dragonfly_two_jobs.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

US_PS = 1e6
SEEDS = 2  # of the random job
ROUTINGS = ("minimal", "valiant", "ugal", "par")
JOBS = ("shift", "random")


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Completion time of each job under one routing, with the other job and alone: means over the seeds."""

    name: str
    both_us: dict[str, float]
    alone_us: dict[str, float]

    def costs(self, job: str) -> float:
        """By what share the other job makes this job longer."""
        return self.both_us[job] / self.alone_us[job] - 1


def _read(run: weftwork.Run) -> dict[str, float]:
    """When the last flow of each job was delivered; even hosts belong to the shift."""
    took = dict.fromkeys(JOBS, 0.0)
    parts = run.seeds or (run,)
    for part in parts:
        rows = part.table("flows").to_pylist()
        for place, job in enumerate(JOBS):
            delivered_ps = [row["delivered_ps"] for row in rows if row["source_rank"] % 2 == place]
            took[job] += max(delivered_ps, default=0) / US_PS / len(parts)
    return took


def measure() -> list[Case]:
    """Run both jobs together and each alone, under all routings."""
    scenario = cases.in_folder(__file__)

    def took(routing: str, jobs: str) -> dict[str, float]:
        changes = {"fabric.routing": routing, "traffic.jobs": jobs}
        return cases.run(scenario, changes, _read, seeds=1 if jobs == "shift" else SEEDS)

    return [
        Case(name=name, both_us=took(name, "both"), alone_us={job: took(name, job)[job] for job in JOBS})
        for name in ROUTINGS
    ]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows: list[tuple[str, ...]] = [("routing", "shift", "alone", "random", "alone")]
    rows += [
        (case.name, *(f"{took[job]:,.0f} us" for job in JOBS for took in (case.both_us, case.alone_us)))
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = [
        cards.Bar(
            name=f"{case.name}, {job}", value=case.both_us[job], text=f"{case.both_us[job]:,.0f} us", colour=colour
        )
        for case in measured
        for job, colour in zip(JOBS, (cards.VERMILION, cards.BLUE), strict=True)
    ]
    return cards.bars(
        "Two jobs on a dragonfly of 72 hosts: group to group, and at random",
        rows,
        axis="until the last flow of the job is delivered",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
