"""What a second NIC or a faster one buys: prints the table of README.md and draws its figure.

python -m examples.second_nic.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SECOND_PS = 1e12
ONE, TWO, LIMIT = "1 x 400", "2 x 400", "no limit"
NICS = {
    ONE: {},
    TWO: {"fabric.node.nic_ports": "16"},
    "1 x 800": {"fabric.link_rate": "800Gbps"},
    "800, PCIe 5": {"fabric.link_rate": "800Gbps", "fabric.nic": "{model: connectx-8, pcie_rate: 504Gbps}"},
    "2 x 800": {"fabric.node.nic_ports": "16", "fabric.link_rate": "800Gbps"},
    LIMIT: {
        "fabric.link_rate": "100Tbps",
        "fabric.nic": "{model: connectx-8, pcie_rate: 0bps}",
        "fabric.switch": "plain",
        "fabric.radix": "128",
    },
}
ZERO = "model: llama-3-70b, zero: 3, global_batch: 512, recompute: full, gradients: bf16"
DENSE = (
    "model: llama-3-405b, tensor: 8, pipeline: 8, global_batch: 512, recompute: selective, balanced_ends: true,"
    " gradients: bf16"
)
NOTHING_HIDES = "overlap: {data: 0, pipeline: 0}"
JOBS = {
    "experts across servers": {},
    "experts, a token once a server": {"training.software": "{name: plain, deduplicated_experts: true}"},
    "ZeRO 3, nothing hidden": {"training": f"{{{ZERO}, prefetch: false, {NOTHING_HIDES}}}"},
    "ZeRO 3, hidden": {"training": f"{{{ZERO}, overlap: {{data: 1}}}}"},
    "dense, TP 8 in a server": {"training": f"{{{DENSE}, {NOTHING_HIDES}}}"},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A job: its iteration and its exposed communication by NICs, and its iteration if nothing took time to send."""

    name: str
    took_s: dict[str, float]
    exposed_s: dict[str, float]
    computing_s: float

    def saved(self, nics: str) -> float:
        """Share of an iteration that NICs save beside one of 400 Gb/s."""
        return 1 - self.took_s[nics] / self.took_s[ONE]


def measure() -> list[Case]:
    """Run all jobs with all NICs."""

    def read(run: weftwork.Run) -> tuple[float, float, float]:
        what_if = {row["change"]: row["iteration_ps"] for row in run.table("what_if").to_pylist()}
        took_ps, exposed_ps = cases.number(run, "iteration_ps"), cases.number(run, "exposed_ps")
        return took_ps / SECOND_PS, exposed_ps / SECOND_PS, what_if["infinite network"] / SECOND_PS

    scenario = cases.in_folder(__file__)
    found = []
    for name, changes in JOBS.items():
        told = {nics: cases.run(scenario, {**changes, **more}, read) for nics, more in NICS.items()}
        took_s = {nics: took for nics, (took, _, _) in told.items()}
        exposed_s = {nics: exposed for nics, (_, exposed, _) in told.items()}
        found.append(Case(name=name, took_s=took_s, exposed_s=exposed_s, computing_s=told[ONE][2]))
    return found


def report(measured: list[Case]) -> str:
    """The tables of README.md."""
    times = [("an iteration takes, s", *NICS)]
    times += [(case.name, *(f"{case.took_s[nics]:.2f}" for nics in NICS)) for case in measured]
    exposed = [("exposed communication, s", *NICS)]
    exposed += [(case.name, *(f"{case.exposed_s[nics]:.2f}" for nics in NICS)) for case in measured]
    saved = [("saved", *NICS)]
    saved += [
        (case.name, "", *(f"{100 * case.saved(nics):.1f} %" for nics in NICS if nics != ONE)) for case in measured
    ]
    return "\n\n".join(map(cases.table, (times, exposed, saved)))


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = []
    for case in measured:
        for nics, colour in ((TWO, cards.BLUE), (LIMIT, cards.ORANGE)):
            share = 100 * case.saved(nics)
            rows.append(cards.Bar(name=f"{case.name}: {nics}", value=share, text=f"{share:.1f} %", colour=colour))
    return cards.bars(
        "What a second port of 400 Gb/s saves, and the most that any NIC could", rows, axis="part of an iteration, %"
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
