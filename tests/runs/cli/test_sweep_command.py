"""`weftwork sweep`: a table, a page and a verdict; what was interrupted goes on, and nothing is written twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from helpers.command import Command, command_of
from helpers.sweeps import SCENARIO, fills_the_disk, with_pattern
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.store.sweeps import sweep_folder

SECTION = """sweep:
  grid: {traffic.senders: [3, 7]}
  zip: {traffic.size: [50KB, 100KB], fabric.hosts_per_leaf: [4, 8]}
"""


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in a folder that holds a tiny scenario, and one with a section sweep."""
    use_workers_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "section.yaml").write_text(SCENARIO + SECTION, encoding="utf-8")
    return command_of(capsys)


def test_a_sweep_ends_in_a_verdict_a_table_and_a_page(command: Command, tmp_path: Path) -> None:
    set_ = ("--set", "traffic.senders=3,7", "--set", "traffic.size=50KB,100KB")
    found = command("sweep", "tiny.yaml", *set_, "--seeds", "3", "-j", "2", "-o", "out")
    assert found.code == 0, found.err
    assert "4 points, 12 runs, 2 at a time" in found.err
    assert " of memory each, by its keys\n" in found.err
    assert found.out.startswith("Senders 3, size 50KB is best: completion time ")
    assert "seed by seed" in found.out
    assert "matters most" in found.out
    out = tmp_path / "out"
    table = pq.read_table(out / "table.parquet").to_pylist()
    assert [(row["traffic.senders"], row["traffic.size"]) for row in table] == [
        ("3", "50KB"), ("3", "100KB"), ("7", "50KB"), ("7", "100KB"),
    ]  # fmt: skip
    lines = (out / "table.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5
    assert lines[0].startswith('"point","traffic.senders","traffic.size","status","reason","runs","flows"')
    overrides = {"traffic.senders": "3", "traffic.size": "100KB"}
    alone = weftwork.run("tiny.yaml", overrides=overrides, seeds=3, out=tmp_path / "alone")
    number = alone.summary["completion_ps"]
    told = {name: table[1][f"completion_ps{end}"] for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))}
    assert told == {name: number[name] for name in told}
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["rows"][1]["digests"] == [one.provenance["digest"] for one in alone.seeds]
    page = (out / "page.html").read_text(encoding="utf-8")
    assert "Each result against each key" in page
    assert page.count("<figure>") == 2
    again = command("sweep", "tiny.yaml", *set_, "--seeds", "3", "-j", "2", "-o", "out", "--json")
    document = json.loads(again.out)
    assert (document["runs"], document["kept"], document["verdicts"][0]["best"]) == (12, 12, 0)
    assert document["rows"] == result["rows"]
    assert again.err == ""


def test_a_section_of_the_file_is_swept_and_a_setting_goes_before_its_grid(command: Command, tmp_path: Path) -> None:
    found = command("sweep", "section.yaml", "--set", "traffic.senders=2,3,9", "-o", "out", "--by", "goodput_bps")
    assert found.code == 1
    rows = pq.read_table(tmp_path / "out/table.parquet").to_pylist()
    values = [(row["traffic.size"], row["fabric.hosts_per_leaf"], row["traffic.senders"]) for row in rows]
    zipped = (("50KB", "4"), ("100KB", "8"))
    assert values == [(*pair, senders) for pair in zipped for senders in ("2", "3", "9")]
    assert [row["status"] for row in rows] == ["complete", "complete", "refused", *["complete"] * 3]
    assert "found 9, wanted at most 7" in rows[2]["reason"]
    assert found.out.startswith("Size 100KB, senders ")  # of zipped keys the first
    assert "With one seed the noise is unknown" in found.out
    assert "1 point has no result to judge: 1 refused." in found.out


