"""Routes as switches and queue pairs read them from an engine input, on two leaves and two spines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, packet_input_of, sends, wired

from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.engine.reference.forwarding import Forwarding

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
    members, weights = forwarding.next_hops(LEAF, 1)
    assert members == sorted(peers(engine_input, LEAF)[spine] for spine in (SPINE, OTHER_SPINE))
    assert weights == [1, 1]
    assert forwarding.next_hops(SPINE, 1)[0] == [peers(engine_input, SPINE)[OTHER_LEAF]]


def test_at_its_leaf_a_packet_is_delivered() -> None:
    engine_input = two_spines()
    assert Forwarding(engine_input).next_hops(OTHER_LEAF, 1) == ([peers(engine_input, OTHER_LEAF)[1]], [1])


def test_another_table_has_other_next_hops_and_at_last_none() -> None:
    engine_input = two_spines()
    forwarding = Forwarding(engine_input)
    seen = []
    for table in engine_input.routes:
        forwarding.use(table)
        seen.append(len(forwarding.next_hops(LEAF, 1)[0]))
    assert seen == [2, 1, 0]


def test_a_port_selection_by_destination_reads_the_plans_numbers() -> None:
    engine_input = two_spines()
    for port in range(len(engine_input.port_peer)):
        wanted = (int(engine_input.destination_number[1]), int(engine_input.port_stride[port]))
        assert Forwarding(engine_input).digit_of(port, 1) == wanted


@pytest.mark.parametrize(("source", "destination"), [(0, 1), (1, 0)])
def test_the_base_rtt_is_a_full_packet_there_and_an_ack_back_over_four_links(source: int, destination: int) -> None:
    there_ps = 4 * ((4096 + 62 + 20) * BYTE_PS + DELAY_PS)
    back_ps = 4 * ((66 + 20) * BYTE_PS + DELAY_PS)
    assert base_rtt_ps(two_spines(), source, destination) == there_ps + back_ps


def test_without_a_route_there_is_no_base_rtt() -> None:
    engine_input = two_spines()
    assert base_rtt_ps(replace(engine_input, routes=engine_input.routes[-1:]), 0, 1) == 0
