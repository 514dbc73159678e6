"""The table of generated cases tells the truth: what ran to its end is counted, once, on every process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROPERTIES = """
import pytest
from helpers.cases import case_count
from hypothesis import assume, given, settings, strategies as st

@given(st.integers())
@settings(max_examples=case_count(plain=7, deep=70))
def test_numbers(number):
    pass

@pytest.mark.parametrize("part", range(case_count(plain=2, deep=5)))
def test_parts(part, saw):
    saw(10, "odd: 5")

@given(number=st.sampled_from([1, 2]))
def test_half_is_refused(number):
    assume(number == 1)

def test_that_generates_nothing():
    pass
"""


def told(folder: Path, *options: str) -> list[str]:
    """What pytest prints below the heading, words apart by one space, after four tests on a file of their own."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = property\n", encoding="utf-8")
    (folder / "test_properties.py").write_text(PROPERTIES, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "helpers.cases", *options]
    # a hook of the tests around this one may not reach in, and the plugin lies below `tests`
    where = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    where["PYTHONPATH"] = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(command, cwd=folder, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.partition("generated cases")[2].splitlines()[1:]
    return [" ".join(line.split()) for line in lines if line and not line.startswith("=")]


@pytest.mark.parametrize("processes", ["0", pytest.param("2", marks=pytest.mark.deep)])
def test_a_deep_run_prints_how_many_cases_each_property_saw(processes: str, tmp_path: Path) -> None:
    assert told(tmp_path, "-n", processes, "--hypothesis-profile=deep") == [
        "1 test_properties.py::test_half_is_refused",
        "70 test_properties.py::test_numbers",
        "50 test_properties.py::test_parts: odd: 5",
        "121 in 3 properties, profile deep",
    ]


def test_the_test_command_prints_the_sum_of_its_smaller_numbers(tmp_path: Path) -> None:
    assert told(tmp_path, "-n", "0", "--hypothesis-profile=ci") == ["28 in 3 properties, profile ci"]


def test_the_marker_chooses_properties_alone(tmp_path: Path) -> None:
    assert told(tmp_path, "-n", "0", "--hypothesis-profile=ci", "-m", "property", "-k", "numbers") == [
        "7 in 1 property, profile ci"
    ]
