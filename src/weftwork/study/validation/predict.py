"""Weftwork's time of a published iteration, by a run of its scenario.

Leaves out: what the scenario says (`weftwork.study.validation.row_scenario`).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import EngineError
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute, results
from weftwork.study.validation.row_scenario import write_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.study.validation.published_cases import Case

__all__ = ["Prediction", "predict"]

# Numbers of the summary, and what the scorecard calls them
_PARTS: Final = {
    "compute_ps": "compute", "exposed_tensor_ps": "tensor", "exposed_context_ps": "context",
    "exposed_expert_ps": "expert", "exposed_pipeline_ps": "pipeline", "exposed_data_ps": "data", "bubble_ps": "bubble",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """The prediction of one iteration.

    Attributes
    ----------
    iteration_s : `iteration_ps` of the summary
    peak_s : the same if the GPUs did nothing but the model's work, at their peak
    parts_s : by kind, what the time of an average GPU goes to; what is left is waiting for the update of others
    """

    iteration_s: float
    peak_s: float
    parts_s: tuple[tuple[str, float], ...]


def predict(case: Case, overrides: Mapping[str, str] | None = None) -> Prediction:
    """Read the scenario of a row, run it, and return the iteration time.

    Parameters
    ----------
    case : the row
    overrides : keys of the scenario to set, as ``--set`` does

    Raises
    ------
    ConfigError : a plan that cannot be
    EngineError : the run did not end
    """
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(read_scenario(write_row(case, Path(folder)), overrides))
        found = results(prepared, execute(prepared, what_if="none"))
    iteration_ps = found.summary["iteration_ps"].value
    if iteration_ps is None:
        raise EngineError(f"the run of {case.name} did not end")
    (job,) = prepared.jobs
    parts = {name: float(found.summary[key].value or 0) / SECOND_PS for key, name in _PARTS.items()}
    return Prediction(
        iteration_s=iteration_ps / SECOND_PS,
        peak_s=job.model_flops / (job.peak_flops * job.plan.ranks),
        parts_s=tuple((name, value) for name, value in parts.items() if value > 0),
    )
