"""Rows of measurements as a problem to fit.

The problem has the model's time of each row with given constants.

Three kinds of rows: matrix products (a kernel's closed form is all there is), iterations and curves of collectives.
The latter two are tabulated by their closed forms, each row times what its run says over what the closed form says at
the constants that were found last; the closed forms alone are a per cent or two off.
Leaves out: the fit (`weftwork.study.calibrate.fit`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError
from weftwork.hardware.catalogue import GPUS, gpu
from weftwork.spec.calibration import Calibration
from weftwork.study.calibrate.file import calibration_text
from weftwork.study.prepare.calibrated import (
    calibrated_figures,
    calibrated_software,
    latency_scale,
    network_efficiency,
)
from weftwork.study.prepare.prepare import read_scenario
from weftwork.study.prepare.training import training_setting
from weftwork.study.validation.predict import predict
from weftwork.study.validation.published_cases import Case
from weftwork.study.validation.row_scenario import write_row
from weftwork.study.validation.row_table import TableColumn, TableRow
from weftwork.topology.build import fabric_of_section
from weftwork.workload.collectives.tuner import chosen
from weftwork.workload.models.software import software
from weftwork.workload.training.kernels import Kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weftwork.study.pool.side_by_side import Workers
    from weftwork.study.validation.curves import CurveRow

__all__ = ["GEMM_COLUMNS", "GemmRow", "Problem", "gemm_rows"]

Kind = Literal["matrix products", "iterations", "curves"]
Values = Mapping[str, float]

PRECISIONS: Final = ("bf16", "fp8", "mxfp8", "nvfp4")
GEMM_COLUMNS: Final = (
    TableColumn(name="m", kind="whole", text="Rows of the result."),
    TableColumn(name="n", kind="whole", text="Columns of the result."),
    TableColumn(name="k", kind="whole", text="The inner dimension."),
    TableColumn(name="precision", kind="text", text="Of the operands.", choices=PRECISIONS),
    TableColumn(name="seconds", kind="number", text="Measured time of one product, seconds."),
    TableColumn(
        name="gpu",
        kind="text",
        text="GPU of the catalogue; by default the GPU of --gpu.",
        choices=tuple(GPUS),
        optional=True,
    ),
)
# Constants that rows of a kind may tell, those first that matter most
CANDIDATES: Final[dict[Kind, tuple[str, ...]]] = {
    "matrix products": ("matmul_efficiency", "kernel_tail_us", "fp8_efficiency"),
    "iterations": ("matmul_efficiency", "launch_us", "network_efficiency"),
    "curves": ("network_efficiency", "latency_scale", "collective_launch_us"),
}
ALLOWED: Final[dict[Kind, tuple[str, ...]]] = {
    "matrix products": CANDIDATES["matrix products"],
    "iterations": (
        "matmul_efficiency", "launch_us", "network_efficiency", "kernel_tail_us", "fp8_efficiency", "latency_scale",
        "collective_launch_us",
    ),
    "curves": CANDIDATES["curves"],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class GemmRow:
    """One measured matrix product."""

    name: str
    gpu: str
    m: int
    n: int
    k: int
    precision: str
    measured_s: float

    def time_s(self, values: Values | None) -> float:
        """Time of the model with given constants; None: Weftwork's constants."""
        made = calibrated_software(software("plain"), _NO_CHOICE, None if values is None else _of(values))
        kernels: Any = Kernels(gpu=gpu(self.gpu), software=made, precision=self.precision)  # type: ignore[arg-type]
        return float(kernels.matmul_s(self.m, self.n, self.k))


def gemm_rows(rows: Sequence[TableRow], *, usual_gpu: str | None, source: str) -> list[GemmRow]:
    """Rows of a table with `GEMM_COLUMNS`.

    Parameters
    ----------
    rows : of the file
    usual_gpu : of rows that name none
    source : what errors call the file

    Raises
    ------
    ConfigError : rows without a GPU, or whose GPU does not multiply in their precision
    """
    mistakes, found = [], []
    for row in rows:
        cells = row.cells
        chip = cells["gpu"] or usual_gpu
        if chip is None:
            mistakes.append(row.wrong("gpu", "is missing, wanted the column gpu or the option --gpu", "h100"))
            continue
        figures = gpu(chip, path="--gpu")
        rate = {"bf16": figures.bf16_flops, "nvfp4": figures.fp4_flops}.get(cells["precision"], figures.fp8_flops)
        if cells["precision"] != "bf16" and rate <= figures.bf16_flops:
            mistakes.append(row.wrong("precision", f"found '{cells['precision']}', which {chip} does not have", "bf16"))
            continue
        name = f"{cells['m']} x {cells['n']} x {cells['k']} in {cells['precision']} on {chip} (line {row.line})"
        found.append(
            GemmRow(
                name=name, gpu=chip, m=cells["m"], n=cells["n"], k=cells["k"], precision=cells["precision"],
                measured_s=cells["seconds"],
            )
        )  # fmt: skip
    if mistakes:
        raise ConfigError(source, mistakes)
    return found


