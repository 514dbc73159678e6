"""Rail and plane of each NIC port of a server.

A rail is what the ports of one GPU position share: port by port, the same leaf in every server of a pod. Planes are
separate fabrics over which the ports of each GPU are spread.
Source: docs.nvidia.com/networking, InfiniBand Cluster Bring-up Procedure v1.0, rail-optimized design; planes as in Qian
et al., SIGCOMM 2024, doi:10.1145/3651890.3672265.
Leaves out: the switches; `weftwork.topology.shapes.rail_optimized` builds them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weftwork.spec.device import Server

__all__ = ["default_rails", "ports_by_rail", "ports_of_gpu", "rail_mistakes"]


def _groups(server: Server) -> tuple[int, int]:
    """Groups of ports that serve one GPU, and ports per group.

    Several GPUs may share a port.
    """
    if server.nic_ports < server.gpus:
        return server.nic_ports, 1
    return server.gpus, server.nic_ports // server.gpus


def default_rails(server: Server, wanted: int = 0) -> int:
    """Default number of rails of a server.

    It is ``wanted`` of the catalogue, else one for each GPU with ports of its own.

    Examples
    --------
    >>> default_rails(Server(gpus=8, nic_ports=32)), default_rails(Server(gpus=8, nic_ports=4))
    (8, 4)
    """
    groups, _ = _groups(server)
    return wanted if wanted and groups % wanted == 0 else groups


def ports_of_gpu(ports: int, gpus: int, gpu: int) -> range:
    """NIC ports of a GPU, by the server's numbers of ports and GPUs.

    With at least as many ports as GPUs these are an equal share of them, else the one that the GPU shares with others.

    Examples
    --------
    >>> ports_of_gpu(32, 8, 1), ports_of_gpu(4, 8, 3)
    (range(4, 8), range(1, 2))
    """
    if ports < gpus:
        return range(gpu * ports // gpus, gpu * ports // gpus + 1)
    each = ports // gpus
    return range(gpu * each, (gpu + 1) * each)


def rail_mistakes(server: Server, *, rails: int, planes: int) -> list[tuple[str, str, str | None]]:
    """Find numbers of rails or planes that do not divide the ports.

    Returns
    -------
    (key, text, nearest fix) for ``planes`` and ``rails``
    """
    groups, each = _groups(server)
    if planes < 1 or each % planes:
        text = (
            f"found {planes}, wanted a divisor of {each}, the NIC ports of a GPU of '{server.name}'; for more ports set"
            f" fabric.node: {{model: {server.name}, nic_ports: {groups * each * planes}}} and the link_rate of a port"
        )
        return [("planes", text, None)]
    possible = _possible_rails(groups, each // planes)
    if rails not in possible:
        fix = str(min(possible, key=lambda count: (abs(count - rails), count)))
        wanted = ", ".join(map(str, possible[:-1])) + " or " * (len(possible) > 1) + str(possible[-1])
        text = f"found {rails}, wanted {wanted}, so that the ports of '{server.name}' spread evenly"
        return [("rails", text, fix)]
    return []


def _possible_rails(groups: int, each: int) -> list[int]:
    divisors = [count for count in range(1, groups + 1) if groups % count == 0]
    return divisors + [groups * count for count in range(2, each + 1) if each % count == 0]


def ports_by_rail(server: Server, *, rails: int, planes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Plane and rail of every NIC port of a server.

    With at most as many rails as GPUs with ports, the ports of GPU g are on rail g mod rails; with more, each GPU has
    several rails, and its ports take them by turns. The ports of a GPU take the planes by turns.

    Parameters
    ----------
    server : without `rail_mistakes`
    rails : of every plane
    planes : separate fabrics

    Returns
    -------
    plane and rail, each of shape (nic_ports,)

    Examples
    --------
    >>> plane, rail = ports_by_rail(Server(gpus=2, nic_ports=4), rails=2, planes=2)
    >>> plane.tolist(), rail.tolist()
    ([0, 1, 0, 1], [0, 0, 1, 1])
    """
    groups, each = _groups(server)
    port = np.arange(server.nic_ports, dtype=np.int64)
    group, own = port // each, port % each
    if rails <= groups:
        return own % planes, group % rails
    per_group = rails // groups
    return own % planes, group * per_group + own // planes % per_group
