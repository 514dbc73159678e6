"""Layers in the packet engines: packets take the ways that the flow engine names, and pinned ones theirs."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers.both import both
from helpers.direct_networks import ring
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired

from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault
from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Pin, Routing
from weftwork.spec.transport import Transport

MTU_BYTES = 4_096
HOSTS = 6


def mesh(seed: int) -> Fabric:
    """Six hosts on six switches of a connected random graph with parallel links."""
    source = random.Random(seed)
    links = [(host, HOSTS + host) for host in range(HOSTS)]
    links += [(HOSTS + at, HOSTS + (at + 1) % HOSTS) for at in range(HOSTS)]
    between = [(HOSTS + a, HOSTS + b) for a in range(HOSTS) for b in range(a)]
    links += [link for link in between for _ in range(source.choice((0, 0, 1)))]
    return wired(links, hosts=HOSTS)


def pin(fabric: Fabric, *nodes: int) -> Pin:
    """From the first host by these switches to the last one, by the first of parallel links."""
    ports = fabric.ports

    def towards(node: int, beyond: int) -> int:
        own = range(int(ports.base[node]), int(ports.base[node + 1]))
        return next(port for port in own if ports.node[ports.peer[port]] == beyond)

    ends = [int(ports.base[node]) for node in (nodes[0], nodes[-1])]
    return Pin(
        sources=(ends[0],), destinations=(ends[1],), ports=tuple(towards(a, b) for a, b in pairwise(nodes[1:-1]))
    )


def everybody(packets: int, channels: int = 2) -> list[Message]:
    return [
        Message(source=a, destination=b, size_bytes=packets * MTU_BYTES, channel=channel)
        for a in range(HOSTS)
        for b in range(HOSTS)
        for channel in range(channels)
        if a != b
    ]


@pytest.mark.parametrize("port_selection", ["ecmp", "destination-modulo"])
@pytest.mark.parametrize("paths", [0, 1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_packets_take_the_ports_of_their_flow(seed: int, paths: int, port_selection: str) -> None:
    fabric = mesh(seed)
    routing = Routing(paths=paths, pins=(pin(fabric, 0, 6, 7, 8, 9, 10, 4), pin(fabric, 4, 10, 11, 6, 0)))
    job = sends(HOSTS, everybody(packets=3))
    settings = {"routing": routing, "port_selection": port_selection}
    engine_input = packet_input_of(fabric, job, **settings)
    both(engine_input)
    told = packet.run(engine_input, series=packet.Series(path_sample=1)).paths
    found = flow.run(flow_input_of(fabric, job, **settings)).packets.paths
    columns = ["queue_pair", "port", "packets"]
    assert told[columns].tolist() == found[columns].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_packets_sprayed_over_ways_put_on_each_link_what_flows_do(seed: int) -> None:
    """Some 500 packets of each pair over four ways: a port carries its share of them within a tenth of the most."""
    fabric = mesh(seed)
    job = sends(HOSTS, everybody(packets=250))
    settings = {"routing": Routing(paths=4), "path_selection": "spray"}
    packets = packet_input_of(fabric, job, transport=Transport(reorder_tolerant=True), **settings)
    told = packet.run(packets, series=packet.Series(path_sample=1)).paths
    on_ports = np.bincount(told["port"], weights=told["packets"], minlength=len(fabric.ports.node))
    found = flow.run(flow_input_of(fabric, job, **settings)).packets.ports["frames"]
    np.testing.assert_allclose(on_ports, found, atol=0.1 * found.max())


def test_a_pinned_way_with_a_dead_link_is_left_at_reconvergence_and_taken_again() -> None:
    """On a ring of six the pinned way has four links; a link of it fails before the second of three messages."""
    fabric = ring(6)
    long = pin(fabric, 0, 6, 11, 10, 9, 8, 2)
    dead = int(fabric.ports.link[long.ports[1]])
    times_ps = (0, 1_000_000_000, 2_000_000_000)
    faults = (
        Fault(at_ps=times_ps[1] // 2, event="down", link=dead),
        Fault(at_ps=(times_ps[1] + times_ps[2]) // 2, event="up", link=dead),
    )
    job = sends(6, [Message(source=0, destination=2, size_bytes=5 * MTU_BYTES, at_ps=at_ps) for at_ps in times_ps])
    outcome = both(packet_input_of(fabric, job, routing=Routing(pins=(long,)), faults=faults))
    assert outcome.complete
    short = pin(fabric, 0, 6, 7, 8, 2)
    sent = [outcome.ports["frames"][list(way.ports)].tolist() for way in (long, short)]
    assert sent == [[10, 10, 10, 10], [5, 5]]
