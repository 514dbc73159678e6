"""Expert parallelism inside and across the NVLink domain: prints the table of README.md and draws its figure.

python -m examples.expert_parallel.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SECOND_PS, TERA, GIGA = 1e12, 1e12, 1e9
DEGREES = (8, 16, 32, 64)
ONCE = {"training.software.deduplicated_experts": "true"}
RACK = {"fabric.node.model": "gb200-nvl72"}
RACK_64 = {
    **RACK,
    "fabric.nodes_per_pod": "4",
    "fabric.node.gpus": "64",
    "fabric.node.nic_ports": "64",
    "fabric.node.nvlink_domain_gpus": "64",
}
RACK_72 = {**RACK, "fabric.nodes_per_pod": "3", "fabric.gpus": "1080", "training.gpus": "1024"}
EVERY, COPIED, RACKS = "8 H100", "8 H100, one copy a server", "64 of 72 GB200"
LINES: dict[str, tuple[dict[str, str], tuple[int, ...]]] = {
    EVERY: ({}, DEGREES),
    COPIED: (ONCE, DEGREES[1:]),
    f"{COPIED}, hidden": ({**ONCE, "training.overlap.expert": "1"}, DEGREES[-1:]),
    RACKS: (RACK_64, DEGREES),
    "72 of 72 GB200": (RACK_72, (8, 64)),
    "72 of 72 GB200, one copy a rack": ({**RACK_72, **ONCE}, (64,)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One NVLink domain and one degree of expert parallelism: an iteration, its experts' exposed time, its traffic."""

    name: str
    domain: str
    expert: int
    iteration_s: float
    exposed_s: float
    network_tb: float
    memory_gb: float
    mfu: float

    @property
    def share(self) -> float:
        """Of the iteration that goes to tokens on their way to experts and back."""
        return self.exposed_s / self.iteration_s


def measure() -> list[Case]:
    """Run all cases."""
    found = []
    for domain, (changes, degrees) in LINES.items():
        for expert in degrees:

            def read(run: weftwork.Run, domain: str = domain, expert: int = expert) -> Case:
                (sent,) = run.query("select sum(bytes) as bytes from tiers where tier = 'host->leaf'").to_pylist()
                return Case(
                    name=f"{domain}, EP {expert}",
                    domain=domain,
                    expert=expert,
                    iteration_s=cases.number(run, "iteration_ps") / SECOND_PS,
                    exposed_s=cases.number(run, "exposed_expert_ps") / SECOND_PS,
                    network_tb=float(sent["bytes"]) / TERA,
                    memory_gb=cases.number(run, "memory_bytes") / GIGA,
                    mfu=cases.number(run, "mfu"),
                )

            found.append(cases.run(cases.in_folder(__file__), {**changes, "training.expert": str(expert)}, read))
    return found


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("NVLink domain", "EP", "iteration", "experts exposed", "share", "network", "MFU", "memory")]
    rows += [
        (
            case.domain,
            f"{case.expert}",
            f"{case.iteration_s:.2f} s",
            f"{case.exposed_s:.2f} s",
            f"{case.share:.0%}",
            f"{case.network_tb:.0f} TB",
            f"{case.mfu:.1%}",
            f"{case.memory_gb:.0f} GB",
        )
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    inside = next(case for case in measured if case.domain == EVERY)

    def points(domain: str) -> tuple[tuple[float, float], ...]:
        own = [case for case in measured if case.domain == domain]
        first = [] if domain == RACKS or own[0].expert == DEGREES[0] else [inside]
        return tuple((float(case.expert), 100 * case.share) for case in (*first, *own))

    return cards.lines(
        "Tokens to experts and back: DeepSeek-V3 on 1,024 GPUs",
        [cards.Polyline(name=domain, points=points(domain)) for domain in (EVERY, COPIED, RACKS)],
        x_axis="GPUs over which the experts of a stage are spread",
        y_axis="exposed, % of an iteration",
        x_ticks=[(float(degree), f"{degree}") for degree in DEGREES],
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
