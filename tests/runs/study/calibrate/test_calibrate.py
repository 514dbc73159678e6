"""``weftwork calibrate``: constants that made rows come out of them, and what rows cannot tell is refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from helpers.nccl_texts import Written, tagged, text_of

from weftwork.base.errors import ConfigError
from weftwork.cli import main
from weftwork.spec.calibration import read_calibration
from weftwork.study.calibrate.calibrate import KEPT_DRAWS, calibrate
from weftwork.study.calibrate.fit import fit_constants, mean_error
from weftwork.study.calibrate.problem import CANDIDATES, GemmRow, Problem, _closed_s
from weftwork.study.calibrate.rows import gemm_template, measured_rows
from weftwork.study.calibrate.usual import usual_values
from weftwork.study.pool.side_by_side import Workers
from weftwork.study.validation.curves import CurveRow
from weftwork.study.validation.nccl_rows import NcclAsked

pytestmark = pytest.mark.deep  # each case fits constants; the step `truth` of .ci/run takes them

HERE = Workers(count=1)


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
    rows = gemms({"matmul_efficiency": 0.7}, noise=0.01, seed=1, sizes=(1024, 2048), fp8=False)
    problem = Problem(kind="matrix products", rows=rows, workers=HERE)
    found = calibrate(problem, CANDIDATES["matrix products"], usual=usual_values(rows), source="rows")
    assert set(found.values) == {"matmul_efficiency"}
    assert found.refused["kernel_tail_us"] == "found 4 rows for 2 constants, wanted 6, 3 for each constant"
    with pytest.raises(ConfigError) as wrong:
        calibrate(replace(problem, rows=rows[:2]), CANDIDATES["matrix products"], usual=usual_values(rows), source="")
    texts = {mistake.path: mistake.text for mistake in wrong.value.mistakes}
    assert set(texts) == set(CANDIDATES["matrix products"])
    assert "it changes 2 of 2 rows" in texts["matmul_efficiency"]


def test_three_rows_fit_one_constant_with_an_interval_of_three_rows() -> None:
    """Intervals of few rows hold the true value as often as those of many: of 40 draws of noise nearly all."""
    sizes = (4096, 8192, 16384)
    held = {3: 0, 6: 0}
    widths = {3: 0.0, 6: 0.0}
    for seed in range(40):
        every = gemms({"matmul_efficiency": 0.7}, noise=0.05, seed=seed, sizes=sizes, fp8=False)
        for count in held:
            problem = Problem(kind="matrix products", rows=every[:count], workers=HERE)
            usual = usual_values(problem.rows)
            found = calibrate(problem, ("matmul_efficiency",), usual=usual, source="rows")
            low, high = found.intervals["matmul_efficiency"]
            held[count] += low <= 0.7 <= high
            widths[count] += high - low
    assert min(held.values()) >= 30
    assert widths[3] > widths[6]


def test_the_end_of_a_range_that_nothing_exceeds_is_a_value_with_a_limit_on_one_side() -> None:
    """Large sizes that are as fast as the network allows."""
    sizes = [1 << place for place in range(28, 34)]
    rows = [
        CurveRow(name=str(size), server="dgx-h100", operation="all-reduce", gpus=64, size_bytes=size, measured_s=1.0)
        for size in sizes
    ]
    fast = [replace(row, measured_s=0.98 * _closed_s([{"network_efficiency": 1.0}], row)[0]) for row in rows]
    problem = _OfClosedForms(kind="curves", rows=fast, workers=HERE)
    found = calibrate(problem, ("network_efficiency",), usual=usual_values(fast), source="rows")
    assert found.values["network_efficiency"] == pytest.approx(1.0, abs=0.01)
    assert "nothing is above 1" in found.one_sided["network_efficiency"]
    slow = [replace(row, measured_s=_closed_s([{"network_efficiency": 0.8}], row)[0]) for row in rows]
    problem = _OfClosedForms(kind="curves", rows=slow, workers=HERE)
    found = calibrate(problem, ("network_efficiency",), usual=usual_values(slow), source="rows")
    assert found.values["network_efficiency"] == pytest.approx(0.8, rel=0.01)
    assert not found.one_sided


def test_a_constant_that_explains_the_rows_alone_takes_the_place_of_others() -> None:
    """A run of 12 sizes: the network cannot be faster than it is, and latencies alone lower the error."""
    times_us = (95.1, 93.7, 97.8, 100.2, 98.2, 104.3, 140.8, 254.6, 599.4, 1726.8, 6013.2, 23466.0)
    rows = [
        CurveRow(
            name=str(place), server="dgx-h100", operation="all-reduce", gpus=128, size_bytes=1024 << (2 * place),
            measured_s=time_us / 1e6,
        )
        for place, time_us in enumerate(times_us)
    ]  # fmt: skip
    run_us = (95.4, 95.8, 97.2, 100.4, 147.8, 165.0, 193.8, 291.6, 1058.1, 2366.5, 6347.5, 24259.0)  # of Weftwork
    problem = _OfFewRuns(kind="curves", rows=rows, workers=HERE, usual_s=np.array(run_us) / 1e6)
    found = calibrate(problem, CANDIDATES["curves"], usual=usual_values(rows), source="rows")
    assert set(found.values) == {"latency_scale"}
    assert found.error < 0.8 * found.error_before
    assert "latency_scale alone explains the rows better" in found.refused["network_efficiency"]
    assert set(found.refused) == {"network_efficiency", "collective_launch_us"}


def test_constants_of_an_earlier_calibration_stay_and_stand_in_the_new_file(
    gemm_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = (gemm_file.with_name(name) for name in ("first.toml", "second.toml", "third.toml"))
    assert left_code("calibrate", str(gemm_file), "--constants", "kernel_tail_us,fp8_efficiency", "-o", str(first)) == 0
    assert left_code("calibrate", str(gemm_file), "--with", str(first), "-o", str(second)) == 0
    told = capsys.readouterr().out
    assert f"held from {first}: kernel_tail" in told
    before, after = read_calibration(first), read_calibration(second)
    assert set(after.values) == {*before.values, "matmul_efficiency"}
    assert {name: after.values[name] for name in before.values} == dict(before.values)
    assert {name: after.intervals[name] for name in before.values} == dict(before.intervals)
    assert [draw["kernel_tail_us"] for draw in after.draws] == [draw["kernel_tail_us"] for draw in before.draws]
    assert after.words == "20 rows of gemm.csv and 20 rows of gemm.csv"
    assert after.row_digests == before.row_digests
    assert left_code("calibrate", str(gemm_file), "--with", str(second), "-o", str(third)) == 2
    assert "name those to fit again with --constants" in capsys.readouterr().err


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


@dataclass(kw_only=True)
class _OfFewRuns(Problem):
    """Closed forms times what runs with Weftwork's constants took over their closed forms."""

    usual_s: np.ndarray

    def run_s(self, values: dict[str, float] | None) -> np.ndarray:  # type: ignore[override]
        factors = self.usual_s / np.array([_closed_s([{}], row)[0] for row in self.rows])
        return np.array([_closed_s([values or {}], row)[0] for row in self.rows]) * factors


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
    return measured_rows(file, like=None, asked=NcclAsked(), usual_gpu=None)


