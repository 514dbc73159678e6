"""How communication's share changes with the size of the model: prints the table of README.md and draws its figure.

python -m examples.communication_share.answer
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from examples import cases

import weftwork
from weftwork.report.figures import cards

__all__ = ["Case", "figure", "measure", "report"]

SECOND_PS = 1e12
KINDS = ("tensor", "pipeline", "data")
Changes = dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """A row of table 1 of Narayanan et al., SC 2021; micro batches and virtual stages as in their run_table_1.sh."""

    gpus: int
    stages: int
    micro_batch: int
    global_batch: int
    virtual_stages: int


MODELS = {
    39.1: Published(gpus=512, stages=2, micro_batch=4, global_batch=1536, virtual_stages=1),
    76.1: Published(gpus=1024, stages=4, micro_batch=2, global_batch=1792, virtual_stages=3),
    145.6: Published(gpus=1536, stages=8, micro_batch=2, global_batch=2304, virtual_stages=2),
    1008.0: Published(gpus=3072, stages=64, micro_batch=1, global_batch=3072, virtual_stages=1),
}
COMMODITY = {"fabric.link_rate": "100Gbps", "fabric.oversubscription": "4"}
SHARED = {**COMMODITY, "fabric.node.model": "hgx-a100-4x200g"}  # two GPUs to a port
MODERN = {
    "fabric.node.model": "dgx-h100",
    "training.software": "plain",
    "training.sequence_parallel": "true",
    "training.zero": "1",
    "training.recompute": "none",
}
HIDDEN = {"training.overlap.tensor": "0.7", "training.overlap.pipeline": "1", "training.overlap.data": "1"}
FSDP = {"training.zero": "3", "training.software": "plain"}
SLOW, RISES, NOT_HIDDEN = "50 Gb/s, as published", "50 Gb/s, TP 32 at 1T", "H100, 400 Gb/s"
INSIDE = dict.fromkeys(MODELS, 8)
# What is changed, and the degree of tensor parallelism of every model that is run.
LINES: dict[str, tuple[Changes, dict[float, int]]] = {
    "200 Gb/s, as published": ({}, INSIDE),
    SLOW: (SHARED, INSIDE),
    RISES: (SHARED, {1008.0: 32}),
    "100 Gb/s, TP 16, then 32": (COMMODITY, {**INSIDE, 145.6: 16, 1008.0: 32}),
    "100 Gb/s, FSDP": ({**COMMODITY, **FSDP}, dict.fromkeys(MODELS, 1)),
    NOT_HIDDEN: (MODERN, INSIDE),
    f"{NOT_HIDDEN}, overlap": ({**MODERN, **HIDDEN}, INSIDE),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One model under one set of assumptions: an iteration, and the shares of it by what they went to."""

    name: str
    line: str
    billions: float
    plan: str
    iteration_s: float
    exposed: float
    kinds: dict[str, float]
    bubble: float


def measure() -> list[Case]:
    """Run all cases."""
    return [
        cases.run(
            cases.in_folder(__file__),
            _changes(line, billions),
            partial(_read, line=line, billions=billions),
        )
        for line, (_, tensor_of) in LINES.items()
        for billions in tensor_of
    ]


def _changes(line: str, billions: float) -> Changes:
    """The published plan, and what the assumptions change."""
    changed, tensor_of = LINES[line]
    row, tensor = MODELS[billions], tensor_of[billions]
    stages, virtual_stages, micro_batch = row.stages * 8 // tensor, row.virtual_stages, row.micro_batch
    if changed.get("training.zero") == "3":
        stages, virtual_stages, micro_batch = 1, 1, 1
    if changed.get("training.zero") == "1":
        stages = min(stages, 16)  # it makes the room for that
    copies = row.gpus // (tensor * stages)
    global_batch = -(-row.global_batch // (copies * micro_batch)) * copies * micro_batch
    return {
        "training.model": f"gpt-{billions:g}b",
        "fabric.gpus": f"{row.gpus}",
        "training.tensor": f"{tensor}",
        "training.pipeline": f"{stages}",
        "training.virtual_stages": f"{virtual_stages}",
        "training.micro_batch": f"{micro_batch}",
        "training.global_batch": f"{global_batch}",
        **changed,
    }


def _read(run: weftwork.Run, line: str, billions: float) -> Case:
    iteration_ps = cases.number(run, "iteration_ps")
    changes = _changes(line, billions)
    return Case(
        name=f"{line}, {billions:g} B",
        line=line,
        billions=billions,
        plan=f"TP {changes['training.tensor']}, PP {changes['training.pipeline']}",
        iteration_s=iteration_ps / SECOND_PS,
        exposed=cases.number(run, "exposed_share"),
        kinds={kind: cases.number(run, f"exposed_{kind}_ps") / iteration_ps for kind in KINDS},
        bubble=cases.number(run, "bubble_share"),
    )


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows: list[tuple[str, ...]] = [("", "parameters", "plan", "iteration", "exposed", *KINDS, "bubble")]
    for case in measured:
        first = case.billions == next(iter(LINES[case.line][1]))
        rows.append(
            (
                case.line if first else "",
                f"{case.billions:g} B",
                case.plan,
                f"{case.iteration_s:.1f} s",
                f"{case.exposed:.1%}",
                *(f"{case.kinds[kind]:.1%}" for kind in KINDS),
                f"{case.bubble:.1%}",
            )
        )
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""

    def points(line: str) -> tuple[tuple[float, float], ...]:
        own = {case.billions: 100 * case.exposed for case in measured if case.line == line}
        if line == RISES:  # the other models as published
            own = {case.billions: 100 * case.exposed for case in measured if case.line == SLOW} | own
        return tuple(own.items())

    return cards.lines(
        "Exposed communication of GPT models, by assumption",
        [cards.Polyline(name=line, points=points(line)) for line in LINES if line != NOT_HIDDEN],
        x_axis="parameters, billions",
        y_axis="exposed, % of an iteration",
        x_ticks=[(billions, f"{billions:.0f}") for billions in MODELS],
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
