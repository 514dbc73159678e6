"""Fabric files in commands: assumptions on the first screen, devices changed from a scenario, and the table of keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.command import Command, command_of

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.topology.build import fabric_of
from weftwork.topology.direct_rows import _Direct
from weftwork.topology.export import to_json
from weftwork.topology.from_file import GRAPH_KEYS, LINK_KEYS, NODE_KEYS, read_fabric

PAGE = Path(__file__).parents[3] / "docs" / "models" / "fabrics.md"
SCENARIO = """schema: 3
fabric: {file: FILE}
transport: {congestion_control: dcqcn, mtu: 1024}
traffic: {pattern: permutation, size: 256KiB}
"""
RING = {
    "rate": "100Gbps", "delay": "100ns", "loss": 0, "corruption": 0, "switch": "plain", "nic": "plain",
    "server": "plain",
    "nodes": [{"id": f"{kind}{n}", "kind": kind} for kind in ("host", "switch") for n in range(4)],
    "links": [{"source": f"host{n}", "target": f"switch{n}"} for n in range(4)]
    + [{"source": f"switch{n}", "target": f"switch{(n + 1) % 4}"} for n in range(4)],
}  # fmt: skip


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    return command_of(capsys)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def stripped(text: str) -> str:
    tree = json.loads(text)
    for node in tree["nodes"]:
        del node["tier"]
    return json.dumps(tree)


@pytest.mark.usefixtures("command")
def test_a_fabric_without_tiers_has_the_result_and_culprit_of_the_one_with_tiers() -> None:
    text = to_json(fabric_of(topology="fat-tree", radix=4, link_rate_bps=10**11))
    write("with.json", text)
    write("without.json", stripped(text))
    runs = []
    for name in ("with", "without"):
        scenario = write(f"{name}.yaml", SCENARIO.replace("FILE", f"{name}.json"))
        runs.append(weftwork.run(scenario, out=Path(f"run-{name}")))
    first, second = runs
    assert first.provenance["digest"] == second.provenance["digest"]
    assert first.answer.culprit == second.answer.culprit
    assert "ecmp" in str(first.answer.culprit.name)
    assert [caveat for run in runs for caveat in run.caveats if caveat.kind == "assumed"] == []


def test_tiers_in_doubt_stand_on_the_first_screen_and_the_page(command: Command) -> None:
    write("ring.json", json.dumps(RING))
    write("ring.yaml", SCENARIO.replace("FILE", "ring.json") + "engine: {until: 1ms}\n")
    said = "'ring.json' leaves out tiers; hops to the nearest host hold instead, but 4 links such as 'switch0-switch1'"
    more = ("--set", "fabric.cycles=allow", "--set", "transport.flow_control=none", "-o", "ring-run")
    assert f"Assumed: {said}" in command("run", "ring.yaml", *more).out
    assert said in command("topology", "ring.json").out
    assert command("report", "ring-run", "-o", "ring.html").code == 0
    page = Path("ring.html").read_text(encoding="utf-8")
    assert "leaves out tiers; hops to the nearest host" in page


@pytest.mark.usefixtures("command")
def test_fields_of_devices_change_in_the_whole_file() -> None:
    text = to_json(fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2, link_rate_bps=10**11))
    write("two.json", text)
    write("two.yaml", SCENARIO.replace("FILE", "two.json"))
    asked = {"transport.congestion_control": "hpcc"}
    with pytest.raises(ConfigError, match=r"set fabric.switch.telemetry: true"):
        weftwork.prepare("two.yaml", asked)
    fixed = weftwork.prepare(
        "two.yaml",
        {
            **asked,
            "fabric.switch.telemetry": True,
            "fabric.nic.pcie_rate": "50Gbps",
            "fabric.node.pcie_latency": "1us",
            "fabric.hash": [{"switches": "tier2", "algorithm": "mix"}],
        },
    )
    assert all(switch.telemetry for switch in fixed.fabric.switches)
    assert {switch.hash.algorithm for switch in fixed.fabric.switches} == {"crc32", "mix"}
    assert [nic.pcie_rate_bps for nic in fixed.fabric.nics] == [50_000_000_000]
    assert [server.pcie_latency_ps for server in fixed.fabric.servers] == [1_000_000]
    run = weftwork.run("two.yaml", out=Path("run"), overrides={**asked, "fabric.switch.telemetry": True})
    kept = (run.path / "scenario.yaml").read_text(encoding="utf-8")
    assert "  switch:\n    telemetry: true\n" in kept
    assert "model:" not in kept.split("transport:")[0]
    assert weftwork.run(run.path / "scenario.yaml", out=Path("again")).provenance["digest"] == run.provenance["digest"]


@pytest.mark.parametrize(("option", "text"), [
    ("fabric.switch=tomahawk-5", ("found tomahawk-5, but fabric.file says which device each node is; wanted fields that"
     " change in every switch, such as {buffer: 32MB}, or the model as key 'switch' in the file")),
    ("fabric.nic={model: plain}", "found plain, but fabric.file says which device each node is"),
    ("fabric.switch.bufer=1MB", "unknown key; did you mean 'buffer'?"),
    ("fabric.switch.radix=2", "leaf0: 4 links, but switch 'plain' has 2 ports"),
    ("fabric.switch.reserve=1GB", "found 1,000,000,000 B, wanted at most buffer, 64,000,000 B"),
    ("fabric.node.nic_ports=2", "host0: 1 link, but the NIC ports of server 'plain' are 2"),
    ("fabric.radix=8", "means nothing with topology file"),
])  # fmt: skip
def test_what_a_file_does_not_take_is_refused(command: Command, option: str, text: str) -> None:
    write("two.json", to_json(fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2)))
    for file in (write("two.yaml", SCENARIO.replace("FILE", "two.json")).name, "two.json"):
        refused = command("topology", file, "--set", option)
        assert refused.code == 2
        first = refused.err.splitlines()
        assert first[0].startswith(f"{file}: ")
        assert text in refused.err
        assert "--set" in first[1]


def test_python_refuses_keys_beside_a_file(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text(to_json(fabric_of(topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=2)), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        fabric_of(file=file, radix=8, loss=0.5)
    assert [mistake.path for mistake in refused.value.mistakes] == ["fabric.radix", "fabric.loss"]
    with pytest.raises(ConfigError, match="but the fabric has its devices; wanted a mapping of fields alone"):
        fabric_of(file=file, switch="tomahawk-5")
    assert fabric_of(file=file, switch={"buffer_bytes": 10**6}).switches[0].buffer_bytes == 10**6
    assert read_fabric(file).switches[0].buffer_bytes == 64_000_000


def test_the_page_lists_every_optional_key() -> None:
    part = PAGE.read_text(encoding="utf-8").split("<!-- optional keys -->")[1].split("<!-- end optional keys -->")[0]
    rows = [line.split("|")[1:3] for line in part.strip().splitlines()[2:]]
    listed = {(place.strip(), key) for place, keys in rows for key in re.findall(r"`(\w+)`", keys)}
    required = {"id", "kind", "source", "target"}
    known = {("graph", key) for key in GRAPH_KEYS} | {("direct", key) for key in _Direct.model_fields}
    known |= {("node", key) for key in NODE_KEYS if key not in required}
    known |= {("link", key) for key in LINK_KEYS if key not in required}
    assert listed == known