def test_a_tagged_text_of_nccl_tests_is_rows_to_fit(tmp_path: Path) -> None:
    file = tmp_path / "nccl.txt"
    written = Written(program="all_gather", hosts=2, has_name=False)
    lines = ["srun --label ./build/all_gather_perf -b 1M", *tagged(text_of(written), " 0: ")]
    file.write_text("\n".join(lines), encoding="utf-8")
    found = measured_rows(file, like=None, asked=NcclAsked(node="dgx-h100"), usual_gpu=None)
    assert (found.kind, found.format) == ("curves", "nccl-tests")
    assert found.notes
    for row, size, time_us in zip(found.rows, written.sizes_bytes, written.times_us, strict=True):
        assert isinstance(row, CurveRow)
        assert (row.operation, row.gpus, row.size_bytes) == ("all-gather", 16, size)
        assert row.measured_s == pytest.approx(time_us * 1e-6)


def test_two_hosts_with_one_gpu_each_calibrate_no_server_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "nccl.txt", tmp_path / "o.toml"
    file.write_text("\n".join(text_of(Written(hosts=2, host_gpus=1))), encoding="utf-8")
    assert left_code("calibrate", str(file), "--node", "dgx-h100", "--out", str(out)) == 2
    assert "2 hosts with 1 GPU each" in capsys.readouterr().err
    assert not out.exists()
