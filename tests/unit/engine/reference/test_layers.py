"""Layers of routes and pinned entropies in the reference engine, on two leaves and two spines and at a switch alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.by_hand import data
from helpers.hand_switch import IN, LOSSLESS, OTHER_IN, OUT, SPARE, Driven, HandRoutes, HandSelection
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.flow_identity import flow_identity
from weftwork.base.random import Stream, draw
from weftwork.engine.packet_input import PacketInput, RouteTable
from weftwork.engine.reference.flow import Flow
from weftwork.engine.reference.forwarding import SHORTEST, Forwarding, NextHop
from weftwork.engine.reference.simulation import Simulation, run
from weftwork.engine.rows.fabric import PIN_DTYPE

LEAF, OTHER_LEAF, SPINE, OTHER_SPINE = 2, 3, 4, 5
LINKS = [(0, LEAF), (1, OTHER_LEAF), (LEAF, SPINE), (LEAF, OTHER_SPINE), (OTHER_LEAF, SPINE), (OTHER_LEAF, OTHER_SPINE)]
HERE, THERE = 0, 1  # attachments: the leaves
BY_SPINE, BY_OTHER = 0, 1  # layers


def plan(messages: list[Message], pins: list[tuple[int, int, int, int]]) -> PacketInput:
    """Two layers, by one spine each; only leaves know them. Ways 0 and 1 are pinned: there by the spine, by the other.

    Ways 2 to 4 are for all others: there by the other spine, by shortest paths, by the spine. Back way 0 takes the
    other spine, and all others the spine.
    """
    engine_input = packet_input_of(wired(LINKS, hosts=2), sends(2, messages))
    port_to = {
        (int(engine_input.port_node[port]), int(engine_input.port_node[peer])): port
        for port, peer in enumerate(engine_input.port_peer.tolist())
    }
    table = engine_input.routes[0]
    layer_group = np.full((2, *table.group_of.shape), -1, np.int32)
    groups, ports = len(table.group_ptr) - 1, []
    for layer, spine in ((BY_SPINE, SPINE), (BY_OTHER, OTHER_SPINE)):
        for leaf, target in ((LEAF, THERE), (OTHER_LEAF, HERE)):
            layer_group[layer, leaf, target] = groups + len(ports)
            ports.append(port_to[leaf, spine])
    layer_of = np.full((2, 2, 5), -1, np.int32)
    layer_of[HERE, THERE] = [BY_SPINE, BY_OTHER, BY_OTHER, SHORTEST, BY_SPINE]
    layer_of[THERE, HERE] = [BY_OTHER, BY_SPINE, BY_SPINE, BY_SPINE, BY_SPINE]
    layered = replace(
        table,
        group_ptr=np.append(table.group_ptr, table.group_ptr[-1] + 1 + np.arange(len(ports))),
        group_ports=np.append(table.group_ports, ports).astype(table.group_ports.dtype),
        group_weights=np.append(table.group_weights, np.ones(len(ports))).astype(table.group_weights.dtype),
        layer_group=layer_group,
        layer_of=layer_of,
        pinned_ways=2,
    )
    return replace(engine_input, routes=[layered], pins=np.array(pins, PIN_DTYPE))


def without_layers(table: RouteTable) -> RouteTable:
    empty = np.empty((0, 0, 0), np.int32)
    return replace(table, layer_group=empty, layer_of=empty, pinned_ways=0)


def nodes(engine_input: PacketInput, hops: list[NextHop]) -> list[int]:
    """To which each of these ports leads."""
    return [int(engine_input.port_node[engine_input.port_peer[hop.port]]) for hop in hops]


# The table


def test_a_layer_has_ways_of_its_own_and_where_it_has_none_the_shortest_paths_hold() -> None:
    engine_input = plan([], [])
    forwarding = Forwarding(engine_input)
    ways = [nodes(engine_input, forwarding.next_hops(LEAF, THERE, layer)) for layer in (SHORTEST, BY_SPINE, BY_OTHER)]
    assert ways == [[SPINE, OTHER_SPINE], [SPINE], [OTHER_SPINE]]
    assert nodes(engine_input, forwarding.next_hops(SPINE, THERE, BY_OTHER)) == [OTHER_LEAF]
    assert forwarding.has_layers
    forwarding.use(without_layers(engine_input.routes[0]))
    assert not forwarding.has_layers
    assert nodes(engine_input, forwarding.next_hops(LEAF, THERE)) == [SPINE, OTHER_SPINE]


def test_a_layer_has_no_ways_behind_its_own() -> None:
    engine_input = plan([], [])
    table = engine_input.routes[0]
    seconds = replace(table, second_of=np.full_like(table.group_of, table.group_of[LEAF, THERE]))
    forwarding = Forwarding(replace(engine_input, routes=[seconds]))
    assert [hop.is_minimal for hop in forwarding.next_hops(LEAF, THERE)] == [True, True, False, False]
    assert [hop.is_minimal for hop in forwarding.next_hops(LEAF, THERE, BY_OTHER)] == [True]


def test_a_word_names_the_layer_from_the_shortest_paths_on_and_begins_again_behind_the_last() -> None:
    forwarding = Forwarding(plan([], []))
    wanted = [BY_OTHER, SHORTEST, BY_SPINE, BY_OTHER, SHORTEST, BY_SPINE]
    assert [forwarding.layer_by_word(word) for word in range(-1, 5)] == wanted


def test_low_entropies_take_the_pinned_ways_and_all_others_one_of_the_rest() -> None:
    forwarding = Forwarding(plan([], []))
    # 2, 3 and 4 modulo 3, behind the two pinned ways: columns 4, 2 and 3.
    assert [forwarding.layer_by_entropy(0, 1, entropy) for entropy in range(5)] == [
        BY_SPINE, BY_OTHER, BY_SPINE, BY_OTHER, SHORTEST
    ]  # fmt: skip
    assert forwarding.layer_by_entropy(0, 1, 65_535) == BY_OTHER  # a multiple of 3
    assert forwarding.layer_by_entropy(1, 0, 65_535) == BY_SPINE


def test_where_all_ways_are_pinned_the_others_take_the_shortest_paths() -> None:
    engine_input = plan([], [])
    table = engine_input.routes[0]
    forwarding = Forwarding(replace(engine_input, routes=[replace(table, layer_of=table.layer_of[:, :, :2])]))
    assert [forwarding.layer_by_entropy(0, 1, entropy) for entropy in range(4)] == [
        BY_SPINE, BY_OTHER, SHORTEST, SHORTEST
    ]  # fmt: skip


# A switch


def layered_switch(*, layer_by_word: bool = False) -> Driven:
    """The first way leads to `OUT`, and in layer 7 to `SPARE`; attachment 2 is reached by `OTHER_IN` and by `IN`."""
    routes = HandRoutes(OUT)
    routes.layers[7] = {THERE: [NextHop(port=SPARE)], 2: [NextHop(port=OTHER_IN)]}
    routes.ways[2] = [NextHop(port=IN)]
    return Driven(routes=routes, selection=HandSelection(always=True, layer_by_word=layer_by_word))


def left_by(driven: Driven) -> list[int]:
    return [port.id for port, wire in zip(driven.ports, driven.wires, strict=True) if wire.packets]


@pytest.mark.parametrize(
    ("layer_by_word", "changes", "left"),
    [
        (False, {"entropy": 7}, SPARE),
        (False, {"entropy": 6, "word": 7}, OUT),
        (True, {"entropy": 6, "word": 7}, SPARE),
        (True, {"entropy": 7, "word": 6}, OUT),
    ],
)
def test_a_packet_goes_in_the_layer_of_its_entropy_or_of_its_word(
    layer_by_word: bool,  # noqa: FBT001
    changes: dict[str, int],
    left: int,
) -> None:
    driven = layered_switch(layer_by_word=layer_by_word)
    driven.ports[IN].receive(data(0, **changes))
    assert left_by(driven) == [left]


def test_the_layer_is_that_of_the_word_with_which_it_came_in_also_where_it_is_asked_twice() -> None:
    driven = layered_switch(layer_by_word=True)

    def go_by(signal: Any, _candidates: Any, _ports: Any) -> None:
        signal.word, signal.via = 6, 2

    driven.selection.on_step = go_by
    driven.ports[IN].receive(data(0, word=7))
    assert left_by(driven) == [OTHER_IN]
    assert len(driven.selection.signals) == 2


def test_a_layer_whose_ways_are_down_loses_the_packet_whatever_the_shortest_paths_know() -> None:
    driven = layered_switch()
    driven.ports[SPARE].go_down()
    driven.ports[IN].receive(data(0, entropy=7, traffic_class=LOSSLESS))
    assert driven.counted == {"drop_link_down": 1}
    assert driven.ports[SPARE].counts["drops"] == 1


# Pins


def test_a_pin_of_the_channel_counts_before_that_of_every_channel_and_without_one_it_is_drawn() -> None:
    pins = {(0, 1, -1): 5, (0, 1, 3): 6, (1, 0, 0): 7}
    drawn = 0xC000 | draw(9, Stream.PATH_CHOICE, flow_identity(2, 1, 0), 0, 0) & 0x3FFF
    names = [(0, 1, 0), (0, 1, 3), (1, 0, 0), (2, 1, 0)]
    assert [Flow.of(*name, seed=9, pins=pins).entropy for name in names] == [5, 6, 7, drawn]
    assert Flow.of(2, 1, 0, seed=9).entropy == drawn


@pytest.mark.parametrize(("entropy", "there", "back"), [(0, SPINE, OTHER_SPINE), (1, OTHER_SPINE, SPINE)])
def test_a_pinned_queue_pair_takes_its_way_and_its_acks_the_one_of_the_other_direction(
    entropy: int, there: int, back: int
) -> None:
    engine_input = plan([Message(source=0, destination=1, size_bytes=20_000)], [(0, 1, -1, entropy)])
    outcome = run(engine_input)
    frames = {
        (int(engine_input.port_node[port]), int(engine_input.port_node[peer])): int(outcome.ports["frames"][port])
        for port, peer in enumerate(engine_input.port_peer.tolist())
    }
    assert [frames[LEAF, there], frames[there, OTHER_LEAF]] == [5, 5]
    assert [frames[OTHER_LEAF, back], frames[back, LEAF]] == [5, 5]
    assert sum(frames.values()) == 4 * 5 + 4 * 5
    assert (outcome.messages["acked_at_ps"] > 0).all()


def test_a_queue_pair_without_a_pin_takes_a_way_of_the_rest_by_its_drawn_entropy() -> None:
    engine_input = plan([Message(source=0, destination=1, size_bytes=1, channel=c) for c in range(12)], [(0, 1, 4, 1)])
    simulation = Simulation(engine_input)
    simulation.run()
    entropies = {name[2]: pair.flow.entropy for name, pair in simulation.queue_pairs.items()}
    assert entropies.pop(4) == 1
    layers = {simulation.forwarding.layer_by_entropy(0, 1, entropy) for entropy in entropies.values()}
    assert layers == {SHORTEST, BY_SPINE, BY_OTHER}
    assert min(entropies.values()) >= 0xC000
