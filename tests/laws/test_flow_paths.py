"""Paths of flows against the tables of the packet engine: its candidates, its hash, its even split."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.laws.test_routes import fabrics as random_fabrics

from weftwork.engine.flow.paths import FlowPaths, RoutingMode
from weftwork.engine.hashing import field_bytes, final_hash
from weftwork.engine.lower import port_delays_ps, switch_rows
from weftwork.spec.device import HashFunction, Switch
from weftwork.spec.fabric import HOST, SWITCH, Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.digits import destination_numbers, port_strides
from weftwork.topology.routing import DELIVER, Routes, routes
from weftwork.topology.weights import weighted

FAMILIES: dict[str, dict[str, Any]] = {
    "fat tree of 2 tiers": {"topology": "fat-tree", "tiers": 2, "radix": 8},
    "fat tree of 3 tiers": {"topology": "fat-tree", "tiers": 3, "radix": 4},
    "fat tree, filled in part": {"topology": "fat-tree", "tiers": 3, "radix": 6, "hosts": 31},
    "leaf-spine, parallel links": {"topology": "leaf-spine", "leaves": 4, "spines": 3, "hosts_per_leaf": 3,
                                   "links_per_pair": 2},
    "leaf-spine, empty leaf": {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 3, "hosts": 7},
    "leaf-spine, two homes": {"topology": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 3,
                              "node": {"gpus": 2, "nic_ports": 2}, "dual_homed": True},
    "rails, 2 tiers": {"topology": "rail-optimized", "hosts": 12, "node": {"gpus": 4, "nic_ports": 4}, "pods": 3,
                       "spines": 4},
    "rails, 3 tiers": {"topology": "rail-optimized", "hosts": 24, "node": {"gpus": 2, "nic_ports": 2}, "radix": 8},
    "rails, 3 tiers, parallel links": {"topology": "rail-optimized", "hosts": 12, "node": {"gpus": 2, "nic_ports": 2},
                                       "radix": 8, "tiers": 3},
    "rails alone": {"topology": "rail-only", "hosts": 12, "node": {"gpus": 2, "nic_ports": 2}, "radix": 4},
    "two planes": {"topology": "rail-optimized", "hosts": 16, "node": {"gpus": 2, "nic_ports": 4}, "radix": 8,
                   "planes": 2},
}  # fmt: skip
HASHES = (
    HashFunction(),
    HashFunction(algorithm="mix", seed=7),
    HashFunction(algorithm="crc16-ccitt", seed=3, offset=2),
    HashFunction(algorithm="xor", fields=("src_ip", "dst_ip", "in_port")),
    HashFunction(algorithm="crc32c", seed=9, fields=("src_ip", "dst_ip", "src_port", "destination_qp", "in_port")),
)


@cache
def family(name: str, hashed: HashFunction = HASHES[0]) -> Fabric:
    return fabric_of(**FAMILIES[name], switch=Switch(hash=hashed))


@cache
def routers(name: str, hashed: HashFunction, mode: RoutingMode) -> FlowPaths:
    return FlowPaths(family(name, hashed), mode)


def host_ports(fabric: Fabric) -> NDArray[np.int64]:
    return np.flatnonzero(fabric.node_kind[fabric.ports.node] == HOST)


Hashed = Callable[[int, int], int]  # node, port by which the packet came
Choose = Callable[[int, int, list[int]], int]  # the same, and candidates


def walked(fabric: Fabric, table: Routes, source: int, destination: int, choose: Choose) -> list[int] | None:
    """The ports that a packet takes where ``choose`` picks among the candidates; None: no path."""
    ports = fabric.ports
    taken, ingress = [source], int(ports.peer[source])
    column = int(table.attach_of_port[destination])
    while True:
        node = int(ports.node[ingress])
        if table.group_of[node, column] == DELIVER:
            return [*taken, int(ports.peer[destination])]
        members = table.candidates(node, column).tolist()
        if not members:
            return None
        taken.append(members[0] if len(members) == 1 else choose(node, ingress, members))
        ingress = int(ports.peer[taken[-1]])


def hashing(fabric: Fabric, source: int, destination: int, entropy: int, qp: int) -> Hashed:
    rows, node_device = switch_rows(fabric)

    def hashed(node: int, ingress: int) -> int:
        row = rows[node_device[node]]
        data = field_bytes(
            fields=int(row["hash_fields"]), source_port=source, destination_port=destination, entropy=entropy,
            in_port=ingress - int(fabric.ports.base[node]), destination_qp=qp,
        )  # fmt: skip
        return final_hash(int(row["hash_algorithm"]), int(row["hash_seed"]), int(row["hash_offset"]), data)

    return hashed


def by_hash(hashed: Hashed) -> Choose:
    return lambda node, ingress, members: members[hashed(node, ingress) % len(members)]


def even_split(
    fabric: Fabric, table: Routes, source: int, destination: int
) -> tuple[NDArray[np.float64], int, int] | None:
    """What every port carries of one byte when switches split evenly; longest latency and links; None: no path."""
    ports, delay = fabric.ports, port_delays_ps(fabric)
    loads = np.zeros(len(ports.node))
    column = int(table.attach_of_port[destination])
    share = {int(ports.node[ports.peer[source]]): (1.0, int(delay[source]))}
    loads[source], links = 1.0, 1
    while not all(table.group_of[node, column] == DELIVER for node in share):
        reached: dict[int, tuple[float, int]] = {}
        for node, (fraction, latency) in share.items():
            members = table.candidates(node, column).tolist()
            if not members:
                return None
            for port in members:
                loads[port] += fraction / len(members)
                peer = int(ports.node[ports.peer[port]])
                old = reached.get(peer, (0.0, 0))
                reached[peer] = (old[0] + fraction / len(members), max(old[1], latency + int(delay[port])))
        share, links = reached, links + 1
    last = int(ports.peer[destination])
    loads[last] = 1.0
    return loads, max(latency for _, latency in share.values()) + int(delay[last]), links + 1


def compare(
    fabric: Fabric,
    router: FlowPaths,
    link_up: NDArray[np.bool_],
    flows: list[tuple[int, int, int, int]],
    *,
    up_down: bool = False,
) -> None:
    table = routes(fabric, link_up, up_down=up_down)
    router.use(link_up)
    columns = np.array(flows).T
    found = router.paths(columns[0], columns[1], entropy=columns[2], destination_qp=columns[3])
    delay = port_delays_ps(fabric)
    for index, (source, destination, entropy, qp) in enumerate(flows):
        hops = found.hops[found.hop_ptr[index] : found.hop_ptr[index + 1]]
        about = found.about[index]
        if router.mode == "spray":
            split = even_split(fabric, table, source, destination)
            assert bool(about["reachable"]) == (split is not None)
            if split is not None:
                one = router.paths(columns[0][index : index + 1], columns[1][index : index + 1])
                assert router.port_loads(one, np.ones(1)) == pytest.approx(split[0], abs=1e-12)
                assert (about["latency_ps"], about["links"]) == split[1:]
                best = (fabric.links["rate_bps"][fabric.ports.link][split[0] > 0] / split[0][split[0] > 0]).min()
                assert about["rate_bps"] == pytest.approx(best)
            continue
        hashed = hashing(fabric, source, destination, entropy, qp)
        choose = by_hash(hashed)
        if router.mode == "deterministic":
            choose = by_destination(fabric, destination)
        if router.mode == "weighted":
            choose = by_weight(hashed, *weighted(fabric, link_up, table, up_down=up_down), destination)
        ports = walked(fabric, table, source, destination, choose)
        assert hops["link"].tolist() == (ports or [])
        assert bool(about["reachable"]) == (ports is not None)
        assert (hops["weight"] == 1).all()
        if ports is not None:
            assert about["latency_ps"] == delay[ports].sum()
            assert about["links"] == len(ports)
            assert about["rate_bps"] == fabric.links["rate_bps"][fabric.ports.link[ports]].min()


def by_weight(hashed: Hashed, table: Routes, weights: NDArray[np.int32], destination: int) -> Choose:
    """As `weftwork.policies.port_selection.wcmp`, with the weights that routing gives the packet engine."""
    column = int(table.attach_of_port[destination])

    def choose(node: int, ingress: int, members: list[int]) -> int:
        own = slice(*table.group_ptr[table.group_of[node, column] :][:2].tolist())
        assert table.group_ports[own].tolist() == members
        entries = np.repeat(members, weights[own])
        return int(entries[hashed(node, ingress) % len(entries)])

    return choose


def by_destination(fabric: Fabric, destination: int) -> Choose:
    """As `weftwork.policies.port_selection.destination_modulo`."""
    number, strides = int(destination_numbers(fabric)[destination]), port_strides(fabric)

    def choose(node: int, ingress: int, members: list[int]) -> int:
        del node, ingress
        return members[number // int(strides[members[0]]) % len(members)]

    return choose


@st.composite
def cases(
    draw_from: st.DrawFn, fabric: Fabric, *, down: bool
) -> tuple[NDArray[np.bool_], list[tuple[int, int, int, int]]]:
    ends = st.sampled_from(host_ports(fabric).tolist())
    pairs = st.tuples(ends, ends).filter(lambda pair: pair[0] != pair[1])
    flows = draw_from(
        st.lists(st.tuples(pairs, st.integers(0, 65_535), st.integers(0, 2**24 - 1)), min_size=1, max_size=6)
    )
    link_up = np.ones(len(fabric.links), np.bool_)
    if down:
        link_up[draw_from(st.lists(st.integers(0, len(link_up) - 1), min_size=1, max_size=6))] = False
        if draw_from(st.booleans()):  # a whole switch
            node = draw_from(st.sampled_from(np.flatnonzero(fabric.node_kind == SWITCH).tolist()))
            link_up[(fabric.links["a"] == node) | (fabric.links["b"] == node)] = False
    return link_up, [(pair[0], pair[1], entropy, qp) for pair, entropy, qp in flows]


@pytest.mark.parametrize("mode", ["spray", "hashed", "deterministic", "weighted"])
@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=case_count(plain=10, deep=60))
@given(data=st.data())
def test_paths_are_those_of_the_packet_engine(name: str, mode: RoutingMode, data: st.DataObject) -> None:
    hashed = data.draw(st.sampled_from(HASHES)) if mode in {"hashed", "weighted"} else HASHES[0]
    fabric = family(name, hashed)
    link_up, flows = data.draw(cases(fabric, down=data.draw(st.booleans())))
    compare(fabric, routers(name, hashed, mode), link_up, flows)


@pytest.mark.parametrize("mode", ["spray", "hashed", "deterministic", "weighted"])
@settings(max_examples=case_count(plain=30, deep=150))
@given(drawn=random_fabrics(), data=st.data())
def test_paths_of_any_fabric(mode: RoutingMode, drawn: tuple[Fabric, list[bool]], data: st.DataObject) -> None:
    fabric, up = drawn
    ends = host_ports(fabric).tolist()
    if len(ends) < 2:
        return
    _, flows = data.draw(cases(fabric, down=False))
    compare(fabric, FlowPaths(fabric, mode), np.array(up), flows)
