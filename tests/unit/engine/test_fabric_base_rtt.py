"""The longest base RTT of a fabric, which looks at one pair of each kind, held to the reference's over all pairs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, packet_input_of, pair, sends, wired

from weftwork.engine.base_rtt import fabric_base_rtt_ps
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport
from weftwork.topology.shapes.fat_tree import fat_tree
from weftwork.topology.shapes.leaf_spine import leaf_spine

PLAIN = Transport()
TOLD = Transport(telemetry_bytes=2, telemetry_hop_bytes=8, echo_bytes=6)
RATES: dict[str, Any] = {
    "host_rate_bps": 400 * 10**9, "fabric_rate_bps": 100 * 10**9, "host_delay_ps": 10_000, "fabric_delay_ps": 777_000,
}  # fmt: skip


def random_fabric(seed: int) -> Fabric:
    """Hosts with one or two ports at a chain of switches and more, links of three rates and of any delay."""
    source = random.Random(seed)
    hosts, switches = source.randrange(2, 7), source.randrange(1, 6)
    links = [(host, hosts + source.randrange(switches)) for host in range(hosts) for _ in range(source.choice((1, 2)))]
    links += [(hosts + a, hosts + b) for a in range(switches) for b in range(a) if b == a - 1 or source.random() < 0.3]
    return wired(
        links,
        hosts=hosts,
        switch=Switch(forwarding_latency_ps=300_000),
        rates_bps=[source.choice((400, 200, 100)) * 10**9 for _ in links],
        delays_ps=[source.randrange(1_000, 2_000_000) for _ in links],
    )


FABRICS = {
    "fat tree": lambda: fat_tree(tiers=3, radix=4, switch=Switch(), nic=Nic(), **RATES),
    "leaf and spine": lambda: leaf_spine(leaves=3, spines=2, hosts_per_leaf=2, switch=Switch(), nic=Nic(), **RATES),
    "one switch": lambda: wired([(host, 3) for host in range(3)], hosts=3),
    "one switch, one slow cable": lambda: wired(
        [(h, 3) for h in range(3)], hosts=3, delays_ps=[5_000, 7_000_000, 5_000]
    ),
    "two hosts and a cable": pair,
    "two planes": lambda: wired([(0, 2), (1, 2), (0, 3), (1, 3)], hosts=2, delays_ps=[1_000, 2_000, 3_000, 4_000]),
    **{f"random {seed}": (lambda seed=seed: random_fabric(seed)) for seed in range(25)},
}


def over_all_pairs(engine_input: PacketInput) -> int:
    nics = np.flatnonzero(engine_input.attachment >= 0).tolist()
    return max(base_rtt_ps(engine_input, one, other) for one in nics for other in nics if one != other)


@pytest.mark.parametrize("transport", [PLAIN, TOLD], ids=["plain", "with telemetry"])
@pytest.mark.parametrize("name", FABRICS)
def test_it_is_the_longest_of_all_pairs(name: str, transport: Transport) -> None:
    engine_input = replace(packet_input_of(FABRICS[name](), sends(1, [])), transport=transport)
    assert fabric_base_rtt_ps(engine_input) == over_all_pairs(engine_input)


def test_on_paper_each_switch_makes_the_packet_longer_and_the_ack_tells_of_all() -> None:
    # Host, switch, switch, host: three links, the data packet 0, 1 and 2 hops long, the ACK 2 hops on each.
    fabric = wired([(0, 2), (2, 3), (3, 1)], hosts=2)
    engine_input = replace(packet_input_of(fabric, sends(2, [])), transport=TOLD)
    there_bytes = 3 * (4096 + 62 + 2 + 20) + (0 + 8 + 16)
    back_bytes = 3 * (66 + 6 + 2 + 16 + 20)
    wanted_ps = 6 * DELAY_PS + (there_bytes + back_bytes) * BYTE_PS
    assert base_rtt_ps(engine_input, 0, 1) == fabric_base_rtt_ps(engine_input) == wanted_ps


@pytest.mark.parametrize("seed", range(25))
def test_pairs_that_do_not_reach_each_other_do_not_count(seed: int) -> None:
    source, fabric = random.Random(seed), random_fabric(seed)
    faults = [Fault(at_ps=0, event="down", link=link) for link in range(len(fabric.links)) if source.random() < 0.4]
    engine_input = packet_input_of(fabric, sends(1, []), faults=faults)
    cut = replace(engine_input, routes=engine_input.routes[-1:])
    assert fabric_base_rtt_ps(cut) == over_all_pairs(cut)


def test_where_nobody_reaches_anybody_it_is_0() -> None:
    fabric = wired([(0, 2), (2, 3), (3, 1)], hosts=2)
    engine_input = packet_input_of(fabric, sends(1, []), faults=[Fault(at_ps=0, event="down", link=1)])
    assert fabric_base_rtt_ps(replace(engine_input, routes=engine_input.routes[-1:])) == 0
