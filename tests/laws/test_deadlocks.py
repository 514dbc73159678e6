"""A deadlock is told in time and never too early: what both engines call one, no more time would have broken."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from helpers.both import both
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from helpers.tiny import Message, packet_input_of, sends, wired

from weftwork.base.clock import MS_PS, NEVER_PS, US_PS
from weftwork.engine import packet
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

PLANS = case_count(plain=20, deep=200)
LONGER_PS = 20 * MS_PS  # hundreds of pauses, and more than all timeouts of a queue pair take here
WANTED = PLANS // 6  # of either kind


def random_plan(seed: int) -> PacketInput:
    """A ring of switches with chords, a host at each, small buffers and short timeouts."""
    draw = random.Random(seed)
    count = draw.randint(5, 8)
    is_circle = draw.random() < 0.6  # all far one way round, or anybody to anybody
    least, most = ((count - 1) // 2, (count - 1) // 2) if is_circle else (1, count - 1)
    links = [(host, count + host) for host in range(count)]
    links += [(count + i, count + (i + 1) % count) for i in range(count)]
    links += [
        (count + a, count + (a + draw.randint(2, count - 1)) % count)
        for a in range(count)
        if count > 3 and draw.random() < 0.05
    ]
    links = [link for link in links if link[0] != link[1]]
    rates_bps = [draw.choice([100, 400]) * 10**9 for _ in links] if draw.random() < 0.3 else None
    messages = [
        Message(
            source=source,
            destination=(source + draw.randint(least, most)) % count,
            size_bytes=draw.randint(200_000 if is_circle else 1, 600_000),
            at_ps=0 if is_circle else draw.choice([0, draw.randrange(300 * US_PS)]),
            channel=channel,
        )
        for source in range(count)
        for channel in range(draw.randint(1, 3))
    ]
    transport = {
        "retransmission_timeout_ps": draw.choice([5, 50, 300]) * US_PS,
        "retry_limit": draw.randint(0, 7),
        "recovery": draw.choice(["go-back-n", "go-back-n", "selective-repeat", "timeout"]),
    }
    switch = Switch(
        forwarding_latency_ps=0,
        buffer_bytes=280_000 + draw.randint(0, 150_000),
        headroom_bytes=draw.choice([10_000, 40_000, 40_000]),
        pause_quanta=draw.choice([65_535, 20_000, 2_000]),
    )
    faults = [
        Fault(at_ps=draw.randrange(400 * US_PS), event="down", link=draw.randrange(len(links)))
        for _ in range(draw.choice([0, 0, 0, 1, 2]))
    ]
    return packet_input_of(
        wired(links, hosts=count, switch=switch, rates_bps=rates_bps, delays_ps=[100_000] * len(links)),
        sends(count, messages),
        transport=Transport.model_validate(transport),
        faults=faults,
    )


def delivered(engine_input: PacketInput) -> list[int]:
    return packet.run(engine_input).messages["delivered_at_ps"].tolist()


def test_no_time_would_have_broken_a_deadlock(saw: Saw, monkeypatch: pytest.MonkeyPatch) -> None:
    saw(PLANS)
    found: Counter[bool] = Counter()
    for seed in kept_first("test_deadlocks", range(PLANS)):
        plan = random_plan(seed)
        outcome = both(plan, f"plan {seed}")
        is_deadlock = len(outcome.deadlock) > 0
        found[is_deadlock] += 1
        if not is_deadlock:
            continue
        ports = outcome.deadlock["port"].tolist()
        behind = ports[1:] + ports[:1]
        ends = plan.port_node[plan.port_peer[ports]]
        assert (ends == plan.port_node[behind]).all(), f"plan {seed}: no circle"
        assert ports[0] == min(ports)
        with monkeypatch.context() as patched:  # nobody looks for a deadlock
            patched.setattr(PacketInput, "watch_ps", property(lambda _: NEVER_PS // 2))
            longer = replace(plan, until_ps=outcome.counters["end_ps"] + LONGER_PS)
            assert delivered(longer) == outcome.messages["delivered_at_ps"].tolist(), f"plan {seed}"
    assert min(found[True], found[False]) >= WANTED, found
