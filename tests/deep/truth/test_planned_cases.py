"""pytest runs the cases of a plan, and says what it left out and how to run that."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.inner_pytest import inner_pytest
from planner.plan import TURNS, turn_of_stranger

FILE = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_a(n):\n    pass\n\ndef test_new():\n    pass\n"
CONFTEST = """
from helpers import file_queue, planned_cases
def pytest_addoption(parser):
    parser.addoption('--plan')
    parser.addoption('--step')
def pytest_configure(config):
    planned_cases.pytest_configure(config)
    file_queue.pytest_configure(config)
"""


def plan(folder: Path, *, place: int = 0, touched: tuple[str, ...] = ()) -> None:
    names = [f"test_a.py::test_a[{n}]" for n in range(4)]
    step = {"chosen": names[:1], "left_out": names[1:]}
    document = {"place": place, "touched_files": list(touched), "steps": {"truth": step}}
    (folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")


def passed(folder: Path, *options: str) -> tuple[int, str]:
    done = inner_pytest(folder, {"test_a.py": FILE, "conftest.py": CONFTEST}, *options)
    count = re.search(r"(\d+) passed", done.stdout)
    return int(count[1]) if count else 0, done.stdout + done.stderr


@pytest.mark.parametrize("processes", ["0", "2"])
def test_the_chosen_cases_are_run_and_the_others_are_told(processes: str, tmp_path: Path) -> None:
    turn = turn_of_stranger("test_a.py::test_new")
    plan(tmp_path, place=turn + 1)
    count, text = passed(tmp_path, "-n", processes, "--plan=plan.json", "--step=truth")
    assert count == 1
    assert "left out at this commit: 3 of 4 cases, and 1 without a price; `.ci/run full truth` runs all" in text


@pytest.mark.parametrize("touched", [("test_a.py",), ()])
def test_a_case_without_a_price_is_run_at_its_turn_and_where_its_file_is_touched(
    touched: tuple[str, ...], tmp_path: Path
) -> None:
    turn = turn_of_stranger("test_a.py::test_new")
    counts = []
    for place in range(TURNS):
        plan(tmp_path, place=place, touched=touched)
        counts.append(passed(tmp_path, "-n", "0", "--plan=plan.json", "--step=truth")[0])
    assert counts == [2 if touched or place == turn else 1 for place in range(TURNS)]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--plan=plan.json",), "--plan and --step go together"),
        (("--plan=plan.json", "--step=truths"), "--step truths: the plan has truth"),
    ],
)
def test_a_wrong_option_is_told(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    plan(tmp_path)
    assert sentence in passed(tmp_path, "-n", "0", *options)[1]
