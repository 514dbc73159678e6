"""Routes: groups of candidate ports, delivery, and what a failed link changes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.topology_routing import RATES, all_up

from weftwork.base.errors import UsageError
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.routing import DELIVER, UNREACHABLE, Routes, routes
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.topology.shapes.leaf_spine import leaf_spine


def pair_of_leaves(links_per_pair: int = 1) -> Fabric:
    return leaf_spine(
        leaves=2, spines=2, hosts_per_leaf=2, links_per_pair=links_per_pair, switch=Switch(), nic=Nic(), **RATES
    )


def next_nodes(fabric: Fabric, table: Routes, node: str, towards: str) -> list[str]:
    column = table.attach_node.tolist().index(fabric.node(towards))
    ports = fabric.ports
    return [fabric.node_names[ports.node[ports.peer[p]]] for p in table.candidates(fabric.node(node), column)]


def test_up_to_any_spine_and_down_to_one_leaf() -> None:
    fabric = pair_of_leaves()
    table = routes(fabric, all_up(fabric))
    assert [fabric.node_names[node] for node in table.attach_node] == ["leaf0", "leaf1"]
    assert next_nodes(fabric, table, "leaf0", "leaf1") == ["spine0", "spine1"]
    assert next_nodes(fabric, table, "spine1", "leaf0") == ["leaf0"]
    assert table.group_of[fabric.node("leaf1"), 1] == DELIVER
    assert (table.group_of[fabric.hosts] == UNREACHABLE).all()
    assert table.attach_of_port.tolist() == [0, 0, 1, 1] + [-1] * 12


def test_parallel_links_are_all_candidates_in_ascending_order() -> None:
    fabric = pair_of_leaves(links_per_pair=3)
    table = routes(fabric, all_up(fabric))
    ports = table.candidates(fabric.node("leaf0"), 1).tolist()
    assert len(ports) == 6
    assert ports == sorted(ports)


def test_a_failed_link_leaves_the_group_and_reroutes_over_the_other_spine() -> None:
    fabric = pair_of_leaves()
    up = all_up(fabric)
    up[fabric.link("leaf0-spine1")] = False
    table = routes(fabric, up)
    assert next_nodes(fabric, table, "leaf0", "leaf1") == ["spine0"]
    assert next_nodes(fabric, table, "leaf1", "leaf0") == ["spine0"]
    assert next_nodes(fabric, table, "spine1", "leaf0") == ["leaf1"]  # the long way, still a shortest path


def test_a_cut_fabric_keeps_its_attachments_and_says_unreachable() -> None:
    fabric = pair_of_leaves()
    up = all_up(fabric)
    up[[fabric.link("leaf0-spine0"), fabric.link("leaf0-spine1"), fabric.link("host0-leaf0")]] = False
    table = routes(fabric, up)
    assert table.attach_node.tolist() == routes(fabric, all_up(fabric)).attach_node.tolist()
    assert table.group_of[fabric.node("leaf0"), 1] == UNREACHABLE
    assert table.group_of[fabric.node("spine0"), 0] == UNREACHABLE
    assert table.group_of[fabric.node("leaf0"), 0] == DELIVER


def test_two_hosts_on_one_wire_attach_to_each_other() -> None:
    fabric = assemble(
        name="wire", node_names=["x", "y"], node_kind=[HOST, HOST], node_tier=[0, 0],
        links=links_between([0], [1], rate_bps=10**9, delay_ps=5_000), switches=(), nics=(Nic(),),
    )  # fmt: skip
    table = routes(fabric, all_up(fabric))
    assert table.attach_node.tolist() == [0, 1]
    assert table.attach_of_port.tolist() == [1, 0]
    assert table.group_of.tolist() == [[DELIVER, UNREACHABLE], [UNREACHABLE, DELIVER]]


def test_hosts_do_not_forward() -> None:
    # s0 and s1 are joined by h0, which has two ports, and by the longer way over s2
    fabric = assemble(
        name="dual-homed", node_names=["h0", "h1", "h2", "s0", "s1", "s2"], node_kind=[HOST] * 3 + [SWITCH] * 3,
        node_tier=[0] * 3 + [1, 1, 2], nics=(Nic(),), switches=(Switch(),),
        links=links_between([0, 0, 1, 2, 3, 4], [3, 4, 3, 4, 5, 5], rate_bps=10**9, delay_ps=5_000),
    )  # fmt: skip
    table = routes(fabric, all_up(fabric))
    assert next_nodes(fabric, table, "s0", "s1") == ["s2"]
    assert table.attach_of_port[:2].tolist() == [0, 1]


def test_groups_are_kept_once() -> None:
    fabric = fat_tree(tiers=3, radix=4, switch=Switch(), nic=Nic(), **RATES)
    table = routes(fabric, all_up(fabric))
    # 8 leaves: one group up; 8 aggs: one up, two down; 4 cores: four down
    assert len(table.group_ptr) - 1 == 8 * 1 + 8 * 3 + 4 * 4


def test_a_switch_with_more_than_64_ports_keeps_its_groups_apart() -> None:
    fabric = leaf_spine(leaves=70, spines=1, hosts_per_leaf=1, switch=Switch(), nic=Nic(), **RATES)
    table = routes(fabric, all_up(fabric))
    spine = fabric.node("spine0")
    assert [next_nodes(fabric, table, "spine0", f"leaf{i}") for i in (0, 8, 64, 69)] == [
        ["leaf0"], ["leaf8"], ["leaf64"], ["leaf69"],
    ]  # fmt: skip
    assert len(np.unique(table.group_of[spine])) == 70


def test_link_up_must_have_one_entry_per_link() -> None:
    fabric = pair_of_leaves()
    with pytest.raises(UsageError, match=r"has shape \(3,\), wanted \(8,\)"):
        routes(fabric, np.ones(3, np.bool_))
