"""Routing by destination on a tree of three tiers whose parts are unequal: the port of every hop, by digits on paper.

Two pods over three cores, which every agg reaches. Pod A: leaves of three hosts and one, two aggs, two links between
each leaf and agg. Pod B: leaves of two hosts and four, three aggs, one link each. Hosts have numbers from 0 to 9, leaf
by leaf. A leaf of pod A has four ports upwards, of pod B three, so that the digits above count in fours.

| hop | choice for the host of number n | of |
|---|---|---|
| leaf up | n | its ports upwards: 4 in pod A, 3 in pod B |
| agg up | n // 4 | 3 cores |
| core down | n // 4 | aggs of the pod: 2 or 3 |
| agg down | n | links to that leaf: 2 or 1 |

Source: Zahavi, J. Parallel Distrib. Comput. 2012 (a digit for each tier); docs/models/flow-engine-paths.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired

from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.paths import FlowPaths
from weftwork.engine.instants import Fault
from weftwork.spec.fabric import Fabric

pytestmark = pytest.mark.sanitize

HOSTS = 10
LEAF_OF_HOST = (10, 10, 10, 11, 12, 12, 13, 13, 13, 13)
AGGS = {10: (14, 15), 11: (14, 15), 12: (16, 17, 18), 13: (16, 17, 18)}  # of a leaf
LINKS = {10: 2, 11: 2, 12: 1, 13: 1}  # between a leaf and each of its aggs
CORES = (19, 20, 21)
BASE = 4  # of digits above the leaves
PAIRS = list(permutations(range(HOSTS), 2))


@cache
def tree() -> Fabric:
    links = list(enumerate(LEAF_OF_HOST))
    links += [(leaf, agg) for leaf, aggs in AGGS.items() for agg in aggs for _ in range(LINKS[leaf])]
    links += list(product((14, 15, 16, 17, 18), CORES))
    fabric = wired(links, hosts=HOSTS)
    tier = np.repeat([0, 1, 2, 3], [HOSTS, 4, 5, 3])
    return replace(fabric, node_tier=tier.astype(fabric.node_tier.dtype))


def ports_between(node: int, *peers: int) -> list[int]:
    """Ports of a node towards others, in the order of their numbers."""
    ports = tree().ports
    own = range(int(ports.base[node]), int(ports.base[node + 1]))
    return [port for port in own if int(ports.node[ports.peer[port]]) in peers]


def digits(source: int, destination: int) -> list[int]:
    """The ports on the way between two hosts, by the table above."""
    ports = tree().ports
    leaf, last = LEAF_OF_HOST[source], LEAF_OF_HOST[destination]
    taken = [int(ports.base[source])]

    def go(candidates: list[int], digit: int) -> int:
        taken.append(candidates[digit % len(candidates)])
        return int(ports.node[ports.peer[taken[-1]]])

    if leaf != last:
        node = go(ports_between(leaf, *AGGS[leaf]), destination)
        if AGGS[leaf] != AGGS[last]:
            node = go(ports_between(node, *CORES), destination // BASE)
            node = go(ports_between(node, *AGGS[last]), destination // BASE)
        assert go(ports_between(node, last), destination) == last
    return [*taken, int(ports.peer[ports.base[destination]])]


def test_a_flow_takes_the_port_of_its_digit_at_every_hop() -> None:
    base = tree().ports.base[:HOSTS]
    sources, destinations = np.array(PAIRS).T
    found = FlowPaths(tree(), "deterministic").paths(base[sources], base[destinations])
    hops = [found.hops["link"][low:high].tolist() for low, high in zip(found.hop_ptr, found.hop_ptr[1:], strict=False)]
    assert hops == [digits(*pair) for pair in PAIRS]
    assert (found.hops["weight"] == 1).all()


def test_packets_take_the_same_ports() -> None:
    job = sends(HOSTS, [Message(source=a, destination=b, size_bytes=1) for a, b in PAIRS])
    engine_input = packet_input_of(tree(), job, port_selection="destination-modulo")
    told = packet.run(engine_input, series=packet.Series(path_sample=1)).paths
    for number, pair in enumerate(PAIRS):
        assert sorted(told["port"][told["queue_pair"] == number].tolist()) == sorted(digits(*pair))


SIZE = 4096 * 10_000


@pytest.mark.parametrize("first", PAIRS[::11])
def test_two_messages_share_a_rate_where_their_digits_meet(first: tuple[int, int]) -> None:
    """Half of the rate where a port is on both ways, else all of it, as if the other were not there."""
    others = [pair for pair in PAIRS[::7] if pair != first]
    met = [bool(set(digits(*first)) & set(digits(*pair))) for pair in others]
    assert set(met) == {True, False}
    whole_ps = SIZE / 4096 * 4178 * 20
    for pair, meets in zip(others, met, strict=True):
        job = sends(HOSTS, [Message(source=a, destination=b, size_bytes=SIZE) for a, b in (first, pair)])
        outcome = flow.run(flow_input_of(tree(), job, port_selection="destination-modulo")).packets
        taken = outcome.messages["delivered_at_ps"].tolist()
        assert taken == pytest.approx([whole_ps * (2 if meets else 1)] * 2, rel=0.01)


def test_ports_that_are_left_after_a_fault_are_counted_anew() -> None:
    """Leaf 12, of pod B, loses its second port upwards: of three candidates two are left, for n modulo two."""
    links = tree().links
    dead = next(at for at, link in enumerate(links) if (link["a"], link["b"]) == (12, 17))
    base = tree().ports.base[:HOSTS]
    router = FlowPaths(tree(), "deterministic")
    up = np.ones(len(links), np.bool_)
    up[dead] = False
    router.use(up)
    left = ports_between(12, 16, 18)
    for destination in (0, 1, 2, 3, 6, 7, 8, 9):
        found = router.paths(base[[4]], base[[destination]]).hops["link"].tolist()
        assert found[1] == left[destination % 2]
    # a message that is under way on the dead port stands still, and goes on by the other one when routes know
    (source, destination), at_ps, delay_ps = (4, 7), 10_000_000, 3_000_000
    assert digits(source, destination)[1] == ports_between(12, 17)[0]
    job = sends(HOSTS, [Message(source=source, destination=destination, size_bytes=SIZE)])
    whole, halted = (
        flow.run(
            flow_input_of(
                tree(), job, port_selection="destination-modulo", faults=faults, reconvergence_delay_ps=delay_ps
            )
        )
        .packets.messages["delivered_at_ps"]
        .tolist()
        for faults in ([], [Fault(at_ps=at_ps, event="down", link=dead)])
    )
    assert halted == pytest.approx([whole[0] + delay_ps], abs=3)
