"""The folder is the catalogue: a file that is put into it is known everywhere, with no other edit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.how_to import steps

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.base.folder import Folder
from weftwork.spec.scenario.choice import TransportKind

PACKAGE = Path(weftwork.__path__[0])


# the how-to whose file goes into which folder, and what the folder is called by `weftwork list`
NEW = {
    "own-topology.md": ("topology/shapes", "topology"),
    "own-traffic.md": ("workload/traffic/patterns", "traffic"),
    "own-collective.md": ("workload/collectives/algorithms", "collective"),
    "own-transport.md": ("transports", "transport"),
}


PROGRAM = """
import json
from weftwork.cli import main
from weftwork.spec.scenario.reference import page
from weftwork.spec.scenario.schema import json_schema
from weftwork.testing.patterns import check_pattern
from weftwork.testing.topologies import check_topology
from weftwork.testing.transports import check_transport

def said(*words):
    import contextlib, io
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            main(list(words))
        except SystemExit as leaving:
            assert not leaving.code, words
    return out.getvalue()

kinds = ("topology", "traffic", "collective", "transport")
keys = ("fabric.switches", "traffic.stride", "collective.pieces", "transport.tunnel")
print(json.dumps({
    "list": {kind: said("list", kind) for kind in kinds},
    "explain": {key: said("explain", key) for key in keys},
    "schema": json.dumps(json_schema()),
    "page": page(),
    "run": said("run", "all.yaml", "-o", "run"),
    "kits": [
        check_topology("ring-of-switches", {}), check_pattern("stride", {"size": "1KB"}), check_transport("tunnel"),
    ],
}))
"""


ALL = """schema: 3
fabric: {topology: ring-of-switches, switches: 5, link_rate: 100Gbps, routing: minimal}
transport: {protocol: tunnel, tunnel: 20B, congestion_control: fixed-window}
traffic: {pattern: stride, stride: 3, size: 10KB}
"""


def test_a_new_file_is_known_to_every_command_and_page(tmp_path: Path) -> None:
    copy = tmp_path / "src" / "weftwork"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    names = {}
    for page, (folder, kind) in NEW.items():
        (step,) = (step for step in steps(page) if step.name.endswith(".py"))
        (copy / folder / step.name).write_text(step.text, encoding="utf-8")
        names[kind] = step.name.removesuffix(".py").replace("_", "-")
    (tmp_path / "all.yaml").write_text(ALL, encoding="utf-8")
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for kind, name in names.items():
        assert f"\n{name} " in f"\n{told['list'][kind]}"
    assert "only with topology ring-of-switches" in told["explain"]["fabric.switches"]
    for key, text in told["explain"].items():
        assert "default" in text
        assert f"`{key.partition('.')[2]}`" in told["page"]
        assert f'"{key.partition(".")[2]}": {{"description"' in told["schema"]
    assert "ring of 5 switches" in told["run"]
    assert "rocev2 in a tunnel" in told["run"]
    assert "Shift by 3 among 10 hosts" in told["run"]
    assert told["kits"] == [[], [], []]


def test_listing_a_folder_imports_nothing() -> None:
    program = "import sys; from weftwork.spec.scenario.choices import *; print(TOPOLOGIES.names, PATTERNS.names)"
    more = "; print([name for name in sys.modules if name.startswith(('weftwork.topology', 'weftwork.workload'))])"
    done = subprocess.run([sys.executable, "-c", program + more], capture_output=True, text=True, check=True)
    names, imported = done.stdout.splitlines()
    assert (
        names
        == "('bcube', 'dragonfly', 'dragonfly-plus', 'fat-tree', 'flattened-butterfly', 'hpn', 'hyperx', 'jellyfish',"
        " 'leaf-spine', 'mesh', 'meta-24k', 'multi-plane', 'pgft', 'rail-only', 'rail-optimized', 'slim-fly', "
        "'superpod', 'three-tier', 'torus', 'tpu-pod', 'twisted-torus', 'xpander') ('all-to-all', 'incast', "
        "'mixed', 'permutation', 'poisson', 'shift')"
    )
    assert imported == "[]"


def test_reading_a_scenario_imports_what_it_chooses_and_no_more() -> None:
    text = "{schema: 3, fabric: {radix: 4}, traffic: {pattern: incast, senders: 3}}"
    program = f"import sys; from weftwork.spec.scenario.scenario import loads; loads({text!r})"
    folders = "('weftwork.topology.shapes.', 'weftwork.workload.traffic.patterns.', 'weftwork.transports.')"
    more = f"; print(sorted(name for name in sys.modules if name.startswith({folders})))"
    done = subprocess.run([sys.executable, "-c", program + more], capture_output=True, text=True, check=True)
    found = ["topology.shapes.fat_tree", "transports.rocev2", "workload.traffic.patterns.incast"]
    assert done.stdout.strip() == str([f"weftwork.{name}" for name in found])


def test_a_file_of_the_catalogue_without_the_right_record_is_our_mistake() -> None:
    wrong: Folder[TransportKind[object]] = Folder(  # type: ignore[type-var]
        "transport", package="weftwork.topology.shapes", constant="TOPOLOGY", record=TransportKind
    )
    with pytest.raises(TypeError, match=r"fat_tree.TOPOLOGY is a TreeTopology, wanted a TransportKind"):
        wrong["fat-tree"]


def test_provenance_keeps_the_hash_of_a_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (step,) = (step for step in steps("own-traffic.md") if step.name.endswith(".py"))
    (tmp_path / "stride.py").write_text(step.text, encoding="utf-8")
    text = "{schema: 3, fabric: {radix: 4, tiers: 2}, traffic: {pattern: ./stride.py, size: 10KB}}"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    first = weftwork.run("a.yaml", out="first").provenance["files"]
    assert list(first) == ["traffic.pattern"]
    (tmp_path / "stride.py").write_text(step.text + "\n# changed\n", encoding="utf-8")
    second = weftwork.run("a.yaml", out="second").provenance["files"]
    assert first["traffic.pattern"]["file"] == second["traffic.pattern"]["file"] == str(tmp_path / "stride.py")
    assert first["traffic.pattern"]["hash"] != second["traffic.pattern"]["hash"]
    assert weftwork.run("a.yaml", out="third", overrides={"traffic.pattern": "permutation"}).provenance["files"] == {}


def test_a_file_that_is_not_there_is_one_mistake_whatever_keys_it_would_have(tmp_path: Path) -> None:
    text = "schema: 3\nfabric: {radix: 4}\ntraffic:\n  pattern: ./none.py\n  whatever: 3\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        weftwork.read_scenario(tmp_path / "a.yaml")
    (mistake,) = caught.value.mistakes
    assert (mistake.path, mistake.line) == ("traffic.pattern", 4)
    assert mistake.text == "found './none.py', but there is no such file, seen from the scenario's folder"


def test_a_check_meets_no_value_that_its_row_refuses(tmp_path: Path) -> None:
    (step,) = (step for step in steps("own-topology.md") if step.name.endswith(".py"))
    needed = step.text.replace("default=4,", "default=REQUIRED,").replace(
        "import Findings", "import REQUIRED, Findings"
    )
    (tmp_path / "ring.py").write_text(needed, encoding="utf-8")
    for given, text in (("", "missing, wanted a whole number"), (", switches: 2", "found '2', wanted a whole number")):
        fabric = f"{{topology: ./ring.py, hosts: 99{given}}}"
        (tmp_path / "a.yaml").write_text(f"{{schema: 3, fabric: {fabric}, traffic: {{pattern: permutation}}}}")
        with pytest.raises(ConfigError) as caught:
            weftwork.read_scenario(tmp_path / "a.yaml")
        (mistake,) = caught.value.mistakes
        assert mistake.path == "fabric.switches"
        assert text in mistake.text
