"""What git says of a tree: its place in history, what changed since a base, and a word where one is not known."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from planner.history import BASE_FILE, CHECKS_FILE, change_of, tracked_files

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """Git in an empty folder with a name and without the user's settings."""
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]

    def run(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), *named, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    run("init", "-q", "-b", "main")
    return run


def commit(folder: Path, git: Git, name: str) -> str:
    (folder / name).write_text(name, encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", name)
    return git("rev-parse", "HEAD")


def test_successive_commits_have_successive_places(git: Git, tmp_path: Path) -> None:
    places = []
    for name in "abc":
        commit(tmp_path, git, name)
        places.append(change_of(tmp_path, None).place)
    assert places == [1, 2, 3]
    git("checkout", "-q", "-b", "side", "HEAD~1")
    for name in "xyz":
        commit(tmp_path, git, name)
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merge", "side")
    assert change_of(tmp_path, None).place == 4  # a merge is one step of the first parents


def test_what_differs_from_the_base_is_committed_pending_or_new(git: Git, tmp_path: Path) -> None:
    base = commit(tmp_path, git, "a")
    commit(tmp_path, git, "b")
    commit(tmp_path, git, "c")
    (tmp_path / "a").write_text("changed", encoding="utf-8")
    (tmp_path / "d").write_text("new", encoding="utf-8")
    assert change_of(tmp_path, base).changed == {"a", "b", "c", "d"}
    assert change_of(tmp_path, "HEAD").changed == {"a", "d"}
    assert tracked_files(tmp_path) == ["a", "b", "c", "d"]


def test_the_base_is_the_argument_else_that_of_the_file(git: Git, tmp_path: Path) -> None:
    base = commit(tmp_path, git, "a")
    (tmp_path / BASE_FILE).parent.mkdir()
    (tmp_path / BASE_FILE).write_text(f"{base} # of the last release\n", encoding="utf-8")
    commit(tmp_path, git, "b")
    assert change_of(tmp_path, None).changed == {"b", BASE_FILE}
    assert change_of(tmp_path, "HEAD").changed == set()


def test_without_a_base_the_turn_alone_decides_and_this_is_said(git: Git, tmp_path: Path) -> None:
    commit(tmp_path, git, "a")
    change = change_of(tmp_path, None)
    assert (change.place, change.changed) == (1, None)
    assert change.remark == "no base is given and .ci/base names none: the turn alone decides"
    strange = change_of(tmp_path, "f" * 40)
    assert strange.changed is None
    assert f"does not have the base {'f' * 40}" in strange.remark


def test_a_shallow_clone_says_that_it_knows_no_history(git: Git, tmp_path: Path) -> None:
    for name in "ab":
        commit(tmp_path, git, name)
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{tmp_path}", shallow], check=True)
    change = change_of(shallow, None)
    assert change.changed is None
    assert "the clone is shallow" in change.remark


def test_a_tree_without_git_has_its_files_and_the_first_turn(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.txt").write_text("b", encoding="utf-8")
    assert tracked_files(tmp_path) == ["a/b.txt"]
    change = change_of(tmp_path, None)
    assert (change.place, change.changed) == (0, None)
    assert change.remark == "there is no git history: the first turn is run"


def test_functions_of_the_checks_are_compared_with_the_base(git: Git, tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    checks = tmp_path / CHECKS_FILE
    checks.write_text("one() {\n    true\n}\n\ntwo() {\n    true\n}\nthree() { true; }\n", encoding="utf-8")
    base = commit(tmp_path, git, "a")
    assert change_of(tmp_path, base).functions == frozenset()
    checks.write_text("one() {\n    true\n}\n\ntwo() {\n    false\n}\nfour() {\n    true\n}\n", encoding="utf-8")
    assert change_of(tmp_path, base).functions == {"two", "four"}
