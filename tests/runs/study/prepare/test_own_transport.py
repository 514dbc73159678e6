"""A transport in a file of the user's own: every workload and every engine sends by it, and none by the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import CodeError, ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump

WIDE = '''"""RoCEv2 inside a tunnel.

Source: none. Leaves out: the tunnel's own control packets.
"""

from weftwork.spec.plug_in import SIZE, Findings, Measure, Record, TransportKind, row
from weftwork.transports.rocev2 import transport


class Keys(Record):
    """Keys of the tunnel."""

    tunnel_bytes: int = row(
        "tunnel", Measure(quantity=SIZE, low=1, high=9_000), default="50B", text="Bytes more a packet.", source="none"
    )


def build(section, keys):
    plain = transport(section)
    more = {"data_overhead_bytes": plain.data_overhead_bytes + keys.tunnel_bytes}
    return plain.model_copy(update={"name": "tunnel", "ack_bytes": plain.ack_bytes + keys.tunnel_bytes, **more})


def check(section, keys, found: Findings) -> None:
    if keys.tunnel_bytes > section.mtu_bytes:
        found.wrong("tunnel", f"found {keys.tunnel_bytes} B, wanted at most the MTU, {section.mtu_bytes} B")


TRANSPORT = TransportKind(keys=Keys, build=build, check=check, source="none")
'''
TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, switch: quantum-2}
training: {model: ./model.json, sequence: 1024, tensor: 1, data: 16, global_batch: 16}
"""
TRAFFIC = """schema: 3
fabric: {radix: 4, tiers: 2}
transport: {protocol: ./tunnel.py, tunnel: 1KB}
traffic: {pattern: permutation, size: 64KiB}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tunnel.py").write_text(WIDE, encoding="utf-8")
    (tmp_path / "traffic.yaml").write_text(TRAFFIC, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def end_ps(file: str, **overrides: str) -> int:
    out = f"{Path(file).stem}-{len(list(Path().glob('*-*')))}"
    run = weftwork.run(file, out=out, overrides=overrides, what_if="none")
    return int(run.summary["iteration_ps"]["value"])


MODEL = """{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000, "max_position_embeddings": 4096}"""


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
def test_training_sends_by_the_transport_that_the_scenario_names(folder: Path, fidelity: str) -> None:
    (folder / "model.json").write_text(MODEL, encoding="utf-8")
    (folder / "training.yaml").write_text(TRAINING, encoding="utf-8")
    plain = end_ps("training.yaml", **{"engine.fidelity": fidelity})
    own = {"transport.protocol": "./tunnel.py", "transport.tunnel": "4000B", "engine.fidelity": fidelity}
    wide = end_ps("training.yaml", **own)
    assert wide > 1.02 * plain  # twice the bytes of every packet between the servers


def test_a_scenario_keeps_the_file_and_its_keys(folder: Path) -> None:
    scenario = weftwork.read_scenario("traffic.yaml")
    assert scenario.transport.protocol == str(folder / "tunnel.py")
    assert scenario.transport.options.model_dump() == {"tunnel_bytes": 1000}
    assert loads(dump(scenario)) == scenario
    weftwork.run(scenario, out="done")
    kept = weftwork.read_scenario("done/scenario.yaml")
    assert kept.transport.protocol == str(folder / "done/files/tunnel.py")
    assert kept.transport.options.model_dump() == {"tunnel_bytes": 1000}
    assert kept.fabric == scenario.fabric
    assert weftwork.prepare(scenario).transport.data_overhead_bytes == 1062


def test_keys_of_the_file_are_judged_by_its_rows_and_its_check(folder: Path) -> None:
    assert (folder / "tunnel.py").is_file()
    with pytest.raises(ConfigError) as caught:
        weftwork.read_scenario("traffic.yaml", {"transport.tunnel": "4KB", "transport.mtu": "256", "fabric.loss": "2"})
    found = {mistake.path: mistake.text for mistake in caught.value.mistakes}
    assert found["--set transport.tunnel"] == "found 4000 B, wanted at most the MTU, 256 B"
    assert "--set fabric.loss" in found
    with pytest.raises(ConfigError, match="unknown key; did you mean 'tunnel'"):
        weftwork.read_scenario("traffic.yaml", {"transport.tunel": "4KB"})


@pytest.mark.parametrize(
    ("before", "after", "line", "text"),
    [
        ("TRANSPORT = TransportKind(", "TRANSPORT = dict(", 29, "TRANSPORT is a dict, wanted a TransportKind"),
        ("TRANSPORT =", "TRANSPORTER =", 1, "the file offers no TRANSPORT = TransportKind"),
        ("class Keys(Record):", "class Keys:", 29, "wanted a class that inherits from Record"),
        ("import transport\n", "import transporter\n", 7, "cannot import name 'transporter'"),
        ("def build(section, keys):", "def build(section, keys)", 18, "this is not Python"),
        ("keys.tunnel_bytes > section", "keys.tunnels > section", 25, "no attribute 'tunnels'"),
        ('"tunnel", Measure', '"mtu", Measure', None, "brings a key 'mtu', which every transport has already"),
    ],
)
def test_a_wrong_file_is_told_with_its_line_beside_the_other_mistakes(
    folder: Path, before: str, after: str, line: int | None, text: str
) -> None:
    assert before in WIDE
    (folder / "tunnel.py").write_text(WIDE.replace(before, after), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        weftwork.read_scenario("traffic.yaml", {"fabric.loss": "2"})
    found = {mistake.path: mistake.text for mistake in caught.value.mistakes}
    assert set(found) == {"transport.protocol", "--set fabric.loss"}  # its own keys cannot be judged, and are not
    assert text in found["transport.protocol"]
    assert line is None or f"tunnel.py, line {line}:" in found["transport.protocol"]


def test_a_file_that_builds_something_else_is_told_with_its_line(folder: Path) -> None:
    (folder / "tunnel.py").write_text(WIDE.replace("return plain.model_copy", "return dict"), encoding="utf-8")
    scenario = weftwork.read_scenario("traffic.yaml")
    with pytest.raises(CodeError, match="wanted a Transport"):
        weftwork.prepare(scenario)
    (folder / "tunnel.py").write_text(WIDE.replace("plain.model_copy", "plain.copies"), encoding="utf-8")
    scenario = weftwork.read_scenario("traffic.yaml")
    with pytest.raises(CodeError, match=r"tunnel.py, line 21: AttributeError"):
        weftwork.prepare(scenario)
