"""Laws that every run obeys, whatever the scenario: nothing is invented, nothing is kept, nobody waits for ever."""

import pytest
from property.scenarios import random_plan

from weft.base.clock import serialisation_ps
from weft.engine.outcome import Outcome
from weft.engine.plan import Instant, Plan
from weft.engine.reference import Simulation, run
from weft.engine.reference_switch import Switch

SEEDS = range(10_000, 10_080)


def quiet_buffers(switch: Switch) -> None:
    """Counters of the shared buffer agree with what is queued."""
    held = {(port.id, c): 0 for port in switch.ports for c in range(switch.classes)}
    for port in switch.ports:
        egress = switch.egress[port.id]
        for c, queue in enumerate(egress.queues):
            assert egress.queue_bytes[c] == sum(packet.size_bytes for packet in queue)
            for packet in queue:
                assert packet.ingress is not None
                held[packet.ingress.id, c] += packet.size_bytes
    shared_used_bytes = 0
    for (port_id, c), size_bytes in held.items():
        ingress = switch.ingress[port_id][c]
        assert ingress.used_bytes + ingress.headroom_used_bytes == size_bytes
        assert 0 <= ingress.headroom_used_bytes <= switch.headroom_bytes[port_id]
        shared_used_bytes += max(0, ingress.used_bytes - switch.reserve_bytes)
    assert switch.shared_used_bytes == shared_used_bytes


def nobody_below_its_reserve_is_paused(switch: Switch) -> None:
    for port in switch.ports:
        for c in range(switch.classes):
            ingress = switch.ingress[port.id][c]
            if port.asked[c] and ingress.headroom_used_bytes == 0:
                assert ingress.used_bytes > switch.reserve_bytes


def ideal_ps(plan: Plan, simulation: Simulation, source: int, destination: int, channel: int, size_bytes: int) -> int:
    """Below any delivery time: the wire of the source's port, at its fastest, and the first and last propagation."""
    queue_pair = simulation.queue_pairs[source, destination, channel]
    port = queue_pair.source_port.id
    rates = [int(plan.port_rate_bps[port])]
    rates += [int(row["value"]) for row in plan.instants if row["code"] == Instant.RATE]
    delay_ps = int(plan.port_delay_ps[port])
    if int(plan.port_peer[port]) != queue_pair.destination_port.id:
        delay_ps += int(plan.port_delay_ps[queue_pair.destination_port.peer_id])
    return serialisation_ps(size_bytes, max(rates)) + delay_ps


def check_messages(plan: Plan, simulation: Simulation, outcome: Outcome) -> None:
    for row in outcome.messages:
        delivered_ps, acked_ps, posted_ps = (
            int(row["delivered_at_ps"]),
            int(row["acked_at_ps"]),
            int(row["posted_at_ps"]),
        )
        source, destination, channel = int(row["source"]), int(row["destination"]), int(row["channel"])
        if delivered_ps >= 0:
            size_bytes = int(row["size_bytes"])
            assert delivered_ps >= posted_ps + ideal_ps(plan, simulation, source, destination, channel, size_bytes)
        if acked_ps >= 0:
            assert delivered_ps >= 0
            assert acked_ps > delivered_ps
    for queue_pair in simulation.queue_pairs.values():
        times = [m.delivered_at_ps for m in queue_pair.messages]
        delivered = [t for t in times if t >= 0]
        assert delivered == sorted(delivered)
        assert times[: len(delivered)] == delivered  # in order, without a gap
        received_bytes = queue_pair.bytes_before(min(queue_pair.receiver.expected, queue_pair.end))
        assert sum(m.size_bytes for m in queue_pair.messages[: len(delivered)]) <= received_bytes
        sender = queue_pair.sender
        if sender is not None:
            assert sender.una <= queue_pair.receiver.expected <= sender.high
            assert sender.inflight_bytes == queue_pair.payload_bytes(sender.una, sender.nxt)


def check_counters(plan: Plan, outcome: Outcome) -> None:
    counters, ports = outcome.counters, outcome.ports
    assert counters["packet_hops"] <= ports["frames"].sum()
    assert ports["drops"].sum() == sum(counters[name] for name in counters if name.startswith("drop_"))
    assert counters["data_sent"] >= counters["retransmissions"]
    if not plan.class_lossless.any():
        assert ports["pauses_sent"].sum() == 0
        assert ports["resumes_sent"].sum() == 0
        assert counters["drop_headroom_full"] == 0
    assert (ports["paused_ps"] >= 0).all()


@pytest.mark.parametrize("block", range(8))
def test_every_run_obeys_the_laws(block: int) -> None:
    for seed in SEEDS[block::8]:
        plan = random_plan(seed)
        simulation = Simulation(plan)
        simulation.run()
        outcome = simulation.outcome()
        check_messages(plan, simulation, outcome)
        check_counters(plan, outcome)
        for switch in simulation.switches.values():
            quiet_buffers(switch)
            nobody_below_its_reserve_is_paused(switch)
            if simulation.now_ps < plan.until_ps:  # nothing was left to do
                assert switch.shared_used_bytes == 0
                assert not any(any(port.asked) for port in switch.ports)


def test_the_same_seed_gives_the_same_digest_and_another_seed_another() -> None:
    digests = [run(random_plan(seed)).digest() for seed in (10_000, 10_001, 10_000)]
    assert digests[0] == digests[2]
    assert digests[0] != digests[1]


def test_headroom_from_cable_and_rate_is_never_overrun() -> None:
    paused = 0
    for seed in range(20_000, 20_100):
        outcome = run(random_plan(seed, is_calm=True))
        assert outcome.counters["drop_headroom_full"] == 0, seed
        paused += int(outcome.ports["pauses_sent"].any())
    assert paused >= 20
