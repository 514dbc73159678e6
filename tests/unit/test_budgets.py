"""`.ci/run` keeps its own ceiling: its steps, their budgets, README and CONTRIBUTING say the same."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from planner.budgets import SHARED, STEPS_FILE, Step, budgets, full_s, whole_s
from planner.history import Change, functions_of
from planner.plan import TURNS

ROOT = Path(__file__).parents[2]
CHECKS = (ROOT / ".ci/run").read_text(encoding="utf-8")
WORDS = {"one": 60, "two": 120, "three": 180, "four": 240, "five": 300}
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]


def budget_s(name: str) -> int:
    return next(step.budget_s for step in budgets() if step.name == name)


def test_the_sum_of_the_budgets_is_at_most_what_is_promised() -> None:
    assert whole_s() == 1_800
    assert sum(step.budget_s for step in budgets()) <= whole_s()


def test_the_work_of_a_deep_step_fits_its_budget_on_two_cores() -> None:
    """With room for imports and for a core that waits for the last case."""
    assert [step.name for step in budgets() if step.work_s > 1.6 * step.budget_s] == []


@pytest.mark.parametrize("step", budgets(), ids=lambda step: step.name)
def test_every_step_is_a_function_of_the_checks(step: object) -> None:
    assert f"\n{getattr(step, 'name')}() {{\n" in CHECKS  # noqa: B009 - ids take any object


def test_every_function_that_checks_is_a_step_or_is_named_as_on_demand() -> None:
    functions = set(re.findall(r"^(\w+)\(\) \{", CHECKS, re.MULTILINE))
    tools = {
        "skip", "system_packages", "planned", "turn", "scratch", "cmake_configure", "step_list", "read_steps",
        "run_steps", "mutants",
    }  # fmt: skip
    assert functions - tools == {step.name for step in budgets()}
    assert "mutants | soak MINUTES   what is run on demand alone" in CHECKS


def test_the_readme_promises_the_budgets_of_its_two_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    promised = [WORDS[word] for word in re.findall(r"\(under (\w+) minutes\b", readme)]
    assert promised == [180, 300]
    assert budget_s("quickstart") <= promised[0]
    assert budget_s("tests") <= promised[1]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/dev/checks.md"])
def test_pages_for_developers_promise_the_same(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"{whole_s():,} s" in text
    assert f"{full_s() // 60} minutes" in text
    named = {int(number.replace(",", "")) for number in re.findall(r"\b([\d,]*\d) s\b", text)}
    assert named <= {whole_s()} | {step.budget_s for step in budgets()} | {10}  # the first dot


def test_what_is_slow_is_told_at_the_end() -> None:
    assert CHECKS.rindex("over budget by half or more") > CHECKS.rindex("=== all steps")
    assert f"WHOLE_S={whole_s()}" in CHECKS
    assert f"WHOLE_S={full_s()}" in CHECKS


def change_at(place: int, *files: str) -> Change:
    return Change(place=place, changed=frozenset(files))


CHOSEN_STEPS = [step for step in budgets() if step.touched_by]


@pytest.mark.parametrize("step", CHOSEN_STEPS, ids=lambda step: step.name)
def test_a_step_that_may_be_left_out_runs_where_it_is_touched_at_its_turn_and_in_the_dark(step: Step) -> None:
    places = range(1_000, 1_000 + TURNS)
    for name in step.touched_by:
        assert all(step.is_run(change_at(place, "README.md", f"{name}.x")) for place in places)
    elsewhere = [change_at(place, "src/weftwork/base/units.py", ".ci/run") for place in places]
    assert [change.place % TURNS for change in elsewhere if step.is_run(change)] == [step.turn]
    for function in (step.name, "scratch"):
        assert all(step.is_run(replace(change, functions=frozenset({function}))) for change in elsewhere)
    assert all(step.is_run(replace(change, changed=None)) for change in elsewhere)


@pytest.mark.parametrize("step", CHOSEN_STEPS, ids=lambda step: step.name)
def test_a_step_that_may_be_left_out_names_files_that_there_are(step: Step) -> None:
    names = [
        path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*"), *ROOT.glob(".ci/*"), *ROOT.glob("native/*"))
    ]
    names += [
        path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("src/weftwork/engine/*"), *ROOT.glob("tests/**/*.py"))
    ]
    assert [each for each in step.touched_by if not any(name.startswith(each) for name in names)] == []


def test_steps_that_may_be_left_out_have_turns_of_their_own() -> None:
    turns = [step.turn for step in CHOSEN_STEPS]
    assert len(set(turns)) == len(turns) >= 3
    assert all(0 <= turn < TURNS for turn in turns)


def test_a_step_that_lists_no_files_always_runs() -> None:
    for step in budgets():
        if not step.touched_by:
            assert all(step.is_run(change_at(place)) for place in range(TURNS))


@pytest.mark.parametrize("step", CHOSEN_STEPS, ids=lambda step: step.name)
def test_what_a_step_calls_is_compared_with_the_base(step: Step) -> None:
    functions = functions_of(CHECKS)
    body = functions[step.name].partition("\n")[2]
    called = {name for name in functions if re.search(rf"^\s*{name}\b|\$\({name}\b", body, re.MULTILINE)}
    assert called <= SHARED
    assert functions.keys() >= SHARED


def test_a_step_that_is_left_out_is_told_with_its_command() -> None:
    assert "left out: the change does not touch it; .ci/run %s runs it" in CHECKS


def test_every_folder_of_tests_is_collected_by_a_step() -> None:
    """The test command has its folders, and the deep steps those of tests/deep."""
    plain = set(OPTIONS["testpaths"])
    deep = set(re.findall(r"\btests/deep/\w+", CHECKS))
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}
    names = {folder.relative_to(ROOT).as_posix() for folder in folders}
    lost = {name for name in names if not any(f"{name}/".startswith(f"{each}/") for each in plain | deep)}
    assert lost == set()
    assert OPTIONS["addopts"][OPTIONS["addopts"].index("-m") + 1] == "not deep"


def test_the_file_of_steps_is_where_the_checks_read_it() -> None:
    assert STEPS_FILE == ROOT / ".ci/steps.toml"
    assert ".ci/steps.toml" in CHECKS
