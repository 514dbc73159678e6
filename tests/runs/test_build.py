"""What the build promises: one version, a core without Python, and arithmetic that is the same on every machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


CORE_FILES = sorted(
    path for folder in ("base", "packet", "flow") for path in (ROOT / "native" / folder).glob("*.[ch]pp")
)


def test_a_missing_compiler_is_one_sentence(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("there is no cmake on the path; pip brings its own")
    without = os.environ | {"CXX": "/nowhere/c++"}
    configure = [cmake, "-S", str(ROOT), "-B", str(tmp_path)]
    found = subprocess.run(configure, env=without, capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert "Weftwork needs a C++20 compiler and found none" in " ".join(found.stderr.split())


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of what CMake needs for an sdist."""
    for name in ("CMakeLists.txt", "src/weftwork/base/version.py"):
        copy = tmp_path / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path / "source"


def carried(source: Path, **environment: str) -> str | None:
    """What an sdist of a source folder says of its commit."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("there is no cmake on the path; pip brings its own")
    configure = [cmake, "-S", str(source), "-B", str(source.parent / "build"), "-DSKBUILD_STATE=sdist"]
    subprocess.run(configure, env=os.environ | environment, capture_output=True, check=True)
    file = source / "src/weftwork/base/commit.txt"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None


def test_an_sdist_carries_the_commit_of_its_clone_and_hands_it_on(bare: Path) -> None:
    def git(*arguments: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", bare, *named, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    assert carried(bare) is None  # neither a clone nor an sdist
    git("init", "-q")
    assert carried(bare) is None  # a clone without a commit
    git("add", ".")
    git("commit", "-q", "-m", "one")
    known = f"{git('rev-parse', 'HEAD')} {git('log', '-1', '--format=%cs')}"
    assert carried(bare) == known
    changed = bare / "CMakeLists.txt"
    changed.write_text(changed.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert carried(bare) == known.replace(" ", "-dirty ")
    shutil.rmtree(bare / ".git")
    assert carried(bare) == known.replace(" ", "-dirty ")
