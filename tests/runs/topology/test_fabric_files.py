"""Fabrics from files and to files: round trips, what the format allows, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.export import export, to_dot, to_json
from weftwork.topology.from_file import read_fabric

EXAMPLES = Path(__file__).parents[3] / "examples" / "fabrics"


def equal(one: Fabric, other: Fabric) -> bool:
    arrays = ("node_kind", "node_tier", "node_device", "links")
    plain = ("name", "node_names", "link_names", "switches", "nics", "caveats", "tree")
    return all(np.array_equal(getattr(one, key), getattr(other, key)) for key in arrays) and all(
        getattr(one, key) == getattr(other, key) for key in plain
    )


@pytest.fixture
def fabric() -> Fabric:
    return fabric_of(
        topology="leaf-spine", leaves=2, spines=2, hosts_per_leaf=3, links_per_pair=2, switch="tomahawk-3",
        nic="connectx-7",        link_rate_bps=200 * 10**9, fabric_rate_bps=400 * 10**9, loss=1e-9, cable_length_m=1.5,
    )  # fmt: skip


@pytest.mark.parametrize("ending", [".json", ".graphml"])
def test_a_fabric_survives_a_file(fabric: Fabric, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"fabric{ending}"
    export(fabric, path)
    assert equal(read_fabric(path), fabric)
    assert equal(fabric_of(file=path), fabric)


@pytest.mark.parametrize("ending", [".json", ".graphml"])
@pytest.mark.parametrize(
    ("keys", "tree"),
    [
        ({"topology": "superpod", "scalable_units": 1, "fabric_manager": True}, "PGFT(2; 32,8; 1,4; 1,8)"),
        ({"topology": "hpn", "segments": 1, "nodes_per_segment": 2}, "PGFT(2; 2,8; 2,60; 1,1)"),
        ({"topology": "rail-only", "gpus": 256, "node": "dgx-h100", "radix": 64}, "8 x PGFT(1; 32; 1; 1)"),
        ({"file": EXAMPLES / "two_leaves.json"}, ""),
    ],
)
def test_a_file_keeps_the_numbers_of_the_generator(
    tmp_path: Path, ending: str, keys: dict[str, Any], tree: str
) -> None:
    made = fabric_of(**keys)
    assert made.tree == tree
    path = tmp_path / f"fabric{ending}"
    export(made, path)
    assert ("PGFT" in path.read_text(encoding="utf-8")) == bool(tree)
    read = read_fabric(path)
    assert (read.tree, read.extras) == (tree, made.extras)
    assert equal(read, made)


def test_a_device_with_a_key_that_it_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fabric.json"
    export(fabric_of(topology="rail-optimized", gpus=16, node="dgx-h100", switch="tomahawk-5"), path)
    text = path.read_text(encoding="utf-8")
    assert '"slice_bytes": ' in text
    path.write_text(text.replace("slice_bytes", "chunk_bytes"), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_fabric(path)
    assert [mistake.path for mistake in refused.value.mistakes] == ["servers.0.chunk_bytes"]


def test_names_with_signs_survive(tmp_path: Path) -> None:
    odd = 'a "<&>" é\\'
    data = {"nodes": [{"id": odd, "kind": "host"}, {"id": "s", "kind": "switch"}],
            "links": [{"source": odd, "target": "s", "rate": "100Gbps", "length": "3m"}]}  # fmt: skip
    (tmp_path / "odd.json").write_text(json.dumps(data), encoding="utf-8")
    fabric = read_fabric(tmp_path / "odd.json")
    export(fabric, tmp_path / "odd.graphml")
    assert equal(read_fabric(tmp_path / "odd.graphml"), fabric)
    assert '"a \\"<&>\\" é\\\\"' in to_dot(fabric)


def test_networkx_reads_what_is_exported(fabric: Fabric, tmp_path: Path) -> None:
    export(fabric, tmp_path / "fabric.graphml")
    graph = nx.read_graphml(tmp_path / "fabric.graphml", force_multigraph=True)
    assert graph.number_of_nodes() == 10
    assert graph.number_of_edges() == 6 + 8
    assert graph.nodes["leaf1"]["kind"] == "switch"
    assert nx.diameter(graph) == 4
    linked = nx.node_link_graph(json.loads(to_json(fabric)), edges="links", multigraph=True, directed=False)
    assert linked.number_of_edges() == 14


def test_weftwork_reads_what_networkx_writes(tmp_path: Path) -> None:
    graph = nx.Graph(rate="100Gbps", delay="300ns", name="by networkx")
    graph.add_node("h0", kind="host")
    graph.add_node("h1", kind="host", nic="connectx-6")
    graph.add_node("s0", kind="switch", switch="tomahawk-3")
    graph.add_edge("h0", "s0")
    graph.add_edge("h1", "s0", rate="200Gbps", length_m=2.0)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    (tmp_path / "g.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")), encoding="utf-8")
    for name in ("g.graphml", "g.json"):
        fabric = read_fabric(tmp_path / name)
        assert fabric.name == "by networkx"
        assert fabric.links["rate_bps"].tolist() == [100 * 10**9, 200 * 10**9]
        assert fabric.links["delay_ps"].tolist() == [300_000, 10_000]
        assert [nic.name for nic in fabric.nics] == ["plain", "connectx-6"]
        assert fabric.switches[0].name == "tomahawk-3"
        assert "tomahawk-3.buffer_bytes" in fabric.caveats


def wrong(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_fabric(path)
    return str(caught.value)


def test_all_mistakes_of_a_json_file_at_once(tmp_path: Path) -> None:
    data = {
        "colour": "red",
        "nodes": [{"id": "h0", "kind": "hots"}, {"id": "spine0", "kind": "switch", "switch": "tomahwak-5"},
                  {"kind": "host"},
                  {"id": "h1", "kind": "host", "device": 3}, {"id": "h2", "kind": "host", "tier": -1}],
        "links": [{"source": "h0", "target": "spineO", "rate": "400gb", "delay": "1us"},
                  {"source": "h1", "target": "spine0"},
                  {"source": "h2", "target": "spine0", "rate_bps": 1.5, "delay_ps": 1000, "length_m": 3},
                  {"source": "h2", "target": "spine0", "rate": "1Gbps", "delay": "1us", "loss": "often"}],
    }  # fmt: skip
    message = wrong(tmp_path, "bad.json", json.dumps(data))
    for part in (
        "graph.colour", "nodes.h0.kind", "found 'hots', wanted host or switch; did you mean 'host'?",
        "nodes.spine0.switch", "did you mean 'tomahawk-5'?", "nodes.2 ", "has no id",
        "nodes.h1.device", "nodes.h2.tier", "links.0.target",
        "found 'spineO', wanted the id of a node; did you mean 'spine0'?",
        "did you mean '400Gbps'?", "links.1.rate_bps", "has no rate", "has no delay and no length",
        "links.2.rate_bps", "found 1.5, wanted a whole number", "has a delay and a length", "links.3.loss",
    ):  # fmt: skip
        assert part in message


def test_graphml_mistakes_have_lines(tmp_path: Path) -> None:
    text = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="k" for="node" attr.name="kind" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="h0"><data key="k">hots</data></node>
    <node id="s0"><data key="k">switch</data></node>
    <edge source="h0" target="nobody"/>
  </graph>
</graphml>"""
    message = wrong(tmp_path, "bad.graphml", text)
    assert "line 5  nodes.h0.kind" in message
    assert "line 7  links.0.target" in message


