"""Routes that never go down and then up again: the rule on paper, whole trees, and what is refused."""

from __future__ import annotations

from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.choices import TOPOLOGIES
from weftwork.topology.build import fabric_of
from weftwork.topology.candidate_paths import candidate_paths
from weftwork.topology.lost_names import find_lost
from weftwork.topology.routing import UNREACHABLE, Routes, routes
from weftwork.topology.tree_topology import TreeTopology
from weftwork.topology.valleys import leaves_below, leaves_left, valleys


def next_nodes(fabric: Fabric, table: Routes, node: int, towards: int) -> list[int]:
    column = table.attach_node.tolist().index(towards)
    return [int(fabric.ports.node[fabric.ports.peer[port]]) for port in table.candidates(node, column)]


def test_leaves_below_a_loss_are_all_that_it_bends() -> None:
    """The aggregation switches that are left of two pods share no core."""
    fabric = fabric_of(topology="fat-tree", tiers=3, radix=4)
    _, lost = find_lost(fabric, ["agg0-core0", "agg0-core1", "agg3-core2", "agg3-core3"])
    leaves = leaves_left(fabric, ~lost)
    near = leaves_below(fabric, lost, leaves)
    assert near.tolist() == [0, 1, 2, 3]
    some, every = valleys(fabric, ~lost, leaves, near), valleys(fabric, ~lost, leaves)
    assert some is not None
    assert every is not None
    assert (some.pairs_bent, some.pairs_legal) == (4, some.pairs_joined - 4)
    assert (every.pairs_bent, every.pairs_legal) == (4, every.pairs_joined - 4)


def test_a_pair_without_such_a_route_is_unreachable() -> None:
    fabric = fabric_of(topology="leaf-spine", leaves=3, spines=2, hosts_per_leaf=1)
    _, lost = find_lost(fabric, ["leaf0-spine1", "leaf1-spine0"])
    table = routes(fabric, ~lost, up_down=True)
    leaf0, leaf1, spine0, spine1 = (fabric.node(name) for name in ("leaf0", "leaf1", "spine0", "spine1"))
    assert table.group_of[leaf0, 1] == table.group_of[leaf1, 0] == UNREACHABLE
    assert table.group_of[spine0, 1] == table.group_of[spine1, 0] == UNREACHABLE  # they would have to go down first
    assert routes(fabric, ~lost).group_of[leaf0, 1] >= 0
    assert next_nodes(fabric, table, leaf0, fabric.node("leaf2")) == [spine0]
    found = candidate_paths(fabric, ~lost, [(0, 1), (0, 2)], paths=0, most=8, up_down=True)
    assert [len(found[pair]) for pair in ((0, 1), (0, 2))] == [0, 1]
    assert len(candidate_paths(fabric, ~lost, [(0, 1)], paths=0, most=8)[0, 1]) == 1


TREES = [name for name in TOPOLOGIES if isinstance(TOPOLOGIES.load(name), TreeTopology)]
