"""The rules of the house that a program can check: floors, sizes of files, names, one screen of public names."""

import ast
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import weftwork

ROOT = Path(__file__).parents[2]


SOURCES = sorted(
    path
    for folder, pattern in (("src/weftwork", "**/*.py"), ("native", "**/*.[ch]pp"), ("tests", "**/*.py"))
    for path in (ROOT / folder).glob(pattern)
)


COMPAT = ROOT / "src/weftwork/compat"  # files and classes there have the names of another project's API


MOST_LINES = 600  # docs/dev/code.md: past that, a file is split by reason to change


RETURN_TYPE = re.compile(r"\) -> ([^:]+):")  # to parse whole files takes seconds


NAMES_THAT_SAY_NOTHING = {"common", "helper", "manager", "misc", "parts", "shared", "util", "utils"}


def test_no_file_is_longer_than_one_sitting() -> None:
    lines = {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in SOURCES}
    assert lines
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_every_file_is_named_for_the_thing_in_it() -> None:
    own = [path for path in SOURCES if not path.is_relative_to(COMPAT)]
    assert [path.name for path in own if path.stem in NAMES_THAT_SAY_NOTHING] == []


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


@pytest.mark.parametrize(
    "command", ["pip install . && weftwork run examples/quickstart.yaml", "pip install '.[test]' && pytest"]
)
def test_the_checks_run_the_commands_of_the_readme(command: str) -> None:
    for name in ("README.md", ".ci/run"):
        assert command in [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


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
        (["tests/deep/truth/test_file_queue.py::test_a", "tests/deep/truth/test_file_queue.py::test_b"], "fd", True),
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


def test_no_function_returns_mistakes_beside_something_else() -> None:
    """Whoever calls would have to merge them; `weftwork.base.findings.Findings` goes along instead."""
    wrong = [
        f"{path.relative_to(ROOT)}: {returned}"
        for path in SOURCES
        if path.is_relative_to(ROOT / "src")
        for returned in RETURN_TYPE.findall(path.read_text(encoding="utf-8"))
        if "tuple[" in returned and "Mistake" in returned and has_mistakes_beside(returned)
    ]
    assert wrong == []


def has_mistakes_beside(returned: str) -> bool:
    """Whether an annotation has a tuple of several things with a collection of mistakes among them."""
    return any(
        isinstance(node, ast.Subscript)
        and ast.unparse(node.value) == "tuple"
        and isinstance(node.slice, ast.Tuple)
        and any(isinstance(part, ast.Subscript) and "Mistake" in ast.unparse(part) for part in node.slice.elts)
        for node in ast.walk(ast.parse(f"({returned})", mode="eval"))
    )


@pytest.mark.parametrize(
    ("returned", "is_wrong"),
    [
        ("tuple[int, list[Mistake]]", True),
        ("tuple[Plan | None, tuple[Mistake, ...]] | None", True),
        ("tuple[list[Mistake], dict[str, int]]", True),
        ("tuple[\n    int,\n    list[Mistake],\n]", True),
        ("tuple[Mistake, ...]", False),
        ("list[Mistake]", False),
        ("tuple[int, Mistake]", False),
    ],
)
def test_the_rule_knows_a_tuple_with_mistakes(returned: str, *, is_wrong: bool) -> None:
    assert RETURN_TYPE.findall(f"def f(\n    x: int,\n) -> {returned}:  # noqa\n    return x\n") == [returned]
    assert has_mistakes_beside(returned) == is_wrong
