"""Curves of nccl-tests on the scorecard: rows are scenarios of `weftwork collective`, and what was fitted is fitted."""

from __future__ import annotations

import json

import pytest

from weftwork.cli import main
from weftwork.study.validation.curves import P5_NIC_SHARE, fit_p5, keys_of, one_server, p5


def test_the_share_of_nics_on_p5_is_that_of_16_gpus() -> None:
    assert fit_p5() == pytest.approx(P5_NIC_SHARE, abs=0.002)


def test_a_row_is_what_weftwork_collective_prints(capsys: pytest.CaptureFixture[str]) -> None:
    point = next(point for point in one_server()[0].points if point.name == "H100, 256 MiB")
    size_bytes = 256 << 20
    keys, others = keys_of("azure-nd-h100-v5", "all-reduce", 8, size_bytes)
    settings = {**others, "collective.protocol": str(keys["protocol"])}
    arguments = ["collective", str(keys["operation"]), "--algorithm", str(keys["algorithm"]), "--gpus", "8",
                 "--sizes", str(size_bytes), "--json"]  # fmt: skip
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    with pytest.raises(SystemExit) as left:
        main(arguments)
    printed = capsys.readouterr()
    assert left.value.code in {0, None}, printed.err
    (row,) = json.loads(printed.out)["sizes"]
    assert row["time_ps"] == round(point.predicted_s * 1e12)


def test_curves_of_one_server_are_within_6_percent_where_they_were_fitted() -> None:
    fitted, other = one_server()
    assert fitted.is_reached
    assert fitted.mape < 0.03
    assert other.mape < 0.07  # not reached, and the page says so
    assert other.median < 0.06


@pytest.mark.deep
@pytest.mark.parametrize(
    ("operation", "blind", "fitted"),
    [("all-reduce", 0.146, 0.115), ("all-gather", 0.246, 0.114), ("all-to-all", 0.136, 0.117)],
)
def test_p5_is_as_far_off_as_the_page_says(operation: str, blind: float, fitted: float) -> None:
    first, then = (p5(operation, is_calibrated=one) for one in (False, True))  # type: ignore[arg-type]
    assert (first.tolerance, then.tolerance) == (0.20, 0.10)
    assert first.mape == pytest.approx(blind, abs=0.005)
    assert then.mape == pytest.approx(fitted, abs=0.005)
    assert first.beats_naive
    assert then.beats_naive
    assert all("64 GPUs" in point.name for point in then.points)
