"""Names that follow from numbers: the same as when all of them are written out, and found without a list."""

from __future__ import annotations

import pytest

from weftwork.spec.fabric import Fabric
from weftwork.spec.fabric_names import LinkNames
from weftwork.topology.assemble import default_link_names
from weftwork.topology.build import fabric_of

SHAPES = (
    {"topology": "fat-tree", "tiers": 3, "radix": 4},
    {"topology": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 2, "links_per_pair": 3},
    {"topology": "rail-optimized", "hosts": 6, "node": {"gpus": 2, "nic_ports": 4}, "pods": 2, "spines": 2, "rails": 2},
)


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
