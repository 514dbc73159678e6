"""A unit test imports nothing above the file under test: judged from the text of files in tests/unit and of helpers.

The folder of a file names the package under test, and the floors are those of pyproject.toml. What a helper imports
counts for whoever imports the helper. Files that lie in tests/unit itself test the repository and may import anything.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from pathlib import Path

import pytest
from planner.import_graph import imported_names

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
UNIT = TESTS / "unit"
WHOLE = "weftwork"  # what the top package offers lies on the floors of studies


@functools.cache
def floors() -> dict[str, int]:
    """The floor of each package, 0 the lowest, from the contract that import-linter checks."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each.get("containers") == [WHOLE])
    names = [[name.strip(" ()") for name in layer.split("|")] for layer in layers]
    floor = {name: place for place, layer in enumerate(reversed(names)) for name in layer}
    return floor | {WHOLE: floor["study"]}


@functools.cache
def imports_of(file: Path) -> tuple[frozenset[str], frozenset[Path]]:
    """Packages of Weftwork, and files of the suite, that a file imports anywhere in it."""
    packages, helpers = set(), set()
    for name in imported_names(ast.parse(file.read_text(encoding="utf-8"))):
        parts = name.removeprefix("tests.").split(".")
        if parts[0] == "weftwork":
            packages.add(parts[1] if len(parts) > 1 and parts[1] in floors() else WHOLE if parts == [WHOLE] else "")
        elif (helper := TESTS.joinpath(*parts).with_suffix(".py")).is_file():
            helpers.add(helper)
    return frozenset(packages - {""}), frozenset(helpers)


def reached(file: Path) -> dict[str, Path]:
    """Packages that a file reaches, each with the file of the suite that imports it."""
    importers: dict[str, Path] = {}
    queue, seen = [file], {file}
    while queue:
        each = queue.pop()
        packages, helpers = imports_of(each)
        for package in packages:
            importers.setdefault(package, each)
        queue += helpers - seen
        seen |= helpers
    return importers


@pytest.mark.parametrize("package", sorted(path.name for path in UNIT.iterdir() if path.name in floors()))
def test_unit_tests_import_nothing_above_the_file_under_test(package: str) -> None:
    floor = floors()[package]
    too_high = [
        f"{file.relative_to(ROOT)} reaches {name} by {by.relative_to(ROOT)}"
        for file in sorted((UNIT / package).rglob("test_*.py"))
        for name, by in reached(file).items()
        if floors()[name] > floor
    ]
    assert too_high == [], "such tests belong into tests/runs"


def test_every_folder_of_unit_tests_is_a_package_or_a_part_of_the_suite() -> None:
    folders = {path.name for path in UNIT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders - floors().keys() <= {"planner", "helpers"}


def test_the_rule_sees_an_import_through_a_helper() -> None:
    assert reached(TESTS / "helpers/credits.py")["spec"] in {TESTS / "helpers/credits.py", TESTS / "helpers/tiny.py"}
    assert reached(TESTS / "helpers/command.py") == {"cli": TESTS / "helpers/command.py"}
    assert floors()["engine"] > floors()["policies"] > floors()["base"] == 0
