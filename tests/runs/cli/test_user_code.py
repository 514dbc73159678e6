"""Which commands run the Python files that a scenario names: each kind of file with each command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from helpers.command import Command, command_of
from helpers.designs import ONLY
from helpers.how_to import steps
from helpers.workers_here import use_workers_here

import weftwork
from weftwork.base import user_code
from weftwork.base.errors import ConfigError, UsageError
from weftwork.base.user_code import is_in_package
from weftwork.cli.commands import root_command
from weftwork.policies.load import catalogue
from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS

# Key that names a file, and how a line of a scenario says so. The file leaves a mark as soon as it is run, then fails.
KINDS = {
    "fabric.topology": "fabric: {topology: ./topology.py, link_rate: 100Gbps}",
    "fabric.engineering.scheme": "fabric: {engineering: {scheme: ./scheme.py}\n  radix: 4}",
    "transport.protocol": "transport: {protocol: ./protocol.py}",
    "transport.congestion_control": "transport: {congestion_control: ./congestion_control.py}",
    "transport.path_selection": "transport: {path_selection: {file: ./path_selection.py, gain: 3}}",
    "transport.port_selection": "transport: {port_selection: ./port_selection.py}",
    "traffic.pattern": "traffic: {pattern: ./pattern.py, distance: 3}",
    "collective.algorithm": "collective: {algorithm: ./algorithm.py, delay: 1us}",
}
FABRIC = "fabric: {topology: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2, link_rate: 100Gbps}"
TRAFFIC = "traffic: {pattern: incast, senders: 3, size: 10KB}"
# What each command runs of a scenario's files; a command that is not here takes no scenario.
RUN_BY = {
    "run": set(KINDS),
    "collective": set(KINDS) - {"traffic.pattern"},  # it puts its own workload in place of the scenario's
    "topology": {"fabric.topology"},
    "cost": {"fabric.topology"},
    "sweep": set(KINDS),
    "tune": set(KINDS),
    "design": set(KINDS) - {"fabric.topology"},  # which its candidates replace
}
# `plan` takes scenarios with training alone, which have a test of their own


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file of each kind in it."""
    use_workers_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    return tmp_path


def write_files(folder: Path) -> None:
    """Write a file of each kind, which leaves its mark in the current folder."""
    for key in KINDS:
        name = key.rpartition(".")[2]
        (folder / f"{name}.py").write_text(f"open('{name}.mark', 'w').close()\nraise RuntimeError('I was run')\n")


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Command:
    return command_of(capsys)


def scenario(*keys: str, more: str = "") -> str:
    """Text of a scenario that names the files of these keys; a line for each."""
    sections = {key.partition(".")[0] for key in keys}
    lines = ["schema: 3", *(() if "fabric" in sections else (FABRIC,)), more]
    lines += [] if sections & {"traffic", "collective"} else [TRAFFIC]
    for section in dict.fromkeys(key.partition(".")[0] for key in keys):
        inside = [KINDS[key].partition(": {")[2].removesuffix("}") for key in keys if key.startswith(f"{section}.")]
        lines += [f"{section}:", *(f"  {one}" for text in inside for one in _keys(text))]
    return "\n".join(line for line in lines if line) + "\n"


def _keys(text: str) -> Iterator[str]:
    """Yield the keys of a flow mapping's inside; only a policy's braces hold commas of their own."""
    yield from [text] if "{" in text else text.split(", ")


def marks(folder: Path) -> set[str]:
    """Keys whose files were run."""
    found = {file.stem for file in folder.glob("*.mark")}
    return {key for key in KINDS if key.rpartition(".")[2] in found}


def arguments(command: str, key: str) -> list[str]:
    """Words of the command line that read the scenario; of a collective the algorithm is an option."""
    if command == "tune":
        return ["tune", "a.yaml", "--parameter", "fabric.switch.alpha"]
    if command == "design":
        return ["design", "a.yaml", "--gpus", "32", *ONLY, "--only", "link_rate=400Gbps", "-j", "1"]
    if command != "collective":
        return [command, "a.yaml", *(["--set", "engine.seed=1,2"] if command == "sweep" else [])]
    own = ["--algorithm", "./algorithm.py"] if key == "collective.algorithm" else []
    return ["collective", "all-reduce", "--fabric", "a.yaml", "--sizes", "1KB", *own]


