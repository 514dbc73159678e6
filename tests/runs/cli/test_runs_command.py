"""`weftwork runs`: what was printed is printed again, and what goes is said before it goes."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.run_folders import ABOUT, ANSWER, PROVENANCE, all_tables
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.store.runs import write_run

SMALL = """\
schema: 3
name: small
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}
traffic: {pattern: permutation, size: 64KiB}
"""


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in a folder that has a scenario."""
    use_workers_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    return command_of(capsys)


def listed(command: Command, *more: str) -> dict[str, dict[str, object]]:
    """What the list says of each folder, by the name of the folder."""
    found = json.loads(command("runs", "list", *more, "--json").out)["runs"]
    return {Path(one["path"]).name: one for one in found}


@pytest.mark.parametrize("more", [(), ("--seeds", "2"), ("--capture", "leaf0-spine0", "--sources")])
def test_all_that_a_run_has_printed_is_in_its_folder(command: Command, tmp_path: Path, more: tuple[str, ...]) -> None:
    own = Path(str(files("weftwork") / "templates" / "traffic.py"))
    shutil.copy(own, tmp_path / "mine.py")
    text = SMALL.replace("permutation", "./mine.py") + "engine: {record: {flows: [0]}}\n"
    (tmp_path / "own.yaml").write_text(text, encoding="utf-8")
    printed = command("run", "own.yaml", "-o", "there", "--what-if", "none", *more)
    assert printed.code == 0, printed.err
    shown = command("runs", "show", "there", *(["--sources"] if "--sources" in more else []))
    assert shown.out.startswith(printed.out)
    notes = [line.removeprefix("note: ") for line in printed.out.splitlines() if line.startswith("note: ")]
    assert notes == weftwork.open_run("there").provenance["notes"]
    rest = shown.out.removeprefix(printed.out)
    assert "files/mine.py" in rest
    assert rest.splitlines()[-1].split()[1] == "files,"