BOMB = '<!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY c "&a;&a;&a;&a;">]><graphml><graph><node id="&c;"/></graph></graphml>'


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("bomb.graphml", BOMB, "document type"),
        ("outside.graphml", '<!DOCTYPE g SYSTEM "file:///etc/hostname"><graphml/>', "document type"),
        ("cut.graphml", "<graphml><graph>", "is not XML"),
        ("hyper.graphml", "<graphml><graph><hyperedge/></graph></graphml>", "is not supported"),
        ("nested.graphml", "<graphml><graph><node id='a'><graph/></node></graph></graphml>", "nested"),
        (
            "key.graphml",
            "<graphml><graph><node id='a'><data key='x'>1</data></node></graph></graphml>",
            "that a <key> declares",
        ),
        ("cut.json", '{"nodes": [', "is not JSON"),
        ("deep.json", "[" * 100_000, "is not JSON"),
        ("list.json", "[]", "found no mapping"),
        ("shape.json", '{"nodes": 3, "links": [1]}', "wanted a list of mappings"),
        ("empty.json", '{"nodes": [], "links": []}', "there are no hosts"),
        ("fabric.yaml", "", "wanted .json or .graphml"),
        ("devices.json", '{"nodes": [], "links": [], "switches": [{"buffer_bytes": -1}]}', "switches.0.buffer_bytes"),
    ],
)
def test_what_is_no_fabric_file_is_refused(tmp_path: Path, name: str, text: str, part: str) -> None:
    assert part in wrong(tmp_path, name, text)


