"""Fit the one constant of computing, `Software.matmul_efficiency`, on the 47 iterations of vTrain's 39.1B model.

    python benchmarks/fit_matmul.py

Prints the mean absolute error by value, and the best one: the least mean of absolute relative errors (L1), so that the
13 plans that are slower than any smooth model do not pull. Nothing else is fitted on iterations; the CPU time of an
operation was read from one server's rows in the same way, with ``--launch``.
Source: `weftwork.data.measured`, by `weftwork.study.validation.published_cases`.
Leaves out: all other sets, which judge.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

import joblib
import numpy as np

from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import vtrain_multi_node, vtrain_single_node

if TYPE_CHECKING:
    from weftwork.study.validation.published_cases import Case

__all__ = ["main", "mape"]

EFFICIENCIES: Final = tuple(round(0.9 + 0.005 * step, 3) for step in range(9))
LAUNCHES_US: Final = (8, 30, 33, 36, 39)


def mape(cases: tuple[Case, ...], **changes: str) -> tuple[float, float]:
    """Mean absolute error, and median of the signed errors, with changed keys of the software."""
    errors = joblib.Parallel(n_jobs=2)(joblib.delayed(_error)(case, changes) for case in cases)
    return float(np.mean(np.abs(errors))), float(np.median(errors))


def _error(case: Case, changes: dict[str, str]) -> float:
    overrides = {f"training.software.{key}": text for key, text in changes.items()}
    return predict(case, overrides).iteration_s / case.measured_s - 1


def main() -> None:
    """Print both scans."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--launch", action="store_true", help="the CPU time of an operation, on one server's rows")
    if parser.parse_args().launch:
        name, cases = "launch", vtrain_single_node()[::6]
        values = tuple(f"{us}us" for us in LAUNCHES_US)
    else:
        name, cases = "matmul_efficiency", vtrain_multi_node()
        values = tuple(f"{value:g}" for value in EFFICIENCIES)
    found = {value: mape(cases, **{name: value}) for value in values}
    for value, (error, bias) in found.items():
        print(f"{name} {value}: mean absolute error {100 * error:.2f} %, median error {100 * bias:+.2f} %")
    print(f"best: {min(found, key=lambda value: found[value][0])}")


if __name__ == "__main__":
    main()
