"""Fit the one constant of computing, `Software.matmul_efficiency`, on the 47 iterations of vTrain's 39.1B model.

    python benchmarks/fit_matmul.py

Prints the mean absolute error by value, and the best one as `weftwork calibrate` finds it: the least mean of absolute
relative errors (L1), so that the 13 plans that are slower than any smooth model do not pull, with the interval of its
bootstrap. Nothing else is fitted on iterations; the CPU time of an operation was read from one server's rows in the
same way, with ``--launch``.
Source: `weftwork.data.measured`, by `weftwork.study.validation.published_cases`.
Leaves out: all other sets, which judge.
"""

from __future__ import annotations

import argparse
from typing import Final

from weftwork.spec.calibration import shown
from weftwork.study.calibrate.calibrate import calibrate
from weftwork.study.calibrate.fit import mean_error
from weftwork.study.calibrate.problem import Problem
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import worker_processes
from weftwork.study.validation.published_cases import vtrain_multi_node, vtrain_single_node

__all__ = ["main"]

EFFICIENCIES: Final = tuple(round(0.9 + 0.005 * step, 3) for step in range(9))
LAUNCHES_US: Final = (8.0, 30.0, 33.0, 36.0, 39.0)


def main() -> None:
    """Print the scan and the fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--launch", action="store_true", help="the CPU time of an operation, on one server's rows")
    if parser.parse_args().launch:
        name, cases, values = "launch_us", vtrain_single_node()[::6], LAUNCHES_US
    else:
        name, cases, values = "matmul_efficiency", vtrain_multi_node(), EFFICIENCIES
    with worker_processes(2) as workers:
        problem = Problem(kind="iterations", rows=cases, workers=workers)
        for value in values:
            error = mean_error(problem.run_s({name: value}), problem.measured_s)
            print(f"{shown(name, value)}: mean absolute error {100 * error:.2f} %")
        found = calibrate(problem, (name,), usual=usual_values(cases), source="benchmarks/fit_matmul.py")
    low, high = found.intervals[name]
    print(f"best: {shown(name, found.values[name])}, 5 to 95 % {low:.3g} to {high:.3g}, {100 * found.error:.2f} %")


if __name__ == "__main__":
    main()
