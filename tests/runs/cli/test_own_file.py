"""`weftwork new` and `weftwork test`: from nothing to a file of one's own that runs and passes, for every kind."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from helpers.command import Answer, Command, command_of

import weftwork
from weftwork.cli import test as cli_test
from weftwork.cli.list import KINDS
from weftwork.cli.new import TEMPLATES
from weftwork.policies.load import KINDS as POLICIES
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.study.answer.suspects import SUSPICIONS
from weftwork.testing.files import FileReport, check_file

pytestmark = pytest.mark.deep  # each case compiles a policy or starts a command; the step `truth` of .ci/run takes them

ROOT = Path(__file__).parents[3]


FIDELITIES = ("packet", "reference", "flow")


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


def printed(answer: Answer) -> dict[str, str]:
    """What stands behind each label."""
    return {line[:13].strip(): line[14:] for line in answer.out.splitlines()}


def test_there_is_a_template_of_every_kind_of_file() -> None:
    kinds = {*POLICIES, *(folder.kind for folder in (ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS, SUSPICIONS))}
    assert set(TEMPLATES) == kinds
    assert kinds <= set(KINDS)
    folder = files("weftwork") / "templates"
    found = {entry.name for entry in folder.iterdir() if entry.is_file()}
    assert found == {"__init__.py", *(f"{kind}{suffix}" for kind in kinds for suffix in (".py", ".yaml"))}
    for kind, template in TEMPLATES.items():
        assert (ROOT / template.page).is_file(), template.page
        assert template.page in (folder / f"{kind}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", TEMPLATES)
def test_new_then_run_then_test_work_as_they_are_printed(
    command: Command, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[FileReport] = []

    def reported(*given: Any, **named: Any) -> FileReport:
        reports.append(check_file(*given, **named))
        return reports[-1]

    monkeypatch.setattr(cli_test, "check_file", reported)
    told = printed(command("new", kind.replace("_", "-"), "mine"))
    assert (
        sorted(path.name for path in tmp_path.iterdir())
        == ["mine.py", "mine.yaml"]
        == sorted((told["file"], told["scenario"]))
    )
    for name in ("mine.py", "mine.yaml"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert f"{kind}.py" not in text
        assert f"{kind}.yaml" not in text
    program, *arguments = shlex.split(told["run it"])
    assert program == "weftwork"
    ran = command(*arguments)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("mine")
    program, *arguments = shlex.split(told["test it"])
    assert program == "weftwork"
    tested = command(*arguments)
    assert tested.code == 0, tested.out + tested.err
    assert tested.out.startswith(f"mine.py: {kind.replace('_', ' ')}; all ")
    assert [(report.kind, report.failures, report.left_out) for report in reports] == [(kind, [], ())]


@pytest.mark.parametrize(
    "fidelity", [pytest.param(one, marks=[pytest.mark.deep] if one != "flow" else []) for one in FIDELITIES]
)
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_runs_at_every_fidelity(command: Command, kind: str, fidelity: str) -> None:
    told = printed(command("new", kind, "mine"))
    answer = command(*shlex.split(told["run it"])[1:], "--set", f"engine.fidelity={fidelity}", "-o", "run")
    assert answer.code == 0, answer.err
    run = weftwork.open_run("run")
    assert run.is_complete
    named = (Path("run") / "scenario.yaml").read_text(encoding="utf-8")
    if TEMPLATES[kind].option:  # which names the file in place of the scenario
        assert "slow switches (fabric.switch.forwarding_latency) forward a packet only after 2us" in answer.out
    else:
        assert "files/mine.py" in named
    assert (Path("run") / "files" / "mine.py").read_bytes() == Path("mine.py").read_bytes()


@pytest.mark.parametrize(
    ("kind", "other", "quantity", "share"),
    [
        ("congestion_control", "none", "max_queue_bytes", 0.02),  # 141 kB in place of 12.8 MB
        ("path_selection", "ecmp", "fct_max_ps", 0.7),  # hashes collide, and two flows share an uplink
        ("port_selection", "ecmp", "fct_max_ps", 0.7),
    ],
)
def test_a_template_does_what_it_is_for(command: Command, kind: str, other: str, quantity: str, share: float) -> None:
    command("new", kind, "mine")
    command("run", "mine.yaml", "-o", "own")
    command("run", "mine.yaml", "--set", f"transport.{kind}={other}", "-o", "other")
    own, others = (float(weftwork.open_run(run).summary[quantity]["value"]) for run in ("own", "other"))
    assert 0 < own < share * others


def test_new_answers_in_json(command: Command) -> None:
    answer = json.loads(command("new", "topology", "mesh", "--json").out)
    assert answer["files"] == ["mesh.py", "mesh.yaml"]
    assert command(*shlex.split(answer["commands"]["reference"])[1:], "-o", "run").code == 0


def test_a_name_of_two_words_becomes_the_name_of_the_algorithm(command: Command) -> None:
    command("new", "collective", "my_ring")
    assert ALGORITHMS.load("./my_ring.py").name == "my-ring"


@pytest.mark.parametrize("name", ["mine.py", "mine.yaml"])
def test_new_overwrites_nothing(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("kept", encoding="utf-8")
    answer = command("new", "traffic", "mine")
    assert answer.code == 2
    assert f"'{name}' exists already" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "kept"


def test_new_overwrites_no_link_that_leads_nowhere(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").symlink_to("elsewhere.py")
    assert command("new", "traffic", "mine").code == 2
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    ("name", "fix"),
    [("my-cc", "my_cc"), ("my-cc.py", "my_cc"), ("3cc", "my_3cc"), ("class", "my_class"), ("a/b", "a_b"), ("-", None),
     ("größe", "gr_e")],
)  # fmt: skip
def test_a_name_that_is_no_identifier_is_refused_with_the_nearest_one(
    command: Command, tmp_path: Path, name: str, fix: str | None
) -> None:
    answer = command("new", "transport", "--json", "--", name)
    assert answer.code == 2
    (mistake,) = json.loads(answer.out)["error"]["mistakes"]
    assert (mistake["path"], mistake["fix"]) == ("name", fix)
    assert list(tmp_path.iterdir()) == []
    if fix is not None:
        assert command("new", "transport", fix).code == 0


def test_an_unknown_kind_is_refused_with_the_nearest_one_and_with_the_wrong_name(command: Command) -> None:
    answer = command("new", "topologie", "my-mesh")
    assert answer.code == 2
    assert "did you mean 'topology'?" in answer.err
    assert "did you mean 'my_mesh'?" in answer.err


def test_test_says_all_that_fails_in_words_and_json(command: Command, tmp_path: Path) -> None:
    command("new", "congestion-control", "mine")
    file = tmp_path / "mine.py"
    good = file.read_text(encoding="utf-8")
    bad = good.replace("frozenset({Kind.ACK})", "frozenset({Kind.ACK, Kind.TRIM})").replace(
        "path_bytes = float(signal.line_rate_bps) * float(signal.base_rtt_ps) / 8e12", "path_bytes = 9000.0"
    )
    assert bad.count("Kind.TRIM") == bad.count("path_bytes = 9000.0") == 1
    file.write_text(bad.replace("target_bytes =", "target_bytes = 0.0 *"), encoding="utf-8")
    answer = command("test", "mine.py")
    assert answer.code == 1
    assert "mine.py: congestion control; 3 of 13 checks failed" in answer.out
    for words in (
        "declares_what_comes", "found   signals hold TRIM, which comes from a transport that cuts",
        "one_flow_fills_the_link", "done    sent one long flow over a link of 100 Gb/s",
        "wanted  from 20 ms on at least 90 %", "found   it gets ",
    ):  # fmt: skip
        assert words in answer.out
    document = json.loads(command("test", "mine.py", "--json").out)
    assert (document["kind"], document["passes"]) == ("congestion_control", False)
    assert [failure["check"] for failure in document["failures"]] == [
        "declares_what_comes", "one_flow_fills_the_link", "two_flows_fill_the_link",
    ]  # fmt: skip
    assert all(failure["done"] and failure["wanted"] and failure["came"] for failure in document["failures"])


def test_a_setting_changes_what_is_tested(command: Command) -> None:
    command("new", "congestion-control", "mine")
    assert command("test", "mine.py", "--set", "gain=0", "--set", "cut=1.0").code in {0, 1}
    answer = command("test", "mine.py", "--set", "gian=3")
    assert answer.code == 2
    assert "did you mean 'gain'?" in answer.err
    command("new", "topology", "mesh")
    assert command("test", "mesh.py", "--set", "switches=2").code == 0
    answer = command("test", "mesh.py", "--set", "switches=1")
    assert answer.code == 1
    assert "wanted a whole number from 2 to 1,000" in answer.out


@pytest.mark.parametrize(
    ("kind", "picture", "words"),
    [
        ("congestion_control", "mine-goodput.svg", ["flow 0", "flow 1", "goodput (Gb/s)"]),
        ("path_selection", "mine-uplinks.svg", ["uplink 3, all up", "uplink 1, dead"]),
        ("port_selection", "mine-uplinks.svg", ["uplink 3, all up", "uplink 1, dead"]),
        ("topology", "mine-fabric.svg", ["full mesh of 4 switches"]),
    ],
)
def test_a_picture_shows_what_was_run(
    command: Command, tmp_path: Path, kind: str, picture: str, words: list[str]
) -> None:
    command("new", kind, "mine")
    answer = command("test", "mine.py", "-o", "deep/pictures")
    assert f"picture: deep/pictures/{picture}" in answer.out
    text = (tmp_path / "deep/pictures" / picture).read_text(encoding="utf-8")
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own file
    for word in words:
        assert word in text


def test_a_kind_without_a_picture_says_so(command: Command) -> None:
    command("new", "transport", "mine")
    assert "no picture" in command("test", "mine.py", "-o", "pictures").out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "the file cannot be read: No such file"),
        ("def", "this is not Python"),
        ("x = 1\n", "found none of them"),
        ("PLUGIN = 3\n", "PLUGIN is a int, wanted one of CongestionControl"),
        ("PATTERN = 3\nTOPOLOGY = 4\n", "found TOPOLOGY and PATTERN"),
        ("TRANSPORT = 1 / 0\n", "line 1: ZeroDivisionError"),
        ("import os\nPLUGIN = 3\n", "a policy may not import os"),
    ],
)
def test_what_cannot_be_read_leaves_with_two(command: Command, tmp_path: Path, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / "odd.py").write_text(text, encoding="utf-8")
    answer = command("test", "odd.py")
    assert answer.code == 2
    assert told in answer.err
    assert "odd.py, line " in answer.err
    assert json.loads(command("test", "odd.py", "--json").out)["error"]["mistakes"]