def test_every_command_is_judged_here() -> None:
    commands = root_command().commands
    reads = {name for name, one in commands.items() if any("--set" in option.opts for option in one.params)} - {"test"}
    refuses = {name for name, one in commands.items() if any("--no-user-code" in option.opts for option in one.params)}
    assert reads == {*RUN_BY, "plan", "import"}
    assert refuses == {*reads, "cross"}  # which has scenarios of its own, and takes policies by options
    assert set(commands) == set(RUN_BY) | {
        "cross", "plan", "test", "new", "import", "compare", "report", "validate", "calibrate", "rdma", "list",
        "explain", "schema", "runs",
    }  # fmt: skip


@pytest.mark.parametrize("key", KINDS)
def test_test_runs_the_file_that_it_is_given_and_says_so(folder: Path, said: Command, key: str) -> None:
    name = key.rpartition(".")[2]
    answer = said("test", f"{name}.py")
    assert (answer.code, marks(folder)) == (2, {key})
    assert f"{name}.py, line 2: RuntimeError: I was run" in answer.err
    help_text = " ".join(said("test", "--help").out.split())
    assert "The file is a program: it runs with all your rights." in help_text


def test_import_runs_a_file_of_its_settings_and_refuses_it_if_asked(folder: Path, said: Command) -> None:
    (folder / "job.sh").write_text(
        "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024"
        " --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50304"
        " --micro-batch-size 1 --global-batch-size 8 --bf16\n",
        encoding="utf-8",
    )
    control = ("--set", "transport.congestion_control=./congestion_control.py")
    refused = said("import", "job.sh", *control, "--no-user-code")
    assert (refused.code, marks(folder)) == (2, set())
    assert "--no-user-code" in refused.err
    said("import", "job.sh", *control)
    assert marks(folder) == {"transport.congestion_control"}


def test_new_runs_nothing(folder: Path, said: Command) -> None:
    for kind in ("congestion-control", "topology"):
        assert said("new", kind, "algorithm").code == 2
        assert said("new", kind, f"my_{kind.replace('-', '_')}").code == 0
    assert marks(folder) == set()


@pytest.mark.parametrize("key", KINDS)
@pytest.mark.parametrize("command", RUN_BY)
def test_a_command_runs_the_files_that_it_needs_and_no_other(
    folder: Path, said: Command, command: str, key: str
) -> None:
    (folder / "a.yaml").write_text(scenario(key))
    answer = said(*arguments(command, key))
    is_run = key in RUN_BY[command]
    assert marks(folder) == ({key} if is_run else set())
    assert ("I was run" in answer.err) is is_run
    assert answer.code == (2 if is_run else 0), answer.err


@pytest.mark.parametrize("key", [key for key in KINDS if key.partition(".")[0] in {"fabric", "transport"}])
def test_plan_runs_the_files_of_a_training_job_or_refuses_them(folder: Path, said: Command, key: str) -> None:
    text = scenario(key).replace(TRAFFIC, "training: {model: gpt-1.7b, global_batch: 8}")
    (folder / "a.yaml").write_text(text.replace("link_rate: 100Gbps}", "link_rate: 100Gbps, node: dgx-a100}"))
    refused = said("plan", "a.yaml", "--no-user-code")
    assert (refused.code, marks(folder)) == (2, set())
    assert "--no-user-code refuses" in refused.err
    answer = said("plan", "a.yaml")
    assert (answer.code, marks(folder)) == (2, {key})
    assert "I was run" in answer.err
    assert not (folder / "runs").exists()


