"""Trees of every name: vendors' tables, one generator behind all, and routing by destination that meets nobody.

Tables: NVIDIA, DGX SuperPOD reference architectures H100, B200, B300 and B300 XDR; Qian et al., SIGCOMM 2024 (HPN);
Grattafiori et al., arXiv:2407.21783 (Meta); DeepSeek-AI, ISCA 2025, table 3.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from helpers.topology_trees import DGX, by_tier, links_below
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.fabric import HOST, Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.digits import destination_numbers, port_strides
from weftwork.topology.measures import measure
from weftwork.topology.routing import DELIVER, routes


def test_planes_of_deepseek() -> None:
    fabric = fabric_of(topology="multi-plane", gpus=16_384, node=DGX, radix=64)
    assert sum(by_tier(fabric)[1:]) == 768
    assert links_below(fabric) == [16_384, 16_384]
    measures = measure(fabric)
    assert measures.diameter_hops == 4
    split = fabric_of(topology="multi-plane", hosts=16, node={"gpus": 8, "nic_ports": 32}, radix=64)
    assert split.node_names[-1] == "spine7"
    assert by_tier(split) == [16, 16, 8]  # 4 planes, 8 ports of each server on one leaf of each


trees = st.builds(
    lambda m, w, p, planes: {"children": m, "parents": (planes, *w), "cables": (1, *p)},
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 2),
)


@given(keys=trees)
def test_counts_links_and_paths_of_any_tree(keys: dict[str, tuple[int, ...]]) -> None:
    """Closed forms: switches and links by tier, shortest paths of pairs by their lowest common tier, the diameter."""
    children, parents, cables = keys["children"], keys["parents"], keys["cables"]
    if math.prod(children) < 2:
        return
    fabric = fabric_of(topology="pgft", node={"gpus": 1, "nic_ports": parents[0]}, **keys)
    counts = [
        math.prod(children[tier:]) * math.prod(parents[:tier]) for tier in range(1, 4)
    ]  # prod of m above x prod of w up to the tier
    assert by_tier(fabric) == [math.prod(children), *counts]
    below = [math.prod(children), *counts]
    assert links_below(fabric) == [below[tier] * parents[tier] * cables[tier] for tier in range(3)]
    top = max(tier for tier in range(3) if children[tier] > 1)  # the highest common tier of two servers
    measures = measure(fabric)
    assert measures.diameter_hops == 2 * (top + 1)
    paths = {row.hops: (row.paths_min, row.paths_max) for row in measures.paths}
    for tier in range(3):
        if children[tier] > 1:
            many = math.prod(parents[low] * cables[low] ** 2 for low in range(1, tier + 1))
            assert paths[2 * (tier + 1)] == (many, many)


def shift_loads(fabric: Fabric, shift: int) -> int:
    """The most flows on one direction of a link between switches, when server i sends to i + shift, by d-mod-k.

    On several planes each server sends the same on all of them.
    """
    ports, found = fabric.ports, routes(fabric, np.ones(len(fabric.links), np.bool_))
    numbers, strides = destination_numbers(fabric), port_strides(fabric)
    hosts, planes = len(fabric.hosts), fabric.servers[0].nic_ports
    load = np.zeros(len(ports.node), np.int64)
    for source, plane in itertools.product(range(hosts), range(planes)):
        out, into = (int(ports.base[host]) + plane for host in (source, (source + shift) % hosts))
        place, node = int(found.attach_of_port[into]), int(ports.node[ports.peer[out]])
        while found.group_of[node, place] != DELIVER:
            choice = found.candidates(node, place)
            port = int(choice[int(numbers[into]) // int(strides[choice[0]]) % len(choice)])
            load[port] += 1
            node = int(ports.node[ports.peer[port]])
    return int(load[fabric.node_kind[ports.node] != HOST].max(initial=0))


@pytest.mark.parametrize(
    ("keys", "most"),
    [
        ({"children": (4, 8), "parents": (1, 4)}, 1),
        ({"children": (4, 8), "parents": (1, 2), "cables": (1, 2)}, 1),
        ({"children": (2, 2, 4), "parents": (1, 2, 2)}, 1),
        ({"children": (4, 4, 3), "parents": (1, 2, 4), "cables": (1, 2, 2)}, 1),
        ({"children": (3, 3, 3), "parents": (1, 3, 3)}, 1),
        ({"children": (4, 8), "parents": (2, 4), "node": {"gpus": 1, "nic_ports": 2}}, 1),
        ({"children": (4, 4, 4), "parents": (1, 4, 2)}, 2),
        ({"children": (8, 8), "parents": (1, 4)}, 2),
    ],
)
def test_routing_by_destination_meets_nobody_on_any_shift(keys: dict[str, Any], most: int) -> None:
    """Zahavi 2012: load 1 on all shifts of a full tree without oversubscription, 2 at 2:1."""
    fabric = fabric_of(topology="pgft", **keys)
    hosts = len(fabric.hosts)
    assert max(shift_loads(fabric, shift) for shift in range(1, hosts)) == most
