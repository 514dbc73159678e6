"""The list of `.ci/run mutants` fits the code: a change that moves a text of it fails here and says which entry."""

from pathlib import Path

import pytest
from mutants import entries, run
from mutants.entries import Change, Mutant, list_mistakes, read_mutants

ROOT = Path(__file__).parents[2]


def mutant(*, tests: tuple[str, ...] = ("test_code.py",), **changes: str) -> Mutant:
    change = Change(**{"file": "code.py", "old": "a < b", "new": "a > b", **changes})
    return Mutant(list_name="base", name="one", mistake="A mistake.", changes=(change,), tests=tests)


def test_every_entry_fits_the_code() -> None:
    assert list_mistakes(read_mutants()) == []


def test_every_floor_has_a_list() -> None:
    packages = {path.parent.name for path in (ROOT / "src/weftwork").glob("*/__init__.py")}
    assert packages == set(entries.LISTS) - {"packet_core", "flow_core", "invariants"}


def test_entries_that_are_the_same_are_told() -> None:
    found = list_mistakes([mutant(file="README.md", old="#", tests=("README.md",))] * 2)
    assert sum("the name is used 2 times" in text for text in found) == 2
    assert sum("another entry makes the same change" in text for text in found) == 2
    assert f"found 2 entries, wanted at least {entries.FEWEST}" in found
    assert "wire.toml: has no entry" in found


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        (0, "1 passed", None),
        (None, "", "a hang"),
        (1, "..\nTimeout (0:02:00)!\nThread 0x1:\n", "a hang"),
        (-11, "", "a crash (SIGSEGV)"),
        (1, ".F\nFAILED tests/a.py::test_b[1-2] - assert 1 == 2\n1 failed", "tests/a.py::test_b[1-2]"),
        (2, "ERROR tests/a.py - ImportError: no b\n1 error", "tests/a.py"),
        (4, "ImportError while loading conftest\nE   SyntaxError: invalid", "pytest itself: E   SyntaxError: invalid"),
    ],
)
def test_what_noticed_a_mistake_is_read_from_the_end_of_pytest(code: int | None, text: str, told: str | None) -> None:
    assert run.told_by(run.Ran(code=code, text=text)) == told
