"""Folders of commands: found by what they hold, deleted only where every condition holds, and never anything else."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.run_folders import ABOUT, ANSWER, OF_SEVERAL, PROVENANCE, all_tables

from weftwork.base.errors import ConfigError
from weftwork.base.whole_file import temporary_beside
from weftwork.store.folder_lock import held, is_held
from weftwork.store.kept_folders import KeptFolder, folder_at, folders_in, prunable, remove
from weftwork.store.named_runs import folder_of
from weftwork.store.runs import fresh_folder, new_folder, open_run, write_run, write_run_set
from weftwork.store.sweeps import sweep_folder

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def run(path: Path, *, status: str = "complete", days: int = 0, name: str | None = None, size: int = 0) -> Path:
    """A run that was begun so many days before `NOW`."""
    named = {} if name is None else {"name": name}
    started = (NOW - timedelta(days=days)).isoformat(timespec="seconds")
    write_run(
        path, scenario="schema: 3\n", about={**ABOUT, "name": name or "some"}, summary={}, answer=ANSWER,
        tables=all_tables(), provenance={**PROVENANCE, "status": status, "started": started, **named},
        files={"ballast": "x" * size},
    )  # fmt: skip
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs of several ages and sizes, a sweep, a leftover, and three things that no command has written."""
    parent = tmp_path / "runs"
    run(parent / "new", days=1)
    run(parent / "old", days=40, size=5_000)
    run(parent / "cut", days=20, status="interrupted")
    run(parent / "named", days=60, name="Mine", size=9_000)
    with sweep_folder(parent / "swept", {"name": "many", "digest": "0"}):
        pass
    (parent / "swept" / "result.json").write_text("{}", encoding="utf-8")
    long_ago = (NOW - timedelta(days=10)).timestamp()
    os.utime(parent / "swept" / "sweep.json", (long_ago, long_ago))
    leftover = temporary_beside(parent / "killed", "killed")
    leftover.mkdir()
    os.utime(leftover, (long_ago, long_ago))
    (parent / "notes").mkdir()
    (parent / "notes" / "provenance.json").write_text("{}", encoding="utf-8")
    (parent / "page.html").write_text("", encoding="utf-8")
    run(tmp_path / "elsewhere", days=100)
    (parent / "link").symlink_to(tmp_path / "elsewhere")
    return parent


def names(folders: list[KeptFolder]) -> list[str]:
    return ["killed" if one.kind == "leftover" else one.path.name for one in folders]


def test_folders_are_listed_by_what_they_hold_the_newest_first(runs: Path) -> None:
    found = folders_in(runs)
    assert sorted(names(found)[1:3]) == ["killed", "swept"]
    assert [one for one in names(found) if one not in {"killed", "swept"}] == ["new", "cut", "old", "named"]
    by_name = dict(zip(names(found), found, strict=True))
    assert {name: (one.kind, one.name, one.status) for name, one in by_name.items()} == {
        "new": ("run", "some", "complete"),
        "cut": ("run", "some", "interrupted"),
        "old": ("run", "some", "complete"),
        "named": ("run", "Mine", "complete"),
        "swept": ("sweep", "many", "complete"),
        "killed": ("leftover", "", "unfinished"),
    }
    assert by_name["old"].when == NOW - timedelta(days=40)
    whole = sum(file.stat().st_size for file in (runs / "old").iterdir())
    assert by_name["old"].size_bytes == whole > 5_000
    assert [name for name, one in by_name.items() if one.is_named] == ["named"]


def test_a_run_of_several_seeds_is_one_folder(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "set" / "seed-1")
    write_run_set(
        tmp_path / "runs" / "set", scenario="schema: 3\n", about={**ABOUT, "name": "set"}, numbers={},
        answer=ANSWER, provenance={**OF_SEVERAL, "started": NOW.isoformat()},
    )  # fmt: skip
    (found,) = folders_in(tmp_path / "runs")
    assert (found.kind, found.name) == ("seeds", "set")


