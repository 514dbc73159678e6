"""A suspect of a user's own: one file more, and the answer has its cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command import Command, command_of
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.base.errors import UsageError
from weftwork.report.page import run_page
from weftwork.study.answer.suspects import suspects
from weftwork.study.prepare.prepare import read_scenario

SCENARIO = """schema: 3
name: two halls
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps, cable_length: 2km}
transport: {congestion_control: fixed-window}
traffic: {pattern: permutation, size: 256KiB}
"""
HEAD = '''"""Long cables."""
from weftwork.study.answer.suspicion import Suspect, Suspicion, changed
from weftwork.study.prepare import what_if
'''
CABLES = f"""{HEAD}
def suspects(records):
    links = records.prepared.fabric.links.copy()
    links["delay_ps"] = 50_000
    yield Suspect(kind="setting", name="long cables", key="fabric.cable_length", text="delay packets",
                  change=changed(what_if.on_fabric, links=links))

SUSPICION = Suspicion(suspects=suspects, key="fabric.cable_length")
"""
HARMLESS = f"""{HEAD}
def suspects(records):
    yield Suspect(kind="setting", name="spare retries", key="transport.retry_limit", text="are more than it needs",
                  change=changed(what_if.with_transport, retry_limit=8))

SUSPICION = Suspicion(suspects=suspects, key="transport.retry_limit", rank=5)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "halls.yaml").write_text(SCENARIO, encoding="utf-8")
    return command_of(capsys, "run", "halls.yaml", "-o", "out")


def test_a_file_alone_adds_a_suspect_with_its_cost(run: Command, tmp_path: Path) -> None:
    (tmp_path / "cables.py").write_text(CABLES, encoding="utf-8")
    told = run("--suspect", "cables.py")
    assert (told.code, told.err) == (0, "")
    (line,) = (line for line in told.out.splitlines() if line.startswith("to blame"))
    answer = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["answer"]
    (own,) = (one for one in (answer["culprit"], *answer["others"]) if one["file"] is not None)
    assert (own["name"], own["how"], Path(own["file"])) == ("long cables", "simulated", tmp_path / "cables.py")
    assert line.startswith("to blame   long cables (fabric.cable_length) delay packets: ")
    assert f"{100 * own['cost_share']:.3g} % (simulated again without it)" in line
    # what the run costs is the difference from the same scenario on short cables
    short = weftwork.run("halls.yaml", out="short", overrides={"fabric.cable_length": "10m"}, what_if="none")
    took_ps = 1e12 * (answer["took"]["seconds"] - own["cost_s"])
    assert took_ps == pytest.approx(short.value("completion_ps"))
    page = run_page(weftwork.open_run("out"))
    assert "long cables" in page


def test_the_other_suspects_stay_as_they_are_and_the_folder_has_the_file(run: Command, tmp_path: Path) -> None:
    (tmp_path / "retries.py").write_text(HARMLESS, encoding="utf-8")
    run("--suspect", "retries.py")
    alone = weftwork.run("halls.yaml", out="alone")
    beside = weftwork.open_run("out")
    assert [one for one in beside.answer.others if one.file is None and not one.members] == list(alone.answer.others)
    assert beside.answer.culprit == alone.answer.culprit
    kept = beside.provenance["files"]["suspects.0"]["kept_as"]
    assert (beside.path / kept).read_text(encoding="utf-8") == HARMLESS


