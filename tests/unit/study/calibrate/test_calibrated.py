"""A scenario that names a calibration: each constant moves the answer, at every fidelity, and gives it an interval."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.calibration import parse_calibration

DRAWS = [{"matmul_efficiency": value} for value in (0.5, 0.55, 0.6, 0.65, 0.7)]


def test_all_mistakes_of_a_file_come_at_once() -> None:
    text = (
        "version = 2\nextra = 1\n[constants]\nmatmul_eficiency = 0.9\nlaunch_us = -2\nlatency_scale = true\n"
        "[constants.network_efficiency]\nvalue = 0.9\nlow = 0.95\nhigh = 1.0\n[draws]\nlaunch_us = []\n"
    )
    with pytest.raises(ConfigError) as wrong:
        parse_calibration(text, "my.toml")
    assert {(one.path, one.fix and str(one.fix)) for one in wrong.value.mistakes} == {
        ("extra", None), ("version", None), ("constants.matmul_eficiency", "matmul_efficiency"),
        ("constants.launch_us", None), ("constants.latency_scale", None), ("constants.network_efficiency.value", None),
        ("draws.launch_us", None), ("fitted_on", None),
    }  # fmt: skip


ROWS = "version = 1\n[fitted_on]\nfile = 'x'\nrows = 1\n"


ONE = f"{ROWS}[constants]\nlaunch_us = 1\n"


TWO = f"{ONE}latency_scale = 1\n[draws]\nlaunch_us = [1, 2]\n"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (ROWS, "constants"),
        (f"{ONE}[draws]\nlaunch_us = [1, 2e9]\n", "draws.launch_us"),
        (f"{TWO}latency_scale = [1]\n", "draws"),
        (TWO, "draws.latency_scale"),
        (ONE.replace("'x'", "1"), "fitted_on.file"),
        ("version =", "file"),
    ],
)
def test_files_that_cannot_be_used_are_refused(text: str, path: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        parse_calibration(text, "my.toml")
    assert [one.path for one in wrong.value.mistakes] == [path]