@pytest.mark.parametrize(
    ("conditions", "going"),
    [
        ({}, []),
        ({"older_than": timedelta(days=30)}, ["old"]),
        ({"older_than": timedelta(days=30), "has_named": True}, ["named", "old"]),
        ({"older_than": timedelta(days=5)}, ["cut", "old", "swept"]),
        ({"status": "interrupted"}, ["cut"]),
        ({"larger_than_bytes": 4_000}, ["old"]),
        ({"larger_than_bytes": 4_000, "older_than": timedelta(days=50), "has_named": True}, ["named"]),
        ({"larger_than_bytes": 4_000, "status": "interrupted"}, []),
        ({"keep": 2}, ["cut", "old"]),
        ({"keep": 0}, ["cut", "new", "old", "swept"]),
        ({"keep": 1, "status": "complete"}, ["old", "swept"]),
    ],
)
def test_what_goes_fulfils_every_condition_and_leftovers_always_go(
    runs: Path, conditions: dict[str, object], going: list[str]
) -> None:
    found = prunable(folders_in(runs), now=NOW, **conditions)  # type: ignore[arg-type]
    assert sorted(names(found)) == sorted([*going, "killed"])


def test_what_is_deleted_is_gone_and_nothing_else_is(runs: Path, tmp_path: Path) -> None:
    for one in prunable(folders_in(runs), keep=0, has_named=True, now=NOW):
        remove(one)
    assert sorted(path.name for path in runs.iterdir()) == ["link", "notes", "page.html"]
    assert open_run(tmp_path / "elsewhere").is_complete


def test_a_folder_that_became_something_else_stays(runs: Path, tmp_path: Path) -> None:
    found = {one.path.name: one for one in folders_in(runs)}
    (runs / "new" / "provenance.json").unlink()
    (runs / "old").rename(tmp_path / "moved")
    (runs / "old").symlink_to(tmp_path / "moved")
    for name in ("new", "old"):
        with pytest.raises(ConfigError, match="has changed since it was listed, and stays"):
            remove(found[name])
    assert (runs / "new" / "summary.json").is_file()
    assert (tmp_path / "moved" / "summary.json").is_file()


def test_a_folder_into_which_somebody_writes_does_not_go(runs: Path) -> None:
    with fresh_folder(runs / "fresh"), held(runs / "cut"), sweep_folder(runs / "swept", {"digest": "0"}):
        found = folders_in(runs)
        assert sorted(one.kind for one in found if one.status == "running") == ["leftover", "run", "sweep"]
        assert sorted(names(prunable(found, keep=0, now=NOW))) == ["killed", "new", "old"]
        cut = next(one for one in found if one.path.name == "cut")
        with pytest.raises(ConfigError, match="has changed"):
            remove(cut)
    assert not is_held(runs / "cut")
    assert folder_at(runs / "fresh") is None  # an empty folder says nothing


def test_a_damaged_run_is_listed_as_damaged(runs: Path) -> None:
    (runs / "new" / "summary.json").write_text("{", encoding="utf-8")
    found = {one.path.name: one.status for one in folders_in(runs)}
    assert found["new"] == "damaged"


def test_where_nothing_can_be_listed_the_user_is_told(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such folder"):
        folders_in(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is a run itself; wanted the folder around it"):
        folders_in(runs / "new")


def test_a_run_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("my-run") == Path("my-run")
    first = run(new_folder("My run"))
    run(new_folder("My run sweep"))
    assert folder_of("my-run") == folder_of("My run") == folder_of(first.name) == first
    assert open_run("my-run").path == first
    second = run(new_folder("My run"))
    with pytest.raises(ConfigError, match="2 runs have this name") as caught:
        open_run("my-run")
    assert all(str(folder) in str(caught.value) for folder in (first, second))
    (tmp_path / "my-run").mkdir()
    assert folder_of("my-run") == Path("my-run")  # a path goes before a name
    with pytest.raises(ConfigError, match="there is no such folder"):
        open_run("other")


def test_the_listing_of_a_provenance_that_holds_anything_does_not_fail(runs: Path) -> None:
    for name, document in (
        ("new", {"status": "complete", "format": 3, "started": 7}),
        ("old", {"status": "complete", "format": 3, "started": "never"}),
        ("cut", {"status": ["x"]}),
    ):
        (runs / name / "provenance.json").write_text(json.dumps(document), encoding="utf-8")
    assert {one.path.name: one.status for one in folders_in(runs) if one.kind == "run"} == {
        "new": "complete", "old": "complete", "cut": "damaged", "named": "complete",
    }  # fmt: skip