def test_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_fabric(tmp_path / "none.json")


def rows(nodes: str, links: list[tuple[str, str]], **values: object) -> str:
    return json.dumps({
        "nodes": [{"id": name, "kind": "host" if name[0] == "h" else "switch"} for name in nodes.split()],
        "links": [{"source": a, "target": b, "rate": "100Gbps", "delay": "1us", **values} for a, b in links],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (rows("h0 h1 s0 s1", [("h0", "s0"), ("h1", "s1")]), "no path over switches from 'h0' to 'h1'"),
        (rows("h0 s0 s1", [("h0", "s0")]), "the switch is linked to nothing"),
        (rows("h0 h1 s0 s1 s2", [("h0", "s0"), ("h1", "s0"), ("s1", "s2")]), "no host reaches this switch"),
        (rows("h0 h1 s0", [("h0", "s0")]), "the host is linked to nothing"),
        (rows("h0 h0 s0", [("h0", "s0")]), "the name occurs 2 times"),
        (rows("h0 s0", [("h0", "s0")], name="a\nb"), "wanted printable text of 1 to 200 characters"),
        (rows("h0 s0", [("h0", "s0"), ("s0", "s0")]), "the link leads from 's0' to itself"),
        (rows("h0 s0", [("h0", "s0")], delay="0ps"), "wanted at least 1000 (1 ns)"),
        (rows("h0 s0", [("h0", "s0")], rate="0bps"), "wanted a rate above 0"),
        (rows("h0 s0", [("h0", "s0")], loss=2), "wanted a probability"),
        (rows("h0 h1 s0", [("h0", "s0"), ("h1", "s0")], name="x"), "the name occurs 2 times"),
        # h1 has a port on each side, but hosts do not forward
        (rows("h0 h1 h2 s0 s1", [("h0", "s0"), ("h1", "s0"), ("h1", "s1"), ("h2", "s1")]), "from 'h0' to 'h2'"),
    ],
)
def test_what_is_no_fabric_is_refused(tmp_path: Path, text: str, part: str) -> None:
    assert part in wrong(tmp_path, "fabric.json", text)


def test_separate_planes_are_a_fabric_where_every_host_is_on_each(tmp_path: Path) -> None:
    text = rows("h0 h1 s0 s1", [("h0", "s0"), ("h0", "s1"), ("h1", "s0"), ("h1", "s1")])
    (tmp_path / "planes.json").write_text(text, encoding="utf-8")
    assert len(read_fabric(tmp_path / "planes.json").links) == 4


@pytest.mark.parametrize(("hosts", "is_fabric"), [(3, True), (4, False)])
def test_a_switch_has_no_more_links_than_ports(tmp_path: Path, *, hosts: int, is_fabric: bool) -> None:
    names = [f"h{index}" for index in range(hosts)]
    data = json.loads(rows(" ".join([*names, "s0"]), [(name, "s0") for name in names]))
    data["switches"] = [{"name": "small", "radix": 3}]
    data["nodes"][-1]["device"] = 0
    (tmp_path / "small.json").write_text(json.dumps(data), encoding="utf-8")
    if is_fabric:
        assert len(read_fabric(tmp_path / "small.json").links) == 3
    else:
        with pytest.raises(ConfigError, match=r"nodes\.s0 +4 links, but switch 'small' has 3 ports"):
            read_fabric(tmp_path / "small.json")


def test_links_beyond_the_capacity_of_a_switch_are_refused(tmp_path: Path) -> None:
    hosts = [f"h{i}" for i in range(33)]
    data = json.loads(rows(" ".join([*hosts, "s0"]), [(host, "s0") for host in hosts], rate="400Gbps"))
    data["switch"] = "tomahawk-3"
    (tmp_path / "fast.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"links of 13.2Tbps together, but 'tomahawk-3' switches 12.8Tbps"):
        fabric_of(file=tmp_path / "fast.json")
