"""Routes without a circle of dependencies never deadlock, and routes with one may.

Random small direct networks under PFC and under credits, with buffers that fill at once, all hosts sending as much as
they can. What the search for circles accepts has to deliver every message. Of what it refuses, some have to deadlock,
else the traffic would not be heavy enough to tell.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.cases import Saw, case_count
from helpers.findings import judged, sound
from helpers.kept_seeds import kept_first
from helpers.tiny import Message, sends

from weftwork.base.clock import MS_PS, NEVER_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.policies.routings import routing_step
from weftwork.spec.device import Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.topology.channel_dependencies import dependency_cycle
from weftwork.topology.routing_plan import RoutingPlan, has_groups, planned_routing

PLANS = case_count(plain=24, deep=150)
BY_BOTH = 8  # every so many plans also run on the reference engine
NAMES = ("minimal", "dimension-order", "valiant", "ugal", "par", "k-shortest")


def network(draw: random.Random) -> Fabric:
    """A small direct network of a random family."""
    common: dict[str, Any] = {"link_rate_bps": 100_000_000_000, "link_delay_ps": 20_000}
    shapes: list[tuple[str, dict[str, Any]]] = [
        ("torus", {"shape": draw.choice([(5,), (7,), (4, 4), (3, 4), (2, 3, 3)])}),
        ("mesh", {"shape": draw.choice([(3, 3), (2, 3, 2), (4, 2)])}),
        ("twisted-torus", {"shape": draw.choice([(2, 4), (2, 2, 4)])}),
        ("dragonfly", {"hosts_per_router": 1, "routers_per_group": draw.randint(2, 4), "global_ports": 1}),
        ("dragonfly", {"hosts_per_router": 1, "routers_per_group": 2, "global_ports": 2}),
        ("dragonfly-plus",
         {"hosts_per_leaf": 1, "leaves_per_group": 2, "spines_per_group": 2, "global_ports": draw.randint(1, 2)}),
        ("leaf-spine", {"leaves": draw.randint(2, 4), "spines": 2, "hosts_per_leaf": draw.randint(1, 2)}),
        ("slim-fly", {"q": 3, "hosts_per_switch": 1}),
        ("jellyfish", {"switches": 8, "network_ports": 3, "hosts_per_switch": 1, "seed": draw.randrange(9)}),
        ("hyperx", {"sides": draw.choice([(5,), (3, 3), (2, 2, 2)]), "hosts_per_router": 1}),
    ]  # fmt: skip
    name, keys = draw.choice(shapes)
    return fabric_of(topology=name, **common, **keys)


def messages(fabric: Fabric, draw: random.Random) -> list[Message]:
    """All to all, or all a fixed distance away, over and over."""
    hosts = len(fabric.hosts)
    distance = draw.randint(1, hosts - 1)
    size = draw.choice([100_000, 300_000])
    if draw.random() < 0.5:
        return [Message(source=a, destination=b, size_bytes=size) for a in range(hosts) for b in range(hosts) if a != b]
    return [
        Message(source=a, destination=(a + distance) % hosts, size_bytes=size, channel=channel)
        for a in range(hosts)
        for channel in range(6)
    ]


def planned(fabric: Fabric, name: str, channels: int, plan: RoutingPlan, draw: random.Random) -> PacketInput:
    """A run of a routing with so many virtual channels."""
    adaptive = name in ("ugal", "par")
    parameters: dict[str, Any] = {} if adaptive else {"among": draw.choice([0, 1, 2])}
    if name in ("valiant", "ugal"):
        parameters["by_group"] = has_groups(fabric)
    if name == "valiant":
        parameters["by_packet"] = draw.random() < 0.7
    lanes = int(np.diff(fabric.ports.base).max()) * 2 * channels  # of two priorities
    switch = Switch(forwarding_latency_ps=0, buffer_bytes=22_000 * lanes, headroom_bytes=10_000, reserve_bytes=2_000)
    fabric = replace(fabric, switches=(switch,))
    values: dict[str, Any] = {"reorder_tolerant": True, "retransmission_timeout_ps": 50 * MS_PS}
    if draw.random() < 0.5:
        values |= {"lossless_priorities": (), "link_credits": True}
    return lower(
        fabric=fabric,
        job=sends(len(fabric.hosts), messages(fabric, draw)),
        transport=Transport.model_validate(values),
        congestion_control=load("congestion_control", "none"),
        settings=EngineSettings(
            port_selection=routing_step(name, channels=channels, parameters=parameters, reorders=True),
            routing=plan.routing,
            until_ps=NEVER_PS,
        ),
    )


def test_what_the_search_accepts_never_deadlocks(saw: Saw) -> None:
    saw(PLANS)
    told: Counter[str] = Counter()
    for seed in kept_first("test_routing_deadlocks", range(PLANS)):
        draw = random.Random(seed)
        fabric = network(draw)
        names = [name for name in NAMES if not judged(planned_routing, fabric, name, paths=3)[1]]
        name = draw.choice(names)
        plan = sound(planned_routing, fabric, name, paths=3)
        if plan.channels > 4:
            told["too many channels"] += 1
            continue
        up = np.ones(len(fabric.links), np.bool_)
        fewer = draw.random() < 0.4
        channels = 1 if fewer else plan.channels
        circle = dependency_cycle(fabric, up, plan.routing, channels, rethinks=name == "par")
        engine_input = planned(fabric, name, channels, plan, draw)
        label = f"plan {seed}: {name} on {fabric.name}, {channels} channels"
        outcome = both(engine_input, label) if seed % BY_BOTH == 0 else packet.run(engine_input)
        is_stuck = len(outcome.deadlock) > 0
        told["a circle, and a deadlock" if circle and is_stuck else "a circle" if circle else "none"] += 1
        if not circle:
            assert not is_stuck, label
            assert (outcome.messages["delivered_at_ps"] >= 0).all(), label
        if channels == plan.channels:
            assert not circle, label
    assert told["none"] >= PLANS // 3, told
    assert told["a circle, and a deadlock"] >= PLANS // 100, told


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_a_ring_under_shortest_paths_deadlocks_as_the_search_says(flow_control: str) -> None:
    fabric = fabric_of(topology="torus", shape=(6,), link_rate_bps=100_000_000_000, link_delay_ps=20_000)
    plan = sound(planned_routing, fabric, "shortest")
    circle = dependency_cycle(fabric, np.ones(len(fabric.links), np.bool_), plan.routing, 1)
    assert len(circle) == 6
    values: dict[str, Any] = {"retransmission_timeout_ps": 50 * MS_PS}
    if flow_control == "credits":
        values |= {"lossless_priorities": (), "link_credits": True}
    switch = Switch(forwarding_latency_ps=0, buffer_bytes=300_000, headroom_bytes=10_000, reserve_bytes=2_000)
    fabric = replace(fabric, switches=(switch,))
    outcome = both(
        lower(
            fabric=fabric,
            job=sends(6, [Message(source=a, destination=(a + 2) % 6, size_bytes=3_000_000) for a in range(6)]),
            transport=Transport.model_validate(values),
            congestion_control=load("congestion_control", "none"),
            settings=EngineSettings(port_selection=load("port_selection", "ecmp"), routing=plan.routing),
        )
    )
    assert len(outcome.deadlock) == 6
    ports = sorted({one.port for one in circle})
    links = {int(fabric.ports.link[port]) for port in ports}
    assert {int(fabric.ports.link[port]) for port in outcome.deadlock["port"].tolist()} == links
