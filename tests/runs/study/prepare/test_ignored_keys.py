"""Keys that change nothing in a run are told, and only those that somebody has set."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import rows, section_rows

TRAFFIC = "schema: 3\nfabric: {radix: 4, tiers: 2, link_rate: 100Gbps}\ntraffic: {pattern: permutation, size: 64KiB}\n"
TRAINING = """schema: 3
fabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 2, global_batch: 16}
"""
OWN_TRANSPORT = '''"""RoCEv2 with a key that packets alone could read."""

from weftwork.spec.plug_in import Effect, Record, TransportKind, Whole, row
from weftwork.transports.rocev2 import transport


class Keys(Record):
    """The key."""

    burst: int = row(
        "burst", Whole(low=1), default=1, text="Packets in a row.", source="none", effect=Effect(flows="send no bursts")
    )


TRANSPORT = TransportKind(keys=Keys, build=lambda section, keys: transport(section), source="none")
'''


def told(folder: Path, text: str, **overrides: str) -> dict[str, str]:
    """Notes of what was prepared, by what they are about; ``__`` in the name of an override stands for a dot."""
    file = folder / "scenario.yaml"
    file.write_text(text, encoding="utf-8")
    scenario = weftwork.read_scenario(file, {key.replace("__", "."): value for key, value in overrides.items()})
    caveats = weftwork.prepare(scenario).notes.values()
    return {one.subject: one.text for one in caveats if one.kind == "ignored" and one.text.startswith("changes no")}


def test_flows_tell_of_keys_in_the_file_and_in_overrides(tmp_path: Path) -> None:
    in_file = TRAFFIC + "transport: {ack_every: 16}\nengine: {fidelity: flow}\n"
    notes = told(tmp_path, in_file, transport__timeout="1ms", transport__mtu="1024")
    assert notes == {
        "transport.ack_every": "changes nothing: flows send no acknowledgements; take engine.fidelity: packet",
        "transport.timeout": "changes nothing: flows lose nothing and send nothing again; take engine.fidelity: packet",
    }


def test_nothing_is_told_of_defaults_or_of_packets_or_of_a_key_that_was_taken_away(tmp_path: Path) -> None:
    assert told(tmp_path, TRAFFIC, engine__fidelity="flow") == {}
    assert told(tmp_path, TRAFFIC, transport__ack_every="16") == {}
    in_file = TRAFFIC + "transport: {ack_every: 16}\n"
    assert told(tmp_path, in_file, transport__ack_every="null", engine__fidelity="flow") == {}


def test_what_lets_packets_overtake_is_not_told_where_a_policy_needs_it(tmp_path: Path) -> None:
    tolerant = {"transport__reorder_tolerant": "true", "engine__fidelity": "flow"}
    assert set(told(tmp_path, TRAFFIC, **tolerant)) == {"transport.reorder_tolerant"}
    assert told(tmp_path, TRAFFIC, **tolerant, transport__load_balancing="spray") == {}


def test_a_part_of_a_device_is_told_by_its_own_key(tmp_path: Path) -> None:
    switch = "{buffer: 8MB, forwarding_latency: 1us, ecn: {kmin: 5KB}}"
    assert set(told(tmp_path, TRAFFIC, fabric__switch=switch, engine__fidelity="flow")) == {
        "fabric.switch.buffer",
        "fabric.switch.ecn.kmin",
    }


@pytest.mark.parametrize(
    ("text", "key", "value", "beside"),
    [
        (TRAFFIC, "fabric.reconvergence_delay", "2ms", {"faults": "[{at: 1us, link: leaf0-spine0, event: down}]"}),
        (TRAFFIC, "fabric.failover_delay", "2ms", {"faults": "[{at: 1us, link: leaf0-spine0, event: down}]"}),
        (
            TRAFFIC,
            "transport.reply_entropy",
            "echoed",
            {"transport.load_balancing": "spray", "transport.reorder_tolerant": "true"},
        ),
        (TRAFFIC, "fabric.nic.xoff", "950KB", {"fabric.nic.pcie_rate": "50Gbps"}),
        (TRAINING, "training.overlap.context", "0.5", {"training.context": "2"}),
        (TRAINING, "training.overlap.pipeline", "0.5", {"training.pipeline": "2"}),
        (TRAINING, "training.prefetch", "true", {"training.overlap.data": "0.5"}),
    ],
)
def test_a_key_is_told_until_what_it_needs_is_there(
    tmp_path: Path, text: str, key: str, value: str, beside: dict[str, str]
) -> None:
    more = {"training.zero": "3", "training.overlap.data": "0"} if key == "training.prefetch" else {}

    def settings(*parts: dict[str, str]) -> dict[str, str]:
        return {name.replace(".", "__"): given for part in parts for name, given in part.items()}

    assert key in told(tmp_path, text, **settings({key: value}, more))
    assert key not in told(tmp_path, text, **settings({key: value}, more, beside))


INCAST = """schema: 3
fabric: {radix: 4, tiers: 2, link_rate: 100Gbps, nic: {pcie_rate: 50Gbps}}
traffic: {pattern: incast, size: 1MiB}
"""
# key -> two values between which pauses, or drops, differ
OF_PAUSES = {
    "fabric.switch.headroom": ("20KB", "100KB"),
    "fabric.switch.alpha": ("0.01", "1"),
    "fabric.switch.xon_offset": ("0B", "200KB"),
    "fabric.switch.pause_quanta": ("100", "60000"),
    "fabric.switch.reserve": ("0B", "20KB"),
    "fabric.switch.egress_alpha": ("0.001", "1"),
    "fabric.nic.xoff": ("950KB", "910KB"),
    "fabric.nic.xon": ("850KB", "0B"),
    "fabric.nic.pause_quanta": ("100", "60000"),
}


@pytest.mark.parametrize("flow_control", ["pfc", "credits", "none"])
@pytest.mark.parametrize("key", sorted(OF_PAUSES))
def test_a_key_of_pauses_is_told_where_nobody_pauses_and_changes_nothing_there(
    tmp_path: Path, key: str, flow_control: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(INCAST, encoding="utf-8")
    matters = flow_control == "pfc" or (
        flow_control == "none" and key in {"fabric.switch.reserve", "fabric.switch.egress_alpha"}
    )
    digests = set()
    for value in OF_PAUSES[key]:
        given = {"transport.flow_control": flow_control, "fabric.switch.buffer": "1MB", key: value}
        scenario = weftwork.read_scenario(file, given)
        prepared = weftwork.prepare(scenario)
        assert (key in prepared.notes) != matters
        digests.add(weftwork.execute(prepared).outcome.digest())
    if (flow_control, key) != ("pfc", "fabric.switch.egress_alpha"):  # there only acknowledgements may be dropped
        assert len(digests) == (2 if matters else 1)


def test_a_key_of_a_users_own_transport_says_in_its_row_that_flows_do_not_read_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_TRANSPORT, encoding="utf-8")
    text = TRAFFIC + "transport: {protocol: ./mine.py, burst: 4}\n"
    assert told(tmp_path, text) == {}
    assert told(tmp_path, text, engine__fidelity="flow") == {
        "transport.burst": "changes nothing: flows send no bursts; take engine.fidelity: packet"
    }


def test_keys_of_sections_are_those_of_the_rows_that_no_choice_brings() -> None:
    assert [row.path for row in section_rows()] == [
        row.path for row in rows() if row.path in {one.path for one in section_rows()}
    ]


@pytest.mark.parametrize(
    ("training", "software", "wanted"),
    [
        ("bf16_first_layers: 1, bf16_last_layers: 2", "", {"bf16_first_layers", "bf16_last_layers"}),
        ("bf16_first_layers: 1, bf16_last_layers: 2, precision: fp8", "", set()),
        ("precision: fp8, precision_by_module: {qkv: fp8, projection: bf16}", "", {"precision_by_module.qkv"}),
        ("precision: fp8", "exchange_efficiency: 0.5", {"software.exchange_efficiency"}),
        ("layout: Et*32L", "", {"layout"}),
        ("pipeline: 2, layout: Et*15|t*17L", "", set()),
    ],
)
def test_keys_of_recipes_are_told_where_nothing_gives_them_a_meaning(
    training: str, software: str, wanted: set[str], tmp_path: Path
) -> None:
    text = TRAINING.replace("tensor: 2", f"tensor: 2, {training}, software: {{{software}}}")
    assert set(told(tmp_path, text)) == {f"training.{key}" for key in wanted}


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ("expert: 1", {"exchange_efficiency", "exchange_multiprocessors", "deduplicated_experts"}),
        ("expert: 8", {"exchange_multiprocessors"}),
        ("expert: 8, overlap: {expert: 0.5}", set()),
    ],
)
def test_keys_of_an_exchange_are_told_where_there_is_none(keys: str, wanted: set[str], tmp_path: Path) -> None:
    software = "{exchange_efficiency: 0.9, exchange_multiprocessors: 20, deduplicated_experts: true}"
    text = TRAINING.replace("llama-3-8b", "qwen3-30b-a3b").replace(
        "tensor: 2", f"memory: 1TB, recipe: none, {keys}, software: {software}"
    )
    assert set(told(tmp_path, text)) == {f"training.software.{key}" for key in wanted}


def test_an_exchange_that_takes_every_multiprocessor_is_refused(tmp_path: Path) -> None:
    text = TRAINING.replace("llama-3-8b", "qwen3-30b-a3b").replace(
        "tensor: 2", "memory: 1TB, expert: 8, overlap: {expert: 0.5}"
    )
    assert told(tmp_path, text, training__software__exchange_multiprocessors="131") == {}
    with pytest.raises(ConfigError) as refused:
        told(tmp_path, text, training__software__exchange_multiprocessors="132")
    (mistake,) = refused.value.mistakes
    assert mistake.path.endswith("training.software.exchange_multiprocessors")
    assert mistake.text == "found 132, wanted fewer than the 132 of 'h100': some must be left for computing"