def test_all_mistakes_of_a_sweep_are_told_before_anything_runs(command: Command, tmp_path: Path) -> None:
    wrong = ("--set", "transport.congestion_control=dcqnc,none", "--set", "fabric.oversubscriptoin=1,2")
    found = command("sweep", "tiny.yaml", *wrong, "-o", "out")
    assert found.code == 2
    assert "2 mistakes, nothing was run" in found.err
    assert "did you mean 'dcqcn'?" in found.err
    assert "did you mean 'oversubscription'?" in found.err
    assert not (tmp_path / "out").exists()


def test_report_makes_the_page_of_a_sweep_again(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert command("sweep", "tiny.yaml", "--set", "traffic.senders=3,7", "--seeds", "2", "-o", "out").code == 0
    page = (out / "page.html").read_bytes()
    (out / "page.html").unlink()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert command("report", "out").out.startswith("page: out/page.html (")
    assert (out / "page.html").read_bytes() == page
    told = json.loads(command("report", "out", "-o", "other.html", "--json").out)
    assert told == {"page": "other.html", "size_bytes": len(page), "sweep": "out"}
    assert (tmp_path / "other.html").read_bytes() == page
    assert before == {path: path.stat().st_mtime_ns for path in before}
    for arguments, text in (
        (("out", "out/runs"), "is a sweep, which is not compared"),
        (("out", "-o", "trace.json"), "a trace is of one run"),
    ):
        wrong = command("report", *arguments)
        assert wrong.code == 2
        assert text in wrong.err
    (out / "result.json").write_text('{"name": 1}', encoding="utf-8")
    again = "weftwork sweep tiny.yaml --set traffic.senders=3,7 --seeds 2 -o out"
    assert f"result.json cannot be read; write it again with: {again}" in command("report", "out").err
    (out / "result.json").unlink()
    assert f"the sweep has not ended, so there is no result; continue with: {again}" in command("report", "out").err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing to sweep over"),
        (("--set", "traffic.senders=3,3"), "found a value twice"),
        (("--set", "traffic.senders=3,"), "found an empty value between two commas"),
        (("--set", "traffic.senders=3", "--seeds", "0"), "wanted at least one"),
        (("--set", "traffic.senders=3", "--within", "traffic.sender"), "did you mean 'traffic.senders'?"),
    ],
)
def test_a_sweep_that_says_nothing_useful_is_refused(command: Command, arguments: tuple[str, ...], told: str) -> None:
    found = command("sweep", "tiny.yaml", *arguments)
    assert found.code == 2
    assert told in found.err


def test_an_unknown_number_is_refused_when_the_first_run_is_there(command: Command) -> None:
    found = command("sweep", "tiny.yaml", "--set", "traffic.senders=3", "--by", "completion", "-o", "out")
    assert found.code == 2
    assert "did you mean 'completion_ps'?" in found.err


def test_one_run_of_a_file_with_a_sweep_says_what_to_do(command: Command) -> None:
    found = command("run", "section.yaml")
    assert found.code == 2
    assert "line 6  sweep  varies keys over many runs: run it by `weftwork sweep FILE`" in found.err
    assert command("run", "section.yaml", "--set", "sweep=null", "-o", "out").code == 0


def test_run_does_not_split_values_at_commas(command: Command) -> None:
    found = command("run", "tiny.yaml", "--set", "traffic.senders=3,7")
    assert found.code == 2
    assert "found '3,7'" in found.err


def test_a_second_sweep_into_the_same_folder_is_refused(command: Command, tmp_path: Path) -> None:
    first = ("sweep", "tiny.yaml", "-o", "out", "--set")
    assert command(*first, "traffic.senders=3").code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    other = command(*first, "traffic.senders=5")
    assert other.code == 2
    assert "holds another sweep" in other.err
    document = json.loads((tmp_path / "out/sweep.json").read_text(encoding="utf-8"))
    with sweep_folder(tmp_path / "out", document):
        beside = command(*first, "traffic.senders=3")
    assert beside.code == 2
    assert "another weftwork sweep is writing to it" in beside.err
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine", encoding="utf-8")
    mine = command("sweep", "tiny.yaml", "--set", "traffic.senders=3", "-o", "mine")
    assert mine.code == 2
    assert "has other contents than a sweep" in mine.err


