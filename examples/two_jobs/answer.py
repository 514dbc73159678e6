"""What two jobs on one fabric cost each other: prints the tables of README.md and draws its figure.

python -m examples.two_jobs.answer
"""

from __future__ import annotations

from dataclasses import dataclass

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SECOND_PS = 1e12
SEEDS = 3  # of hashing
ZERO = "model: llama-3-70b, zero: 3, global_batch: 64, recompute: full, gradients: bf16"
EXPOSED = f"{ZERO}, prefetch: false, overlap: {{data: 0}}"
EXPERTS = (
    "model: qwen3-30b-a3b, recipe: none, expert: 64, global_batch: 512, recompute: full, gradients: bf16,"
    " overlap: {data: 0}"
)
DENSE = (
    "model: llama-3-70b, tensor: 8, pipeline: 2, global_batch: 64, recompute: full, gradients: bf16, overlap: {data: 0}"
)
IN_STEP, BESIDE_DENSE = "ZeRO 3 beside ZeRO 3, in step", "experts beside a dense job"
PAIRS = {
    IN_STEP: (EXPOSED, EXPOSED),
    "ZeRO 3 beside ZeRO 3, 12 ms apart": (EXPOSED, f"{EXPOSED}, loading: 12ms"),
    "ZeRO 3 beside ZeRO 3, both hidden": (f"{ZERO}, overlap: {{data: 1}}", f"{ZERO}, overlap: {{data: 1}}"),
    "experts beside experts": (EXPERTS, EXPERTS),
    BESIDE_DENSE: (f"{EXPERTS}, iterations: 4", f"{DENSE}, iterations: 3"),
    "a dense job beside experts": (f"{DENSE}, iterations: 3", f"{EXPERTS}, iterations: 4"),
}
SPRAYED, HASHED = "{load_balancing: switch-spray, reorder_tolerant: true}", "{load_balancing: ecmp}"
# the placement, GPUs beside each other for 1 of uplinks, and who chooses among them
FABRICS = {
    "own pods, 4:1": ("packed", 4, HASHED),
    "1:1 sprayed": ("pods", 1, SPRAYED),
    "1:1 hashed": ("pods", 1, HASHED),
    "4:1 sprayed": ("pods", 4, SPRAYED),
    "4:1 hashed": ("pods", 4, HASHED),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """The first job of a pair: how long its iteration takes by fabric, beside the other one and alone."""

    name: str
    took_s: dict[str, float]
    alone_s: dict[str, float]
    computing_s: float

    def costs(self, fabric: str) -> float:
        """By what share the neighbour makes an iteration longer."""
        return self.took_s[fabric] / self.alone_s[fabric] - 1


def _read(run: weftwork.Run) -> tuple[float, float, float]:
    """Of the first job: an iteration, alone, and with an infinitely fast network; the mean over seeds."""
    found = [0.0, 0.0, 0.0]
    parts = run.seeds or (run,)
    for part in parts:
        (took_ps,) = [row["iteration_ps"] for row in part.table("jobs").to_pylist() if row["job"] == "left"]
        what_if = part.table("what_if").to_pylist()
        other_ps = {row["change"]: row["iteration_ps"] for row in what_if if row["job"] == "left"}
        for place, value_ps in enumerate((took_ps, other_ps["alone"], other_ps["infinite network"])):
            found[place] += value_ps / SECOND_PS / len(parts)
    return found[0], found[1], found[2]


def measure() -> list[Case]:
    """Run all pairs on all fabrics."""
    scenario = cases.in_folder(__file__)
    found = []
    for name, (left, right) in PAIRS.items():
        told = {}
        for fabric, (placement, uplinks, transport) in FABRICS.items():
            both = ", ".join(
                f"{{name: {job}, gpus: 64, placement: {placement}, {keys}}}"
                for job, keys in (("left", left), ("right", right))
            )
            changes = {"jobs": f"[{both}]", "fabric.oversubscription": f"{uplinks}", "transport": transport}
            told[fabric] = cases.run(
                scenario, changes, _read, seeds=SEEDS if placement == "pods" and transport == HASHED else 1
            )
        found.append(
            Case(
                name=name,
                took_s={fabric: took for fabric, (took, _, _) in told.items()},
                alone_s={fabric: alone for fabric, (_, alone, _) in told.items()},
                computing_s=min(computing for _, _, computing in told.values()),
            )
        )
    return found


def report(measured: list[Case]) -> str:
    """The tables of README.md."""
    took = [("an iteration takes, s", *FABRICS)]
    took += [(case.name, *(f"{case.took_s[fabric]:.2f}" for fabric in FABRICS)) for case in measured]
    costs = [("the neighbour costs", *FABRICS)]
    costs += [(case.name, *(f"{100 * case.costs(fabric):.1f} %" for fabric in FABRICS)) for case in measured]
    return f"{cases.table(took)}\n\n{cases.table(costs)}"


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    rows = []
    for case in measured:
        for fabric, colour in (("4:1 sprayed", cards.BLUE), ("4:1 hashed", cards.ORANGE)):
            cost = 100 * case.costs(fabric)
            rows.append(cards.Bar(name=f"{case.name}, {fabric[4:]}", value=cost, text=f"+{cost:.1f} %", colour=colour))
    return cards.bars(
        "Two jobs in both pods, a quarter of the uplinks: what the neighbour costs",
        rows,
        axis="an iteration takes longer than alone on the same servers, %",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