def test_topology_runs_a_topology_of_ones_own_beside_files_of_every_other_kind(folder: Path, said: Command) -> None:
    (step,) = (step for step in steps("own-topology.md") if step.name.endswith(".py"))
    (folder / "topology.py").write_text(step.text)
    text = scenario(*(key for key in KINDS if key != "collective.algorithm")).replace(
        "link_rate", "switches: 5\n  link_rate"
    )
    (folder / "a.yaml").write_text(text)
    answer = said("topology", "a.yaml", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["switches_by_tier"] == {"1": 5}
    assert marks(folder) == set()


@pytest.mark.parametrize("workload", ["traffic.pattern", "collective.algorithm"])
@pytest.mark.parametrize("command", RUN_BY)
def test_no_user_code_refuses_all_files_at_once_with_their_lines(
    folder: Path, said: Command, command: str, workload: str
) -> None:
    keys = [key for key in KINDS if key.partition(".")[0] in {"fabric", "transport"}] + [workload]
    text = scenario(*keys)
    (folder / "a.yaml").write_text(text)
    answer = said(*arguments(command, workload), "--no-user-code", "--json")
    assert answer.code == 2
    mistakes = {one["path"]: one for one in json.loads(answer.out)["error"]["mistakes"]}
    if command == "collective":  # the scenario's own workload is left aside
        keys = [*keys[:-1], *(["--algorithm"] if workload == "collective.algorithm" else [])]
    if command == "design":
        keys.remove("fabric.topology")
    assert set(mistakes) == set(keys)
    for key in keys:
        name = key.rpartition(".")[2].strip("-")
        assert mistakes[key]["text"].startswith(
            f"found './{name}.py', a Python file outside the package, which --no-user-code refuses; wanted "
        )
        if key != "--algorithm" and (command, key) != ("design", "fabric.engineering.scheme"):
            assert f"./{name}.py" in text.splitlines()[mistakes[key]["line"] - 1]
    assert marks(folder) == set()
    assert sorted(file.name for file in folder.glob("runs")) == []


def test_a_file_that_set_brings_is_refused_too_and_nothing_else_is(folder: Path, said: Command) -> None:
    (folder / "a.yaml").write_text(scenario())
    answer = said("run", "a.yaml", "--no-user-code", "--set", "transport.congestion_control=./congestion_control.py")
    assert answer.code == 2
    assert "--set transport.congestion_control  found './congestion_control.py'" in answer.err
    assert marks(folder) == set()
    for words in (["run", "a.yaml", "-o", "r"], ["topology", "a.yaml"], arguments("collective", "")):
        assert said(*words, "--no-user-code").code == 0


def test_the_package_is_looked_for_behind_all_links(
    folder: Path, said: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = {
        "fabric.topology": TOPOLOGIES.paths["fat-tree"],
        "transport.protocol": TRANSPORTS.paths["rocev2"],
        "traffic.pattern": PATTERNS.paths["permutation"],
        "transport.congestion_control": next(one.path for one in catalogue("congestion_control") if one.name == "none"),
    }
    for key, file in into.items():
        (folder / f"{key.rpartition('.')[2]}.py").unlink()
        (folder / f"{key.rpartition('.')[2]}.py").symlink_to(file)
    text = (
        scenario(*into)
        .replace("link_rate: 100Gbps", "radix: 4\n  link_rate: 100Gbps")
        .replace("distance: 3", "size: 1KB")
    )
    (folder / "a.yaml").write_text(text)
    answer = said("run", "a.yaml", "--no-user-code", "-o", "r")
    assert answer.code == 0, answer.err
    run = weftwork.open_run("r")
    assert run.provenance["files"] == {}  # of the package no copy is kept: the folder has the names of the catalogue
    resolved = yaml.safe_load(run.scenario)
    for key, file in into.items():
        section, _, name = key.partition(".")
        assert resolved[section][name] == file.stem.replace("_", "-")
    assert said("run", "r/scenario.yaml", "--no-user-code", "-o", "again").code == 0
    assert weftwork.open_run("again").provenance["digest"] == run.provenance["digest"]
    (folder / "package").mkdir()
    (folder / "package" / "inside.py").touch()
    (folder / "package" / "out.py").symlink_to(folder / "algorithm.py")
    monkeypatch.setattr(user_code, "PACKAGE", folder.resolve() / "package")
    assert is_in_package(Path("package/inside.py"))
    assert is_in_package(Path("package/../package/inside.py"))
    assert not is_in_package(Path("package/out.py"))
    assert not is_in_package(Path("package/../algorithm.py"))
    assert not is_in_package(ALGORITHMS.paths["ring"])


def test_python_refuses_as_the_command_line_does(folder: Path) -> None:
    (folder / "a.yaml").write_text(scenario("traffic.pattern", "transport.protocol"))
    (folder / "b.yaml").write_text(scenario())
    fabric = weftwork.prepare(weftwork.read_scenario("b.yaml", user_code=False)).fabric
    for call in (
        lambda: weftwork.read_scenario("a.yaml", user_code=False),
        lambda: weftwork.run("a.yaml", out="r", user_code=False),
        lambda: weftwork.run("a.yaml", out="r", user_code=False, fabric=fabric),
    ):
        with pytest.raises(ConfigError, match="2 mistakes"):
            call()
    with pytest.raises(UsageError, match="a scenario that was read has run its Python files already"):
        weftwork.run(weftwork.read_scenario("b.yaml"), out="r", user_code=False)
    assert weftwork.run("b.yaml", out="r", user_code=False).is_complete
    assert marks(folder) == set()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two run folders whose scenarios and provenance name files of every kind."""
    folder = tmp_path_factory.mktemp("hostile")
    write_files(folder)
    (folder / "b.yaml").write_text(scenario())
    named = scenario(*KINDS)
    for name in ("first", "second"):
        run = weftwork.run(folder / "b.yaml", out=folder / name)
        (run.path / "scenario.yaml").write_text(named.replace("distance: 3", f"distance: {len(name)}"))
        provenance = json.loads((run.path / "provenance.json").read_text())
        provenance["files"] = {key: {"file": f"./{key.rpartition('.')[2]}.py", "hash": "0"} for key in KINDS}
        (run.path / "provenance.json").write_text(json.dumps(provenance))
    return folder


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "first"], "first.html"),
        (["report", "first", "second"], "first-second.html"),
        (["compare", "first", "second"], "traffic.distance"),
        (["runs", "show", "first"], "run folder: first"),
        (["runs", "list", "."], "second"),
        (["runs", "prune", ".", "--keep", "0"], "Would delete"),
        (["explain", "traffic.pattern"], "a file such as ./mine.py"),
        (["explain", "traffic.reach"], "no such key"),
        (["explain", "./pattern.py"], "no such key"),
        (["explain", "transport.congestion_control"], "dcqcn"),
        (["explain", "transport.congestion_control.window_bytes"], "fixed-window"),
        (["explain", "transport.congestion_control../congestion_control.py"], "no such key"),
        (["list"], "traffic"),
        *((["list", kind], known) for kind, known in (
            ("topology", "fat-tree"), ("transport", "rocev2"), ("congestion_control", "dcqcn"), ("collective", "ring"),
            ("path_selection", "spray"), ("port_selection", "least-loaded"), ("traffic", "incast"),
        )),
        (["list", "./pattern.py"], "found './pattern.py'"),
        (["schema"], "pattern"),
        (["validate", "sc21", "--write-scenarios", "rows"], "written to rows"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)  # fmt: skip
def test_other_commands_run_no_file_whatever_a_run_folder_names(
    hostile: Path, said: Command, words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile)
    answer = said(*words)
    assert told in answer.out + answer.err
    assert answer.code == (2 if told.startswith(("no such", "found")) else 0)
    assert marks(hostile) == set()


def test_help_says_that_a_scenario_can_run_code(said: Command) -> None:
    for words in ([], *([command] for command in RUN_BY)):
        text = " ".join(said(*words, "--help").out.split())
        assert "A scenario can run code: the Python files that it names run with all your rights." in text


def test_a_refused_import_does_not_look_like_a_sandbox(folder: Path, said: Command) -> None:
    head = "open('congestion_control.mark', 'w').close()\n"
    (folder / "a.yaml").write_text(scenario("transport.congestion_control"))
    (folder / "congestion_control.py").write_text(head + "import os\n")
    answer = said("run", "a.yaml")
    assert "congestion_control.py, line 2: a policy may not import os: its steps become machine code" in answer.err
    assert "the rule is no protection, since all other lines of this file run as any Python does" in answer.err
    (folder / "congestion_control.py").write_text(head)
    assert said("run", "a.yaml").code == 2
    assert marks(folder) == {"transport.congestion_control"}  # and so they do


@pytest.mark.parametrize("kind", ["control", "path-selection", "port-selection"])
def test_a_crossing_runs_no_file_of_the_users_own_where_it_must_not(kind: str, folder: Path, said: Command) -> None:
    name = {"control": "congestion_control"}.get(kind, kind.replace("-", "_"))
    code, _, err = said("cross", f"--{kind}", f"./{name}.py", "--no-user-code", "-o", "out")
    assert code == 2
    assert f"{name}.py" in err
    assert not list(folder.glob("*.mark"))
    assert not (folder / "out").exists()
