"""Names that follow from numbers: the same as when all of them are written out, and found without a list."""

from __future__ import annotations

import numpy as np
import pytest

from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_names import LinkNames, NodeNames
from weftwork.topology.assemble import default_link_names
from weftwork.topology.build import fabric_of

SHAPES = (
    {"topology": "fat-tree", "tiers": 3, "radix": 4},
    {"topology": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "links_per_pair": 3},
    {"topology": "rail-optimized", "hosts": 6, "node": {"gpus": 2, "nic_ports": 4}, "pods": 2, "spines": 2, "rails": 2},
)


def test_node_names_are_words_with_numbers() -> None:
    names = NodeNames([("host", 11), ("leaf", 2), ("core", 0)])
    assert len(names) == 13
    assert names[0] == "host0"
    assert names[-1] == "leaf1"
    assert names[9:12] == ("host9", "host10", "leaf0")
    assert names == [f"host{index}" for index in range(11)] + ["leaf0", "leaf1"]
    assert names != ["host0"]
    assert [names.find(name) for name in names] == list(range(13))
    assert [names.find(wrong) for wrong in ("host11", "core0", "host01", "host", "spine0", "host-1")] == [None] * 6
    with pytest.raises(IndexError):
        names[13]


@pytest.mark.parametrize("shape", SHAPES)
def test_link_names_are_those_of_a_fabric_written_out(shape: dict[str, object]) -> None:
    fabric: Fabric = fabric_of(**shape)  # type: ignore[arg-type]  # a row of the table above
    assert isinstance(fabric.link_names, LinkNames)
    listed = default_link_names(tuple(fabric.node_names), fabric.node_tier, fabric.links)
    assert isinstance(listed, tuple)
    assert list(fabric.link_names) == list(listed)
    assert [fabric.link(name) for name in listed] == list(range(len(listed)))
    assert [fabric.node(name) for name in fabric.node_names] == list(range(len(fabric.node_names)))
    for wrong in ("host0-host1", f"{listed[0]}.9", "leaf0-spine0.1", "leaf0", ""):
        with pytest.raises(KeyError):
            fabric.link(wrong)


def test_a_link_is_named_from_the_lower_tier() -> None:
    nodes = NodeNames([("spine", 1), ("leaf", 1)])
    names = LinkNames(nodes, np.array([2, 1]), np.array([0, 1, 0]), np.array([1, 0, 1]))
    assert list(names) == ["leaf0-spine0", "leaf0-spine0.2", "leaf0-spine0.3"]
    assert names.find("leaf0-spine0.3") == 2
    assert names.find("spine0-leaf0") is None
