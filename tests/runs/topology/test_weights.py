"""Weights of next hops by the capacity behind them, on paper and against plain recursion over random graphs."""

from __future__ import annotations

import random
from functools import cache
from math import gcd
from typing import Any

import numpy as np
import pytest
from helpers.tiny import star, wired
from numpy.typing import NDArray

from weftwork.engine.instants import route_table
from weftwork.engine.packet_input import RouteTable
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.topology.routing import routes
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.topology.weights import MOST_WEIGHT

GBPS = 10**9


def every(fabric: Fabric) -> NDArray[np.bool_]:
    return np.ones(len(fabric.links), np.bool_)


def weights(table: RouteTable, node: int, edge: int) -> dict[int, int]:
    """By port."""
    group = int(table.group_of[node, edge])
    own = slice(int(table.group_ptr[group]), int(table.group_ptr[group + 1])) if group >= 0 else slice(0, 0)
    return dict(zip(table.group_ports[own].tolist(), table.group_weights[own].tolist(), strict=True))


def test_a_candidate_weighs_the_smaller_of_its_link_and_what_is_behind_it() -> None:
    """Hosts 0 and 1 at leaves 2 and 3; spine 4 has one link of 400 up and 100 down, spine 5 200 and 400."""
    links = [(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)]
    fabric = wired(links, hosts=2, rates_bps=[rate * GBPS for rate in (400, 400, 400, 100, 200, 400)])
    table = route_table(fabric, every(fabric), has_weights=True)
    assert list(weights(table, 2, 1).values()) == [1, 2]  # 100 and 200
    assert list(weights(table, 3, 0).values()) == [1, 2]  # the other way: 100 and 200 again
    assert list(weights(table, 4, 1).values()) == [1]
    assert (route_table(fabric, every(fabric)).group_weights == 1).all()


def test_two_links_to_a_spine_behind_which_is_one_weigh_half_each() -> None:
    """Two links lead to spine 4, behind which is one; the other spine has one and one. All of 100 Gb/s."""
    fabric = wired([(0, 2), (1, 3), (2, 4), (2, 4), (3, 4), (2, 5), (3, 5)], hosts=2)
    table = route_table(fabric, every(fabric), has_weights=True)
    assert list(weights(table, 2, 1).values()) == [1, 1, 1]  # each link alone could use what is behind it
    assert list(weights(table, 3, 0).values()) == [1, 1]  # the links down, not what is behind them, are less


def by_recursion(fabric: Fabric, link_up: NDArray[np.bool_], node: int, edge: int) -> dict[int, int]:
    """What each candidate could carry, in bits per second."""
    found = routes(fabric, link_up)
    ports, rate_bps = fabric.ports, fabric.links["rate_bps"][fabric.ports.link]

    @cache
    def capacity_bps(at: int) -> float:
        if at == found.attach_node[edge]:
            return float("inf")
        return sum(behind(at).values())

    def behind(at: int) -> dict[int, int]:
        return {
            port: int(min(rate_bps[port], capacity_bps(int(ports.node[ports.peer[port]]))))
            for port in found.candidates(at, edge).tolist()
        }

    return behind(node)


@pytest.mark.parametrize("seed", range(30))
def test_on_any_graph_they_are_proportional_to_the_capacities(seed: int) -> None:
    source = random.Random(seed)
    hosts, switches = source.randrange(2, 5), source.randrange(3, 9)
    links = [(host, hosts + source.randrange(switches)) for host in range(hosts)]
    links += [(hosts + at, hosts + at - 1) for at in range(1, switches)]
    between = [(hosts + a, hosts + b) for a in range(switches) for b in range(a)]
    links += [link for link in between for _ in range(source.choice((0, 1, 2)))]
    rates = [source.choice((25, 40, 100, 400)) * GBPS for _ in links]
    fabric = wired(links, hosts=hosts, rates_bps=rates)
    link_up = np.array([source.random() < 0.85 for _ in links])
    table = route_table(fabric, link_up, has_weights=True, has_seconds=True)
    plain = routes(fabric, link_up)
    assert ((table.group_of < 0) == (plain.group_of < 0)).all()
    assert (table.group_of[table.group_of < 0] == plain.group_of[plain.group_of < 0]).all()
    keys = set()
    for edge in range(len(plain.attach_node)):
        for node in range(len(fabric.node_kind)):
            wanted = by_recursion(fabric, link_up, node, edge)
            least = gcd(*wanted.values())
            found = weights(table, node, edge)
            assert found == {port: value // least for port, value in wanted.items()}
            if found:
                keys.add((node, tuple(found.items())))
            second = int(table.second_of[node, edge])
            if second >= 0:
                assert (table.group_weights[table.group_ptr[second] : table.group_ptr[second + 1]] == 1).all()
    assert len(keys) == len(set(table.group_of[table.group_of >= 0].tolist()))  # shared where ports and weights are


def test_a_spine_that_has_lost_one_of_two_fast_cores_weighs_half() -> None:
    """Radix 4, three tiers, 100 Gb/s to cores and 400 below: a spine has 200 behind it, and 100 without a core."""
    rates: dict[str, Any] = {"host_rate_bps": 400 * GBPS, "fabric_rate_bps": 400 * GBPS}
    rates |= {f"{part}_delay_ps": 1_000 for part in ("host", "fabric")}
    fabric = fat_tree(tiers=3, radix=4, switch=Switch(), nic=Nic(), **rates)
    tiers = np.sort(np.stack([fabric.node_tier[fabric.links["a"]], fabric.node_tier[fabric.links["b"]]]), axis=0)
    to_core = np.flatnonzero((tiers == [[2], [3]]).all(axis=0))
    fabric.links["rate_bps"][to_core] = 100 * GBPS
    up = every(fabric)
    assert (route_table(fabric, up, has_weights=True).group_weights == 1).all()
    up[to_core[0]] = False
    table = route_table(fabric, up, has_weights=True)
    found = {
        tuple(sorted(weights(table, node, edge).values()))
        for node in np.flatnonzero(fabric.node_tier == 1).tolist()
        for edge in range(table.group_of.shape[1])
    }
    assert found == {(), (1, 1), (1, 2)}


def test_rates_without_a_common_divisor_are_rounded() -> None:
    fabric = wired([(0, 2), (1, 3), (2, 3), (2, 3)], hosts=2, rates_bps=[GBPS, GBPS, 400 * GBPS, 100 * GBPS - 1])
    table = route_table(fabric, every(fabric), has_weights=True)
    assert list(weights(table, 2, 1).values()) == [MOST_WEIGHT, MOST_WEIGHT // 4]


def test_without_links_between_switches_hosts_are_reached_all_the_same() -> None:
    alone = star(3)
    parted = wired([(0, 2), (1, 3), (2, 3)], hosts=2)
    up = every(parted)
    up[2] = False
    for fabric, link_up in ((alone, every(alone)), (parted, up)):
        weighted, plain = (route_table(fabric, link_up, has_weights=has) for has in (True, False))
        assert (weighted.group_of == plain.group_of).all()
        assert weighted.group_ports.tolist() == plain.group_ports.tolist()
        assert (weighted.group_weights == 1).all()
