"""Layers of routes and pinned entropies in the native engine, counted packet by packet.

Host 0 - A - B or C - D - host 1; shortest paths from A lead by B and by C.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, wired
from numpy.typing import NDArray

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.rows.fabric import PIN_DTYPE
from weftwork.policies.load import load
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

POLICIES = Path(__file__).parents[2] / "policies"
HOSTS, A, B, C, D = 2, 2, 3, 4, 5
LINKS = [(0, A), (A, B), (A, C), (B, D), (C, D), (1, D)]
PACKETS = 5
WIRE = Transport(retransmission_timeout_ps=10 * SECOND_PS)
BY_B, BY_C = 0, 1  # layers
WAYS = (BY_B, BY_C, BY_C, -1, BY_B)  # of each pair; two of them pinned


def port_between(engine_input: PacketInput, node: int, other: int) -> int:
    (found,) = np.flatnonzero(
        (engine_input.port_node == node) & (engine_input.port_node[engine_input.port_peer] == other)
    ).tolist()
    return int(found)


def layered(
    engine_input: PacketInput, hops: dict[tuple[int, int], int], ways: tuple[int, ...] = WAYS, pinned: int = 2
) -> PacketInput:
    """With layers of which (layer, node) goes by one neighbour to the attachment of host 1."""
    target = int(engine_input.attachment[1])
    tables = []
    for table in engine_input.routes:
        groups = len(table.group_ptr) - 1
        layers = 1 + max(layer for layer, _ in hops)
        layer_group = -np.ones((layers, *table.group_of.shape), np.int32)
        ports = [port_between(engine_input, node, other) for (_, node), other in hops.items()]
        for place, (layer, node) in enumerate(hops):
            layer_group[layer, node, target] = groups + place
        attachments = table.group_of.shape[1]
        tables.append(
            replace(
                table,
                group_ptr=np.concatenate([table.group_ptr, table.group_ptr[-1] + 1 + np.arange(len(ports))]),
                group_ports=np.concatenate([table.group_ports, np.array(ports, np.int32)]),
                group_weights=np.concatenate([table.group_weights, np.ones(len(ports), np.int32)]),
                layer_group=layer_group,
                layer_of=np.tile(np.array(ways, np.int32), (attachments, attachments, 1)),
                pinned_ways=pinned,
            )
        )
    return replace(engine_input, routes=tuple(tables))


def pins(*rows: tuple[int, int, int, int]) -> NDArray[np.void]:
    return np.array(list(rows), PIN_DTYPE)


def messages(channels: int) -> list[Message]:
    return [Message(source=0, destination=1, size_bytes=PACKETS * 4096, channel=channel) for channel in range(channels)]


def plan(channels: int = 1, **settings: object) -> PacketInput:
    return packet_input_of(wired(LINKS, hosts=HOSTS), sends(HOSTS, messages(channels)), transport=WIRE, **settings)


def by_b_and_c(engine_input: PacketInput) -> tuple[int, int]:
    """Frames that A has sent by B and by C: of data, since ACKs come to A."""
    frames = both(engine_input).ports["frames"]
    return int(frames[port_between(engine_input, A, B)]), int(frames[port_between(engine_input, A, C)])


TWO = {(BY_B, A): B, (BY_C, A): C}


@pytest.mark.parametrize(("entropy", "wanted"), [(0, BY_B), (1, BY_C), (2, BY_B), (3, BY_C), (5, BY_B), (0xFFFF, BY_C)])
def test_an_entropy_chooses_a_pinned_way_or_one_of_the_rest(entropy: int, wanted: int) -> None:
    # Two pinned ways, then 2 + e mod 3: entropies 3, 0xFFFF take column 2, 2 and 5 take column 4.
    assert 2 + 2 % 3 == 2 + 5 % 3 == 4
    assert 2 + 3 % 3 == 2 + 0xFFFF % 3 == 2
    made = replace(layered(plan(), TWO), pins=pins((0, 1, 0, entropy)))
    assert by_b_and_c(made) == ((PACKETS, 0) if wanted == BY_B else (0, PACKETS))


def test_a_pin_is_of_its_channel_or_of_all_that_have_none_of_their_own() -> None:
    # Channel 1 has its own row; channels 0 and 2 take that of every channel; the other direction has none that fits.
    made = replace(layered(plan(3), TWO), pins=pins((0, 1, -1, 1), (0, 1, 1, 0), (1, 0, 0, 0)))
    assert by_b_and_c(made) == (PACKETS, 2 * PACKETS)


@pytest.mark.parametrize("ways", [(BY_B, -1), (BY_B, BY_C)])
def test_without_columns_beyond_the_pinned_ones_the_shortest_paths_hold(ways: tuple[int, int]) -> None:
    # Whatever ECMP does with them: the digest is that of a table without layers, all of whose entropies are drawn.
    assert both(layered(plan(8), TWO, ways)).digest() == both(plan(8)).digest()


def test_a_layer_without_a_group_for_a_switch_leaves_it_to_the_shortest_paths() -> None:
    assert both(layered(plan(8), {(BY_B, D): B, (BY_C, D): C})).digest() == both(plan(8)).digest()


def test_a_layer_whose_ports_are_down_drops_what_follows_it() -> None:
    # Routes are computed anew only after the run; the shortest paths would still lead by C.
    faults = (Fault(at_ps=US_PS // 10, event="down", link=1),)
    made = plan(faults=faults, until_ps=MS_PS, reconvergence_delay_ps=SECOND_PS)
    outcome = both(replace(layered(made, TWO), pins=pins((0, 1, 0, 0))))
    assert outcome.counters["drop_link_down"] == PACKETS
    assert outcome.ports["drops"][port_between(made, A, B)] == PACKETS
    by_c = replace(layered(made, TWO), pins=pins((0, 1, 0, 1)))
    assert by_b_and_c(by_c) == (0, PACKETS)


def test_acks_follow_the_layer_of_their_own_pair() -> None:
    # Both directions carry one entropy; only the pair from host 1 to host 0 has a layer, by C.
    made = layered(plan(), {(BY_B, A): B, (BY_C, D): C})
    table = made.routes[0]
    home, far = (int(made.attachment[host]) for host in (0, 1))
    layer_group = table.layer_group.copy()
    layer_group[BY_C, D, home] = layer_group[BY_C, D, far]
    layer_of = -np.ones_like(table.layer_of)
    layer_of[far, home] = BY_C
    made = replace(made, routes=(replace(table, layer_group=layer_group, layer_of=layer_of),))
    frames = both(made).ports["frames"]
    assert frames[port_between(made, D, C)] == PACKETS
    assert frames[port_between(made, D, B)] == 0


@pytest.mark.parametrize(("word", "by_c"), [(0, 0), (1, 1), (2, 0), (3, 1), (-1, 1), (-2, 0), ((1 << 40) + 1, 1)])
def test_a_word_chooses_the_layer_from_the_next_switch_on(word: int, by_c: int) -> None:
    # A - B, and from B to D also by C. To A a packet comes with the word 0, so that A's way back in the one layer is
    # not taken. From B on the layer is word mod 2, less 1: in it B leads to C, which has no group of its own.
    policy = load("port_selection", POLICIES / "worded.py", {"word": word})
    links = [*(link for link in LINKS if link != (A, C)), (B, C)]
    made = packet_input_of(wired(links, hosts=HOSTS), sends(HOSTS, messages(1)), transport=WIRE, port_selection=policy)
    made = layered(made, {(0, B): C, (0, A): 0}, ways=(), pinned=0)
    frames = both(made).ports["frames"]
    assert frames[port_between(made, A, B)] == PACKETS
    assert frames[port_between(made, B, C)] == PACKETS * by_c
    assert frames[port_between(made, B, D)] == PACKETS * (1 - by_c)


def test_a_path_selection_spreads_packets_over_layers() -> None:
    # Odd entropies go by B and even ones by C; the path selection of the catalogue draws one for each packet.
    made = packet_input_of(
        wired(LINKS, hosts=HOSTS),
        sends(HOSTS, [Message(source=0, destination=1, size_bytes=64 * 4096)]),
        transport=WIRE.model_copy(update={"reorder_tolerant": True}),
        path_selection="spray",
    )
    frames = by_b_and_c(layered(made, TWO, ways=(BY_C, BY_B), pinned=0))
    assert sum(frames) == 64
    assert min(frames) >= 16
