"""The list of `.ci/run mutants` fits the code: a change that moves a text of it fails here and says which entry."""

from pathlib import Path
from typing import Any

import pytest
from mutants.entries import Change, Mutant, list_mistakes, read_mutants


def mutant(*, tests: tuple[str, ...] = ("test_code.py",), **changes: str) -> Mutant:
    change = Change(**{"file": "code.py", "old": "a < b", "new": "a > b", **changes})
    return Mutant(list_name="base", name="one", mistake="A mistake.", changes=(change,), tests=tests)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"old": "a <= b"}, "`old` ('a <= b') occurs 0 times in code.py, wanted once; the code has changed"),
        ({"old": "b"}, "`old` ('b') occurs 2 times in code.py, wanted once"),
        ({"old": "a < b", "new": "a < b"}, "`new` is `old`"),
        ({"file": "moved.py"}, "there is no file moved.py; the code has changed"),
        ({"tests": ()}, "names no test that should see it"),
        ({"tests": ("test_moved.py",)}, "there is no test test_moved.py"),
        ({"tests": ("test_code.py::test_less",)}, "test_code.py has no test_less"),
    ],
)
def test_an_entry_that_does_not_fit_says_why(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def less(a, b):\n    return a < b\n", encoding="utf-8")
    (tmp_path / "test_code.py").write_text("def test_more():\n    pass\n", encoding="utf-8")
    found = [text for text in list_mistakes([mutant(**changes)], tmp_path) if text.startswith("base/one: ")]
    assert len(found) == 1
    assert told in found[0]


def test_a_mistake_may_change_several_files_and_lacks_nothing(tmp_path: Path) -> None:
    entry = '[[mutant]]\nname = "both"\nmistake = "M."\nfile = "a.py"\nold = "a"\nnew = "b"\ntests = ["t.py"]\n'
    also = '[[mutant.also]]\nfile = "native/a.hpp"\nold = "a"\nnew = "b"\n'
    (tmp_path / "wire.toml").write_text(entry + also, encoding="utf-8")
    (found,) = read_mutants(tmp_path)
    assert [change.file for change in found.changes] == ["a.py", "native/a.hpp"]
    assert found.is_native
    for wrong, told in ((also.replace("old", "odd"), "lacks old"), (also + "more = 1\n", "wanted just the keys name")):
        (tmp_path / "wire.toml").write_text(entry + wrong, encoding="utf-8")
        with pytest.raises(ValueError, match=f"wire.toml, entry 'both': {told}"):
            read_mutants(tmp_path)
    (tmp_path / "wires.toml").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="found the lists wires, wanted base, spec"):
        read_mutants(tmp_path)
