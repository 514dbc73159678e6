"""The gallery: what is asked twice is made once, also from two processes; what differs is another run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.gallery import CANONICAL, Gallery, runs_made

from weftwork.spec.numbers import declared

TESTS = Path(__file__).parents[2]
README = (CANONICAL / "README.md").read_text(encoding="utf-8")
SMALL = """schema: 3
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
traffic: {pattern: incast, senders: 3, size: 20KB}
"""


def test_a_run_is_made_once_and_read_as_often_as_it_is_asked_for(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    first = gallery.run(SMALL, what_if="none")
    written = {file: file.stat().st_mtime_ns for file in first.path.iterdir()}
    again = Gallery(tmp_path).run(SMALL, what_if="none")
    assert again.path == first.path
    assert {file: file.stat().st_mtime_ns for file in again.path.iterdir()} == written
    assert runs_made(tmp_path) == 1


def test_another_text_another_key_and_another_argument_are_other_runs(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    runs = [
        gallery.run(SMALL, what_if="none"),
        gallery.run(SMALL.replace("20KB", "30KB"), what_if="none"),
        gallery.run(SMALL, what_if="none", overrides={"engine.seed": 2}),
        gallery.run(SMALL, what_if="none", name="other"),
    ]
    assert len({run.path for run in runs}) == runs_made(tmp_path) == 4


def test_a_copy_may_be_changed(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path / "gallery")
    run = gallery.run(SMALL, what_if="none")
    before = hashlib.sha256((run.path / "summary.json").read_bytes()).hexdigest()
    copy = gallery.copy(run, tmp_path / "copy")
    (copy.path / "summary.json").write_text("{}", encoding="utf-8")
    assert hashlib.sha256((run.path / "summary.json").read_bytes()).hexdigest() == before


def test_a_changed_run_is_refused_to_the_next_test(tmp_path: Path) -> None:
    gallery = Gallery(tmp_path)
    run = gallery.run(SMALL, what_if="none")
    (run.path / "summary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match=r"it wants gallery\.copy"):
        gallery.run(SMALL, what_if="none")


@pytest.mark.parametrize("name", sorted(file.stem for file in CANONICAL.glob("*.yaml")))
def test_a_canonical_run_is_what_the_readme_says(gallery: Gallery, name: str) -> None:
    """A line of the README names the run, its status and what is to blame."""
    run = gallery(name)
    (line,) = (line for line in README.splitlines() if line.startswith(f"| `{name}` |"))
    assert run.answer is not None
    assert [cell.strip() for cell in line.split("|")][3:5] == [run.status, run.answer.culprit.name]


def test_two_processes_make_one_run(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom helpers.gallery import Gallery\n"
        "print(Gallery(Path(sys.argv[1])).run(sys.argv[2], what_if='none').provenance['started'])\n"
    )
    where = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    asked = [sys.executable, "-c", code, str(tmp_path / "gallery"), SMALL]
    processes = [subprocess.Popen(asked, env=where, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    started = {process.communicate()[0] for process in processes}
    assert len(started) == runs_made(tmp_path / "gallery") == 1
    assert started != {""}


@pytest.mark.parametrize("name", sorted(file.stem for file in CANONICAL.glob("*.yaml")))
def test_every_number_of_a_summary_has_its_row(gallery: Gallery, name: str) -> None:
    """With its unit, so that what reads the list tells the same of it."""
    summary = gallery(name).summary
    assert summary
    assert {key: number["unit"] for key, number in summary.items()} == {
        key: row.unit for key in summary if (row := declared(key)) is not None
    }
