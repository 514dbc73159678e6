"""Links that give credit in whole runs of the reference engine, with times worked out on paper; and their deadlocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from helpers.direct_networks import ring
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.simulation import Simulation, run
from weftwork.engine.rows.waits import WAIT_STATES
from weftwork.spec.device import Nic, Switch
from weftwork.spec.transport import Transport

FRAME_BYTES = 4_096 + 62
FRAME_PS = (FRAME_BYTES + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
CREDIT_PS = (64 + 20) * BYTE_PS
ANSWER_PS = DELAY_PS + ACK_PS + CREDIT_PS + DELAY_PS  # from the last bit of a packet until its credit is back


def of_pair(*, packets: int, room_bytes: int, quantum_bytes: int = FRAME_BYTES, **changes: object) -> PacketInput:
    """Host 0 sends so many full packets over one link; each of its lanes has this room."""
    transport = Transport(
        link_credits=True,
        lossless_priorities=(),
        credit_quantum_bytes=quantum_bytes,
        first_extra_bytes=0,
    )
    message = Message(source=0, destination=1, size_bytes=packets * 4_096)
    engine_input = packet_input_of(
        pair(nic=changes.pop("nic", None)), sends(2, [message]), transport=transport, **changes
    )
    return replace(engine_input, port_credit_bytes=np.full(2, room_bytes, np.int64))


def delivered_ps(engine_input: PacketInput) -> int:
    return int(run(engine_input).messages["delivered_at_ps"][0])


# Times


def test_with_room_for_two_packets_the_third_waits_for_the_credit_of_the_first() -> None:
    outcome = run(of_pair(packets=4, room_bytes=2 * FRAME_BYTES))
    # The credit of the second is back just when the third has left.
    assert outcome.messages["delivered_at_ps"].tolist() == [FRAME_PS + ANSWER_PS + 2 * FRAME_PS + DELAY_PS]
    assert outcome.ports["credit_frames"].tolist() == [0, 4]  # four ACKs are less than a quantum


def test_a_larger_quantum_lets_both_wait_for_the_credit_of_the_second() -> None:
    engine_input = of_pair(packets=4, room_bytes=2 * FRAME_BYTES, quantum_bytes=2 * FRAME_BYTES)
    assert delivered_ps(engine_input) == 2 * FRAME_PS + ANSWER_PS + 2 * FRAME_PS + DELAY_PS


def test_a_byte_short_of_two_packets_is_room_for_one() -> None:
    engine_input = of_pair(packets=3, room_bytes=2 * FRAME_BYTES - 1)
    assert delivered_ps(engine_input) == 2 * (FRAME_PS + ANSWER_PS) + FRAME_PS + DELAY_PS


def test_a_slow_host_interface_holds_its_room_and_drops_nothing() -> None:
    # It takes 2 us for each packet, and the credit is on its way before the receiver answers.
    interface_ps = 2 * US_PS
    nic = Nic(pcie_rate_bps=FRAME_BYTES * 8 * 10**12 // interface_ps, receive_buffer_bytes=10**6)
    outcome = run(of_pair(packets=3, room_bytes=FRAME_BYTES, nic=nic))
    turn_ps = FRAME_PS + DELAY_PS + interface_ps
    wanted_ps = 3 * turn_ps + 2 * (CREDIT_PS + DELAY_PS)
    assert outcome.messages["delivered_at_ps"].tolist() == [wanted_ps]
    assert outcome.counters["drop_receive_buffer"] == 0
    assert outcome.ports["pauses_sent"].tolist() == [0, 0]


def test_a_link_that_comes_up_gives_the_room_less_what_waits_behind_the_far_end() -> None:
    # Two packets fill the room and wait 5 us in the host interface; meanwhile the link is down and up again.
    nic = Nic(pcie_latency_ps=5 * US_PS, receive_buffer_bytes=10**6)
    faults = [Fault(at_ps=2 * US_PS, event="down", link=0), Fault(at_ps=3 * US_PS, event="up", link=0)]
    engine_input = of_pair(packets=3, room_bytes=3 * FRAME_BYTES - 1, nic=nic, faults=faults)
    first_ps = FRAME_PS + DELAY_PS + 5 * US_PS
    credit_ps = first_ps + CREDIT_PS + DELAY_PS
    assert delivered_ps(engine_input) == credit_ps + FRAME_PS + DELAY_PS + 5 * US_PS
    simulation = Simulation(engine_input)
    simulation.run()
    credits_left = simulation.ports[0].credits
    assert credits_left is not None
    assert credits_left.credit_bytes[0] == 3 * FRAME_BYTES - 1


def test_a_packet_that_a_dead_link_has_lost_is_paid_for_once() -> None:
    # It goes down for a picosecond while the one packet for which there is room is under way. The second one goes at
    # once, leads to a NAK, and then both go again, each when the credit of the one before it is back.
    faults = [
        Fault(at_ps=FRAME_PS + 1, event="down", link=0),
        Fault(at_ps=FRAME_PS + 2, event="up", link=0),
    ]
    outcome = run(of_pair(packets=2, room_bytes=FRAME_BYTES, faults=faults))
    turn_ps = FRAME_PS + ANSWER_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [FRAME_PS + 2 + 2 * turn_ps + FRAME_PS + DELAY_PS]
    assert outcome.counters["drop_link_down"] == 1
    assert outcome.counters["naks_sent"] == 1


def test_at_a_switch_an_incast_waits_in_its_room_and_the_senders_wait_for_credit() -> None:
    messages = [Message(source=source, destination=3, size_bytes=400_000) for source in range(3)]
    transport = Transport(link_credits=True, lossless_priorities=(), credit_quantum_bytes=FRAME_BYTES)
    engine_input = packet_input_of(star(4), sends(4, messages), transport=transport)
    room_bytes = 40 * FRAME_BYTES
    outcome = run(replace(engine_input, port_credit_bytes=np.full(8, room_bytes, np.int64)))
    assert outcome.ports["drops"].sum() == 0
    held = outcome.ports["max_ingress_bytes"].tolist()
    assert held[:4] == [0, 0, 0, 0]
    assert all(room_bytes // 2 < bytes_held <= room_bytes for bytes_held in held[4:7])
    assert (outcome.messages["acked_at_ps"] > 0).all()


# Deadlocks

# 40 us: so short a pause, which nobody sends, that looks are taken every 100 us
SWITCH = Switch(forwarding_latency_ps=0, buffer_bytes=400_000, headroom_bytes=0, pause_quanta=8_000)
POLICIES = Path(__file__).parents[3] / "policies"
FULL = 74 * 4_096  # chosen: more than four lanes have room for; no last packet so short that a little credit suffices
ALL_TO_ALL = [
    Message(source=source, destination=destination, size_bytes=FULL)
    for source in range(8)
    for destination in range(8)
    if source != destination
]


def of_ring(*, switch: Switch = SWITCH, transport: Transport | None = None, **settings: Any) -> PacketInput:
    """Everybody sends to everybody round a ring of eight switches, with 66 kB of room behind each link."""
    return packet_input_of(
        ring(8, switch=switch),
        sends(8, ALL_TO_ALL),
        transport=transport or Transport(link_credits=True, lossless_priorities=()),
        **settings,
    )


@cache
def stuck() -> Simulation:
    simulation = Simulation(of_ring())
    simulation.run()
    return simulation


def test_a_ring_of_eight_switches_deadlocks_and_its_cycle_is_told() -> None:
    simulation = stuck()
    engine_input, outcome = simulation.engine_input, simulation.outcome()
    cycle = outcome.deadlock
    around = [int(node) for node in engine_input.port_node[cycle["port"]]]
    ahead = [int(node) for node in engine_input.port_node[engine_input.port_peer[cycle["port"]]]]
    assert len(set(around)) == 8
    assert ahead == [*around[1:], around[0]]
    assert around[0] == 8  # from its lowest port on, which belongs to the first switch
    assert outcome.complete
    assert (outcome.messages["delivered_at_ps"] < 0).all()
    assert outcome.ports["drops"].sum() == 0


def test_behind_each_port_of_the_cycle_is_less_room_than_a_frame_and_a_quantum() -> None:
    simulation = stuck()
    engine_input, quantum_bytes = simulation.engine_input, simulation.engine_input.transport.credit_quantum_bytes
    for port, traffic_class, waiting_bytes, held_bytes in simulation.outcome().deadlock.tolist():
        far = int(engine_input.port_peer[port])
        room_bytes = int(engine_input.port_credit_bytes[far])
        credits_left = simulation.ports[port].credits
        assert credits_left is not None
        assert credits_left.credit_bytes[traffic_class] < FRAME_BYTES
        assert waiting_bytes > 0
        assert room_bytes - FRAME_BYTES - quantum_bytes < held_bytes <= room_bytes


def test_a_run_in_which_all_have_given_up_is_looked_at_where_it_comes_to_rest() -> None:
    transport = Transport(
        link_credits=True,
        lossless_priorities=(),
        retransmission_timeout_ps=200 * US_PS,
        retry_limit=0,
    )
    seldom = SWITCH.model_copy(update={"pause_quanta": 65_535})
    engine_input = of_ring(switch=seldom, transport=transport)
    simulation = Simulation(engine_input)
    simulation.run()
    outcome = simulation.outcome()
    assert simulation.clock.now_ps < engine_input.watch_ps  # nobody has looked before
    assert outcome.deadlock["port"].tolist() == stuck().outcome().deadlock["port"].tolist()
    states = Counter(WAIT_STATES[state] for state in outcome.waits["state"].tolist())
    assert states["failed"] == outcome.counters["queue_pair_errors"] > 0
    assert states["under way"] > 0  # they have never had credit for a packet, and so no timer
    cut = run(of_ring(switch=seldom, transport=transport, until_ps=transport.retransmission_timeout_ps))
    assert len(cut.deadlock) == 0  # timers were to come


def test_a_run_that_is_cut_before_claims_no_deadlock() -> None:
    watch_ps = of_ring().watch_ps
    assert watch_ps == 100 * US_PS
    assert watch_ps < stuck().outcome().counters["end_ps"] < 2 * watch_ps  # so the third look finds nothing new
    looked = [len(run(of_ring(until_ps=until_ps)).deadlock) for until_ps in (3 * watch_ps, 3 * watch_ps + 1)]
    assert looked == [0, 8]


def test_timers_of_a_policy_do_not_keep_a_deadlock_going() -> None:
    assert len(run(of_ring(congestion_control=str(POLICIES / "ticking.py"))).deadlock) == 8


def test_a_dateline_frees_the_ring() -> None:
    outcome = run(of_ring(port_selection=str(POLICIES / "dateline.py")))
    assert len(outcome.deadlock) == 0
    assert (outcome.messages["acked_at_ps"] > 0).sum() == 56
    assert outcome.counters["timeouts"] == 0
    assert outcome.ports["drops"].sum() == 0
