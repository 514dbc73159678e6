"""The rules of the house that a program can check: floors, sizes of files, names, one screen of public names."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weftwork
from weftwork.base.version import VERSION
from weftwork.spec.scenario.migrations import SCHEMA

ROOT = Path(__file__).parents[2]


SOURCES = sorted(
    path
    for folder, pattern in (("src/weftwork", "**/*.py"), ("native", "**/*.[ch]pp"), ("tests", "**/*.py"))
    for path in (ROOT / folder).glob(pattern)
)


COMPAT = ROOT / "src/weftwork/compat"  # files and classes there have the names of another project's API


# Classes of one name that mean one thing: what every policy and every choice offers.
EVERY_CHOICE_HAS = {"Keys", "Params", "Receiver", "Shared", "State"}


def test_no_two_classes_share_a_name() -> None:
    catalogues = [
        ROOT / "src/weftwork" / folder
        for folder in ("policies", "topology/shapes", "spec/faults", "workload", "templates")
    ]
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
    """The name was taken on PyPI by another package."""
    old = re.compile(rb"\b" + b"we" + rb"ft\b", re.IGNORECASE)  # in two parts, so that this file does not find itself
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not know which files are tracked")
    tracked = [name for name in listed.stdout.decode().split("\0") if name]
    assert len(tracked) > 500
    found = [name for name in tracked if old.search(name.encode()) or old.search((ROOT / name).read_bytes())]
    assert found == []


def test_every_scenario_that_comes_along_is_of_this_schema() -> None:
    folders = ("src", "examples", "benchmarks", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.yaml")]
    files = [path for path in files if path.parent != ROOT / "src/weftwork/rdma/peer/scenarios"]  # another language
    heads = {path: re.search(r"^schema: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE) for path in files}
    schemas = {path.relative_to(ROOT).as_posix(): head[1] for path, head in heads.items() if head}
    assert len(schemas) > 30
    assert {path: schema for path, schema in schemas.items() if schema != str(SCHEMA)} == {}


def test_the_changelog_and_the_citation_are_of_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version, date = re.findall(r"^(?:version|date-released): (\S+)$", citation, re.MULTILINE)
    assert version == VERSION
    released = (
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("<!-- towncrier release notes start -->\n")[2]
    )
    assert released.lstrip().startswith(f"## {version} ({date})\n")


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
