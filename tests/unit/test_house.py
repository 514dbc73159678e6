"""The rules of the house that a program can check: floors, sizes of files, names, one screen of public names."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import weftwork
from weftwork.cli import main

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder, pattern in (("src/weftwork", "**/*.py"), ("native", "**/*.[ch]pp"), ("tests", "**/*.py"))
    for path in (ROOT / folder).glob(pattern)
)
COMPAT = ROOT / "src/weftwork/compat"  # files and classes there have the names of another project's API
MOST_LINES = 600  # docs/dev/code.md: past that, a file is split by reason to change
NAMES_THAT_SAY_NOTHING = {"common", "helper", "manager", "misc", "parts", "shared", "util", "utils"}
# Classes of one name that mean one thing: what every policy and every choice offers.
EVERY_CHOICE_HAS = {"Keys", "Params", "Receiver", "Shared", "State"}


def test_imports_go_down_only() -> None:
    pytest.importorskip("importlinter", reason="import-linter comes with the extra 'dev'")
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    where = os.environ | {
        "PYTHONPATH": str(Path(weftwork.__file__).parents[1])
    }  # the package under test, wherever it is
    found = subprocess.run(
        [sys.executable, "-c", lint], cwd=ROOT, env=where, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_no_file_is_longer_than_one_sitting() -> None:
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert lines
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_every_file_is_named_for_the_thing_in_it() -> None:
    own = [path for path in SOURCES if not path.is_relative_to(COMPAT)]
    assert [path.name for path in own if path.stem in NAMES_THAT_SAY_NOTHING] == []


def test_no_two_classes_share_a_name() -> None:
    catalogues = [ROOT / "src/weftwork" / folder for folder in ("policies", "topology/shapes", "workload", "templates")]
    found: dict[str, list[str]] = {}
    own = [path for path in SOURCES if path.is_relative_to(ROOT / "src") and not path.is_relative_to(COMPAT)]
    for path in own:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            if name not in EVERY_CHOICE_HAS or not any(path.is_relative_to(folder) for folder in catalogues):
                found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert found
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_nothing_is_left_for_later() -> None:
    mark = re.compile(r"\b(TOD[O]|FIXM[E])\b")  # brackets, so that this file does not find itself
    assert [path.name for path in SOURCES if mark.search(path.read_text(encoding="utf-8"))] == []


def test_the_old_name_is_nowhere() -> None:
    """The name was taken on PyPI by another package; only the fragment that tells of the change still says it."""
    old = re.compile(rb"\b" + b"we" + rb"ft\b", re.IGNORECASE)  # in two parts, so that this file does not find itself
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not know which files are tracked")
    tracked = [name for name in listed.stdout.decode().split("\0") if name]
    assert len(tracked) > 500
    found = [name for name in tracked if old.search(name.encode()) or old.search((ROOT / name).read_bytes())]
    assert found in (["changes.d/10.name.breaking.md"], [])


def test_the_public_surface_is_one_screen_and_complete() -> None:
    assert weftwork.__all__ == sorted(weftwork.__all__)
    assert len(weftwork.__all__) <= 18
    assert [name for name in weftwork.__all__ if not hasattr(weftwork, name)] == []
    assert dir(weftwork) == weftwork.__all__
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `weftwork\.(\w+)", page, re.MULTILINE)
    assert sorted(names) == weftwork.__all__


def test_every_table_of_other_people_is_in_the_notice() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    tables = sorted(path.name for path in (ROOT / "src/weftwork/data/published").glob("*.csv"))
    assert [name for name in tables if name not in notice] == []


@pytest.mark.golden
def test_the_readme_shows_what_the_quick_start_prints() -> None:
    answer = (ROOT / "tests/golden/cli/quickstart.txt").read_text(encoding="utf-8").partition("\n\nBounds")[0]
    answer = "\n".join(line.rstrip() for line in answer.strip().splitlines())
    assert f"```text\n{answer}\n```" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.deep
@pytest.mark.golden
def test_the_readme_shows_what_weftwork_collective_prints(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(line for line in readme.splitlines() if line.startswith("weftwork collective all-reduce"))
    with pytest.raises(SystemExit) as left:
        main(command.split()[1:])
    printed = capsys.readouterr().out.rstrip().rpartition("\n")[0]  # the last line has the time on the clock
    assert left.value.code in {0, None}
    assert f"```text\n{printed}\n```" in readme


@pytest.mark.parametrize(
    "command", ["pip install . && weftwork run examples/quickstart.yaml", "pip install '.[test]' && pytest"]
)
def test_the_checks_run_the_commands_of_the_readme(command: str) -> None:
    for name in ("README.md", ".ci/run"):
        assert command in [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


def test_the_checks_promise_the_times_of_the_readme() -> None:
    """The README says minutes, .ci/run prints seconds; nothing asserts a time, since machines differ."""
    words = {"one": 60, "two": 120, "three": 180, "four": 240, "five": 300, "eight": 480}
    readme = re.findall(r"\(under (\w+) minutes\b", (ROOT / "README.md").read_text(encoding="utf-8"))
    promise = (ROOT / ".ci/run").read_text(encoding="utf-8").partition("the README promises")[2].partition("\n")[0]
    assert re.findall(r"(\w+) under (\d+) s\b", promise) == [("quickstart", "180"), ("tests", "480")]
    assert [words[one] for one in readme] == [180, 480]


def test_plain_pytest_uses_all_cores() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = project["tool"]["pytest"]["ini_options"]["addopts"]
    assert options[options.index("-n") + 1] == "auto"
    assert any(one.startswith("pytest-xdist") for one in project["project"]["optional-dependencies"]["test"])


@pytest.mark.parametrize(
    ("arguments", "capture", "is_alone"),
    [
        (["tests", "weftwork"], "fd", False),
        (["tests/unit/test_house.py", "tests/unit/test_build.py"], "fd", False),
        (["tests/unit/test_house.py"], "fd", True),
        (["tests/unit/test_house.py::test_a", "tests/unit/test_house.py::test_b"], "fd", True),
        (["tests", "weftwork"], "no", True),
    ],
)
def test_pytest_starts_no_process_where_one_is_better(
    arguments: list[str],
    capture: str,
    is_alone: bool,  # noqa: FBT001 - a row says it
    pytestconfig: pytest.Config,
) -> None:
    option = SimpleNamespace(numprocesses="auto")
    asked = SimpleNamespace(args=arguments, option=option, getoption=lambda name: {"capture": capture}[name])
    assert (pytestconfig.hook.pytest_xdist_auto_num_workers(config=asked) == 0) is is_alone


def test_every_long_test_is_in_a_step_of_the_checks() -> None:
    """What plain pytest leaves out is what the steps choose: two files, and all but these files."""
    checks = (ROOT / ".ci/run").read_text(encoding="utf-8")
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert options["addopts"][options["addopts"].index("-m") + 1] == "not deep"
    steps = re.search(r"^STEPS=\((.*)\)$", checks, re.MULTILINE)
    assert steps is not None
    for step, command in {
        "properties": "pytest -m property --hypothesis-profile=deep",
        "examples": 'pytest -m deep "${EXAMPLES[@]}"',
        "truth": 'pytest -m "deep and not property" "${EXAMPLES[@]/#/--ignore=}"',
    }.items():
        assert step in steps[1].split()
        assert f"{step}() {{\n    {command}\n}}" in checks
