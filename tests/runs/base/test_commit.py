"""The commit: what the build wrote, or what git says of a clone; never an error, and never asked at import."""

import subprocess
import sys
from pathlib import Path

import pytest

from weftwork.base import commit as module
from weftwork.base.commit import Commit, commit, version_text
from weftwork.base.version import VERSION

NAME = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where ``commit.txt`` of a source folder would be."""
    file = tmp_path / "src" / "weftwork" / "base" / "commit.txt"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(module, "_FILE", file)
    commit.cache_clear()
    return file


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", "-C", folder, *named, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{NAME} 2026-11-27\n", f"{VERSION} (commit 01234567, 2026-11-27)"),
        (f"{NAME}-dirty 2026-11-27\n", f"{VERSION} (commit 01234567 with local changes, 2026-11-27)"),
        ("", VERSION),
        ("$Format:%H %cs$\n", VERSION),
        (f"{NAME}\n", VERSION),
        ("\u00e4", VERSION),
    ],
)
def test_what_the_build_wrote_is_told(place: Path, text: str, told: str) -> None:
    place.write_text(text, encoding="utf-8")
    assert version_text() == told


def test_without_a_build_and_a_clone_the_version_stands_alone(place: Path) -> None:
    assert not place.exists()
    assert commit() is None
    assert version_text() == VERSION


def test_a_clone_asks_git_and_not_what_a_build_left_behind(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = place.parents[3]
    place.write_text(f"{NAME} 2020-01-01\n", encoding="utf-8")
    git(clone, "init", "-q")
    assert commit() is None  # nothing is committed yet
    (clone / "a").write_text("1", encoding="utf-8")
    git(clone, "add", "a")
    git(clone, "commit", "-q", "-m", "one")
    git(clone, "tag", "v1")
    commit.cache_clear()
    found = commit()
    assert found == Commit(
        name=git(clone, "rev-parse", "HEAD"), date=git(clone, "log", "-1", "--format=%cs"), is_dirty=False
    )
    (clone / "a").write_text("2", encoding="utf-8")
    commit.cache_clear()
    changed = commit()
    assert changed is not None
    assert found is not None
    assert changed.described == f"{found.name}-dirty"
    monkeypatch.setenv("PATH", "/nowhere")
    commit.cache_clear()
    assert commit() is None


def test_an_import_starts_no_process() -> None:
    if any(getattr(finder, "rebuild_flag", False) for finder in sys.meta_path):
        pytest.skip("this installation is editable, so an import of the core looks whether it has to be built")
    script = (
        "import sys\n"
        "starts = {'subprocess.Popen', 'os.posix_spawn', 'os.fork', 'os.exec'}\n"
        "sys.addaudithook(lambda event, _: sys.exit(event) if event in starts else None)\n"
        "import weftwork, weftwork.base.commit, weftwork.study.record.run\n"
        "print(weftwork.__version__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (VERSION, "")
