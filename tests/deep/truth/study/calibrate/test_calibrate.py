"""``weftwork calibrate``: constants that made rows come out of them, and what rows cannot tell is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs.study.calibrate.test_calibrate import HERE, found_again

from weftwork.study.calibrate.calibrate import calibrate
from weftwork.study.calibrate.problem import Problem, _closed_s
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.validation.published_cases import Case, vtrain_single_node


class _OfClosedForms(Problem):
    """Closed forms in place of runs, which take long."""

    def run_s(self, values: dict[str, float] | None) -> np.ndarray:  # type: ignore[override]
        return np.array([_closed_s([values or {}], row)[0] for row in self.rows])


def test_the_launch_of_small_models_is_found_again() -> None:
    cases = vtrain_single_node()[::45]
    true = {"matmul_efficiency": 0.8, "launch_us": 50.0}
    rows = [
        Case(
            name=case.name, source="made", measured_s=_closed_s([true], case)[0], model=case.model, plan=case.plan,
            cluster=case.cluster, software=case.software,
        )
        for case in [*cases, *vtrain_single_node()[1:400:45]]
    ]  # fmt: skip
    problem = _OfClosedForms(kind="iterations", rows=rows, workers=HERE)
    found = calibrate(problem, ("launch_us", "matmul_efficiency"), usual=usual_values(rows), source="rows")
    assert found.values["launch_us"] == pytest.approx(50.0, rel=0.02)
    assert found.error < 0.01
    assert found.error_before > found.error


@settings(max_examples=8, deadline=None)
@given(
    efficiency=st.floats(0.5, 1.0),
    tail_us=st.floats(2.0, 15.0),
    fp8=st.floats(0.5, 0.95),
    seed=st.integers(0, 1000),
)
def test_constants_that_made_the_rows_are_found_again(efficiency: float, tail_us: float, fp8: float, seed: int) -> None:
    found_again(efficiency=efficiency, tail_us=tail_us, fp8=fp8, seed=seed)