def test_a_disk_that_fills_says_so_and_how_to_go_on(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weftwork.study.sweep.sweep.run_point", fills_the_disk)
    arguments = ("sweep", "tiny.yaml", "--set", "traffic.senders=2,3,4,5", "-o", "out", "-j", "1")
    found = command(*arguments)
    assert found.code == 1
    assert (
        "the disk is full: 2 of 4 runs are whole and kept in out/runs; free some space, then continue with: "
        in found.err
    )


def swept(folder: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A sweep in a process of its own, which can be ended."""
    program = "import sys; from weftwork.cli import main; sys.exit(main())"
    where = os.environ | {"PYTHONPATH": str(Path(weftwork.__file__).parents[1])} | more
    command = [sys.executable, "-c", program, *line.split()]
    return subprocess.run(command, cwd=folder, env=where, capture_output=True, text=True, check=False)


@pytest.mark.deep
@pytest.mark.usefixtures("python_hears_sigint")
def test_a_sweep_that_is_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    file = with_pattern(tmp_path)
    line = f"sweep {file.name} --set traffic.kilobytes=1,2 --set traffic.presses=0,1 -j 1 -o out"
    found = swept(tmp_path, line)
    assert found.returncode == 128 + signal.SIGINT, found.stderr
    assert "the sweep was interrupted: 1 of 4 runs are whole and kept in out/runs; continue with: " in found.stderr
    command = next(one for one in found.stderr.splitlines() if "continue with: " in one).partition("continue with: ")[2]
    assert command == f"weftwork {line}"
    assert len(list((tmp_path / "out/runs").glob("[0-9]*"))) == 1
    again = swept(tmp_path, line)
    assert again.returncode == 0, again.stderr
    assert "4 runs, 1 of them from before" in again.stdout


@pytest.mark.deep
def test_a_sweep_that_is_killed_leaves_no_worker_and_goes_on(tmp_path: Path) -> None:
    """The worker holds the pipes of the output and waits for ever: that `swept` returns shows that it has ended."""
    file = with_pattern(tmp_path)
    line = f"sweep {file.name} --set traffic.kilobytes=1,2 --set traffic.orphans=0,1 -j 1 -o out"
    found = swept(tmp_path, line)
    assert found.returncode == -signal.SIGKILL
    status = Path(f"/proc/{(tmp_path / 'worker').read_text(encoding='utf-8')}/status")
    assert not status.exists() or "State:\tZ" in status.read_text(encoding="utf-8")  # ended, and not yet counted
    again = swept(tmp_path, line)
    assert again.returncode == 0, again.stderr
    assert "4 runs, 1 of them from before" in again.stdout


@pytest.mark.extra
def test_a_sweep_on_ray_writes_what_one_on_this_machine_writes(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray comes with the extra 'ray'")
    (tmp_path / "tiny.yaml").write_text(SCENARIO, encoding="utf-8")
    tables = {}
    for name, more in (("here", ""), ("there", " --on ray")):
        line = f"sweep tiny.yaml --set traffic.senders=3,7 --seeds 2 -o {name}{more}"
        with TemporaryDirectory() as short:  # no other cluster of this machine is known there; sockets have short names
            found = swept(tmp_path, line, RAY_TMPDIR=short)
        assert found.returncode == 0, found.stderr
        assert (" on Ray (1 machine, " in found.stderr) == bool(more)
        assert len(found.stderr.splitlines()) == 1  # Ray itself says nothing
        assert len(list((tmp_path / name / "runs").glob("[0-9]*"))) == 4
        rows = json.loads((tmp_path / name / "result.json").read_text(encoding="utf-8"))["rows"]
        tables[name] = rows
    assert tables["here"] == tables["there"]
