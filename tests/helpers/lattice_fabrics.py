"""Tori and meshes with one host on each switch, and scenarios of a collective on them.

Source: none. Leaves out: several hosts on a switch, twisted tori.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.scenario import Scenario
from weftwork.spec.scenario.topology import Parts
from weftwork.study.record.collective import collective_scenario, measure_collective
from weftwork.topology.direct_fabric import SwitchLinks, direct_fabric

__all__ = ["HOST_BPS", "LINK_BPS", "PAYLOAD_SHARE", "grid_fabric", "scenario_on", "took_ps"]

LINK_BPS = 100_000_000_000
HOST_BPS = 8 * LINK_BPS  # a GPU sends into all links of its switch at once, up to four axes
PAYLOAD_SHARE = 4096 / (4096 + 62 + 20)
TRANSPORT = "{congestion_control: {name: fixed-window, window_bytes: 1MB}, flow_control: none}"


def grid_fabric(
    *sides: int,
    closed: bool = True,
    nic_ports: int = 1,
    host_bps: int = HOST_BPS,
    twist: int = 0,
    hosts: int | None = None,
) -> Fabric:
    """A torus, or a mesh; the first axis changes fastest. With a twist, rings of x end so many rows further up y."""
    count = int(np.prod(sides))
    at = np.stack(np.unravel_index(np.arange(count), sides[::-1]))[::-1].T
    rows: list[tuple[int, int, int, bool]] = []
    for number, place in enumerate(at.tolist()):
        for axis, side in enumerate(sides):
            wraps = place[axis] == side - 1
            if side < 2 or (wraps and (not closed or side == 2)):
                continue
            there = list(place)
            there[axis] = (there[axis] + 1) % side
            if wraps and axis == 0 and twist:
                there[1] = (there[1] + twist) % sides[1]
            rows.append((number, int(np.ravel_multi_index(there[::-1], sides[::-1])), axis, wraps))
    a, b, dimension, wrap = (np.array(column) for column in zip(*rows, strict=True))
    parts = Parts(
        hosts=hosts,
        ports=0,
        server=Server(gpus=1, nic_ports=nic_ports),
        rails=0,
        switch=Switch(),
        nic=Nic(),
        host_rate_bps=host_bps,
        fabric_rate_bps=LINK_BPS,
        host_delay_ps=100_000,
        fabric_delay_ps=100_000,
        loss=0.0,
        corruption=0.0,
        caveats={},
    )
    axes = "xyzw"[: len(sides)]
    return direct_fabric(
        parts,
        name="grid",
        family="torus",
        dimensions=axes,
        switches=[("switch", count)],
        per_switch=nic_ports,
        links=SwitchLinks(a=a, b=b, dimension=dimension, wraps=wrap),
        axes=axes,
        sides=sides,
        coordinates=at,
        is_ordered=True,
    )


def scenario_on(fabric: Fabric, fidelity: str = "flow", transport: str = TRANSPORT, **keys: Any) -> Scenario:
    """A collective on a fabric that is built in Python, which `measure_collective` is given."""
    stand_in = {"topology": "leaf-spine", "hosts": len(fabric.hosts), "radix": 64}
    overrides = {"fabric": json.dumps(stand_in), "transport": transport, "engine.fidelity": fidelity}
    return collective_scenario({"protocol": "none", "chunks": 1, **keys}, file=None, overrides=overrides)


def took_ps(fabric: Fabric, size_bytes: int, fidelity: str = "flow", transport: str = TRANSPORT, **keys: Any) -> int:
    """Time of a collective."""
    (found,) = measure_collective(
        scenario_on(fabric, fidelity, transport, size=size_bytes, **keys), fabric, [size_bytes]
    )
    assert found.time_ps is not None
    return found.time_ps
