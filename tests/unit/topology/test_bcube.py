"""BCube: counts, hops over servers, disjoint paths, partly filled levels, and sizes that do not fit.

Source: Guo et al., SIGCOMM 2009, doi:10.1145/1592568.1592577: its theorems on the diameter and on parallel paths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow, shortest_path

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.assemble import check
from weftwork.topology.build import fabric_of
from weftwork.topology.largest import fabric_limits


def bcube(ports: int = 2, **keys: Any) -> Fabric:
    node = {"model": "plain", "nic_ports": ports}
    return fabric_of(topology="bcube", node=node, link_rate_bps=100_000_000_000, **keys)


def refusal(ports: int, **keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        bcube(ports, **keys)
    return str(wrong.value)


def host_hops(fabric: Fabric) -> NDArray[np.int64]:
    """Hops from host to host, each over one switch; hosts forward."""
    count = len(fabric.node_names)
    graph = coo_array(
        (np.ones(len(fabric.links)), (fabric.links["a"], fabric.links["b"])), shape=(count, count)
    ).tocsr()
    links = shortest_path(graph, directed=False, unweighted=True, indices=fabric.hosts)[:, fabric.hosts]
    return np.asarray(links / 2).astype(np.int64)


def disjoint_paths(fabric: Fabric, source: int, target: int) -> int:
    """Paths that share no host and no switch: the flow between two nodes where every other node carries 1."""
    count = len(fabric.node_names)
    a, b = fabric.links["a"].astype(np.int32), fabric.links["b"].astype(np.int32)
    node = np.arange(count, dtype=np.int32)
    rows, columns = np.concatenate([node, count + a, count + b]), np.concatenate([count + node, b, a])
    graph = coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=(2 * count, 2 * count)).tocsr()
    return int(maximum_flow(graph, count + source, target).flow_value)


@pytest.mark.parametrize(("n", "levels"), [(2, 2), (4, 2), (3, 3), (2, 4), (8, 2)])
def test_counts_hops_and_disjoint_paths(n: int, levels: int) -> None:
    fabric = bcube(levels, hosts_per_switch=n)
    hosts = n**levels
    assert len(fabric.hosts) == hosts
    assert np.bincount(fabric.node_tier).tolist() == [hosts] + [n ** (levels - 1)] * levels
    assert len(fabric.links) == levels * hosts
    assert (np.diff(fabric.ports.base)[hosts:] == n).all()
    hops = host_hops(fabric)
    assert hops.max() == levels
    assert fabric.direct is not None
    at = fabric.direct.coordinates[:hosts]
    assert (hops == (at[:, None] != at[None]).sum(axis=2)).all()  # a hop corrects a digit
    # hosts may lie on the same switch: then the paths through other levels are longer, but there are as many
    for target in {1, hosts // n, hosts - 1}:
        assert disjoint_paths(fabric, 0, target) == levels


def test_limits_say_how_far_servers_are_apart() -> None:
    ends = fabric_limits(bcube(hosts_per_switch=4, radix=8)).direct
    assert ends is not None
    assert ends.ends == "The 2 NIC ports of a server end this fabric, one for each level of switches"
    text = " ".join(ends.facts)
    assert "at most 2 hops apart" in text
    assert "2 paths between them share no server and no switch" in text
    assert "8 ports of a switch join 512 servers" in text
    (size,) = ends.sizes
    whole = bcube(radix=8)
    assert (size.endpoints, size.switches) == (2 * len(whole.hosts), len(whole.node_names) - len(whole.hosts))
    assert size.diameter_links + 2 == 2 * host_hops(whole).max()


def test_missing_keys_follow_from_hosts_or_ports() -> None:
    assert bcube(hosts=26).name == "bcube, n = 6, 2 levels"
    assert bcube(hosts=26, radix=8).name == "bcube, n = 6, 2 levels"
    assert len(bcube(radix=8).hosts) == len(bcube(switch={"model": "plain", "radix": 8}).hosts) == 64
    assert len(fabric_of(topology="bcube", hosts_per_switch=3, link_rate_bps=10**11).hosts) == 9  # two ports by default
    assert bcube(hosts_per_switch=4).caveats["fabric.topology"].kind == "approximate"


@pytest.mark.parametrize(
    ("ports", "keys", "told"),
    [
        (2, {"hosts_per_switch": 4, "levels": 3}, "wanted one for each level: node: {model: plain, nic_ports: 3}"),
        (2, {"hosts_per_switch": 4, "hosts": 17}, "found 17, wanted at most 16"),
        (2, {"hosts_per_switch": 8, "radix": 4}, "found 4 ports, but a switch joins 8 servers"),
        (
            2,
            {"hosts": 17, "radix": 4},
            "found 4 ports, which join at most 16 servers on 2 levels; 17 servers need 5 ports",
        ),
        (2, {"switch": {"model": "plain", "radix": 4}, "hosts": 17}, "17 servers need 5 ports"),
        (2, {"radix": 1}, "found 1 port, wanted at least 2"),
        (4, {"hosts_per_switch": 64}, "makes 16,777,216 servers, wanted at most"),
        (2, {}, "missing: give hosts_per_switch, hosts or radix"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(ports: int, keys: dict[str, Any], told: str) -> None:
    assert told in refusal(ports, **keys)


def test_links_must_join_all_nodes_of_a_network_whose_hosts_forward() -> None:
    fabric = bcube(hosts_per_switch=2)  # hosts 0 to 3, switches 4 to 7: a ring of eight nodes
    kept = np.ones(len(fabric.links), np.bool_)
    kept[[0, 7]] = False  # the ring falls into two parts
    assert fabric.direct is not None
    cut = replace(
        fabric, links=fabric.links[kept], link_names=tuple(np.array(fabric.link_names)[kept]),
        direct=fabric.direct.without(kept), servers=(fabric.servers[0].model_copy(update={"nic_ports": 2}),),
    )  # fmt: skip
    with pytest.raises(ConfigError, match="no path from 'host0', even over hosts that forward"):
        check(cut)
