"""Optional keys of a fabric file: what holds without them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.fabric_formats import read_graphml, read_json
from weftwork.topology.from_file import fabric_from

Document = dict[str, Any]


def read(document: Document) -> Fabric:
    return fabric_from(read_json(json.dumps(document).encode(), "f.json"), "f.json")


def star(**more: Any) -> Document:
    """Two hosts at a switch, with all that results depend on."""
    nodes: list[Document] = [{"id": f"h{number}", "kind": "host"} for number in range(2)]
    nodes.append({"id": "s", "kind": "switch", "tier": 1})
    links = [{"source": f"h{number}", "target": "s", "rate": "100Gbps"} for number in range(2)]
    whole: Document = {
        "delay": "100ns", "loss": 0, "corruption": 0, "switches": [Switch().model_dump()],
        "nics": [Nic().model_dump()], "servers": [Server().model_dump()], "nodes": nodes, "links": links,
    }  # fmt: skip
    return {key: value for key, value in (whole | more).items() if value is not None}


def assumed(document: Document) -> str:
    return "; ".join(caveat.text for caveat in read(document).caveats.values() if caveat.kind == "assumed")


def mistakes(document: Document) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        read(document)
    return [f"{mistake.path}  {mistake.text}" for mistake in refused.value.mistakes]


def test_a_whole_file_assumes_nothing() -> None:
    assert assumed(star()) == ""


@pytest.mark.parametrize(("more", "text"), [
    ({"loss": None}, "loss of 2 links (0)"),
    ({"loss": None, "corruption": None}, "loss and corruption of 2 links (0)"),
    ({"switches": None}, "switch of 1 switch (plain)"),
    ({"nics": None}, "nic of 2 hosts (plain)"),
    ({"nics": None, "server": "dgx-h100", "node": 1}, "nic of 2 hosts (connectx-7)"),
    ({"servers": None}, "server of 2 hosts (plain: 1 GPU, 1 NIC port)"),
    ({"switches": [{"name": "tomahawk-4", "radix": 2}]},
     "switches.0: forwarding_latency_ps, buffer_bytes, reserve_bytes, headroom_bytes and 8 more (as a plain switch)"),
    ({"switches": [Switch().model_dump() | {"ecn": {"pmax": 1, "at": "dequeue", "kmin_bytes": 1}}]},
     "switches.0: ecn.kmax_bytes (as a plain switch)"),
])  # fmt: skip
def test_what_is_left_out_is_said(more: Document, text: str) -> None:
    if "node" in more:  # a server with 8 ports has 8 links
        more = {key: value for key, value in more.items() if key != "node"} | {"servers": None}
        document = star(**more)
        document["links"] = [link for link in document["links"] for _ in range(8)]
    else:
        document = star(**more)
    assert assumed(document) == f"'f.json' leaves out, with what holds instead: {text}"


def test_one_listed_device_is_that_of_all_nodes_and_several_need_a_number() -> None:
    own = Switch(name="mine", buffer_bytes=10**6)
    assert read(star(switches=[own.model_dump()])).switches == (own,)
    two = [Switch().model_dump(), own.model_dump()]
    several = "missing; the file lists 2 devices, wanted the number of one, 0 to 1"
    assert mistakes(star(switches=two)) == [f"nodes.s.device  {several}"]
    assert mistakes(star(servers=[Server().model_dump()] * 2))[0] == f"nodes.h0.server  {several}"
    assert mistakes(star(nics=[Nic().model_dump()] * 2))[0] == f"nodes.h0.device  {several}"
    assert read(star(switches=two, switch="tomahawk-4")).switches[-1].name == "tomahawk-4"


def test_defaults_of_networkx_and_graphml_hold() -> None:
    document = star(loss=None, node_default={"pod": 3}, edge_default={"loss": 0.25})
    document["links"][1]["loss"] = 0.5
    fabric = read(document)
    assert fabric.links["loss"].tolist() == [0.25, 0.5]
    assert fabric.node_pod is not None
    assert fabric.node_pod.tolist() == [3, 3, 3]
    graphml = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
    <key id="k" for="node" attr.name="kind" attr.type="string"><default>host</default></key>
    <key id="r" for="edge" attr.name="rate" attr.type="string"><default>100Gbps</default></key>
    <key id="l" for="edge" attr.name="loss" attr.type="double"><default>0.25</default></key>
    <key id="d" for="graph" attr.name="delay" attr.type="string"><default>1us</default></key>
    <graph edgedefault="undirected"><node id="a"/><node id="b"/><node id="s"><data key="k">switch</data></node>
    <edge source="a" target="s"/><edge source="b" target="s"><data key="l">0</data></edge></graph></graphml>"""
    fabric = fabric_from(read_graphml(graphml.encode(), "f.graphml"), "f.graphml")
    assert fabric.links["loss"].tolist() == [0.25, 0]
    assert fabric.links["delay_ps"].tolist() == [1_000_000] * 2
    wrong = star(edge_default=[1])
    assert mistakes(wrong) == ["edge_default  found [1], wanted a mapping"]


def test_a_directed_graph_has_each_cable_once() -> None:
    document = star(directed=True)
    assert len(read(document).links) == 2
    document["links"].append({"source": "s", "target": "h1", "rate": "100Gbps"})
    twice = "the graph is directed and has 'h1' to 's' and 's' to 'h1'"
    assert mistakes(document) == [f"links.1  {twice}; a link has both directions: wanted each cable once"]
    assert len(read(document | {"directed": False}).links) == 3
