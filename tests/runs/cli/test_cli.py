"""The command line: what it prints, where it prints it, and the codes with which it leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import Command, command_of

import weftwork
from weftwork.base.commit import version_text
from weftwork.cli.list import KINDS

SCENARIO = """schema: 3
name: tiny incast
fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4, link_rate: 100Gbps}
transport: {congestion_control: fixed-window}
traffic: {pattern: incast, senders: 7, size: 50KB}
engine: {fidelity: reference}
"""


Golden = Callable[[str, str], None]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a command of Weftwork in an empty folder that holds the scenario above."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(SCENARIO, encoding="utf-8")
    return command_of(capsys)


def plain(text: str) -> str:
    """Without the spaces that pad a table."""
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def test_run_answers_in_words_and_then_in_tables(command: Command, check_golden: Golden) -> None:
    found = command("run", "tiny.yaml", "-o", "out")
    assert (found.code, found.err) == (0, "")
    check_golden("cli/run.txt", plain(found.out))


def test_run_with_seeds_answers_with_intervals(command: Command, check_golden: Golden) -> None:
    jitter = "traffic.start_jitter=5us"
    found = command("run", "tiny.yaml", "-o", "out", "--seeds", "3", "--set", jitter)
    assert (found.code, found.err) == (0, "")
    check_golden("cli/seeds.txt", plain(found.out))


def test_a_run_that_is_cut_off_says_partial_first(command: Command, check_golden: Golden) -> None:
    found = command("run", "tiny.yaml", "-o", "out", "--set", "engine.until=15us")
    assert found.code == 0
    check_golden("cli/partial.txt", plain(found.out))


@pytest.mark.parametrize("fidelity", ["packet", "reference"])  # only the first has rows with an instant beside totals
def test_losses_and_pauses_are_told(command: Command, check_golden: Golden, fidelity: str) -> None:
    small, engine = "fabric.switch={alpha: 0.01, buffer: 1MB}", f"engine.fidelity={fidelity}"
    lossy = ("--set", small, "--set", engine, "--set", "fabric.loss=0.01", "--seed", "3")
    found = command("run", "tiny.yaml", "-o", "out", *lossy)
    assert found.code == 0
    check_golden("cli/losses.txt", plain(found.out))


def test_a_collective_is_told_by_its_bus_bandwidth(command: Command, check_golden: Golden) -> None:
    found = command("run", "tiny.yaml", "-o", "out", "--set", "traffic=null", "--set", "collective={size: 1MB}")
    assert found.code == 0
    check_golden("cli/collective.txt", plain(found.out))


def test_run_writes_below_runs_by_default(command: Command, tmp_path: Path) -> None:
    assert command("run", "tiny.yaml").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"tiny-incast-\d{8}-\d{6}", folder.name)


def test_run_as_json_is_one_object(command: Command) -> None:
    found = command("run", "tiny.yaml", "-o", "out", "--json", "--seed", "5")
    document = json.loads(found.out)
    assert document["run"] == "out"
    assert document["status"] == "complete"
    assert document["numbers"]["flows_completed"] == {
        "value": 7, "unit": "count", "text": "Messages that arrived completely.",
    }  # fmt: skip
    assert weftwork.open_run("out").provenance["seed"] == 5


def test_compare_says_what_differs_and_what_that_did(command: Command, check_golden: Golden) -> None:
    command("run", "tiny.yaml", "-o", "a")
    command("run", "tiny.yaml", "-o", "b", "--set", "traffic.senders=3", "--set", "transport.mtu=1024")
    found = command("compare", "a", "b")
    assert found.code == 0
    check_golden("cli/compare.txt", plain(found.out))
    document = json.loads(command("compare", "a", "b", "--json").out)
    assert {difference["key"] for difference in document["differences"]} == {"traffic.senders", "transport.mtu"}
    assert [one["run"] for one in document["runs"]] == ["a", "b"]
    price = document["runs"][0]["fabric"]["price_usd"]["typical"]
    assert document["runs"][0]["fabric"]["price_per_gpu_usd"]["typical"] == price / 8
    assert document["verdict"][0] == found.out.splitlines()[0]
    assert "equal to the bit" in command("compare", "a", "a").out


def test_collectives_are_compared_by_the_times_that_their_answers_tell(command: Command) -> None:
    collective = "collective={operation: all-reduce, size: 64KiB}"
    took = []
    for run, algorithm in (("ring", "ring"), ("tree", "tree")):
        chosen = f"collective.algorithm={algorithm}"
        out = command("run", "tiny.yaml", "-o", run, "--set", "traffic=null", "--set", collective, "--set", chosen).out
        took.append(next(line for line in out.splitlines() if line.startswith("took ")).split(None, 1)[1].split(":")[0])
    headline = command("compare", "ring", "tree").out.splitlines()[0]
    assert headline.endswith(f" ({took[1]} against {took[0]}).")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_listed(command: Command, kind: str) -> None:
    words = command("list", kind).out
    choices = json.loads(command("list", kind, "--json").out)
    assert choices
    for choice in choices:
        assert choice["name"] in words
        assert choice["text"]
    assert command("list", kind.replace("_", "-"), "--sources").code == 0


def test_the_list_of_controls_says_what_each_needs(command: Command) -> None:
    _, _, needs = command("list", "congestion-control").out.partition("needs of switches")
    assert re.search(r"\ndcqcn +marks \(ECN\) +rate, window, CNPs +hpcc-repo, hpcc-repo-window, paper, vendor", needs)
    assert re.search(r"\nnone +nothing +nothing *\n", needs)
    listed = {one["name"]: one for one in json.loads(command("list", "congestion-control", "--json").out)}
    assert listed["dcqcn"]["switch"] == ["marks (ECN)"]
    assert listed["dcqcn"]["nic"] == ["rate", "window", "CNPs"]
    assert listed["dcqcn"]["variants"] == ["hpcc-repo", "hpcc-repo-window", "paper", "vendor"]
    assert "switch" not in json.loads(command("list", "gpu", "--json").out)[0]
    assert "needs of" not in command("list", "gpu").out


def test_the_list_of_presets_says_what_each_needs(command: Command) -> None:
    _, _, needs = command("list", "load-balancing").out.partition("needs of switches")
    assert re.search(r"\ndrill +queue lengths +keeps early packets", needs)
    assert re.search(r"\nconga +flow table, port meters, header field between switches +nothing", needs)
    assert "variants" not in needs
    listed = {one["name"]: one for one in json.loads(command("list", "load-balancing", "--json").out)}
    assert (listed["wcmp"]["switch"], listed["spray"]["nic"]) == (["capacity behind ports"], ["keeps early packets"])


def test_the_list_of_suspects_says_what_each_needs_and_what_changes_it(command: Command) -> None:
    listed = json.loads(command("list", "suspect", "--json").out)
    assert [one["name"] for one in listed][:2] == ["fault", "straggler"]  # the likeliest first
    by_name = {one["name"]: one for one in listed}
    assert by_name["window"]["key"] == "transport.congestion_control.window"
    assert by_name["window"]["needs"] == ["idle resources", "packets"]
    assert re.search(r"\nodd-nic +fabric +nothing *\n", command("list", "suspect").out)
    improvements = json.loads(command("list", "improvement", "--json").out)
    assert improvements[0]["name"] == "infinite-network"  # as in the table what_if


def test_list_alone_lists_the_kinds(command: Command) -> None:
    assert command("list").out.split() == list(KINDS) == json.loads(command("list", "--json").out)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "nowhere.yaml"), "cannot be read"),
        (("run", "tiny.yaml", "--set", "fabric.radxi=4"), "did you mean 'radix'"),
        (("run", "tiny.yaml", "--set", "fabric.radix"), "wanted KEY=VALUE"),
        (("run", "tiny.yaml", "-o", "tiny.yaml"), "a run is written once"),
        (("run", "tiny.yaml", "--seeds", "0"), "at least one"),
        (("run", "tiny.yaml", "--set", "transport.congestion_control=./broken.py"), "broken.py, line 1"),
        (("compare", ".", "nowhere"), "is not the folder of a run"),
        (("list", "topologie"), "did you mean 'topology'"),
        (("explain", "fabric.radxi"), "did you mean 'fabric.radix'"),
        (("topology", "tiny.yaml", "--export", "x.png"), "'.png', wanted .json"),
        (("run",), "Missing argument"),
        (("fly",), "No such command"),
    ],
)
def test_a_mistake_of_the_user_is_told_without_a_traceback(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    (tmp_path / "broken.py").write_text("PLUGIN = 3 +\n", encoding="utf-8")
    found = command(*arguments)
    assert (found.code, found.out) == (2, "")
    assert text in found.err
    assert "Traceback" not in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.py", "tiny.yaml"]


def test_topology_explain_and_schema_are_commands(command: Command) -> None:
    assert json.loads(command("topology", "tiny.yaml", "--json").out)["hosts"] == 8
    assert json.loads(command("explain", "fabric.radix", "--json").out)["key"] == "fabric.radix"
    assert json.loads(command("schema").out)["type"] == "object"
    assert command("--version").out.strip() == f"weftwork {version_text()}"


def test_help_answers_at_once() -> None:
    code = "import sys; from weftwork.cli import main\ntry: main(['--help'])\nexcept SystemExit: print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert "compare" in found.stdout
    loaded = set(found.stdout.split())
    assert not loaded & {"numpy", "numba", "pydantic", "pyarrow", "duckdb", "scipy"}


def test_importing_weftwork_costs_nothing() -> None:
    code = "import sys, weftwork; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not set(found.stdout.split()) & {"numpy", "numba", "pydantic", "pyarrow", "typer"}


def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    endless = SCENARIO.replace("size: 50KB", "size: 50KB, repeat: 1000000")
    (tmp_path / "endless.yaml").write_text(endless, encoding="utf-8")
    code = "import sys; from weftwork.cli import main; main(sys.argv[1:])"
    arguments = ["run", "endless.yaml", "-o", "out", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    control, terminal = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        shown = os.read(control, 100)  # the first line of progress: the run is under way
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        os.close(control)
    assert b"simulated" in shown
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == weftwork.open_run(tmp_path / "out").status == "interrupted"
    assert document["lines"]["took"].startswith("PARTIAL: interrupted at")
    assert document["numbers"]["flows_completed"]["value"] > 0


@pytest.mark.parametrize("name", ["quickstart", "permutation"])
def test_the_first_examples_give_their_answers(command: Command, check_golden: Golden, name: str) -> None:
    file = Path(__file__).parents[3] / "examples" / f"{name}.yaml"
    found = command("run", str(file), "-o", "out")
    assert found.code == 0
    check_golden(f"cli/{name}.txt", plain(found.out))
