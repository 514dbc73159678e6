"""A new switch key, kind of fault, column of input or of results takes few source files; C++ is written from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.additions import MOST_FILES, Addition, read_additions

ROOT = Path(__file__).parents[3]
ADDITIONS = read_additions()
COUNTS = {1: "one", 2: "two", 3: "three", 4: "four"}


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.name)
def test_an_addition_takes_few_files_and_its_header_is_written(addition: Addition, tmp_path: Path) -> None:
    for folder in ("src/weftwork", "native"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    addition.apply(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "weftwork.engine.rows"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    changed = {
        path.relative_to(tmp_path).as_posix()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.read_bytes() != _text_before(path.relative_to(tmp_path))
    }
    written = {name for name in changed if name.startswith("native/rows/")}
    assert changed - written == addition.files
    assert len(changed - written) <= MOST_FILES
    if not addition.member:
        assert not written
        return
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in sorted(written)]
    assert sum(addition.is_field_in(text) for text in texts) == 1
    assert len(written) == 2  # the family, and what the bindings read


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.name)
def test_the_recipe_says_how_many_files_an_addition_takes(addition: Addition) -> None:
    page = (ROOT / "docs/dev/recipes.md").read_text(encoding="utf-8")
    assert " ".join(addition.recipe.split()) in " ".join(page.split())
    assert f" {COUNTS[len(addition.files)]} source file" in addition.recipe


def _text_before(name: Path) -> bytes:
    """What a file of the tree has; nothing: it is new."""
    return (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""


def test_the_additions_are_of_the_kinds_that_users_ask_for() -> None:
    assert [addition.name for addition in ADDITIONS] == ["switch-key", "input-column", "result-column", "fault-kind"]
