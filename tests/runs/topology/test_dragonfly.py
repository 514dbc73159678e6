"""Dragonfly: published counts, arrangements of global links, and sizes that do not fit.

Sources: Kim et al., ISCA 2008, doi:10.1109/ISCA.2008.19; DeepSeek-AI, ISCA 2025, table 3; Frontier by its groups of 32
switches with 64 ports of 200 Gb/s and 4 links for each pair of groups.
"""

from __future__ import annotations

import numpy as np
from helpers.fabric_sizes import size_before, size_of
from helpers.switch_graph import degrees, diameter_and_mean, switch_ends
from helpers.topology_dragonfly import counts, dragonfly
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.fabric_direct import TO_HOST
from weftwork.topology.group_links import ARRANGEMENTS


def test_the_column_of_deepseek() -> None:
    """a = 32, p = h = 16, g = 511: the size alone, because a fabric of 261,632 hosts takes long to build."""
    size = size_before(topology="dragonfly", routers_per_group=32, groups=511, radix=64)
    assert (size.hosts, size.switches) == (261_632, 16_352)
    # the paper counts all 512 global ports of a group; with 510 other groups two of them have no link
    assert size.links - size.hosts == 384_272 - 511


def test_the_largest_slingshot() -> None:
    size = size_before(topology="dragonfly", routers_per_group=32, hosts_per_router=16, global_ports=17, radix=64)
    assert (size.hosts, size.switches) == (279_040, 545 * 32)


@given(
    p=st.integers(1, 4),
    a=st.integers(1, 6),
    h=st.integers(1, 3),
    arrangement=st.sampled_from(ARRANGEMENTS),
    data=st.data(),
)
def test_counts_and_ids_of_any_dragonfly(p: int, a: int, h: int, arrangement: str, data: st.DataObject) -> None:
    g = data.draw(st.integers(2, min(a * h + 1, 12)))
    keys = {
        "hosts_per_router": p, "routers_per_group": a, "global_ports": h, "groups": g, "arrangement": arrangement,
        "radix": p + a - 1 + h,
    }  # fmt: skip
    fabric = dragonfly(**keys)
    assert size_before(topology="dragonfly", **keys) == size_of(fabric)
    each = a * h // (g - 1)
    assert counts(fabric) == (a * p * g, a * g, g * a * (a - 1) // 2, each * g * (g - 1) // 2)
    hosts, direct = len(fabric.hosts), fabric.direct
    assert direct is not None
    assert (degrees(fabric) <= a - 1 + h).all()
    assert diameter_and_mean(fabric)[0] <= 3
    router = np.arange(a * g)
    assert (direct.coordinates[hosts:] == np.stack([router // a, router % a], axis=1)).all()
    assert (direct.coordinates[:hosts] == direct.coordinates[hosts + np.arange(hosts) // p]).all()
    assert fabric.node_pod is not None
    assert (fabric.node_pod == direct.coordinates[:, 0]).all()
    low, high = (ends // a for ends in switch_ends(fabric))
    assert ((low == high) == (direct.link_dimension[direct.link_dimension != TO_HOST] == 0)).all()
