"""BCube: counts, hops over servers, disjoint paths, partly filled levels, and sizes that do not fit.

Source: Guo et al., SIGCOMM 2009, doi:10.1145/1592568.1592577: its theorems on the diameter and on parallel paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers.fabric_sizes import size_before, size_of
from hypothesis import given
from hypothesis import strategies as st

from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of


def bcube(ports: int = 2, **keys: Any) -> Fabric:
    node = {"model": "plain", "nic_ports": ports}
    return fabric_of(topology="bcube", node=node, link_rate_bps=100_000_000_000, **keys)


@given(n=st.integers(2, 5), levels=st.sampled_from([1, 2, 2, 3, 3]), data=st.data())
def test_any_part_of_a_bcube(n: int, levels: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(2, n**levels))
    keys: dict[str, Any] = {"hosts_per_switch": n, "hosts": hosts, "radix": n}
    fabric = bcube(levels, **keys)
    size = size_before(topology="bcube", node={"model": "plain", "nic_ports": levels}, levels=levels, **keys)
    assert size == size_of(fabric)
    assert len(fabric.hosts) == hosts
    direct = fabric.direct
    if levels == 1:  # a switch with all hosts, which any engine runs
        assert direct is None
        assert "fabric.topology" not in fabric.caveats
        return
    assert direct is not None
    assert direct.hosts_forward
    assert not direct.is_ordered
    at, ports = direct.coordinates, fabric.ports
    for switch in range(hosts, len(fabric.node_names)):
        level = int(fabric.node_tier[switch]) - 1
        on = ports.node[ports.peer[ports.base[switch] : ports.base[switch + 1]]]
        assert len(on) >= 1
        others = np.delete(at[on], levels - 1 - level, axis=1)
        assert (others == others[0]).all()  # they differ in the digit of the level alone
        assert len(set(at[on, levels - 1 - level].tolist())) == len(on)
    first = ports.base[fabric.hosts]
    for port in range(levels):  # NIC port i is on level i
        assert (fabric.node_tier[ports.node[ports.peer[first + port]]] == port + 1).all()