@dataclass(kw_only=True)
class Problem:
    """Rows, and their modelled times.

    Attributes
    ----------
    kind : of the rows
    rows : measured
    workers : that work on rows side by side
    held : constants of an earlier calibration, which stay as they are unless they are fitted again
    progress : is told what is done
    correction : shape (rows,), run over closed form at the constants found last
    """

    kind: Kind
    rows: Sequence[GemmRow | Case | CurveRow]
    workers: Workers
    held: Values = field(default_factory=dict)
    progress: Callable[[str, int, int], None] | None = None
    correction: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))

    @property
    def measured_s(self) -> NDArray[np.float64]:
        """Shape (rows,)."""
        return np.array([row.measured_s for row in self.rows])

    def times_s(self, values: Sequence[Values]) -> NDArray[np.float64]:
        """Closed forms, corrected; shape (values, rows)."""
        together = [{**self.held, **one} for one in values]
        columns = list(self.workers.answers(partial(_closed_s, together), list(self.rows)))
        return np.array(columns).T * self.correction

    def run_s(self, values: Values | None) -> NDArray[np.float64]:
        """Times of runs with given constants and those that are held, else Weftwork's; shape (rows,)."""
        found = []
        together = {**self.held, **(values or {})}
        for time_s in self.workers.answers(partial(_run_s, together or None), list(self.rows)):
            found.append(time_s)
            if self.progress is not None:
                self.progress("rows run", len(found), len(self.rows))
        return np.array(found)

    def corrected_at(self, values: Values | None, run_s: NDArray[np.float64]) -> None:
        """The problem with closed forms corrected to the runs at these constants."""
        self.correction = np.ones(len(self.rows))
        self.correction = run_s / self.times_s([values or {}])[0]


class _NoChoice:
    """A preset without changed fields."""

    fields: Mapping[str, Any] = {}


_NO_CHOICE: Final[Any] = _NoChoice()


def _of(values: Values) -> Calibration:
    """Constants as a calibration without a file."""
    return Calibration(
        file="", digest="", values=values, intervals={}, draws=(), fitted_on={}, quality={}, refused={}, text=""
    )


def _closed_s(values: Sequence[Values], row: GemmRow | Case | CurveRow) -> list[float]:
    """Closed form of a row with each of several sets of constants."""
    if isinstance(row, GemmRow):
        return [row.time_s(one) for one in values]
    if isinstance(row, Case):
        return _iteration_s(values, row)
    figures = row.figures
    return [
        chosen(
            row.operation,
            row.group,
            row.size_bytes,
            calibrated_figures(figures, _of(one)),
            network_efficiency=network_efficiency(_of(one)),
            latency_scale=latency_scale(_of(one)),
        ).time_ps
        / SECOND_PS
        for one in values
    ]


def _iteration_s(values: Sequence[Values], case: Case) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        scenario = read_scenario(write_row(case, Path(folder)))
        fabric = fabric_of_section(scenario.fabric, directory=Path(folder))
        (section,) = scenario.trainings
        setting = training_setting(scenario, fabric, section)
    found = []
    for one in values:
        drawn = _of(one)
        figures = calibrated_figures(setting.cluster.figures, drawn)
        made = replace(
            setting,
            # the fields that a row gives are those of its software generation, in whose place the constants are fitted
            software=calibrated_software(setting.software, _NO_CHOICE, drawn),
            cluster=replace(setting.cluster, figures=figures),
        )
        found.append(made.closed_forms().iteration(case.plan, follows=True).total_ps / SECOND_PS)
    return found


def _run_s(values: Values | None, row: GemmRow | Case | CurveRow) -> float:
    """Time of a row's run; for a matrix product the closed form."""
    if isinstance(row, GemmRow):
        return row.time_s(values)
    with tempfile.TemporaryDirectory() as folder:
        file = ""
        if values is not None:
            path = Path(folder) / "constants.toml"
            path.write_text(calibration_text(values=values, fitted_on={"file": "rows", "rows": 1}), encoding="utf-8")
            file = str(path)
        known = replace(row, calibration=file)
        return predict(known).iteration_s if isinstance(known, Case) else known.predicted_s()
