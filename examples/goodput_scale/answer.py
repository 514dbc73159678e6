"""How goodput falls with scale, and what helps: prints the tables of README.md and draws its figure.

python -m examples.goodput_scale.answer
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from examples import cases

import weftwork
from weftwork.base.clock import SECOND_PS
from weftwork.report.figures import cards
from weftwork.spec.scenario.reliability import Reliability
from weftwork.workload.reliability import goodput

__all__ = ["Case", "figure", "measure", "report"]

SCALES = (1_024, 4_096, 16_384, 32_768, 65_536, 131_072)
SEQUENCES_PER_GPU = 1 / 8  # 16 for each pipeline of 8 x 16 GPUs
MINUTE_S = 60
MINUTE_PS = MINUTE_S * SECOND_PS
AS_IT_IS, QUICK = "as it is", "found and restarted in 2 min"
CAUSES = ("gpu", "host", "maintenance", "network", "software")
CHANGES: dict[str, dict[str, float]] = {
    AS_IT_IS: {},
    "checkpoint every 20 min": {"checkpoint_every_ps": 20 * MINUTE_PS},
    "checkpoints free": {"checkpoint_cost_ps": 0, "checkpoint_every_ps": 1},
    "found in 1 min": {"detect_ps": MINUTE_PS},
    QUICK: {"detect_ps": MINUTE_PS, "restart_ps": MINUTE_PS},
    "half the failures": {cause: getattr(Reliability(), cause) / 2 for cause in CAUSES},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A number of GPUs: an iteration, what interrupts it, where the time goes, and what counts by what changes."""

    name: str
    gpus: int
    iteration_s: float
    interrupted_every_s: float
    checkpoint_every_s: float
    lost: float
    recovery: float
    checkpoint: float
    low: float
    high: float
    tokens_per_s: float
    share: dict[str, float]


def measure() -> list[Case]:
    """Run all cases: an iteration of each size is simulated, what changes over weeks is worked out for it."""
    return [
        cases.run(
            cases.in_folder(__file__),
            {"fabric.gpus": f"{gpus}", "training.global_batch": f"{round(gpus * SEQUENCES_PER_GPU)}"},
            partial(_read, gpus=gpus),
        )
        for gpus in SCALES
    ]


def _read(run: weftwork.Run, gpus: int) -> Case:
    iteration_s = cases.number(run, "iteration_ps") / SECOND_PS
    share = {
        name: goodput(Reliability().model_copy(update=changed), gpus=gpus, iteration_s=iteration_s).share
        for name, changed in CHANGES.items()
    }
    return Case(
        name=f"{gpus:,}",
        gpus=gpus,
        iteration_s=iteration_s,
        interrupted_every_s=cases.number(run, "interruption_every_s"),
        checkpoint_every_s=cases.number(run, "checkpoint_every_s"),
        lost=cases.number(run, "lost_share"),
        recovery=cases.number(run, "recovery_share"),
        checkpoint=cases.number(run, "checkpoint_share"),
        low=cases.number(run, "effective_share_p5"),
        high=cases.number(run, "effective_share_p95"),
        tokens_per_s=cases.number(run, "effective_tokens_per_s"),
        share={**share, AS_IT_IS: cases.number(run, "effective_share")},
    )


def report(measured: list[Case]) -> str:
    """The tables of README.md."""
    rows = [("GPUs", "iteration", "interrupted every", "checkpoint every", "counts", "9 of 10 months", "lost",
             "detection, restart", "tokens/s")]  # fmt: skip
    rows += [
        (
            case.name,
            f"{case.iteration_s:.2f} s",
            f"{case.interrupted_every_s / 3600:.2f} h",
            f"{case.checkpoint_every_s / MINUTE_S:.1f} min",
            f"{case.share[AS_IT_IS]:.1%}",
            f"{case.low:.1%} to {case.high:.1%}",
            f"{case.lost:.1%}",
            f"{case.recovery:.1%}",
            f"{case.tokens_per_s / 1e3:,.0f} k",
        )
        for case in measured
    ]
    changed = [("what counts", *(case.name for case in measured))]
    changed += [(name, *(f"{case.share[name]:.1%}" for case in measured)) for name in CHANGES]
    return f"{cases.table(rows)}\n\n{cases.table(changed)}"


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    names = (AS_IT_IS, "checkpoint every 20 min", "half the failures", QUICK)
    return cards.lines(
        "What failures leave of the time of Llama 3 405B",
        [
            cards.Polyline(name=name, points=tuple((float(case.gpus), 100 * case.share[name]) for case in measured))
            for name in names
        ],
        x_axis="GPUs",
        y_axis="time that counts, %",
        x_ticks=[(float(case.gpus), f"{case.gpus // 1024}k") for case in measured],
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
