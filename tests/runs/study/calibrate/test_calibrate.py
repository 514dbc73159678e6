"""``weftwork calibrate``: constants that made rows come out of them, and what rows cannot tell is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.spec.calibration import read_calibration
from weftwork.study.calibrate.calibrate import KEPT_DRAWS, calibrate
from weftwork.study.calibrate.fit import fit_constants, mean_error
from weftwork.study.calibrate.nccl_output import is_nccl_output, read_nccl_output
from weftwork.study.calibrate.problem import CANDIDATES, GemmRow, Problem, _closed_s
from weftwork.study.calibrate.rows import gemm_template, measured_rows
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import Workers
from weftwork.study.validation.curves import CurveRow

pytestmark = pytest.mark.deep  # each case fits constants; the step `truth` of .ci/run takes them

HERE = Workers(count=1)


NCCL = """\
# nThread 1 nGpus 8 minBytes 1024 maxBytes 1073741824 step: 4(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
{ranks}
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
{lines}
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 100.0
"""


RANKS = "\n".join(
    f"#  Rank {rank:2} Group  0 Pid  100 on  host device {rank:2} [0x00] NVIDIA H100" for rank in range(8)
)


def gemms(values: dict[str, float], *, noise: float, seed: int, sizes: tuple[int, ...], fp8: bool) -> list[GemmRow]:
    """Rows that the model makes with known constants, and noise on them."""
    rng = np.random.default_rng(seed)
    found = []
    for m in sizes:
        for n in (1024, 4096):
            for precision in ("bf16", "fp8") if fp8 else ("bf16",):
                one = GemmRow(name="", gpu="h100", m=m, n=n, k=4096, precision=precision, measured_s=1.0)
                taken_s = one.time_s(values) * float(np.exp(rng.normal(0, noise)))
                found.append(GemmRow(name="", gpu="h100", m=m, n=n, k=4096, precision=precision, measured_s=taken_s))
    return found


def gemm_table(rows: list[GemmRow]) -> str:
    lines = [f"{row.m},{row.n},{row.k},{row.precision},{row.measured_s:.9g},{row.gpu}" for row in rows]
    return "\n".join(["m,n,k,precision,seconds,gpu", *lines, ""])


def left_code(*words: str) -> object:
    with pytest.raises(SystemExit) as left:
        main(list(words))
    return left.value.code


def test_constants_that_made_the_rows_are_found_again() -> None:
    found_again(efficiency=0.73, tail_us=6.0, fp8=0.62, seed=7)


def found_again(*, efficiency: float, tail_us: float, fp8: float, seed: int) -> None:
    """Make rows with known constants and find these again."""
    true = {"matmul_efficiency": efficiency, "kernel_tail_us": tail_us, "fp8_efficiency": fp8}
    rows = gemms(true, noise=0.005, seed=seed, sizes=(256, 512, 1024, 4096, 8192), fp8=True)
    problem = Problem(kind="matrix products", rows=rows, workers=HERE)
    found = calibrate(problem, CANDIDATES["matrix products"], usual=usual_values(rows), source="rows")
    assert not found.refused
    for name, value in true.items():
        low, high = found.intervals[name]
        room = 0.03 * value  # the interval of the noise is narrower than the grid
        assert low - room <= value <= high + room, name
        assert found.values[name] == pytest.approx(value, rel=0.1)
    assert found.error < 0.02
    assert len(found.draws) == KEPT_DRAWS


def test_a_fit_without_noise_is_exact() -> None:
    def times(values: list[dict[str, float]]) -> np.ndarray:
        scale = np.array([one["latency_scale"] for one in values])
        return scale[:, None] * np.array([1.0, 2.0, 3.0, 5.0, 8.0])

    measured = 1.7 * np.array([1.0, 2.0, 3.0, 5.0, 8.0])
    found = fit_constants(["latency_scale"], times, measured)  # type: ignore[arg-type]
    assert found.values["latency_scale"] == pytest.approx(1.7, rel=1e-4)
    assert found.interval("latency_scale") == pytest.approx((1.7, 1.7), rel=1e-4)
    assert found.left_out_error < 1e-3


def test_one_row_that_is_far_off_does_not_pull() -> None:
    rows = gemms({"matmul_efficiency": 0.7}, noise=0.0, seed=1, sizes=(4096, 8192, 16384), fp8=False)
    slow = GemmRow(name="", gpu="h100", m=8192, n=8192, k=8192, precision="bf16", measured_s=1.0)
    problem = Problem(kind="matrix products", rows=[*rows, slow], workers=HERE)
    found = calibrate(problem, ("matmul_efficiency",), usual=usual_values(rows), source="rows")
    assert found.values["matmul_efficiency"] == pytest.approx(0.7, rel=0.01)


def test_what_no_row_feels_is_refused_with_the_rows_that_would_tell_it() -> None:
    rows = gemms({"matmul_efficiency": 0.7}, noise=0.01, seed=1, sizes=tuple(range(32768, 81920, 8192)), fp8=False)
    problem = Problem(kind="matrix products", rows=rows, workers=HERE)
    found = calibrate(problem, CANDIDATES["matrix products"], usual=usual_values(rows), source="rows")
    assert set(found.values) == {"matmul_efficiency"}
    assert "it changes 0 of 12 rows" in found.refused["kernel_tail_us"]
    assert "small matrix products" in found.refused["kernel_tail_us"]
    assert "in fp8" in found.refused["fp8_efficiency"]


def test_few_rows_are_refused_for_each_constant() -> None:
    rows = gemms({"matmul_efficiency": 0.7}, noise=0.01, seed=1, sizes=(256, 512), fp8=False)
    problem = Problem(kind="matrix products", rows=rows, workers=HERE)
    with pytest.raises(ConfigError) as wrong:
        calibrate(problem, CANDIDATES["matrix products"], usual=usual_values(rows), source="rows")
    texts = {one.path: one.text for one in wrong.value.mistakes}
    assert "found 4 rows for 1 constant, wanted 5" in texts["matmul_efficiency"]
    assert set(texts) == set(CANDIDATES["matrix products"])


def test_constants_that_rows_cannot_tell_apart_are_refused() -> None:
    """Small sizes of one operation on one number of GPUs: launch and latencies are one sum."""
    rows = [
        CurveRow(name=str(size), server="dgx-h100", operation="all-gather", gpus=8, size_bytes=size, measured_s=1.0)
        for size in [1024 << place for place in range(10)]
    ]
    rng = np.random.default_rng(1)
    true = {"latency_scale": 1.5, "collective_launch_us": 12.0}
    noisy = [
        CurveRow(
            name=row.name, server=row.server, operation=row.operation, gpus=8, size_bytes=row.size_bytes,
            measured_s=_closed_s([true], row)[0] * float(np.exp(rng.normal(0, 0.02))),
        )
        for row in rows
    ]  # fmt: skip
    problem = _OfClosedForms(kind="curves", rows=noisy, workers=HERE)
    found = calibrate(problem, CANDIDATES["curves"], usual=usual_values(noisy), source="rows")
    assert len(found.values) == 1
    assert "it changes 0 of 10 rows" in found.refused["network_efficiency"]
    (other,) = set(found.refused) - {"network_efficiency"}
    assert "more than half of its value" in found.refused[other] or "the end of its range" in found.refused[other]


class _OfClosedForms(Problem):
    """Closed forms in place of runs, which take long."""

    def run_s(self, values: dict[str, float] | None) -> np.ndarray:  # type: ignore[override]
        return np.array([_closed_s([values or {}], row)[0] for row in self.rows])


@pytest.fixture
def gemm_file(tmp_path: Path) -> Path:
    true = {"matmul_efficiency": 0.8, "kernel_tail_us": 5.0, "fp8_efficiency": 0.75}
    file = tmp_path / "gemm.csv"
    rows = gemms(true, noise=0.02, seed=3, sizes=(256, 512, 1024, 4096, 8192), fp8=True)
    file.write_text(gemm_table(rows), encoding="utf-8")
    return file


def test_the_command_writes_what_it_says(gemm_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = gemm_file.with_name("my.toml")
    assert left_code("calibrate", str(gemm_file), "--out", str(out), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    found = read_calibration(out)
    assert set(found.values) == set(told["constants"]) == set(CANDIDATES["matrix products"])
    for name, value in found.values.items():
        assert value == pytest.approx(told["constants"][name]["value"], rel=1e-5)
        assert found.intervals[name][0] <= value <= found.intervals[name][1]
    assert len(found.draws) == KEPT_DRAWS
    assert (found.fitted_on["file"], found.fitted_on["rows"]) == ("gemm.csv", 20)
    assert told["error"] < told["error_before"]
    assert mean_error(
        np.array([row["fitted_s"] for row in told["points"]]), np.array([row["measured_s"] for row in told["points"]])
    ) == pytest.approx(told["error"])
    assert left_code("calibrate", str(gemm_file), "--out", str(out)) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "path", "text"),
    [
        (["--constants", "launch_us"], "--constants", "wanted matmul_efficiency, kernel_tail_us, fp8_efficiency"),
        (["--constants", "kernel_tail"], "--constants", "did you mean 'kernel_tail_us'"),
        (["--constants", ","], "--constants", "names nothing"),
        (["--operation", "all-reduce"], "--operation", "is for the text that nccl-tests prints"),
    ],
)
def test_options_that_do_not_fit_the_rows_are_refused(
    words: list[str], path: str, text: str, gemm_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert left_code("calibrate", str(gemm_file), "--out", str(gemm_file.with_name("o.toml")), *words) == 2
    told = capsys.readouterr().err
    assert path in told
    assert text in told


def test_without_a_file_nothing_is_fitted(capsys: pytest.CaptureFixture[str]) -> None:
    assert left_code("calibrate") == 2
    assert "--template gemm" in capsys.readouterr().err
    assert left_code("calibrate", "--template", "gemm") == 0
    assert capsys.readouterr().out == gemm_template()


def test_matrix_products_need_a_gpu_that_has_their_precision(tmp_path: Path) -> None:
    file = tmp_path / "g.csv"
    file.write_text("m,n,k,precision,seconds,gpu\n1,1,1,bf16,1,\n1,1,1,fp8,1,a100\n1,1,1,bf32,1,h100\n", "utf-8")
    with pytest.raises(ConfigError) as wrong:
        rows_in(file)
    assert [(one.line, one.path) for one in wrong.value.mistakes] == [(4, "precision")]
    file.write_text("m,n,k,precision,seconds,gpu\n1,1,1,bf16,1,\n1,1,1,fp8,1,a100\n", "utf-8")
    with pytest.raises(ConfigError) as wrong:
        rows_in(file)
    assert [(one.line, one.path) for one in wrong.value.mistakes] == [(2, "gpu"), (3, "precision")]


def rows_in(file: Path) -> object:
    return measured_rows(file, like=None, operation=None, gpus=None, node=None, usual_gpu=None)


def line(size: int, redop: str, time: str) -> str:
    """A row as nccl-tests prints it, with another time in place."""
    outside = f"{size:12} {size // 4:13} {'float':>9} {redop:>7} {-1:7} {time:>8} {22.76:7} {39.82:7} {0:6}"
    return f"{outside} {44.69:8} {23.46:7} {41.06:7}    N/A"


def nccl_text(*, lines: list[str] | None = None, ranks: str = RANKS) -> str:
    usual = [
        line(1024, "sum", "22.48"),
        line(1048576, "sum", "46.08"),
    ]
    return NCCL.format(ranks=ranks, lines="\n".join(usual if lines is None else lines))


def test_what_nccl_tests_prints_is_read_out_of_place(tmp_path: Path) -> None:
    text = nccl_text()
    assert is_nccl_output(text)
    rows = read_nccl_output(text, source="f", operation="all-reduce", gpus=None, node="dgx-h100")
    assert [(row.cells["size_bytes"], row.cells["time_us"], row.cells["gpus"]) for row in rows] == [
        (1024, 22.48, 8), (1048576, 46.08, 8),
    ]  # fmt: skip
    file = tmp_path / "nccl.txt"
    file.write_text(f"mpirun -np 8 ./build/all_gather_perf -b 1K\n{text}", encoding="utf-8")
    found = measured_rows(file, like=None, operation=None, gpus=16, node="dgx-h100", usual_gpu=None)
    assert found.format == "nccl-tests"
    for row, (size, time_s) in zip(found.rows, ((1024, 22.48e-6), (1048576, 46.08e-6)), strict=True):
        assert isinstance(row, CurveRow)
        assert (row.operation, row.gpus, row.size_bytes) == ("all-gather", 16, size)
        assert row.measured_s == pytest.approx(time_s)


def test_a_cell_that_is_left_empty_moves_no_time() -> None:
    lines = [line(1024, "", "22.48")]
    (row,) = read_nccl_output(nccl_text(lines=lines), source="f", operation="all-gather", gpus=8, node="p5")
    assert row.cells["time_us"] == 22.48


def test_what_the_text_of_nccl_tests_does_not_say_is_asked_for() -> None:
    lines = [line(1024, "sum", "nan")]
    with pytest.raises(ConfigError) as wrong:
        read_nccl_output(nccl_text(lines=lines, ranks="#"), source="f", operation=None, gpus=None, node=None)
    assert {one.path for one in wrong.value.mistakes} == {"--operation", "--gpus", "--node", "row"}
    assert next(one.line for one in wrong.value.mistakes if one.path == "row") == 9
