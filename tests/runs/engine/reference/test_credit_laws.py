"""Laws of links that give credit, on random plans: nothing finds no room, and no credit is made or lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from helpers.cases import Saw, case_count
from laws.scenarios import random_plan

from weftwork.engine.headroom import full_frame_bytes
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.simulation import Simulation
from weftwork.spec.fabric import SWITCH

KINDS = {"plain": 30_000, "is_calm": 31_000, "is_torn": 32_000, "is_wide": 33_000}
SEEDS = range(case_count(plain=15, deep=50))
NO_ROOM = ("drop_buffer_full", "drop_egress_threshold", "drop_headroom_full")
ON_THE_LINK = ("drop_link_down", "drop_link_loss", "drop_corrupted", "drop_no_route")


def credit_plan(kind: str, seed: int) -> PacketInput:
    """A random plan whose links give credit, some of them not much more than they have to."""
    number = KINDS[kind] + seed
    engine_input = random_plan(number) if kind == "plain" else random_plan(number, **{kind: True})
    rng = Random(number)
    quantum_bytes = rng.choice((1, 64, 8_192, rng.randrange(1, 20_000)))
    transport = engine_input.transport.model_copy(
        update={"link_credits": True, "lossless_priorities": (), "credit_quantum_bytes": quantum_bytes}
    )
    least_bytes = 2 * full_frame_bytes(transport) + quantum_bytes
    rooms = [least_bytes + rng.choice((0, 1, rng.randrange(200_000))) for _ in engine_input.port_peer]
    return replace(engine_input, transport=transport, port_credit_bytes=np.array(rooms, np.int64))


def check_rooms(simulation: Simulation, *, is_at_rest: bool) -> None:
    """No lane promises more than there is room for; where nothing is under way it accounts for every byte."""
    engine_input = simulation.engine_input
    for port in simulation.ports:
        room_bytes = int(engine_input.port_credit_bytes[port.id])
        own, far = port.credits, simulation.ports[int(engine_input.port_peer[port.id])]
        assert own is not None
        assert far.credits is not None
        assert min(own.credit_bytes) >= 0
        assert max(own.owed_bytes) < own.quantum_bytes
        for used_bytes, owed_bytes, credit_bytes in zip(
            own.used_bytes, own.owed_bytes, far.credits.credit_bytes, strict=True
        ):
            assert used_bytes >= 0
            if port.is_up:
                assert used_bytes + owed_bytes + credit_bytes <= room_bytes
                assert not is_at_rest or used_bytes + owed_bytes + credit_bytes == room_bytes


def check_queues(simulation: Simulation) -> None:
    """What an ingress uses is what waits in queues of its switch."""
    for switch in simulation.switches.values():
        held = Counter[tuple[int, int]]()
        for port in switch.ports:
            for packet in (packet for queue in switch.egress[port.id].queues for packet in queue):
                held[packet.ingress, packet.arrival_class] += packet.size_bytes
        for port in switch.ports:
            assert port.credits is not None
            assert port.credits.used_bytes == [held[port.id, c] for c in range(switch.classes)]


@pytest.mark.parametrize("kind", KINDS)
def test_under_credits_everything_has_room_and_no_credit_gets_lost(kind: str, saw: Saw) -> None:
    seen = Counter[str]()
    for seed in SEEDS:
        engine_input = credit_plan(kind, seed)
        simulation = Simulation(engine_input)
        simulation.run()
        outcome = simulation.outcome()
        counters, ports = outcome.counters, outcome.ports
        assert [counters[reason] for reason in NO_ROOM] == [0, 0, 0], seed
        assert counters["trims"] == 0
        is_switch = engine_input.node_kind[engine_input.port_node] == SWITCH
        assert (ports["max_ingress_bytes"][is_switch] <= engine_input.port_credit_bytes[is_switch]).all(), seed
        assert not ports["max_ingress_bytes"][~is_switch].any()
        assert not any(ports[name].any() for name in ("pauses_sent", "resumes_sent", "paused_ps"))
        is_at_rest = not simulation.clock or len(outcome.deadlock) > 0
        check_rooms(simulation, is_at_rest=is_at_rest)
        check_queues(simulation)
        seen["at rest"] += is_at_rest
        seen["credits"] += bool(ports["credit_frames"].any())
        seen["held"] += bool((ports["max_ingress_bytes"] > 0).any())
        seen["losses"] += any(counters[reason] for reason in ON_THE_LINK)
        seen["deadlocks"] += len(outcome.deadlock) > 0
    saw(len(SEEDS), ", ".join(f"{name}: {count}" for name, count in seen.items()))
    assert seen["credits"] >= len(SEEDS) // 2
    assert seen["at rest"] >= len(SEEDS) // 4
    assert seen["losses"] >= (len(SEEDS) // 5 if kind in ("plain", "is_torn") else 0)
