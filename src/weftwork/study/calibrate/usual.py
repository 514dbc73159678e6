"""Values of the constants without a calibration, in the units of rows.

Leaves out: rows that differ; the median stands for them, and only what rows feel is asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from weftwork.spec.calibration import CONSTANTS
from weftwork.spec.training import Software
from weftwork.study.calibrate.problem import GemmRow
from weftwork.study.validation.curves import CurveRow
from weftwork.workload.collectives.figures import FIGURES

if TYPE_CHECKING:
    from weftwork.study.validation.published_cases import Case

__all__ = ["usual_values"]

_US_PS = 1_000_000


def usual_values(rows: Sequence[GemmRow | Case | CurveRow]) -> dict[str, float]:
    """Every constant of `CONSTANTS` with its value.

    Parameters
    ----------
    rows : to be fitted
    """
    made = [Software() if isinstance(row, GemmRow | CurveRow) else row.software for row in rows]
    launches = [
        row.figures.launch_ps for row in rows if isinstance(row, CurveRow)
    ] or [int(FIGURES["other"].value("launch_ps"))]  # fmt: skip
    curves = all(isinstance(row, CurveRow) for row in rows)
    found = {
        "matmul_efficiency": median(one.matmul_efficiency for one in made),
        "fp8_efficiency": median(one.fp8_efficiency for one in made),
        "kernel_tail_us": median(one.kernel_tail_ps for one in made) / _US_PS,
        "launch_us": median(one.launch_ps for one in made) / _US_PS,
        "collective_launch_us": median(launches) / _US_PS,
        # a scenario of one collective has no efficiency of the network, a training job that of its software
        "network_efficiency": 1.0 if curves else median(one.network_efficiency for one in made),
        "latency_scale": median(one.latency_scale for one in made),
    }
    return {name: found[name] for name in CONSTANTS}
