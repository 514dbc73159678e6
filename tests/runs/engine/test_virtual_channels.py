"""Virtual channels in whole runs of both engines: a ring without them deadlocks, and with a dateline it does not.

Host i hangs at switch i of a ring and sends to the host three switches further, as in `test_deadlock`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.both import both
from helpers.tiny import Message, sends, settings_of, wired

from weftwork.base.clock import MS_PS
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.policies.load import load
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

DATELINE = Path(__file__).parents[2] / "policies" / "ring_channels.py"
SWITCHES, HOPS = 8, 3
SWITCH = Switch(forwarding_latency_ps=0, buffer_bytes=1_000_000, headroom_bytes=100_000)


def ring(**parameters: int) -> PacketInput:
    links = [(host, SWITCHES + host) for host in range(SWITCHES)]
    links += [(SWITCHES + i, SWITCHES + (i + 1) % SWITCHES) for i in range(SWITCHES)]
    messages = [Message(source=i, destination=(i + HOPS) % SWITCHES, size_bytes=3_000_000) for i in range(SWITCHES)]
    settings = settings_of()
    return lower(
        fabric=wired(links, hosts=SWITCHES, switch=SWITCH),
        job=sends(SWITCHES, messages),
        transport=Transport(retransmission_timeout_ps=MS_PS),
        congestion_control=load("congestion_control", "none"),
        settings=type(settings)(
            path_selection=None,
            port_selection=load("port_selection", DATELINE, parameters),
            reconvergence_delay_ps=settings.reconvergence_delay_ps,
            failover_delay_ps=settings.failover_delay_ps,
        ),
    )


def test_a_dateline_breaks_the_circle() -> None:
    outcome = both(ring(first=SWITCHES, last=2 * SWITCHES - 1))
    assert len(outcome.deadlock) == 0
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert outcome.ports["pauses_sent"].sum() > 0  # and it was full


def test_a_channel_that_nobody_changes_deadlocks() -> None:
    outcome = both(ring(first=-1))
    assert outcome.deadlock["port"].size == SWITCHES
    assert set(outcome.deadlock["traffic_class"].tolist()) == {0}


def test_a_circle_through_both_channels_is_told_with_the_class_of_each_port() -> None:
    engine_input = ring(everywhere=1)
    outcome = both(engine_input)
    classes = outcome.deadlock["traffic_class"].tolist()
    assert len(outcome.deadlock) == SWITCHES
    assert classes == [classes[0], 1 - classes[0]] * (SWITCHES // 2)
    nodes = engine_input.port_node[outcome.deadlock["port"]].tolist()
    assert nodes == list(range(SWITCHES, 2 * SWITCHES))
    assert (outcome.deadlock["waiting_bytes"] > 0).all()
    assert (outcome.deadlock["held_bytes"] > SWITCH.reserve_bytes).all()
