"""Routes as switches and queue pairs read them from an engine input, on two leaves and two spines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, packet_input_of, sends, wired

from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.engine.reference.forwarding import Forwarding, NextHop
from weftwork.spec.transport import Transport

WANDERING = str(Path(__file__).parents[3] / "policies" / "wandering.py")
LEAF, OTHER_LEAF, SPINE, OTHER_SPINE = 2, 3, 4, 5
LINKS = [(0, LEAF), (1, OTHER_LEAF), (LEAF, SPINE), (LEAF, OTHER_SPINE), (OTHER_LEAF, SPINE), (OTHER_LEAF, OTHER_SPINE)]


def two_spines() -> PacketInput:
    # For the last table both uplinks of the first leaf are down.
    faults = [Fault(at_ps=0, event="down", link=2), Fault(at_ps=10_000_000, event="down", link=3)]
    return packet_input_of(wired(LINKS, hosts=2), sends(2, []), faults=faults)


def peers(engine_input: PacketInput, node: int) -> dict[int, int]:
    """Port of a node by the node that it leads to."""
    first, last = int(engine_input.port_base[node]), int(engine_input.port_base[node + 1])
    return {int(engine_input.port_node[engine_input.port_peer[port]]): port for port in range(first, last)}


def test_a_leaf_has_every_spine_as_next_hop_and_a_spine_the_leaf() -> None:
    engine_input = two_spines()
    forwarding = Forwarding(engine_input)
    edge = forwarding.edge_of_nic(1)
    spines = sorted(peers(engine_input, LEAF)[spine] for spine in (SPINE, OTHER_SPINE))
    assert forwarding.next_hops(LEAF, edge) == [NextHop(port=port, weight=1, is_minimal=True) for port in spines]
    assert forwarding.next_hops(SPINE, edge) == [NextHop(port=peers(engine_input, SPINE)[OTHER_LEAF])]


def test_at_its_leaf_a_packet_is_delivered() -> None:
    engine_input = two_spines()
    forwarding = Forwarding(engine_input)
    assert forwarding.edge_of_nic(1) == forwarding.edge_of(OTHER_LEAF) != forwarding.edge_of(LEAF)
    assert forwarding.delivery(1) == NextHop(port=peers(engine_input, OTHER_LEAF)[1])
    assert forwarding.next_hops(OTHER_LEAF, forwarding.edge_of(OTHER_LEAF)) == []


def test_leaves_are_edges_and_spines_are_none() -> None:
    forwarding = Forwarding(two_spines())
    assert [forwarding.edge_of(node) for node in (LEAF, OTHER_LEAF, SPINE, OTHER_SPINE)] == [0, 1, -1, -1]
    assert forwarding.edges == 2


def test_another_table_has_other_next_hops_and_at_last_none() -> None:
    engine_input = two_spines()
    forwarding = Forwarding(engine_input)
    seen = []
    for table in engine_input.routes:
        forwarding.use(table)
        seen.append(len(forwarding.next_hops(LEAF, forwarding.edge_of_nic(1))))
    assert seen == [2, 1, 0]


def test_a_port_selection_by_destination_reads_the_plans_numbers() -> None:
    engine_input = two_spines()
    for port in range(len(engine_input.port_peer)):
        wanted = (int(engine_input.destination_number[1]), int(engine_input.port_stride[port]))
        assert Forwarding(engine_input).digit_of(port, 1) == wanted


def triangle() -> PacketInput:
    """Hosts 0 to 2 at switches 3 to 5, each of which is linked to both others; the link of 3 and 4 dies."""
    links = [(0, 3), (1, 4), (2, 5), (3, 4), (4, 5), (3, 5)]
    return packet_input_of(
        wired(links, hosts=3),
        sends(3, []),
        transport=Transport(reorder_tolerant=True),
        faults=[Fault(at_ps=0, event="down", link=3)],
        port_selection=WANDERING,
    )


def test_behind_the_shortest_ways_stand_the_others_where_a_policy_asks_for_them() -> None:
    engine_input = triangle()
    forwarding = Forwarding(engine_input)
    leads = peers(engine_input, 3)
    assert forwarding.next_hops(3, 1) == [NextHop(port=leads[4]), NextHop(port=leads[5], is_minimal=False)]
    assert [forwarding.hops_left(leads[node], 1) for node in (4, 5)] == [1, 2]
    assert forwarding.hops_left(leads[0], 0) == 0  # a host: the packet is delivered
    forwarding.use(engine_input.routes[1])
    assert forwarding.next_hops(3, 1) == [NextHop(port=leads[5])]  # where the link has died there is but one way
    assert forwarding.hops_left(leads[5], 1) == 2


@pytest.mark.parametrize(("source", "destination"), [(0, 1), (1, 0)])
def test_the_base_rtt_is_a_full_packet_there_and_an_ack_back_over_four_links(source: int, destination: int) -> None:
    there_ps = 4 * ((4096 + 62 + 20) * BYTE_PS + DELAY_PS)
    back_ps = 4 * ((66 + 20) * BYTE_PS + DELAY_PS)
    assert base_rtt_ps(two_spines(), source, destination) == there_ps + back_ps


def test_without_a_route_there_is_no_base_rtt() -> None:
    engine_input = two_spines()
    assert base_rtt_ps(replace(engine_input, routes=engine_input.routes[-1:]), 0, 1) == 0
