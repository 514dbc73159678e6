"""Routing of a scenario: its keys become a record of ports, and every mistake is told at once with its line."""

from __future__ import annotations

from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.engine.flow.flow_input import FlowInput
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.written import dump
from weftwork.study.prepare.prepare import known_names, prepare
from weftwork.study.prepare.prepared import Prepared

SCENARIO = """schema: 3
fabric:
  topology: leaf-spine
  leaves: 3
  spines: 2
  hosts_per_leaf: 2
  links_per_pair: 2
  link_rate: 100Gbps
{keys}
traffic: {{pattern: all-to-all, size: 64KiB}}
engine: {{fidelity: {fidelity}}}
"""
TRAFFIC = "traffic: {pattern: all-to-all, size: 64KiB}"
PIN = "  pinned: [{from: host0, to: host2, path: [leaf0, spine1, leaf1]}]"


def text(*keys: str, fidelity: str = "flow") -> str:
    return SCENARIO.format(keys="\n".join(keys), fidelity=fidelity)


def prepared(*keys: str, fidelity: str = "flow") -> Prepared:
    return prepare(loads(text(*keys, fidelity=fidelity), known=known_names()))


def refused(*keys: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(ConfigError) as caught:
        prepared(*keys)
    return [(one.line, one.path, one.text + (f"; {one.fix}?" if one.fix else "")) for one in caught.value.mistakes]


def flows(made: Prepared) -> FlowInput:
    assert isinstance(made.engine_input, FlowInput)
    return made.engine_input


def test_shortest_paths_have_no_layers() -> None:
    found = flows(prepared("  routing: shortest"))
    assert (found.layers, len(found.pins)) == ((), 0)


@pytest.mark.parametrize(
    ("keys", "ways"), [(["  routing: k-shortest"], 8), (["  routing: k-shortest", "  paths: 3"], 3)]
)
def test_k_shortest_is_eight_paths_unless_told(keys: list[str], ways: int) -> None:
    (layers,) = flows(prepared(*keys)).layers
    assert layers.layer_of.shape == (3, 3, ways)
    assert (layers.layer_of[0, 1] >= 0).all()


def test_a_pin_is_the_first_of_parallel_links_at_both_fidelities() -> None:
    found = flows(prepared(PIN))
    fabric = prepared(PIN).fabric
    (layers,) = found.layers
    node = fabric.node("leaf0")
    layer = int(layers.layer_of[0, 1, 0])
    port = int(layers.next_port[layer, node, 1])
    assert fabric.link_names[fabric.ports.link[port]] == "leaf0-spine1"
    assert found.pins.tolist() == [(0, 2, -1, 0)]
    packets: Any = prepared(PIN, fidelity="packet").engine_input
    assert packets.pins.tolist() == [(0, 2, -1, 0)]
    assert packets.routes[0].pinned_ways == 1


def test_what_is_read_is_what_is_written() -> None:
    scenario = loads(text(PIN, "  routing: k-shortest", "  paths: 5"), known=known_names())
    again = loads(dump(scenario), known=known_names())
    assert again == scenario
    assert again.fabric.pinned[0].path == ("leaf0", "spine1", "leaf1")


def test_every_mistake_is_told_at_once() -> None:
    found = refused(
        "  pinned:",
        "    - {from: hots0, to: host2, path: [leaf0, spine1, leaf1]}",
        "    - {from: host0, to: host2/nic1, path: [leaf0, spin1, leaf1]}",
        "    - {from: host0, to: host3, path: [leaf0, leaf1]}",
        "    - {from: host0, to: host2, path: [leaf1, spine0, leaf2]}",
        "    - {from: host1, to: host2, path: [leaf0, spine0, leaf1]}",
    )
    assert found == [
        (10, "fabric.pinned.0.from",
         "found 'hots0', which is no host of the fabric, wanted such as host0, host1, host2 and 3 more; host0?"),
        (11, "fabric.pinned.1.to", "found 'host2/nic1', wanted host2/nic0 to host2/nic0, or host2 for all"),
        (11, "fabric.pinned.1.path",
         "found 'spin1', which is no switch of the fabric, wanted such as leaf0, leaf1, leaf2 and 2 more; spine1?"),
        (12, "fabric.pinned.2.path", "no link joins 'leaf0' and 'leaf1', wanted such as spine0, spine1"),
        (13, "fabric.pinned.3.path", "the path starts at 'leaf1', but 'host0' is attached to leaf0; leaf0?"),
        (13, "fabric.pinned.3.path", "the path ends at 'leaf2', but 'host2' is attached to leaf1; leaf1?"),
    ]  # fmt: skip


def test_what_the_file_alone_shows_is_told_when_it_is_read() -> None:
    found = refused(
        "  paths: 3",
        "  pinned:",
        "    - {from: host0, to: host2, path: [leaf0, spine1, leaf1]}",
        "    - {from: host0, to: host2, path: [leaf0, spine0, leaf1]}",
        "    - {from: host0, to: host0/nic0, path: [leaf0]}",
        "    - {from: host0, to: host3, path: [leaf0, spine0, leaf2, spine0, leaf1]}",
    )
    assert [(line, path) for line, path, _ in found] == [
        (9, "fabric.paths"), (12, "fabric.pinned.1"), (13, "fabric.pinned.2.to"), (14, "fabric.pinned.3.path"),
    ]  # fmt: skip
    assert [words for _, _, words in found[1:]] == [
        "pins host0 to host2, which fabric.pinned.0 pins already; each has one path",
        "found 'host0/nic0', the host that sends, wanted another one",
        "passes 'spine0' twice, wanted every switch once",
    ]


def test_a_host_and_its_nic_are_one_pair() -> None:
    ends = "to: host2, path: [leaf0, spine0, leaf1]"
    pins = f"{{from: host0, {ends}}}, {{from: host0/nic0, {ends}}}"
    assert refused(f"  pinned: [{pins}]") == [
        (9, "fabric.pinned.1", "pins the same queue pairs as fabric.pinned.0; each has one path")
    ]


def test_a_host_without_ranks_is_told() -> None:
    """A collective of two of the six hosts' GPUs."""
    keys = text(PIN).replace(TRAFFIC, "collective: {operation: all-reduce, algorithm: ring, size: 64KiB, gpus: 2}")
    with pytest.raises(ConfigError) as caught:
        prepare(loads(keys, known=known_names()))
    assert [(one.line, one.path, one.text) for one in caught.value.mistakes] == [
        (9, "fabric.pinned.0.to", "no rank of the job runs on 'host2'")
    ]


def test_one_nic_port_of_several_is_pinned_alone() -> None:
    keys = "  node: {gpus: 2, nic_ports: 2}"
    workload = "collective: {operation: all-to-all, algorithm: direct, size: 64KiB}"
    both, one = (
        flows(prepare(loads(text(keys, pin).replace(TRAFFIC, workload), known=known_names())))
        for pin in (PIN, PIN.replace("from: host0", "from: host0/nic1"))
    )
    pairs = {name: list(zip(pins["source"].tolist(), pins["destination"].tolist(), strict=True))
             for name, pins in (("both", both.pins), ("one", one.pins))}  # fmt: skip
    assert pairs == {"both": [(0, 4), (0, 5), (1, 4), (1, 5)], "one": [(1, 4), (1, 5)]}  # rank 1 has the second port
