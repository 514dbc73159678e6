"""Every topology, traffic pattern and transport of the catalogue keeps its contract; a wrong one is found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.every_topology import FABRICS, USUAL

from weftwork.spec.scenario.choices import ALGORITHMS, PATTERNS, TOPOLOGIES, TRANSPORTS
from weftwork.spec.scenario.workload import CollectiveSection
from weftwork.testing.choices import key_findings, offer_findings
from weftwork.testing.patterns import check_pattern
from weftwork.testing.topologies import check_topology
from weftwork.testing.transports import check_transport

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
