"""Every topology, traffic pattern and transport of the catalogue keeps its contract; a wrong one is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.spec.scenario.workload import CollectiveSection
from weftwork.testing.choices import key_findings, offer_findings
from weftwork.testing.patterns import check_pattern
from weftwork.testing.topologies import check_topology
from weftwork.testing.transports import check_transport

# a new file of the catalogue is tried with this, until it has examples of its own
USUAL: tuple[dict[str, Any], ...] = ({"radix": 8, "hosts": 8},)
FABRICS: dict[str, tuple[dict[str, Any], ...]] = {
    "fat-tree": ({"radix": 4}, {"tiers": 2, "radix": 8, "hosts": 9}, {"radix": 32, "node": "dgx-h100", "hosts": 5}),
    "leaf-spine": (
        {"leaves": 4, "spines": 2, "hosts_per_leaf": 3},
        {"hosts": 40, "radix": 16},
        {"hosts": 36, "radix": 16, "oversubscription": {"leaf": 3}},
        {"leaves": 4, "spines": 2, "hosts_per_leaf": 8, "node": {"nic_ports": 2}, "dual_homed": True},
    ),
    "rail-optimized": (
        {"gpus": 64, "node": "dgx-h100", "radix": 32},
        {"gpus": 128, "node": "dgx-h100", "switch": "tomahawk-5", "pods": 4, "nodes_per_pod": 4, "spines": 8},
    ),
    "rail-only": ({"gpus": 64, "node": "dgx-h100", "radix": 4}, {"gpus": 64, "node": "dgx-h100", "radix": 64}),
    "superpod": ({"scalable_units": 1, "nodes_per_unit": 4}, {"gpus": 96, "nodes_per_unit": 8, "core_groups": "rails"}),
    "multi-plane": ({"hosts": 8, "node": {"gpus": 4, "nic_ports": 8}, "radix": 64},),
    "hpn": ({"segments": 2, "nodes_per_segment": 2, "segments_per_pod": 1, "aggregations": 4},),
    "meta-24k": ({"pods": 2, "racks_per_pod": 2},),
    "three-tier": ({"hosts": 96, "radix": 64, "oversubscription": {"access": 3}},),
    "dragonfly": (
        {"radix": 7},
        {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "arrangement": "circulant"},
    ),
    "torus": ({}, {"shape": [2, 3, 1, 4], "hosts_per_switch": 2, "node": {"gpus": 4, "nic_ports": 2}}),
    "mesh": ({}, {"shape": [2, 3, 1, 4], "hosts": 9}),
    "twisted-torus": ({}, {"shape": [4, 2, 4]}, {"shape": [2, 4], "hosts_per_switch": 3}),
    "dragonfly-plus": ({"radix": 5}, {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "groups": 4}),
    "hyperx": ({"sides": (3, 4)}, {"sides": (2, 2, 3), "links_per_dimension": (1, 2, 1), "hosts": 9}),
    "flattened-butterfly": ({"ary": 3}, {"stages": 2, "radix": 9, "hosts": 9}),
    "tpu-pod": (
        {"slice": [4, 4, 8], "twisted": True, "failed_cubes": ["cube0"]},
        {"slice": [2, 2, 4], "hosts": 9},
        {"cubes": 4, "optical_switches": False, "failed_cubes": [0]},
    ),
    "slim-fly": ({"q": 4}, {"radix": 8, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}}),
    "jellyfish": (
        {"switches": 6, "network_ports": 3},
        {"radix": 9, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "seed": 7},
    ),
    "xpander": (
        {"lifts": (2, 2), "network_ports": 3},
        {"radix": 9, "hosts": 9, "node": {"gpus": 4, "nic_ports": 4}, "seed": 7},
    ),
    "bcube": (
        {"hosts_per_switch": 3},
        {"hosts_per_switch": 3, "levels": 3, "node": {"nic_ports": 3}, "hosts": 11},
        {"hosts_per_switch": 5, "node": {"nic_ports": 1}},
    ),
    "pgft": ({}, {"children": (2, 4, 2), "parents": (1, 2, 2), "cables": (1, 1, 2), "hosts": 9}),
}
TRAFFIC: dict[str, tuple[dict[str, Any], ...]] = {
    "incast": ({"senders": 1, "size": "10KB"}, {"size": "10KB", "receiver": 1, "start_jitter": "1us"}),
    "poisson": ({"flows": 8, "load": 0.2},),
    "mixed": ({"flows": 8, "all_reduce": "100KB", "incast": "10KB"},),
    "all-to-all": ({"size": "100KB"},),
}


@pytest.mark.parametrize(("name", "keys"), [(n, keys) for n in TOPOLOGIES for keys in FABRICS.get(n, USUAL)])
def test_a_topology_keeps_its_contract(name: str, keys: dict[str, Any]) -> None:
    assert check_topology(name, keys) == []


@pytest.mark.parametrize(("name", "keys"), [(n, keys) for n in PATTERNS for keys in TRAFFIC.get(n, ({},))])
def test_a_pattern_keeps_its_contract(name: str, keys: dict[str, Any]) -> None:
    assert check_pattern(name, keys) == []


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_keeps_its_contract(name: str) -> None:
    assert check_transport(name, {"mtu": 1024}) == []


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_has_keys_that_read_back(name: str) -> None:
    operation = next(iter(ALGORITHMS[name].operations))
    workload = {"algorithm": name, "operation": operation, "size": "1MiB"}
    document = {"schema": 3, "fabric": {"radix": 4}, "collective": workload}
    assert list(offer_findings(ALGORITHMS, name, CollectiveSection)) == []
    assert list(key_findings(ALGORITHMS, name, "collective", document)) == []


TOPOLOGY = '''"""Two switches and a link.

