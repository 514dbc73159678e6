"""Processes take files from a queue: every test runs once, a file is imported by one process, and nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.inner_pytest import inner_pytest

QUEUE = ("-p", "helpers.file_queue", "-n", "2", "--import-mode=importlib")
IMPORTED = "from pathlib import Path\nwith Path('imports.txt').open('a') as file:\n    file.write(__file__ + '\\n')\n"
PLAIN = IMPORTED + "def test_a():\n    pass\n\ndef test_b():\n    pass\n"
FILES = {f"test_{number:02}.py": PLAIN for number in range(12)}


def counts(text: str) -> dict[str, int]:
    """The numbers of the last line of pytest."""
    last = [line for line in text.splitlines() if re.search(r" in [0-9.]+s", line)][-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0])}


def test_every_test_runs_once_and_each_file_is_imported_once(tmp_path: Path) -> None:
    done = inner_pytest(tmp_path, FILES, *QUEUE)
    assert counts(done.stdout) == {"passed": 24}, done.stdout
    assert done.returncode == 0
    imported = (tmp_path / "imports.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(imported) == sorted(str(tmp_path / name) for name in FILES)
    assert re.search(r"the first dot came [0-9.]+ s after pytest was started, the last [0-9]+ s", done.stdout)


def test_fixtures_of_a_module_and_of_the_session_are_made_and_ended_as_often_as_they_should(tmp_path: Path) -> None:
    text = """
import pytest
def note(what):
    with open('notes.txt', 'a') as file:
        file.write(what + '\\n')
@pytest.fixture(scope='module')
def of_module(of_session):
    yield note('module')
    note('module ends')
def test_a(of_module):
    pass
def test_b(of_module):
    pass
"""
    conftest = """
import os
import pytest
@pytest.fixture(scope='session')
def of_session():
    with open('notes.txt', 'a') as file:
        file.write(f'session {os.getpid()}\\n')
    yield
    with open('notes.txt', 'a') as file:
        file.write('session ends\\n')
"""
    files = {f"test_{number}.py": text for number in range(6)} | {"conftest.py": conftest}
    assert counts(inner_pytest(tmp_path, files, *QUEUE).stdout) == {"passed": 12}
    notes = (tmp_path / "notes.txt").read_text(encoding="utf-8").splitlines()
    sessions = [note for note in notes if re.fullmatch(r"session \d+", note)]
    assert notes.count("module") == notes.count("module ends") == 6
    assert len(set(sessions)) == len(sessions) == notes.count("session ends") <= 2


def test_a_file_without_tests_between_folders_leaves_nothing_behind(tmp_path: Path) -> None:
    files = {f"{folder}/test_{number}.py": PLAIN for folder in "abc" for number in range(4)}
    empty = {f"{folder}/test_{number}_empty.py": "" for folder in "abc" for number in range(4)}
    conftest = {f"{folder}/conftest.py": "" for folder in "abc"}
    done = inner_pytest(tmp_path, files | empty | conftest, *QUEUE)
    assert counts(done.stdout) == {"passed": 24}, done.stdout


@pytest.mark.parametrize(
    ("options", "wanted", "code"),
    [
        (("-k", "test_a"), {"passed": 12}, 0),
        (("-m", "slow"), {"passed": 1}, 0),
        (("-m", "not slow"), {"passed": 25}, 0),
        (("-k", "nothing_of_the_kind"), {}, 5),
        (("test_00.py", "test_slow.py"), {"passed": 4}, 0),
    ],
)
def test_tests_are_chosen_as_ever(options: tuple[str, ...], wanted: dict[str, int], code: int, tmp_path: Path) -> None:
    slow = "import pytest\n@pytest.mark.slow\ndef test_long():\n    pass\n\ndef test_short():\n    pass\n"
    done = inner_pytest(tmp_path, FILES | {"test_slow.py": slow}, *QUEUE, *options, markers=("slow",))
    assert done.returncode == code, done.stdout
    found = counts(done.stdout) if code == 0 else {}
    found.pop("deselected", None)
    assert found == wanted


def test_a_marker_alone_imports_the_files_that_have_it_and_no_other(tmp_path: Path) -> None:
    slow = IMPORTED + "import pytest\n@pytest.mark.slow\ndef test_long():\n    pass\n"
    done = inner_pytest(tmp_path, FILES | {"test_slow.py": slow}, *QUEUE, "-m", "slow", markers=("slow",))
    assert counts(done.stdout) == {"passed": 1}
    assert (tmp_path / "imports.txt").read_text(encoding="utf-8") == f"{tmp_path / 'test_slow.py'}\n"


def test_a_file_that_cannot_be_imported_is_an_error_and_the_others_run(tmp_path: Path) -> None:
    done = inner_pytest(tmp_path, FILES | {"test_broken.py": "import nothing_of_that_name\n"}, *QUEUE)
    assert done.returncode == 1
    assert counts(done.stdout) == {"passed": 24, "error": 1}
    assert "No module named 'nothing_of_that_name'" in done.stdout


def test_a_failure_a_skip_and_an_expected_failure_are_told(tmp_path: Path) -> None:
    text = """
import pytest
def test_fails():
    assert 1 == 2
def test_skips():
    pytest.skip('no reason')
@pytest.mark.xfail
def test_is_known():
    assert False
"""
    done = inner_pytest(tmp_path, FILES | {"test_mixed.py": text}, *QUEUE, "-ra")
    assert done.returncode == 1
    assert counts(done.stdout) == {"passed": 24, "failed": 1, "skipped": 1, "xfailed": 1}
    assert "FAILED test_mixed.py::test_fails" in done.stdout


def test_a_process_that_ends_names_its_test_and_what_was_not_run(tmp_path: Path) -> None:
    text = "import os\ndef test_before():\n    pass\ndef test_ends():\n    os._exit(1)\ndef test_after():\n    pass\n"
    done = inner_pytest(tmp_path, FILES | {"test_ends.py": text}, *QUEUE)
    assert done.returncode == 1
    told = counts(done.stdout)
    assert told["failed"] == 1
    assert told["passed"] == 25
    assert "the process ended in test_ends.py::test_ends" in done.stdout
    assert "the tests of test_ends.py that follow it were not run" in done.stdout


def test_the_first_failure_ends_a_session_that_asks_for_it(tmp_path: Path) -> None:
    text = "def test_fails():\n    assert False\n"
    done = inner_pytest(tmp_path, {f"test_{number:02}.py": text for number in range(40)}, *QUEUE, "-x")
    assert done.returncode == 2
    assert counts(done.stdout)["failed"] < 40


def test_a_file_with_much_work_has_turns_for_its_parts_and_every_test_runs_once(tmp_path: Path) -> None:
    names = "".join(f"def test_{number}():\n    note({number})\n" for number in range(23))
    note = "def note(number):\n    with open('ran.txt', 'a') as file:\n        file.write(f'{number}\\n')\n"
    conftest = "from helpers import file_queue\nfile_queue.work_of = lambda file: 100.0 if 'long' in file else 0.0\n"
    files = {"test_long.py": note + names, "test_short.py": PLAIN, "conftest.py": conftest}
    done = inner_pytest(tmp_path, files, *QUEUE)
    assert counts(done.stdout) == {"passed": 25}, done.stdout
    ran = (tmp_path / "ran.txt").read_text(encoding="utf-8").split()
    assert sorted(map(int, ran)) == list(range(23))
