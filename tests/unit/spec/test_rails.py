"""Which NIC ports belong to which GPU: equal shares of ports, or GPUs in a row that share a port."""

import numpy as np
import pytest

from weftwork.spec.device import Server
from weftwork.spec.rails import ports_by_rail, ports_of_gpu


@pytest.mark.parametrize(("ports", "gpus"), [(1, 8), (2, 8), (4, 8), (8, 8), (16, 8), (32, 8), (3, 6), (72, 72)])
def test_ports_are_spread_evenly_and_in_order(ports: int, gpus: int) -> None:
    """The rule of `Server`: GPU g has the ports g k to g k + k - 1, or shares port g ports // gpus."""
    found = [list(ports_of_gpu(ports, gpus, gpu)) for gpu in range(gpus)]
    if ports >= gpus:
        assert np.concatenate(found).tolist() == list(range(ports))
        assert {len(own) for own in found} == {ports // gpus}
    else:
        sharing = gpus // ports
        assert found == [[port] for port in range(ports) for _ in range(sharing)]


@pytest.mark.parametrize(
    ("gpus", "ports", "rails", "planes"), [(8, 8, 8, 1), (8, 16, 8, 2), (8, 8, 4, 1), (8, 32, 16, 2), (8, 4, 4, 1)]
)
def test_every_rail_of_every_plane_has_as_many_ports(gpus: int, ports: int, rails: int, planes: int) -> None:
    plane, rail = ports_by_rail(Server(gpus=gpus, nic_ports=ports), rails=rails, planes=planes)
    times = np.zeros((planes, rails), np.int64)
    np.add.at(times, (plane, rail), 1)
    assert np.unique(times).tolist() == [ports // (rails * planes)]
