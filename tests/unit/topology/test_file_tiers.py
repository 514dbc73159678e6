"""Tiers that a fabric file leaves out: derived, in doubt, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.export import to_graphml, to_json
from weftwork.topology.fabric_formats import read_graphml, read_json
from weftwork.topology.from_file import fabric_from

Document = dict[str, Any]


def read(document: Document) -> Fabric:
    return fabric_from(read_json(json.dumps(document).encode(), "f.json"), "f.json")


def document(links: str, **tiers: int) -> Document:
    """Links such as ``h0-a a-s``; what begins with h is a host. Everything that results depend on is there."""
    ends = [link.split("-") for link in links.split()]
    names = list(dict.fromkeys(name for pair in ends for name in pair))
    return {
        "nodes": [
            {"id": name, "kind": "host" if name.startswith("h") else "switch"}
            | ({"tier": tiers[name]} if name in tiers else {})
            for name in names
        ],
        "links": [{"source": a, "target": b, "rate_bps": 10**11, "delay_ps": 10**5} for a, b in ends],
    }


def tiers_of(fabric: Fabric) -> dict[str, int]:
    return dict(zip(fabric.node_names, fabric.node_tier.tolist(), strict=True))


def doubt(fabric: Fabric) -> str:
    found = fabric.caveats.get("fabric.file.tier")
    return "" if found is None else found.text


CLOS = "h0-a h1-b a-s b-s a-t b-t"


@pytest.mark.parametrize("shape", [
    {"topology": "fat-tree", "radix": 4},
    {"topology": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "links_per_pair": 2},
    {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4, "node": {"nic_ports": 2},
     "dual_homed": True},
])  # fmt: skip
def test_a_tree_without_tiers_is_the_same_tree(shape: dict[str, Any]) -> None:
    whole = fabric_of(**shape)
    bare = json.loads(to_json(whole))
    for node in bare["nodes"]:
        del node["tier"]
    del bare["tree"]
    fabric = read(bare)
    assert tiers_of(fabric) == tiers_of(whole)
    assert list(fabric.link_names) == list(whole.link_names)
    assert not fabric.caveats
    text = to_graphml(whole)
    without = "".join(line + "\n" for line in text.splitlines() if 'id="node_tier"' not in line)
    for tier in range(4):
        without = without.replace(f'<data key="node_tier">{tier}</data>', "")
    assert tiers_of(fabric_from(read_graphml(without.encode(), "f.graphml"), "f.graphml")) == tiers_of(whole)


@pytest.mark.parametrize(("links", "why"), [
    ("h0-a h1-b h2-c a-b b-c c-a", "3 links such as 'a-b' would join switches of one tier"),
    (CLOS + " h2-s", "2 links such as 'a-s' would join switches of one tier"),  # storage at a spine
    (CLOS + " e-s e-t", "no shortest path between hosts passes 'e'"),  # a rack without hosts
    ("h0-a h1-a a-s", "no shortest path between hosts passes 's'"),
    (CLOS + " a-b", "1 link such as 'a-b' would join switches of one tier"),  # peers at the bottom
])  # fmt: skip
def test_what_hops_do_not_decide_is_said(links: str, why: str) -> None:
    fabric = read(document(links))
    assert f"hops to the nearest host hold instead, but {why}; write all tiers" in doubt(fabric)


def test_a_switch_with_hosts_at_the_top_is_in_doubt_only_without_tiers() -> None:
    given = read(document(CLOS + " h2-s", a=1, b=1, s=2, t=2))
    assert doubt(given) == ""
    assert tiers_of(given) == {"h0": 0, "a": 1, "h1": 0, "b": 1, "s": 2, "t": 2, "h2": 0}


def test_some_tiers_are_enough_if_they_are_the_hops() -> None:
    assert tiers_of(read(document(CLOS, s=2))) == tiers_of(read(document(CLOS, a=1, b=1, s=2, t=2)))
    with pytest.raises(ConfigError) as refused:
        read(document(CLOS, a=0, b=0))
    why = "'a' has tier 0 and 1 hop; wanted a tier for every switch, or for none"
    text = f"missing, and does not follow from hops to the nearest host: {why}"
    assert [(one.path, one.text) for one in refused.value.mistakes] == [(f"nodes.{name}.tier", text) for name in "st"]


def test_a_long_chain_needs_tiers() -> None:
    chain = " ".join(f"s{number}-s{number + 1}" for number in range(101))
    with pytest.raises(ConfigError, match=r"nodes.s101.tier  missing, and more than 100 hops to the nearest host"):
        read(document(f"h0-s0 h1-s0 {chain}"))
