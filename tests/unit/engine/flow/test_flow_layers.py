"""Layers in the flow engine: flows take the ways of the tables, pinned ones theirs; what spreads takes all alike."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from helpers.direct_networks import ring
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.base.errors import ConfigError
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.outcome import FlowOutcome
from weftwork.engine.flow.paths import FlowPaths, RoutingMode
from weftwork.engine.instants import Fault
from weftwork.spec.device import Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.routing import Pin, Routing
from weftwork.spec.transport import Transport
from weftwork.topology.layers import Layers, layers_of
from weftwork.topology.routing import attachments

MB = 1_000_000


MODES: tuple[RoutingMode, ...] = ("spray", "hashed", "deterministic")


def mesh(seed: int, *, hosts: int = 6, switches: int = 7) -> Fabric:
    """Hosts at some switches of a connected random graph with parallel links."""
    source = random.Random(seed)
    links = [(host, hosts + source.randrange(switches)) for host in range(hosts)]
    links += [(hosts + at, hosts + at - 1) for at in range(1, switches)]
    between = [(hosts + a, hosts + b) for a in range(switches) for b in range(a)]
    links += [link for link in between for _ in range(source.choice((0, 0, 1, 2)))]
    rates = [source.choice((100, 200)) * 10**9 for _ in links]
    return wired(links, hosts=hosts, rates_bps=rates)


def first_port(fabric: Fabric, node: int, beyond: int) -> int:
    ports = fabric.ports
    own = range(int(ports.base[node]), int(ports.base[node + 1]))
    return next(port for port in own if ports.node[ports.peer[port]] == beyond)


def pin(fabric: Fabric, *nodes: int, channel: int = -1) -> Pin:
    """From the first host by these switches to the last one."""
    switches = nodes[1:-1]
    return Pin(
        sources=(int(fabric.ports.base[nodes[0]]),),
        destinations=(int(fabric.ports.base[nodes[-1]]),),
        ports=tuple(first_port(fabric, a, b) for a, b in pairwise(switches)),
        channel=channel,
    )


def way(fabric: Fabric, layers: Layers, source: int, destination: int, number: int) -> list[int] | None:
    """Ports of a way between two NIC ports by the table; None where the shortest paths hold."""
    attach_node, attach_of_port = attachments(fabric)
    start, goal = int(attach_of_port[source]), int(attach_of_port[destination])
    layer = int(layers.layer_of[start, goal, number])
    if layer < 0:
        return None
    found, node = [source], int(attach_node[start])
    while node != attach_node[goal]:
        found.append(int(layers.next_port[layer, node, goal]))
        node = int(fabric.ports.node[fabric.ports.peer[found[-1]]])
    return [*found, int(fabric.ports.peer[destination])]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_a_flow_takes_the_way_of_its_entropy(seed: int, mode: RoutingMode) -> None:
    fabric = mesh(seed)
    source = random.Random(seed)
    up = np.array([source.random() < 0.9 or link < 12 for link in range(len(fabric.links))])
    routing = Routing(paths=3)
    layers = layers_of(fabric, up, routing)
    assert layers is not None
    router = FlowPaths(fabric, mode, routing=routing)
    router.use(up)
    plain = FlowPaths(fabric, "deterministic")
    plain.use(up)
    delay_ps = fabric.links["delay_ps"][fabric.ports.link]
    rate_bps = fabric.links["rate_bps"][fabric.ports.link]
    for a in range(6):
        for b in {*range(6)} - {a}:
            for entropy in (0, 1, 2, 49_153):
                found = router.paths(np.array([a]), np.array([b]), entropy=entropy)
                wanted = way(fabric, layers, a, b, entropy % 3)
                if wanted is None:  # of one switch, or of two that nothing joins
                    wanted = plain.paths(np.array([a]), np.array([b])).hops["link"].tolist()
                assert found.hops["link"].tolist() == wanted
                assert (found.hops["weight"] == 1).all()
                if wanted:
                    about = found.about[0]
                    assert (about["links"], about["rate_bps"]) == (len(wanted), rate_bps[wanted].min())
                    assert about["latency_ps"] == delay_ps[wanted].sum()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_what_spreads_takes_all_ways_of_its_pair_alike(seed: int, mode: RoutingMode) -> None:
    fabric = mesh(seed)
    routing = Routing(paths=4)
    layers = layers_of(fabric, np.ones(len(fabric.links), np.bool_), routing)
    assert layers is not None
    router = FlowPaths(fabric, mode, routing=routing, spreads_ways=True)
    split = 0
    for a in range(6):
        for b in {*range(6)} - {a}:
            found = router.paths(np.array([a]), np.array([b]), entropy=7)
            ways = [way(fabric, layers, a, b, number) for number in range(4)]
            if None in ways:
                continue
            wanted = np.zeros(len(fabric.ports.node))
            for one in ways:
                wanted[one] += 0.25
            assert router.port_loads(found, np.ones(1)) == pytest.approx(wanted, abs=1e-12)
            assert found.about["links"][0] == max(len(one) for one in ways if one is not None)
            split += (wanted % 1 > 0).any()
    assert split > 0


def run(fabric: Fabric, messages: list[Message], **settings: object) -> FlowOutcome:
    job = sends(len(fabric.hosts), messages)
    return flow.run(flow_input_of(fabric, job, **settings))  # type: ignore[arg-type]


def one_more_link_ps(fabric: Fabric) -> int:
    """The first packet, the largest, on one more of its links, which carry 100 Gb/s, through one more switch."""
    sizes = Transport()
    frame_bytes = 4096 + sizes.data_overhead_bytes + sizes.first_extra_bytes + sizes.interframe_bytes
    return int(fabric.links["delay_ps"][0]) + Switch().forwarding_latency_ps + 80 * frame_bytes


def used(fabric: Fabric, outcome: FlowOutcome) -> set[str]:
    """Names of the links between switches that carried something."""
    between = (fabric.node_kind[fabric.links["a"]] == 1) & (fabric.node_kind[fabric.links["b"]] == 1)
    links = set(fabric.ports.link[outcome.packets.ports["bytes"] > 0].tolist())
    return {fabric.link_names[link] for link in links if between[link]}


def test_a_pinned_flow_is_on_its_links_and_others_are_not() -> None:
    """On a ring of five from 0 to 2 there is a short way by 6 and a long one by 9 and 8, which is pinned."""
    fabric = ring(5)
    long = pin(fabric, 0, 5, 9, 8, 7, 2)
    sent = [Message(source=0, destination=2, size_bytes=MB, channel=3)]
    by_pin = run(fabric, sent, routing=Routing(pins=(long,)))
    assert by_pin.packets.ports["bytes"][list(long.ports)].min() > MB
    assert len(used(fabric, by_pin)) == 3
    other = [Message(source=1, destination=2, size_bytes=MB)]
    assert used(fabric, run(fabric, other, routing=Routing(pins=(long,), paths=1))) == {"router1-router2"}
    back = [Message(source=2, destination=0, size_bytes=MB)]
    assert len(used(fabric, run(fabric, back, routing=Routing(pins=(long,))))) == 2


def test_a_pin_of_one_channel_leaves_the_others_alone() -> None:
    fabric = ring(5)
    routing = Routing(pins=(pin(fabric, 0, 5, 9, 8, 7, 2, channel=4),))
    for channel, links in ((4, 3), (5, 2)):
        outcome = run(fabric, [Message(source=0, destination=2, size_bytes=MB, channel=channel)], routing=routing)
        assert len(used(fabric, outcome)) == links


def test_a_pin_with_a_dead_link_gives_way_at_reconvergence_and_comes_back() -> None:
    fabric = ring(5)
    pinned = pin(fabric, 0, 5, 9, 8, 7, 2)
    dead = int(fabric.ports.link[pinned.ports[1]])
    faults = (Fault(at_ps=0, event="down", link=dead), Fault(at_ps=MS_PS, event="up", link=dead))
    sent = [Message(source=0, destination=2, size_bytes=MB, at_ps=at_ps) for at_ps in (MS_PS // 2, 2 * MS_PS)]
    outcome = run(fabric, sent, routing=Routing(pins=(pinned,)), faults=faults, reconvergence_delay_ps=US_PS)
    assert outcome.packets.complete
    short = first_port(fabric, 5, 6)
    loads = outcome.packets.ports["bytes"]
    assert loads[short] == loads[pinned.ports[0]] > MB
    times_ps = outcome.packets.messages["delivered_at_ps"] - outcome.packets.messages["posted_at_ps"]
    assert times_ps[1] - times_ps[0] == pytest.approx(one_more_link_ps(fabric), abs=2)


def test_a_lone_message_over_ways_of_two_lengths_waits_for_the_longer_one() -> None:
    """A ring of four: two ways of two links, or of one and three; half of the bytes each, the delay of the longer."""
    fabric = ring(4)
    times_ps = {}
    for destination in (1, 2):
        sent = [Message(source=0, destination=destination, size_bytes=MB)]
        outcome = run(fabric, sent, routing=Routing(paths=2), path_selection="spray")
        row = outcome.packets.messages[0]
        times_ps[destination] = int(row["delivered_at_ps"] - row["posted_at_ps"])
        loads = outcome.packets.ports["bytes"]
        assert loads[loads > 0].min() == pytest.approx(loads.max() / 2, rel=1e-3)
    assert times_ps[1] - times_ps[2] == pytest.approx(one_more_link_ps(fabric), abs=2)


@pytest.mark.parametrize("path_selection", [None, "spray"])
@pytest.mark.parametrize("port_selection", ["ecmp", "destination-modulo", "spray"])
def test_every_combination_of_policies_runs_and_folds_alike(port_selection: str, path_selection: str | None) -> None:
    fabric = mesh(3)
    sent = [Message(source=a, destination=b, size_bytes=MB) for a in range(6) for b in range(6) if a != b]
    engine_input = flow_input_of(
        fabric,
        sends(6, sent),
        port_selection=port_selection,
        path_selection=path_selection,
        routing=Routing(paths=3),
        tolerance=1e-9,
    )
    whole = flow.run(engine_input)
    folded = flow.run(replace(engine_input, fold="exact"))
    assert whole.packets.complete
    assert abs(whole.packets.counters["end_ps"] - folded.packets.counters["end_ps"]) <= 2 * US_PS
    np.testing.assert_allclose(folded.link_bytes, whole.link_bytes, rtol=1e-6, atol=1.0)


def test_the_packet_engines_get_the_same_layers_and_pins() -> None:
    fabric = ring(5)
    routing = Routing(paths=2, pins=(pin(fabric, 0, 5, 9, 8, 7, 2),))
    job = sends(5, [Message(source=0, destination=2, size_bytes=MB)])
    packets = packet_input_of(fabric, job, routing=routing)
    flows = flow_input_of(fabric, job, routing=routing)
    table, layers = packets.routes[0], flows.layers[0]
    assert packets.pins.tolist() == flows.pins.tolist() == [(0, 2, -1, 0)]
    assert (table.layer_of == layers.layer_of).all()
    assert table.pinned_ways == layers.pinned_ways == 1
    has = layers.next_port >= 0
    assert ((table.layer_group >= 0) == has).all()
    assert (table.group_ports[table.group_ptr[table.layer_group[has]]] == layers.next_port[has]).all()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"sources": (99,)}, "wanted NIC ports at both ends, and ports from 0 to"),
        ({"sources": (6,)}, "wanted NIC ports at both ends, found one of"),
        ({"sources": (0, 1)}, "wanted NIC ports of one switch, found some of 2 nodes"),
        ({"ports": (0,)}, "port 0 is one of"),
        ({"ports": ()}, "the path ends at"),
        ({"channel": 1 << 16}, "found channel 65536"),
    ],
)
def test_a_pin_that_is_no_path_is_refused(wrong: dict[str, object], text: str) -> None:
    fabric = ring(3)
    job = sends(3, [Message(source=0, destination=1, size_bytes=MB)])
    with pytest.raises(ConfigError, match=text):
        flow_input_of(fabric, job, routing=Routing(pins=(replace(pin(fabric, 0, 3, 4, 1), **wrong),)))  # type: ignore[arg-type]


def test_pins_of_nobody_and_pins_of_one_pair_are_refused_together() -> None:
    fabric = ring(4)
    job = sends(2, [Message(source=0, destination=1, size_bytes=MB)])
    pins = (pin(fabric, 0, 4, 5, 1), pin(fabric, 0, 4, 7, 6, 5, 1), pin(fabric, 2, 6, 7, 3))
    with pytest.raises(ConfigError) as caught:
        packet_input_of(fabric, job, routing=Routing(paths=65, pins=pins))
    told = [(mistake.path, mistake.text) for mistake in caught.value.mistakes]
    assert told == [
        ("fabric.paths", "found 65 paths, wanted 1 to 64, or 0 for all shortest paths"),
        ("fabric.pinned.1", "pins the same queue pairs as fabric.pinned.0; each has one path"),
        ("fabric.pinned.2.from", "no rank of the job runs on 'host2'"),
        ("fabric.pinned.2.to", "no rank of the job runs on 'host3'"),
    ]
