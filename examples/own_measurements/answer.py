"""What 20 measured iterations buy: prints the table of README.md and draws its figure.

python -m examples.own_measurements.answer
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from examples import cases

import weftwork
from weftwork.report.figures import cards
from weftwork.study.calibrate.calibrate import Calibrated, calibrate
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.calibrate.problem import CANDIDATES, Problem
from weftwork.study.calibrate.rows import measured_rows
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.validation.nccl_rows import NcclAsked
from weftwork.study.validation.own_rows import own_sets
from weftwork.study.validation.own_scores import OwnSource, own_scores

__all__ = ["Case", "figure", "measure", "report"]

MS_PS = 1e9


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One set of constants.

    Attributes
    ----------
    name : whose constants
    fitted_error, judged_error : mean absolute errors, of the rows that were fitted and of the others
    values : constants, with their intervals where they were fitted
    iteration_ms : of the scenario, with its interval
    errors : of the judged rows, absolute, the smallest first
    """

    name: str
    fitted_error: float
    judged_error: float
    values: Mapping[str, tuple[float, ...]]
    iteration_ms: tuple[float, ...]
    errors: tuple[float, ...] = field(default=())


def measure() -> list[Case]:
    """Fit, judge, and run the scenario with both sets of constants; its own file is the one that this fit wrote."""
    found = measured_rows(cases.in_folder(__file__, "rows.csv"), like=None, asked=NcclAsked(), usual_gpu=None)
    usual = usual_values(found.rows)
    with worker_processes(2) as workers:
        problem = Problem(kind=found.kind, rows=found.rows, workers=workers)
        made = calibrate(problem, CANDIDATES[found.kind], usual=usual, source="rows.csv")
    fitted = {name: (value, *made.intervals[name]) for name, value in made.values.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "calibration.toml"
        file.write_text(_text(made, len(found.rows)), encoding="utf-8")
        return [
            _case("Weftwork's", made.error_before, {name: (usual[name],) for name in fitted}, ""),
            _case("calibrated", made.error, fitted, str(file)),
        ]


def _text(made: Calibrated, rows: int) -> str:
    return calibration_text(
        values=made.values,
        intervals=made.intervals,
        draws=made.draws,
        refused=made.refused,
        fitted_on={"file": "rows.csv", "rows": rows},
    )


def _case(name: str, fitted_error: float, values: Mapping[str, tuple[float, ...]], file: str) -> Case:
    known = OwnSource(calibration=file)
    (score,) = own_scores(own_sets(cases.in_folder(__file__, "judged.csv")), known=known)

    def read(run: weftwork.Run) -> tuple[float, ...]:
        names = ["iteration_ps", *(["iteration_low_ps", "iteration_high_ps"] if file else [])]
        return tuple(cases.number(run, one) / MS_PS for one in names)

    return Case(
        name=name,
        fitted_error=fitted_error,
        judged_error=score.mape,
        values=values,
        iteration_ms=cases.run(cases.in_folder(__file__), {} if file else {"calibration": "null"}, read),
        errors=tuple(sorted(abs(error) for error in score.errors)),
    )


def report(measured: list[Case]) -> str:
    """The table of README.md."""
    rows = [("constants", *(case.name for case in measured))]
    rows += [(name, *(_shown(case.values[name], ".3g") for case in measured)) for name in measured[0].values]
    rows.append(("error of the 20 rows fitted", *(f"{100 * case.fitted_error:.1f} %" for case in measured)))
    rows.append(("error of 20 other rows", *(f"{100 * case.judged_error:.1f} %" for case in measured)))
    rows.append(("an iteration of the scenario, ms", *(_shown(case.iteration_ms, ",.0f") for case in measured)))
    return cases.table(rows)


def _shown(values: tuple[float, ...], digits: str) -> str:
    value, *ends = (f"{one:{digits}}" for one in values)
    return f"{value} ({' to '.join(ends)})" if ends else value


def figure(measured: list[Case]) -> str:
    """The figure of README.md, as SVG."""
    count = len(measured[0].errors)
    return cards.lines(
        "Small GPTs on 8 A100: errors of 20 rows that were not fitted",
        [
            cards.Polyline(
                name=f"{case.name} constants",
                points=tuple((float(place), 100 * error) for place, error in enumerate(case.errors, start=1)),
            )
            for case in measured
        ],
        x_axis="rows, the best first",
        y_axis="absolute error of the iteration, %",
        x_ticks=[(float(place), str(place)) for place in (1, 5, 10, 15, count)],
        is_log=False,
    )


if __name__ == "__main__":
    cases.answer(__file__, measure, report, figure)
