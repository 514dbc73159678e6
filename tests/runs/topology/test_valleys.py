"""Routes that go down and up again: pairs of leaves that keep a route without one, against all paths of networkx."""

from __future__ import annotations

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.assemble import assemble, links_between
from weftwork.topology.build import fabric_of
from weftwork.topology.measures import bisection
from weftwork.topology.up_down import UpDown, disjoint_paths
from weftwork.topology.valleys import leaves_left, legal_pairs, valleys

GBPS = 10**9


@st.composite
def tiered_fabrics(draw: st.DrawFn) -> tuple[Fabric, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Switches of up to four tiers, with links that may skip one, hosts on any of them, and some links down."""
    tiers = [1, 1, *draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))]
    count = len(tiers)
    possible = [(a, b) for a, b in combinations(range(count), 2) if tiers[a] != tiers[b]]
    links = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=12)) if possible else []
    hosts = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=5))
    ends = [*links, *((at, count + place) for place, at in enumerate(hosts))]
    up = [draw(st.sampled_from([True, True, True, False])) for _ in links] + [True] * len(hosts)
    joined = nx.Graph(links)
    joined.add_nodes_from(range(count))
    first, *others = (min(part) for part in nx.connected_components(joined))
    top = count + len(hosts)  # a switch far above, whose links are down, joins what would be refused in parts
    spare = [(part, top) for part in (first, *others)] if others else []
    names = [f"s{i}" for i in range(count)] + [f"h{i}" for i in range(len(hosts))] + ["top"] * bool(spare)
    fabric = assemble(
        name="random tiers",
        node_names=names,
        node_kind=[SWITCH] * count + [HOST] * len(hosts) + [SWITCH] * bool(spare),
        node_tier=[*tiers, *([0] * len(hosts)), *([9] * bool(spare))],
        links=links_between([a for a, _ in ends + spare], [b for _, b in ends + spare], rate_bps=GBPS, delay_ps=2_000),
        switches=(Switch(),),
        nics=(Nic(),),
    )
    return fabric, np.array(up + [False] * len(spare))


def has_valley(fabric: Fabric, path: list[int]) -> bool:
    """Whether a path of switches rises after it has fallen."""
    rises = [fabric.node_tier[after] > fabric.node_tier[before] for before, after in pairwise(path)]
    return any(later and not sooner for sooner, later in combinations(rises, 2))


def switches_of(fabric: Fabric, link_up: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(np.flatnonzero(fabric.node_kind == SWITCH).tolist())
    for a, b, *_ in fabric.links[link_up].tolist():
        if fabric.node_kind[a] == fabric.node_kind[b] == SWITCH:
            graph.add_edge(a, b)
    return graph


@given(drawn=tiered_fabrics())
def test_pairs_agree_with_all_paths(drawn: tuple[Fabric, np.ndarray[tuple[int], np.dtype[np.bool_]]]) -> None:
    fabric, up = drawn
    graph, leaves = switches_of(fabric, up), leaves_left(fabric, up)
    found = valleys(fabric, up, leaves)
    assert found is not None
    pairs = [pair for pair in combinations(leaves.tolist(), 2) if nx.has_path(graph, *pair)]
    legal = [pair for pair in pairs if not all(has_valley(fabric, path) for path in nx.all_simple_paths(graph, *pair))]
    bends = [[has_valley(fabric, path) for path in nx.all_shortest_paths(graph, *pair)] for pair in pairs]
    assert (found.leaves, found.sample) == (len(leaves), len(leaves))
    assert (found.pairs_joined, found.pairs_legal) == (len(pairs), len(legal))
    assert (found.pairs_bent, found.pairs_only_bent) == (sum(map(any, bends)), sum(map(all, bends)))
    assert legal_pairs(fabric, up, leaves) == len(legal)
    if found.pairs_bent:
        path = [fabric.node(name) for name in found.example]
        assert has_valley(fabric, path)
        assert path in list(nx.all_shortest_paths(graph, path[0], path[-1]))
        assert {path[0], path[-1]} <= set(leaves.tolist())
        if found.pairs_only_bent:
            assert all(bends[pairs.index((min(path[0], path[-1]), max(path[0], path[-1])))])
    else:
        assert found.example == ()


@given(drawn=tiered_fabrics())
def test_flows_without_valleys_agree_with_networkx(
    drawn: tuple[Fabric, np.ndarray[tuple[int], np.dtype[np.bool_]]],
) -> None:
    fabric, up = drawn
    graph = nx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    half = set(fabric.hosts[: len(fabric.hosts) // 2].tolist())

    def more(tail: object, head: object, cables: int) -> None:
        old = graph.get_edge_data(tail, head, default={"capacity": 0})["capacity"]
        graph.add_edge(tail, head, capacity=old + cables)

    for switch in np.flatnonzero(fabric.node_kind == SWITCH).tolist():
        more(("up", switch), ("down", switch), 1_000)
    for a, b, *_ in fabric.links[up].tolist():
        low, high = (a, b) if fabric.node_tier[a] < fabric.node_tier[b] else (b, a)
        if fabric.node_kind[low] == HOST:
            ends = ("source", ("up", high)) if low in half else (("down", high), "sink")
            more(*ends, 1)
        else:
            more(("up", low), ("up", high), 1)
            more(("down", high), ("down", low), 1)
    assert UpDown(fabric).bisection(up).rate_bps == nx.maximum_flow_value(graph, "source", "sink") * GBPS
    leaves = leaves_left(fabric, up)
    found = disjoint_paths(fabric, up, leaves)
    whole = disjoint_paths(fabric, np.ones_like(up), leaves)
    graph.remove_nodes_from(["source", "sink"])
    if found is None or whole is None:
        return
    assert found[0] == whole[0]
    names = found[1].source, found[1].target
    ends = [fabric.node(name) for name in names]
    assert nx.maximum_flow_value(graph, ("up", ends[0]), ("down", ends[1])) == found[1].paths
    for one, other in combinations(leaves.tolist(), 2):
        paths = nx.maximum_flow_value(graph, ("up", one), ("down", other))
        assert paths >= found[1].paths or paths == 0  # pairs that no whole fabric joins are left out


@given(lost=st.sets(st.integers(0, 63), max_size=20))
def test_flows_without_valleys_are_no_larger_than_others(lost: set[int]) -> None:
    fabric = fabric_of(topology="fat-tree", radix=4, tiers=3)
    up = np.ones(len(fabric.links), np.bool_)
    up[sorted(number for number in lost if number < len(up))] = False
    network = UpDown(fabric)
    assert network.bisection(np.ones_like(up)).rate_bps == bisection(fabric).rate_bps
    assert network.bisection(up).rate_bps <= bisection(fabric).rate_bps