def test_a_suspect_that_costs_nothing_has_a_line_as_well(run: Command, tmp_path: Path) -> None:
    for name, text in (("cables.py", CABLES), ("retries.py", HARMLESS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    told = run("--suspect", "cables.py", "--suspect", "retries.py", "--seeds", "2")
    answer = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["answer"]
    every = (answer["culprit"], *answer["others"])
    own = {one["name"]: one for one in every if one["file"] is not None}
    assert set(own) == {"long cables", "spare retries"}
    assert own["spare retries"]["cost_s"] == 0
    assert "spare retries (transport.retry_limit) are more than it needs: nothing, 0 %" in told.out


def test_each_run_of_a_sweep_has_the_suspect_and_a_changed_file_runs_anew(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del run  # which wrote the scenario
    use_workers_here(monkeypatch)
    (tmp_path / "cables.py").write_text(CABLES, encoding="utf-8")
    sweep = command_of(capsys, "sweep", "halls.yaml", "--set", "traffic.size=64KiB,256KiB", "--json")
    told = json.loads(sweep("--suspect", "cables.py", "-o", "swept").out)
    assert told["resume"].endswith("--set traffic.size=64KiB,256KiB --suspect cables.py -o swept")
    folders = sorted((tmp_path / "swept" / "runs").glob("0*"))
    assert len(folders) == 2
    for folder in folders:
        answer = weftwork.open_run(folder).answer
        (own,) = (one for one in (answer.culprit, *answer.others) if one.file is not None)
        assert (own.name, own.how) == ("long cables", "simulated")
    plain = json.loads(sweep("-o", "plain").out)
    names = [{Path(path).name for row in each["rows"] for path in row["runs"]} for each in (told, plain)]
    assert not names[0] & names[1]
    assert [row["digests"] for row in plain["rows"]] == [row["digests"] for row in told["rows"]]
    (tmp_path / "cables.py").write_text(CABLES.replace("50_000", "60_000"), encoding="utf-8")
    assert sweep("--suspect", "cables.py", "-o", "swept").code == 2  # the folder holds another sweep


def test_without_what_ifs_the_cost_is_a_bound(tmp_path: Path) -> None:
    (tmp_path / "halls.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "cables.py").write_text(CABLES, encoding="utf-8")
    run = weftwork.run(tmp_path / "halls.yaml", out=tmp_path / "out", suspects=[tmp_path / "cables.py"], what_if="none")
    (own,) = (one for one in run.answer.others if one.file is not None)
    assert own.how == "bound"
    assert 0 < (own.cost_share or 0) <= 1


@pytest.mark.usefixtures("run")
def test_a_kind_is_asked_only_of_a_run_with_what_it_needs(tmp_path: Path) -> None:
    for need, count in (("packets", 1), ("training", 0)):
        text = CABLES.replace('key="fabric.cable_length")\n', f"key='fabric', needs=frozenset({{'{need}'}}))\n")
        (tmp_path / f"{need}.py").write_text(text, encoding="utf-8")
        ran = weftwork.run("halls.yaml", out=need, suspects=[f"{need}.py"])
        every = (ran.answer.culprit, *ran.answer.others)
        assert sum(suspect.file is not None for suspect in every) == count


def test_kinds_are_asked_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "halls.yaml").write_text(SCENARIO, encoding="utf-8")
    prepared = weftwork.prepare(read_scenario(tmp_path / "halls.yaml"))
    execution = weftwork.execute(prepared, what_if="none")
    assert [suspect.name for suspect in suspects(prepared, execution)] == [
        suspect.name for suspect in execution.suspects
    ]


WRONG = {  # text of the file, the line of the error, its words
    "is no Python": ("def", 1, "this is not Python"),
    "no record": (HEAD, 1, "the file offers no SUSPICION = Suspicion(...)"),
    "another type": (f"{HEAD}\nSUSPICION = 3\n", 5, "SUSPICION is a int, wanted a Suspicion for a suspect"),
    "an unknown field": (
        f"{HEAD}\nSUSPICION = Suspicion(suspects=list, kee='a')\n", 5, "unknown field 'kee'; did you mean 'key'?"
    ),
    "an unknown need": (
        f"{HEAD}\nSUSPICION = Suspicion(suspects=list, key='a', needs=frozenset({{'luck'}}))\n", 5, "Error: needs is"
    ),
    "an unknown kind before it": (
        f"{HEAD}\nSUSPICION = Suspicion(suspects=list, key='a', unless=('luck',))\n", 5, "unless has 'luck'"
    ),
    "fails when it loads": (f"{HEAD}\n1 / 0\n", 5, "ZeroDivisionError: division by zero"),
    "fails when it suspects": (
        CABLES.replace("    links[", "    1 / 0\n    links["), 7, "ZeroDivisionError: division by zero"
    ),
    "makes another thing": (
        CABLES.replace("    yield Suspect(", "    yield 3\n    yield Suspect("), 12,
        "suspects returned a int, wanted a Suspect",
    ),
    "an unknown kind": (
        CABLES.replace('kind="setting"', 'kind="ghost"'), 8, "ValueError: the kind of a suspect is 'ghost'"
    ),
    "fails when it is left out": (
        CABLES.replace("change=changed(what_if.on_fabric, links=links)", "change=lambda prepared: 1 / 0"), 9,
        "ZeroDivisionError: division by zero",
    ),
    "leaves nothing": (
        CABLES.replace("change=changed(what_if.on_fabric, links=links)", "change=lambda prepared: None"), 11,
        "change returned a NoneType, wanted a Prepared",
    ),
    "the name of another": (
        CABLES.replace('"setting", name="long cables"', '"policy", name="fixed-window"'), 11,
        "the run has another policy called 'fixed-window'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_of_the_file_is_told_with_its_line(name: str, run: Command, tmp_path: Path) -> None:
    text, line, words = WRONG[name]
    (tmp_path / "cables.py").write_text(text, encoding="utf-8")
    told = run("--suspect", "cables.py")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"cables.py, line {line}: ")
    assert words in told.err
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_or_not_permitted_is_refused(run: Command, tmp_path: Path) -> None:
    told = run("--suspect", "cables.py", "--suspect", "timeout")
    assert told.code == 2
    assert "command line: 2 mistakes, nothing was run" in told.err
    assert "--suspect  found 'timeout', wanted a Python file such as ./suspect.py" in told.err
    (tmp_path / "cables.py").write_text("open('mark', 'w')", encoding="utf-8")
    refused = run("--suspect", "cables.py", "--no-user-code")
    assert refused.code == 2
    assert (
        "--suspect  found 'cables.py', a Python file outside the package, which --no-user-code refuses" in refused.err
    )
    assert not (tmp_path / "mark").exists()
    with pytest.raises(UsageError, match=r"suspects='cables\.py', wanted a list of paths"):
        weftwork.run("halls.yaml", out="out", suspects="cables.py")
