"""What DCQCN and ECN gain from tuning: prints the table of README.md and draws its figure.

python -m examples.tune_dcqcn.answer
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from examples import cases

import weftwork
from weftwork.report.figures import cards
from weftwork.study.tune.question import TuneQuestion
from weftwork.study.tune.search import run_tune

__all__ = ["FRESH", "QUESTION", "Case", "figure", "measure", "report"]

US_PS = 1e6
FRESH = 10  # seeds that the search has not seen
CONTROL = "transport.congestion_control"
QUESTION = TuneQuestion(
    files=(cases.in_folder(__file__),),
    parameters=("fabric.switch.ecn.*", *(f"{CONTROL}.{name}" for name in ("g", "increase_timer_ps", "ai_rate_bps"))),
    objective="completion_ps + 1e6*pauses",
    trials=60,
    seeds=3,
    fresh=FRESH,
)
BEFORE, TUNED, THREE = "the file's values", "tuned", "the first three alone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Means over the fresh seeds: ends of the all-reduce and of the incast in us, pauses, and what is judged by."""

    name: str
    all_reduce_us: float
    incast_us: float
    pauses: float
    objective_us: float


def _case(name: str, settings: dict[str, str]) -> Case:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        changes = settings | {"engine.seed": str(1 + 2 * QUESTION.seeds)}
        run = weftwork.run(QUESTION.files[0], out=Path(folder) / "run", overrides=changes, seeds=FRESH, what_if="none")
        for one in run.seeds:
            (row,) = one.query(
                "select max(delivered_ps) filter (source_rank % 2 = 0) as all_reduce,"
                " max(delivered_ps) filter (source_rank % 2 = 1) as incast from flows"
            ).to_pylist()
            pauses, end_ps = cases.number(one, "pauses"), cases.number(one, "completion_ps")
            found.append((row["all_reduce"] / US_PS, row["incast"] / US_PS, pauses, end_ps / US_PS + pauses))
    all_reduce, incast, pauses, objective = (sum(each) / FRESH for each in zip(*found, strict=True))
    return Case(name=name, all_reduce_us=all_reduce, incast_us=incast, pauses=pauses, objective_us=objective)


def measure() -> list[Case]:
    """Tune, then run the values of the file, the best, and the best with one parameter set back at a time."""
    with tempfile.TemporaryDirectory() as folder:
        result = run_tune(QUESTION, out=Path(folder) / "tuning").result
    if result is None:
        raise weftwork.UsageError("the tuning was interrupted")
    best = dict(result.trials[result.best].values)
    told = {one.key: f"{one.key.rpartition('.')[2]} {one.best}" for one in result.parameters}
    found = [_case(BEFORE, {}), _case(TUNED, best)]
    ordered = sorted(result.parameters, key=lambda one: -(one.loss.mean if one.loss is not None else 0.0))
    found += [
        _case(f"without {told[one.key]}", {key: text for key, text in best.items() if key != one.key})
        for one in ordered
        if one.loss is not None
    ]
    three = {one.key: one.best for one in ordered[:3]}
    return [*found[:2], _case(THREE, three), *found[2:]]


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("values", "all-reduce", "incast", "pauses", "objective")]
    rows += [
        (
            case.name,
            f"{case.all_reduce_us:,.0f} us",
            f"{case.incast_us:,.0f} us",
            f"{case.pauses:,.1f}",
            f"{case.objective_us:,.0f} us",
        )
        for case in measured
    ]
    return cases.table(rows)


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    colours = {BEFORE: cards.ORANGE, TUNED: cards.GREEN, THREE: cards.GREEN}
    rows = [
        cards.Bar(
            name=case.name,
            value=case.objective_us,
            text=f"{case.objective_us:,.0f} us",
            colour=colours.get(case.name, cards.BLUE),
        )
        for case in measured
    ]
    return cards.bars(
        "DCQCN and ECN for an all-reduce beside an incast: before and after tuning",
        rows,
        axis=f"last byte, and 1 us for each pause; mean of {FRESH} fresh seeds",
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