Source: none. Leaves out: sense.
"""

import numpy as np

from weftwork.spec.fabric import HOST, SWITCH
from weftwork.spec.fabric_names import NodeNames
from weftwork.spec.plug_in import Record, Topology, Whole, row
from weftwork.topology.assemble import assemble, links_between


class Keys(Record):
    each: int = row("each", Whole(low=1, high=9), default=2, text="Hosts of a switch.", source="none")


def build(keys, parts):
    hosts = 2 * keys.each
    host = np.arange(hosts)
    names = NodeNames([("host", hosts), ("leaf", 2)])
    rates = {"rate_bps": parts.host_rate_bps, "delay_ps": parts.host_delay_ps}
    links = [links_between(host, hosts + host % 2, **rates), links_between([hosts], [hosts + 1], **rates)]
    return assemble(
        name="two", node_names=names, node_kind=[HOST] * hosts + [SWITCH] * 2, node_tier=[0] * hosts + [1] * 2,
        links=np.concatenate(links), switches=[parts.switch], nics=[parts.nic],
    )


TOPOLOGY = Topology(keys=Keys, build=build, resolve=lambda keys, ground, found: (keys, 2 * keys.each), source="none")
'''
PATTERN = '''"""Everybody to the next.

Source: none. Leaves out: sense.
"""

import numpy as np

from weftwork.spec.job import Group, Job, Peer, Program, Send, Size
from weftwork.spec.plug_in import Pattern, Record, Whole, row
from weftwork.workload.placement import one_per_host


class Keys(Record):
    shift: int = row("shift", Whole(low=0, high=9), default=1, text="How far.", source="none")


def job(keys, given):
    peer = Peer(rule="shift", group=Group(size=given.hosts), shift=keys.shift)
    program = Program(streams=((Send(peer=peer, size=Size(total_bytes=1_000)),),))
    rank_program = np.zeros(given.hosts, np.int32)
    return Job(
        name="next", ranks=given.hosts, programs=(program,), rank_program=rank_program,
        placement=one_per_host(given.hosts),
    )


PATTERN = Pattern(keys=Keys, job=job, source="none")
'''
TRANSPORT = '''"""RoCEv2 by another name.

Source: none. Leaves out: nothing.
"""

from weftwork.spec.plug_in import TransportKind
from weftwork.transports.rocev2 import transport

TRANSPORT = TransportKind(build=lambda section, keys: transport(section), source="none")
'''


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (", links_between([hosts], [hosts + 1], **rates)]", "]", "no path over switches from 'host0' to 'host1'"),
        ('default=2, text="Hosts of a switch."', 'default=2, text=""', "key 'each' has no text or no source"),
        ("(keys, 2 * keys.each)", "(keys, 7)", "resolve says 7 hosts, and build makes 4"),
        ("(keys, 2 * keys.each)", "keys", "resolve returned"),
        ('"each", Whole', '"radix", Whole', "key 'radix' is one that every such section has already"),
        ('"""Two switches and a link.\n\nSource: none. Leaves out: sense.\n"""', "", "the file has no docstring"),
        ('2 * keys.each), source="none"', '2 * keys.each), source=""', "source is empty"),
        ("node_tier=[0] * hosts", "node_tier=[0] * host", "the example does not build"),
    ],
)  # fmt: skip
def test_the_kit_finds_what_is_wrong_with_a_topology(tmp_path: Path, before: str, after: str, told: str) -> None:
    file = tmp_path / "two.py"
    file.write_text(TOPOLOGY, encoding="utf-8")
    assert check_topology(file, {}) == []
    assert before in TOPOLOGY
    file.write_text(TOPOLOGY.replace(before, after), encoding="utf-8")
    assert told in "\n".join(check_topology(file, {}))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("shift=keys.shift)", "shift=0)", "it cannot run"),
        ("ranks=given.hosts", "ranks=given.hosts + 1", "ranks, wanted one for each host"),
        ("((Send(peer=peer, size=Size(total_bytes=1_000)),),)", "((),)", "nobody sends anything"),
    ],
)
def test_the_kit_finds_what_is_wrong_with_a_pattern(tmp_path: Path, before: str, after: str, told: str) -> None:
    file = tmp_path / "next.py"
    file.write_text(PATTERN, encoding="utf-8")
    assert check_pattern(file) == []
    assert before in PATTERN
    file.write_text(PATTERN.replace(before, after), encoding="utf-8")
    assert told in "\n".join(check_pattern(file))


def test_the_kit_finds_a_transport_that_forgets_what_the_scenario_says(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TRANSPORT, encoding="utf-8")
    assert check_transport(file, {"ack_every": 4}) == []
    file.write_text(
        TRANSPORT.replace("transport(section)", "transport(section).model_copy(update={'ack_every': 1})"),
        encoding="utf-8",
    )
    assert check_transport(file, {"ack_every": 4}) == ["ack_every is 1, and the scenario says 4"]
