"""How commands end: exit codes, errors as JSON, output that cannot be written, and runs that did not finish."""

import json
import os
import signal
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

import weftwork
from weftwork.base.errors import UsageError
from weftwork.cli import main
from weftwork.report.answer import answer
from weftwork.store.runs import finished

SCENARIO = """schema: 3
name: tiny incast
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
transport: {congestion_control: fixed-window, timeout: 10us, retry_limit: 1}
traffic: {pattern: incast, senders: 3, size: 20KB}
engine: {fidelity: reference}
"""
CUT = "faults: [{at: 1us, link: host0-leaf0, event: down}]\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SCENARIO, encoding="utf-8")
    Path("cut.yaml").write_text(SCENARIO + CUT, encoding="utf-8")


def code_of(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code


def test_a_run_that_cannot_finish_is_written_and_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "cut.yaml", "-o", "one", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == weftwork.open_run("one").status == "gave-up"
    assert document["finished"] == {"runs": 0, "of": 1}
    assert code_of("run", "tiny.yaml", "-o", "two") == 0
    assert code_of("run", "tiny.yaml", "-o", "three", "--set", "engine.until=1us") == 0  # as the user asked


def test_seeds_that_did_not_finish_have_no_average_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "cut.yaml", "-o", "cut", "--seeds", "2") == 1
    out = capsys.readouterr().out
    assert "NOT FINISHED: None of 2 seeds delivered everything, so there is no average time." in out
    assert "on average" not in out
    assert "Half of the flows" not in out
    assert "mean of 2 seeds, 0 finished" in out


def test_one_seed_that_did_not_finish_is_counted_and_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    run = weftwork.run("tiny.yaml", out="both", seeds=2)
    assert "on average" in " ".join(answer(run))
    for folder in (run.path, run.path / "seed-1"):
        file = folder / "provenance.json"
        changed = {**json.loads(file.read_text(encoding="utf-8")), "status": "stuck"}
        file.write_text(json.dumps(changed), encoding="utf-8")
    partial = weftwork.open_run("both")
    assert finished(partial) == (len(run.seeds) - 1, 2)
    assert "NOT FINISHED: 1 of 2 seeds delivered everything" in " ".join(answer(partial))
    weftwork.run("tiny.yaml", out="other", overrides={"traffic.size": "30KB"})
    capsys.readouterr()
    assert code_of("compare", "other", "both") == 0
    out = capsys.readouterr().out
    assert "size 20KB is stuck, 1 of 2 seeds finished: its numbers are partial" in out
    assert "The completion times cannot be compared, since not every run finished." in out
    assert code_of("compare", "other", "both", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["status"] for one in document["runs"]] == ["complete", "stuck"]


@pytest.mark.parametrize(
    ("arguments", "kind", "mistake"),
    [
        (
            ("run", "tiny.yaml", "--set", "fabric.radxi=4"),
            "ConfigError",
            {"fix": "radix"},
        ),
        (("run", "tiny.yaml", "--set", "transport.congestion_control=./my.py"), "PolicyError", {"line": 1}),
        (("compare", "a", "b"), "ConfigError", {"text": "there is no such folder"}),
        (("run",), "UsageError", None),
        (("run", "tiny.yaml", "--colour"), "UsageError", None),
    ],
)
def test_with_json_an_error_is_an_object_too(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], kind: str, mistake: dict[str, Any] | None
) -> None:
    Path("my.py").write_text("PLUGIN = 3 +\n", encoding="utf-8")
    assert code_of(*arguments, "--json") == 2
    out, err = capsys.readouterr()
    error = json.loads(out)["error"]
    assert (error["kind"], bool(error["text"])) == (kind, True)
    assert error["text"].splitlines()[0] in err
    assert bool(error["mistakes"]) == (mistake is not None)
    for found in error["mistakes"]:
        assert set(found) == {"path", "line", "text", "fix", "changes"}
        assert (mistake or {}).items() <= found.items()


@pytest.mark.parametrize(
    "arguments",
    [
        "list topology",
        "topology tiny.yaml",
        *(pytest.param(words, marks=pytest.mark.deep) for words in ("explain engine.seed --json", "schema")),
    ],
)
@pytest.mark.parametrize(("output", "words"), [(">&-", "standard output is closed"), (">/dev/full", "cannot write")])
def test_output_that_cannot_be_written_is_told_in_one_sentence(arguments: str, output: str, words: str) -> None:
    if "full" in output and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    code = f"{sys.executable} -c 'from weftwork.cli import main; main()' {arguments} {output}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["sh", "-c", code], env=environment, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 1
    (sentence,) = done.stderr.decode().splitlines()
    assert words in sentence


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_what_a_terminal_cannot_show_is_replaced(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = SCENARIO.replace("tiny incast", '"größe → 大"').replace("schema: 3", "schema: 3  # größe")
    Path("named.yaml").write_text(scenario, encoding="utf-8")
    for arguments in (
        ("run", "named.yaml", "-o", "größe"),
        ("compare", "größe", "größe"),
        ("topology", "named.yaml", "--export", "大.json"),
    ):
        shown = BytesIO()
        with monkeypatch.context() as patched:
            terminal = TextIOWrapper(shown, encoding=encoding, errors="strict")
            patched.setattr("sys.stdout", terminal)
            assert code_of(*arguments) == 0
        words = {"run": "größe → 大", "compare": "equal", "topology": "wrote 大.json"}[arguments[0]]
        assert words.encode(encoding, "replace") in shown.getvalue()
        terminal.close()


@pytest.mark.parametrize("command", ["run", "topology", "collective"])
def test_what_is_no_file_is_no_scenario(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("fifo.yaml")
    Path("loop.yaml").symlink_to("loop.yaml")
    for name, words in (
        ("fifo.yaml", "it is a FIFO, wanted a file"),
        ("loop.yaml", "Too many levels of symbolic links"),
    ):
        arguments = ("collective", "all-reduce", "--fabric", name) if command == "collective" else (command, name)
        assert code_of(*arguments) == 2
        assert words in capsys.readouterr().err


@pytest.mark.usefixtures("python_hears_sigint")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_command_ends_with_the_number_of_its_signal(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    weftwork.run("tiny.yaml", out="run")
    left = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    places = {
        ("run", "tiny.yaml", "-o", "two"): "weftwork.study.record.run.prepare",
        ("collective", "all-reduce", "--gpus", "8"): "weftwork.cli.collective.prepare",
        ("topology", "tiny.yaml", "--export", "new.json"): "weftwork.topology.export.write_whole",
        ("compare", "run", "run"): "weftwork.cli.compare.compare_runs",
        ("report", "run"): "weftwork.report.page.run_page",
        ("validate", "sc21"): "weftwork.cli.validate.validate",
        ("list", "model"): "weftwork.cli.list.list_kind",
        ("explain", "engine.seed"): "weftwork.cli.explain.explain",
        ("schema",): "weftwork.cli.schema.schema",
    }
    for arguments, place in places.items():
        with monkeypatch.context() as patched:
            patched.setattr(place, lambda *_, **__: os.kill(os.getpid(), number))
            assert code_of(*arguments) == 128 + number
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == left


@pytest.mark.parametrize(
    "arguments",
    [{"seeds": "x"}, {"seed": 1.5}, {"overrides": ["engine.seed=2"]}, {"overrides": {3: 2}}, {"out": 3}],
)
def test_an_argument_of_another_type_is_the_callers_mistake(arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"found {next(iter(arguments))}="):
        weftwork.run("tiny.yaml", **arguments)
    with pytest.raises(UsageError, match="found scenario=3"):
        weftwork.run(3)  # type: ignore[arg-type]
