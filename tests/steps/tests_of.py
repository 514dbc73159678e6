"""Runs the tests that belong to files: `just test FILE...`.

A file of tests stands for itself. To a module of `src/weftwork` belong the tests that import it directly, those at its
mirrored place (`src/weftwork/x/y.py`: `test_y.py` below a folder `x` of tests), and those that the lists of mistakes
(`tests/mutants/*.toml`) name for it. To a file of `native` belong the tests of its engine, and those that the lists
name. Prints what it chose and why. Leaves out: tests that reach a file only through others; `pytest` runs all.
Usage: python tests/steps/tests_of.py FILE... [-- ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.import_graph import imported_names

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "src"
ENGINE_TESTS: Final = {"packet": "engine", "flow": "engine/flow"}  # folder of native: folder of tests of its engine


def main(arguments: list[str]) -> int:
    """Run pytest on what belongs to the files; 2 where a file has no tests, or is none.

    Parameters
    ----------
    arguments : files, and behind ``--`` what pytest is to be told

    Returns
    -------
    the exit code of pytest
    """
    divide = arguments.index("--") if "--" in arguments else len(arguments)
    files, options = arguments[:divide], arguments[divide + 1 :]
    if not files:
        print(__doc__)
        return 2
    chosen: dict[str, str] = {}
    for name in files:
        path = Path(name.partition("::")[0]).resolve()
        if not path.exists():
            print(f"there is no {name}")
            return 2
        reasons = {name: "named"} if is_test(path) else tests_of(path)
        if not reasons:
            print(f"no test imports {name} or is named for it; `pytest` runs all")
            return 2
        for test, reason in reasons.items():
            chosen.setdefault(test, reason)
    for test, reason in sorted(chosen.items()):
        print(f"{test:60} {reason}")
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pytest", *sorted(chosen), *options], cwd=ROOT, check=False).returncode


def is_test(path: Path) -> bool:
    """Whether pytest collects a file, or everything in a folder."""
    return path.is_relative_to(ROOT / "tests") and (path.is_dir() or path.name.startswith("test_"))


def tests_of(path: Path) -> dict[str, str]:
    """Tests that belong to a source file, and why, by their paths from the root."""
    reasons = of_mistakes(path)
    if path.is_relative_to(ROOT / "native"):
        reasons |= of_engine(path)
    elif path.is_relative_to(SOURCE) and path.suffix == ".py":
        reasons |= of_module(path)
    return {test: reason for test, reason in reasons.items() if (ROOT / test.partition("::")[0]).exists()}


def of_module(path: Path) -> dict[str, str]:
    """Tests that import a module, or stand at its place; its own docstrings too."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    reasons = {}
    for test in sorted((ROOT / "tests").rglob("test_*.py")):
        if is_mirrored(test, parts[1:]):
            reasons[relative(test)] = f"stands at the place of {module}"
        elif module in imported_names(ast.parse(test.read_text(encoding="utf-8"))):
            reasons[relative(test)] = f"imports {module}"
    if ">>> " in path.read_text(encoding="utf-8"):
        reasons[relative(path)] = "has examples in its docstrings"
    return reasons


def is_mirrored(test: Path, parts: tuple[str, ...]) -> bool:
    """Whether a test is at the place of a module: ``tests/*/x/test_y.py`` for ``weftwork/x/y.py``."""
    folders, name = parts[:-1], parts[-1]
    behind = test.relative_to(ROOT / "tests").parts
    return behind[-1] == f"test_{name}.py" and behind[1:-1] == folders


def of_engine(path: Path) -> dict[str, str]:
    """Tests of the engine whose core a file belongs to; of both for what they share."""
    beside = path.with_name(f"{path.stem}_test.cpp")
    if beside.exists():
        print(f"{relative(beside)}: `just native-test` runs it")
    engine = path.relative_to(ROOT / "native").parts[0]
    folders = [ENGINE_TESTS[engine]] if engine in ENGINE_TESTS else list(ENGINE_TESTS.values())
    reasons = {}
    for folder in folders:
        for place in sorted((ROOT / "tests").glob(f"*/{folder}")):
            for test in sorted(place.glob("test_*.py")):
                reasons[relative(test)] = f"a test of the core in native/{engine}"
    return reasons


def of_mistakes(path: Path) -> dict[str, str]:
    """Tests that have to see a mistake in a file, as the lists of mistakes say."""
    reasons = {}
    for table in sorted((ROOT / "tests/mutants").glob("*.toml")):
        for entry in tomllib.loads(table.read_text(encoding="utf-8")).get("mutant", []):
            if any(change["file"] == relative(path) for change in (entry, *entry.get("also", []))):
                reasons |= dict.fromkeys(entry["tests"], f"has to see {entry['name']} ({table.name})")
    return reasons


def relative(path: Path) -> str:
    """A path from the root, as one types it there."""
    return path.relative_to(ROOT).as_posix()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