def test_a_note_that_is_printed_is_kept(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = files("weftwork").joinpath("templates", "traffic.py").read_text(encoding="utf-8")
    head = "from __future__ import annotations\n"
    (tmp_path / "mine.py").write_text(own.replace(head, f"{head}\nimport module_of_mine\n"), encoding="utf-8")
    (tmp_path / "module_of_mine.py").write_text("SOME = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own.yaml").write_text(SMALL.replace("permutation", "./mine.py"), encoding="utf-8")
    printed = command("run", "own.yaml", "-o", "there", "--what-if", "none").out
    notes = [line.removeprefix("note: ") for line in printed.splitlines() if line.startswith("note: ")]
    assert notes
    assert weftwork.open_run("there").provenance["notes"] == notes
    assert all(f"note: {note}" in command("runs", "show", "there").out for note in notes)


def test_runs_are_listed_with_their_answers_and_sizes(command: Command) -> None:
    assert command("runs").out == "No runs in runs: there is no such folder.\n"
    command("run", "small.yaml", "--name", "My first", "--what-if", "none")
    command("run", "small.yaml", "--seeds", "2", "--what-if", "none")
    command("sweep", "small.yaml", "--set", "traffic.size=32KiB,64KiB", "-j", "1")
    found = listed(command)
    by_kind = {str(one["kind"]): one for one in found.values()}
    assert {kind: (one["name"], one["status"], one["is_named"]) for kind, one in by_kind.items()} == {
        "run": ("My first", "complete", True),
        "seeds": ("small", "complete", False),
        "sweep": ("small", "complete", False),
    }
    for kind, one in by_kind.items():
        folder = Path(str(one["path"]))
        assert one["size_bytes"] == sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        shown = command("runs", "show", folder.name)
        assert shown.code == 0, shown.err
        assert str(one["answer"]).rstrip(".") in shown.out, kind
    table = command("runs").out
    assert table == command("runs", "list").out == command("runs", "list", "runs").out
    assert table.splitlines()[-1].startswith("3 folders in runs, ")
    assert all(name in table for name in found)
    one = json.loads(command("runs", "show", "my-first", "--json").out)
    assert one["about"]["name"] == "My first"
    assert {"file": "summary.json", "size_bytes": (Path(one["run"]) / "summary.json").stat().st_size} in one["files"]


def test_a_name_stands_for_the_folder_in_report_and_compare(command: Command) -> None:
    for name in ("one", "two"):
        assert command("run", "small.yaml", "--name", name, "--what-if", "none").code == 0
    assert json.loads(command("compare", "one", "two", "--json").out)["is_same_result"] is True
    page = Path(json.loads(command("report", "one", "--json").out)["page"])
    assert page.is_file()
    assert page.parent.name == "runs"
    command("run", "small.yaml", "--name", "one", "-o", "runs/one-20200101-000000", "--what-if", "none")
    refused = command("compare", "one", "two")
    assert refused.code == 2
    assert "2 runs have this name: runs/one-" in refused.err


def test_a_name_finds_a_run_in_a_folder_of_another_name(command: Command) -> None:
    command("run", "small.yaml", "--name", "first try", "-o", "runs/zz", "--what-if", "none")
    assert json.loads(command("runs", "show", "first try", "--json").out)["run"] == "runs/zz"
    assert weftwork.open_run("first try").path == Path("runs/zz")


def test_the_page_of_a_seed_lies_beside_the_folder_of_all_seeds(command: Command) -> None:
    command("run", "small.yaml", "--seeds", "2", "-o", "runs/both", "--what-if", "none")
    page = Path(json.loads(command("report", "runs/both/seed-1", "--json").out)["page"])
    assert page.resolve() == Path("runs/both-seed-1.html").resolve()
    assert [run.path.name for run in weftwork.open_run("runs/both").seeds] == ["seed-1", "seed-2"]


def test_runs_whose_files_differ_in_content_alone_are_told_apart(command: Command, tmp_path: Path) -> None:
    own = Path(str(files("weftwork") / "templates" / "traffic.py")).read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(SMALL.replace("permutation", "./mine.py"), encoding="utf-8")
    for place, name in enumerate(("one", "two")):
        (tmp_path / "mine.py").write_text(own + "\n" * place, encoding="utf-8")
        command("run", "own.yaml", "-o", name, "--what-if", "none")
    hashes = [weftwork.open_run(name).provenance["files"]["traffic.pattern"]["hash"][:12] for name in ("one", "two")]
    (found,) = json.loads(command("compare", "one", "two", "--json").out)["differences"]
    assert found == {
        "key": "traffic.pattern",
        "values": [f"files/mine.py (SHA-256 {each})" for each in hashes],
    }


def test_prune_says_what_would_go_and_deletes_when_told(command: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        command("run", "small.yaml", "-o", f"runs/{name}", "--what-if", "none")
    command("run", "small.yaml", "-o", "runs/kept", "--name", "kept", "--what-if", "none")
    (tmp_path / "runs" / ".b-0123abcd.unfinished").mkdir()
    before = listed(command)
    said = command("runs", "prune", "--keep", "0")
    assert said.code == 0
    size = sum(int(str(one["size_bytes"])) for name, one in before.items() if name in {"a", "b"})
    assert json.loads(command("runs", "prune", "--keep", "0", "--json").out)["freed_bytes"] == size
    assert "Would delete 3 folders" in said.out
    assert listed(command) == before
    assert command("runs", "prune", "--yes").out.endswith("Deleted 1 folder, 0 B.\n")
    assert sorted(listed(command)) == ["a", "b", "kept"]
    assert "Deleted 2 folders" in command("runs", "prune", "--larger-than", "1kB", "--yes").out
    assert sorted(listed(command)) == ["kept"]
    assert (
        command("runs", "prune", "--keep", "0", "--yes").out == "Nothing to delete in runs: 1 folder of runs is kept.\n"
    )
    assert "Deleted 1 folder" in command("runs", "prune", "--keep", "0", "--named", "--yes").out


def test_wrong_questions_are_told_at_once(command: Command, tmp_path: Path) -> None:
    answer = command("runs", "prune", "--older-than", "3y", "--status", "interupted", "--larger-than", "1XB", "--yes")
    assert answer.code == 2
    for text in (
        "--older-than   found '3y', wanted a time such as 30d, with min, h, d or w",
        "did you mean 'interrupted'?",
        "--larger-than  found '1XB'",
    ):
        assert text in answer.err
    assert command("runs", "prune", "--keep", "-1").code == 2
    assert "there is no such folder" in command("runs", "list", "nowhere").err
    assert "there is no such folder" in command("runs", "show", "nowhere").err
    (tmp_path / "runs" / ".b-0123abcd.unfinished").mkdir(parents=True)
    shown = command("runs", "show", "runs/.b-0123abcd.unfinished")
    assert (shown.code, "is what a killed run has left" in shown.err) == (2, True)
    assert "wanted 1 to 60 printable characters" in command("run", "small.yaml", "--name", "").err


def test_the_runs_of_a_sweep_go_with_the_sweep_alone(command: Command) -> None:
    command("sweep", "small.yaml", "--set", "traffic.size=32KiB", "-j", "1", "-o", "runs/many")
    refused = command("runs", "prune", "runs/many/runs", "--keep", "0", "--yes")
    assert refused.code == 2
    assert "belongs to a sweep, whose runs go with it" in refused.err
    assert len(listed(command, "runs/many/runs")) == 1


def test_a_folder_whose_answer_cannot_be_told_is_listed_all_the_same(command: Command, tmp_path: Path) -> None:
    write_run(
        tmp_path / "runs" / "bare", scenario="a: 1\n", about={**ABOUT, "name": "bare"}, summary={}, answer=ANSWER,
        tables=all_tables(), provenance=PROVENANCE,
    )  # fmt: skip
    command("sweep", "small.yaml", "--set", "traffic.size=32KiB", "-j", "1", "-o", "runs/many")
    (tmp_path / "runs" / "many" / "result.json").write_text("{", encoding="utf-8")
    found = listed(command)
    assert found["many"]["answer"] is None
    assert set(found) == {"bare", "many"}
