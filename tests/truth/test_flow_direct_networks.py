"""The flow engine against packets on a dragonfly: exact for fixed routes, measured for adaptive routing.

72 hosts: 9 groups of 4 routers, 2 hosts and 2 global links each. Traffic: a random permutation, all to all,
and all hosts of a group to the next group, which minimal routing leads over one link.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import pytest
from helpers.direct_networks import dragonfly
from helpers.findings import sound
from helpers.tiny import Message, flow_input_of, job_of, packet_input_of, sends
from numpy.typing import NDArray

from weftwork.engine.flow.run import run as run_flows
from weftwork.engine.packet import run as run_packets
from weftwork.policies.routings import AMONG, routing_step
from weftwork.spec.job import Collect, Grid, Wait
from weftwork.spec.transport import Transport
from weftwork.topology.routing_plan import planned_routing

FABRIC = dragonfly(2, 4, 2)
HOSTS = len(FABRIC.hosts)
SIZE_BYTES = 256 << 10
Traffic = Literal["permutation", "next group", "all-to-all"]
# Mean and last completion of flows relative to packets, less 1. The first three rows are exact routes.
BOUNDS: dict[tuple[Traffic, str], tuple[float, float]] = {
    ("permutation", "minimal"): (0.06, 0.04),
    ("permutation", "valiant"): (0.03, 0.08),
    ("next group", "valiant"): (0.04, 0.12),
    ("permutation", "ugal"): (0.12, 0.10),
    ("permutation", "par"): (0.12, 0.25),
    ("next group", "ugal"): (0.20, 0.20),
    ("next group", "par"): (0.10, 0.10),
    ("all-to-all", "ugal"): (0.12, 0.13),
}


def pairs(traffic: Traffic) -> list[tuple[int, int]]:
    if traffic == "next group":
        return [(host, (host + 8) % HOSTS) for host in range(HOSTS)]
    if traffic == "all-to-all":
        return [(host, (host + step) % HOSTS) for step in range(1, HOSTS) for host in range(HOSTS)]
    rng = np.random.default_rng(1)
    order = rng.permutation(HOSTS)
    while (order == np.arange(HOSTS)).any():
        order = rng.permutation(HOSTS)
    return list(enumerate(order.tolist()))


@cache
def completions_us(engine: Literal["flow", "packet"], traffic: Traffic, name: str) -> NDArray[np.float64]:
    """Time of each message, all of which start at once."""
    plan = sound(planned_routing, FABRIC, name)
    size_bytes = SIZE_BYTES // 4 if traffic == "all-to-all" else SIZE_BYTES
    messages = [Message(source=a, destination=b, size_bytes=size_bytes) for a, b in pairs(traffic)]
    job, is_adaptive = sends(HOSTS, messages), name in ("ugal", "par")
    if engine == "flow":
        policy = "ecmp" if is_adaptive else "spray"
        found = run_flows(flow_input_of(FABRIC, job, port_selection=policy, routing=plan.routing)).packets.messages
    else:
        parameters: dict[str, int | bool] = {"bias_bytes": 0} if is_adaptive else {"among": AMONG["spray"]}
        if name == "valiant":
            parameters["by_packet"] = True
        if name in ("valiant", "ugal"):
            parameters["by_group"] = True
        step = routing_step(name, channels=plan.channels, parameters=parameters, reorders=True)
        transport = Transport(reorder_tolerant=True)
        packets = packet_input_of(FABRIC, job, transport=transport, port_selection=step, routing=plan.routing)
        found = run_packets(packets).messages
    took: NDArray[np.float64] = (found["delivered_at_ps"] - found["posted_at_ps"]) / 1e6
    return took


@pytest.mark.parametrize(("traffic", "name"), BOUNDS)
def test_flows_take_as_long_as_packets(traffic: Traffic, name: str) -> None:
    flows, packets = completions_us("flow", traffic, name), completions_us("packet", traffic, name)
    mean, last = BOUNDS[traffic, name]
    assert flows.mean() == pytest.approx(packets.mean(), rel=mean)
    assert flows.max() == pytest.approx(packets.max(), rel=last)


def test_adaptive_routing_is_minimal_where_that_is_best_and_detours_where_it_is_not() -> None:
    """A lone message takes its shortest path; the next group is reached much sooner than by one global link."""
    minimal, adaptive = (completions_us("flow", "next group", name).max() for name in ("minimal", "ugal"))
    assert adaptive < minimal / 2
    job = sends(HOSTS, [Message(source=0, destination=8, size_bytes=SIZE_BYTES)])
    alone = [
        run_flows(
            flow_input_of(FABRIC, job, port_selection=policy, routing=sound(planned_routing, FABRIC, name).routing)
        )
        for name, policy in (("ugal", "ecmp"), ("minimal", "spray"))
    ]
    assert alone[0].packets.messages["delivered_at_ps"] == alone[1].packets.messages["delivered_at_ps"]


def test_what_adapts_arrives_whole() -> None:
    """Links of hosts carry the bytes of a message once, whatever way its parts take."""
    plan = sound(planned_routing, FABRIC, "ugal")
    job = sends(HOSTS, [Message(source=a, destination=b, size_bytes=SIZE_BYTES) for a, b in pairs("next group")])
    found = run_flows(flow_input_of(FABRIC, job, port_selection="ecmp", routing=plan.routing))
    at_host = FABRIC.node_kind[FABRIC.ports.node] == 0
    sent = found.link_bytes[: len(at_host)][at_host]
    received = found.link_bytes[: len(at_host)][FABRIC.ports.peer[at_host]]
    assert sent == pytest.approx(received)
    assert (sent > SIZE_BYTES).all()


def test_collectives_adapt_as_wholes() -> None:
    """Rings over all groups, of which each pair of groups has eight: by one global link they take turns."""
    ring = Collect(
        operation="all-gather", size_bytes=SIZE_BYTES, group=Grid(axes=((8, 9),)), channel=0, pattern="ring",
        amount_bytes=SIZE_BYTES, label=0,
    )  # fmt: skip
    job = job_of([[[ring, Wait()]]] * HOSTS)
    ends_ps = {}
    for name, policy in (("minimal", "spray"), ("ugal", "ecmp"), ("valiant", "spray")):
        routing = sound(planned_routing, FABRIC, name).routing
        found = run_flows(flow_input_of(FABRIC, job, port_selection=policy, routing=routing))
        ends_ps[name] = found.activities["end_ps"].max()
        at_host = FABRIC.node_kind[FABRIC.ports.node] == 0
        assert found.link_bytes[: len(at_host)][at_host] == pytest.approx(found.link_bytes[0])
    assert ends_ps["ugal"] < ends_ps["minimal"] / 2
    assert ends_ps["ugal"] < 1.3 * ends_ps["valiant"]
