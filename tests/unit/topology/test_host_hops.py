"""Distances in host hops and disjoint paths of a fabric whose hosts forward, against the closed forms of a BCube.

Source: Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577.
"""

from __future__ import annotations

from math import comb

import pytest

from weftwork.topology.build import fabric_of
from weftwork.topology.host_hops import host_hops


@pytest.mark.parametrize(("n", "levels"), [(4, 2), (8, 2), (2, 5), (3, 4), (4, 3)])
def test_a_bcube_has_its_closed_forms(n: int, levels: int) -> None:
    """C(L, d) (n - 1)^d servers are d host hops away, and L paths share no node."""
    fabric = fabric_of(topology="bcube", hosts_per_switch=n, node={"nic_ports": levels}, link_rate_bps=100_000_000_000)
    found = host_hops(fabric)
    assert found.sources == n**levels
    assert found.pairs == tuple(n**levels * comb(levels, d) * (n - 1) ** d for d in range(1, levels + 1))
    assert found.diameter == levels
    assert found.disjoint_min == found.disjoint_max == levels
    assert found.pairs_counted == comb(8, 2)
