"""Laws of credits between links, on random fabrics in the native engine: no lane holds more than its room, whatever is
lost, dropped or cut off, and no credit is lost for good.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import RATE_BPS, Message, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.transport import Transport

LARGEST_BYTES = 4096 + 62 + 16  # frame of a first packet


def plan(seed: int) -> PacketInput:
    """Leaves and spines with lanes that have hardly more than the least room, and a link that may go down."""
    source = random.Random(seed)
    leaves, per_leaf, spines = source.randint(2, 4), source.randint(1, 3), source.randint(1, 3)
    hosts = leaves * per_leaf
    links = [(host, hosts + host // per_leaf) for host in range(hosts)]
    links += [(hosts + leaf, hosts + leaves + spine) for leaf in range(leaves) for spine in range(spines)]
    quantum = source.choice([64, 500, 4158, 8192, 20_000])
    transport = Transport(
        link_credits=True,
        lossless_priorities=(),
        credit_quantum_bytes=quantum,
        retransmission_timeout_ps=source.choice([100 * US_PS, MS_PS]),
        retry_limit=1000,
        recovery=source.choice(["go-back-n", "timeout", "selective-repeat"]),
        reorder_tolerant=True,
        end_to_end_credits=source.choice([0, 4]),
        control_priority=source.choice([3, 6]),
    )
    messages = []
    for channel in range(source.randint(1, 12)):
        sender, receiver = source.sample(range(hosts), 2)
        size, priority = source.choice([1, 4096, 300_000]), source.choice([-1, 1, 5])
        messages.append(
            Message(source=sender, destination=receiver, size_bytes=size, channel=channel, priority=priority)
        )
    cut = source.randrange(len(links))
    up_ps = source.choice([20 * US_PS + 100_000, 60 * US_PS])
    faults = [Fault(at_ps=20 * US_PS, event="down", link=cut), Fault(at_ps=up_ps, event="up", link=cut)]
    made = packet_input_of(
        wired(
            links,
            hosts=hosts,
            rates_bps=[source.choice([RATE_BPS, RATE_BPS // 4, 123_456_789_000]) for _ in links],
            nic=source.choice([Nic(), Nic(pcie_rate_bps=RATE_BPS // 2, pcie_latency_ps=US_PS)]),
            switch=Switch(ecn=Ecn(at=source.choice(["enqueue", "dequeue"]))),
            loss=source.choice([0.0, 0.01]),
        ),
        sends(hosts, messages),
        transport=transport,
        congestion_control=source.choice(["none", "dcqcn"]),
        path_selection=source.choice([None, "spray"]),
        port_selection=source.choice(["ecmp", "least_loaded"]),
        faults=faults if source.random() < 0.5 else (),
        seed=seed,
    )
    room = 2 * LARGEST_BYTES + quantum + source.randint(0, 5000)
    return replace(made, port_credit_bytes=np.full(len(made.port_node), room, np.int64))


@pytest.mark.parametrize("seed", range(40))
def test_no_lane_overflows_and_none_runs_dry(seed: int) -> None:
    made = plan(seed)
    outcome = both(made)
    assert (outcome.ports["max_ingress_bytes"] <= made.port_credit_bytes).all()
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert len(outcome.deadlock) == 0
    for name in ("buffer_full", "headroom_full", "egress_threshold", "receive_buffer"):
        assert outcome.counters[f"drop_{name}"] == 0
    assert outcome.ports["pauses_sent"].sum() == 0
