"""Credits between links in the native engine, to the byte and to the picosecond, worked out from the page alone.

Rooms are set here, not by `weftwork.engine.credits`, so that each plan waits where it is meant to. A frame is a full
one of 4,158 bytes unless a test says otherwise; ACKs have room of their own class that never runs out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, RATE_BPS, Message, packet_input_of, pair, sends, star, wired

from weftwork.base.clock import MS_PS, SECOND_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.packet_input import PacketInput
from weftwork.policies.load import load
from weftwork.spec.device import Nic, Scheduling, Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize

FRAME_BYTES = 4096 + 62
FRAME_PS = (FRAME_BYTES + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
CREDIT_PS = (64 + 20) * BYTE_PS
WIRE = Transport(
    first_extra_bytes=0,
    retransmission_timeout_ps=10 * SECOND_PS,
    link_credits=True,
    lossless_priorities=(),
    credit_quantum_bytes=FRAME_BYTES,
)
NEVER_BACK = WIRE.model_copy(update={"credit_quantum_bytes": 1_000_000})
PLENTY = 1_000_000
DATA, CONTROL = 0, 1  # classes
SLOW_BPS = 10_000_000  # a frame takes 3.3 ms
SWITCH = Switch(forwarding_latency_ps=0)


def with_room(engine_input: PacketInput, room_bytes: Mapping[int, int]) -> PacketInput:
    """Rooms of the lanes behind some ports; the others never run out."""
    room = np.full(len(engine_input.port_node), PLENTY, np.int64)
    for port, size_bytes in room_bytes.items():
        room[port] = size_bytes
    return replace(engine_input, port_credit_bytes=room)


def packets(count: int, *, source: int = 0, destination: int = 1, at_ps: int = 0, channel: int = 0) -> Message:
    return Message(source=source, destination=destination, size_bytes=count * 4096, at_ps=at_ps, channel=channel)


def test_credit_comes_back_when_the_receiver_has_handled_a_packet_behind_its_ack() -> None:
    # Three leave at once. The first is there after F + D; its ACK goes first, then the frame with its credit.
    outcome = both(with_room(packet_input_of(pair(), sends(2, [packets(4)]), transport=WIRE), {1: 3 * FRAME_BYTES}))
    back_ps = FRAME_PS + DELAY_PS + ACK_PS + CREDIT_PS + DELAY_PS
    assert back_ps > 3 * FRAME_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [back_ps + FRAME_PS + DELAY_PS]
    assert outcome.ports["credit_frames"].tolist() == [0, 4]
    assert outcome.ports["pauses_sent"].sum() + outcome.ports["resumes_sent"].sum() == 0
    assert outcome.ports["max_ingress_bytes"].tolist() == [0, 0]
    assert len(outcome.deadlock) == 0


@pytest.mark.parametrize(("room_bytes", "delivered"), [(2 * FRAME_BYTES, 1), (2 * FRAME_BYTES - 1, 0)])
def test_a_packet_leaves_with_exactly_its_bytes_of_credit(room_bytes: int, delivered: int) -> None:
    outcome = both(with_room(packet_input_of(pair(), sends(2, [packets(2)]), transport=NEVER_BACK), {1: room_bytes}))
    wanted = 2 * FRAME_PS + DELAY_PS if delivered else -1
    assert outcome.messages["delivered_at_ps"].tolist() == [wanted]
    assert outcome.counters["data_sent"] == 1 + delivered
    assert outcome.complete


def test_a_smaller_packet_of_another_queue_pair_passes_one_that_waits_for_credit() -> None:
    # One byte short of two frames: the second waits for ever, but 72 bytes still leave, at their time.
    late_ps = 2 * FRAME_PS
    small = Message(source=0, destination=1, size_bytes=10, at_ps=late_ps, channel=1)
    job = sends(2, [packets(2), small])
    outcome = both(with_room(packet_input_of(pair(), job, transport=NEVER_BACK), {1: 2 * FRAME_BYTES - 1}))
    assert outcome.messages["delivered_at_ps"].tolist() == [-1, late_ps + (72 + 20) * BYTE_PS + DELAY_PS]


def test_data_overtakes_control_packets_of_its_class_that_need_more_credit() -> None:
    # All in one class, with ACKs of 500 bytes. Host 1 has 550: a first message takes 162, so that its ACK has to wait;
    # a second one of 72 bytes leaves all the same. Then 234 bytes have come in at host 0, which is the quantum: after
    # the ACK for the second it gives them back, and the ACK that waits has its 500.
    wire = WIRE.model_copy(update={"control_priority": 3, "ack_bytes": 500, "credit_quantum_bytes": 234})
    second_ps = 600_000
    assert second_ps > FRAME_PS + DELAY_PS
    messages = [
        packets(1),
        Message(source=1, destination=0, size_bytes=100),
        Message(source=1, destination=0, size_bytes=10, at_ps=second_ps, channel=1),
    ]
    outcome = both(with_room(packet_input_of(pair(), sends(2, messages), transport=wire), {0: 550}))
    second_there_ps = second_ps + (72 + 20) * BYTE_PS + DELAY_PS
    ack_ps = (500 + 20) * BYTE_PS
    back_ps = second_there_ps + ack_ps + CREDIT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [
        FRAME_PS + DELAY_PS,
        (162 + 20) * BYTE_PS + DELAY_PS,
        second_there_ps,
    ]
    assert outcome.messages["acked_at_ps"].tolist()[0] == back_ps + ack_ps + DELAY_PS
    assert outcome.counters["acks_sent"] == 3


def test_a_switch_gives_credit_back_when_the_packet_starts_to_leave() -> None:
    # Room for one: it leaves the switch as it comes, and the frame that tells it starts at the same instant.
    outcome = both(with_room(packet_input_of(star(2), sends(2, [packets(2)]), transport=WIRE), {2: FRAME_BYTES}))
    back_ps = FRAME_PS + DELAY_PS + CREDIT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [back_ps + 2 * (FRAME_PS + DELAY_PS)]
    assert outcome.ports["credit_frames"].tolist() == [0, 2, 2, 0]
    assert outcome.ports["max_ingress_bytes"].tolist() == [0, 0, FRAME_BYTES, 66]


def test_less_than_a_quantum_is_kept_back() -> None:
    # The second makes the quantum whole as it starts to leave, when the first has left the wire; the third is owed.
    wire = WIRE.model_copy(update={"credit_quantum_bytes": FRAME_BYTES + 1})
    outcome = both(with_room(packet_input_of(star(2), sends(2, [packets(3)]), transport=wire), {2: 2 * FRAME_BYTES}))
    back_ps = 2 * FRAME_PS + DELAY_PS + CREDIT_PS + DELAY_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [back_ps + 2 * (FRAME_PS + DELAY_PS)]
    assert outcome.ports["credit_frames"].tolist() == [0, 1, 1, 0]


def filling(room_frames: int, **changes: Any) -> PacketInput:
    """Host 0 fills its room at a switch that forwards one frame, and the next one long after the run has ended."""
    wire = WIRE.model_copy(update=changes.pop("wire", {}))
    fabric = star(2, rates_bps=[RATE_BPS, SLOW_BPS])
    made = packet_input_of(fabric, sends(2, [packets(20)]), transport=wire, until_ps=MS_PS, **changes)
    return with_room(made, {2: room_frames * FRAME_BYTES})


def test_an_ingress_holds_its_room_and_no_more() -> None:
    outcome = both(filling(5))
    assert outcome.ports["frames"].tolist()[0] == 6
    assert outcome.ports["max_ingress_bytes"].tolist()[2] == 5 * FRAME_BYTES
    assert sum(value for name, value in outcome.counters.items() if name.startswith("drop")) == 0


@pytest.mark.parametrize("faults", [0, 1])
def test_a_link_that_comes_up_has_credit_for_what_is_free_behind_it(faults: int) -> None:
    # Four have left, one of them is gone and owed. The link begins anew with room for four less the three that wait.
    flap = [Fault(at_ps=10 * US_PS, event="down", link=0), Fault(at_ps=20 * US_PS, event="up", link=0)]
    outcome = both(filling(4, wire={"credit_quantum_bytes": 2 * FRAME_BYTES}, faults=flap * faults))
    assert outcome.ports["frames"].tolist()[0] == 4 + faults
    assert outcome.ports["credit_frames"].tolist()[2] == 0
    assert outcome.ports["max_ingress_bytes"].tolist()[2] == (3 + faults) * FRAME_BYTES


@pytest.mark.parametrize(("wait_ps", "sent"), [(FRAME_PS + 1, 2), (FRAME_PS + 2, 3)])
def test_what_was_on_a_link_that_went_down_gives_nothing_back(wait_ps: int, sent: int) -> None:
    # The first frame would arrive when the link is up again. The second leaves then with all the room there is; the
    # third follows the second one's credit, though the first one's, a frame earlier, would have let it go.
    faults = [Fault(at_ps=FRAME_PS, event="down", link=0), Fault(at_ps=FRAME_PS + 1, event="up", link=0)]
    until_ps = FRAME_PS + DELAY_PS + CREDIT_PS + DELAY_PS + wait_ps
    made = packet_input_of(star(2), sends(2, [packets(3)]), transport=WIRE, faults=faults, until_ps=until_ps)
    outcome = both(with_room(made, {2: FRAME_BYTES}))
    assert outcome.ports["drops"].tolist()[2] == 1
    assert outcome.counters["data_sent"] == sent


def test_what_is_lost_or_dropped_gives_its_credit_back_at_once() -> None:
    # Every frame is lost where it arrives, and the next one leaves when the credit is back.
    made = packet_input_of(star(2), sends(2, [packets(9)]), transport=WIRE)
    period_ps = FRAME_PS + DELAY_PS + CREDIT_PS + DELAY_PS
    loss = np.where(np.arange(4) == 0, 1.0, 0.0)
    made = replace(with_room(made, {2: FRAME_BYTES}), port_loss=loss, until_ps=3 * period_ps + 1)
    outcome = both(made)
    assert outcome.counters["data_sent"] == 4
    assert outcome.ports["drops"].tolist() == [0, 0, 3, 0]
    assert outcome.ports["max_ingress_bytes"].sum() == 0


def test_what_is_dropped_by_a_dead_port_gives_its_credit_back_at_once() -> None:
    # Room for three: one is being sent when the slow link dies, and three wait, which are dropped. Each gives back a
    # frame of credit: the first one's leaves at once, the others one after the other behind it.
    down_ps = 100 * US_PS
    outcome = both(filling(3, faults=[Fault(at_ps=down_ps, event="down", link=1)]))
    assert outcome.counters["drop_link_down"] == 3 + 16  # what is left of 20 comes to a port that is down
    assert outcome.ports["credit_frames"].tolist()[2] == 20
    assert outcome.counters["data_sent"] == 20


def test_a_host_interface_gives_credit_back_before_the_receiver_handles_the_packet() -> None:
    # Room for one. It takes 4,158 bytes at 100 Gb/s and the latency to pass; then the frame goes before the ACK.
    nic = Nic(pcie_rate_bps=RATE_BPS // 4, pcie_latency_ps=US_PS)
    made = packet_input_of(pair(nic=nic), sends(2, [packets(2)]), transport=WIRE)
    outcome = both(with_room(made, {1: FRAME_BYTES}))
    inside_ps = FRAME_BYTES * 4 * BYTE_PS + US_PS
    back_ps = FRAME_PS + DELAY_PS + inside_ps + CREDIT_PS + DELAY_PS
    delivered_ps = back_ps + FRAME_PS + DELAY_PS + inside_ps
    assert outcome.messages["delivered_at_ps"].tolist() == [delivered_ps]
    assert outcome.messages["acked_at_ps"].tolist() == [delivered_ps + CREDIT_PS + ACK_PS + DELAY_PS]
    assert outcome.ports["pauses_sent"].sum() == 0


def test_what_finds_no_place_in_a_receive_buffer_is_dropped_and_gives_its_credit_back() -> None:
    # Six of eight fit. Nobody asks for a pause, though the buffer holds more than Xoff.
    nic = Nic(pcie_latency_ps=MS_PS, receive_buffer_bytes=7 * FRAME_BYTES - 1, xoff_bytes=1, xon_bytes=0)
    made = packet_input_of(pair(nic=nic), sends(2, [packets(8)]), transport=WIRE, until_ps=MS_PS // 2)
    outcome = both(with_room(made, {}))
    assert outcome.counters["drop_receive_buffer"] == 2
    assert outcome.ports["credit_frames"].tolist() == [0, 2]
    assert outcome.ports["pauses_sent"].sum() == 0


@pytest.mark.parametrize(("room_bytes", "left"), [(2 * FRAME_BYTES, 4), (2 * FRAME_BYTES - 1, 2), (3 * FRAME_BYTES, 6)])
def test_a_strict_class_without_credit_holds_nobody_back(room_bytes: int, left: int) -> None:
    # Three frames of each class wait at the switch, and each class has room for so many of its own behind the link.
    messages = [
        Message(source=0, destination=2, size_bytes=3 * 4096, priority=2),
        Message(source=1, destination=2, size_bytes=3 * 4096, priority=5),
    ]
    switch = Switch(forwarding_latency_ps=0, scheduling=Scheduling(weights=(0, 0, 0, 0, 0, 0, 0, 0)))
    fabric = star(3, rates_bps=[RATE_BPS, RATE_BPS, RATE_BPS // 4], switch=switch)
    made = packet_input_of(fabric, sends(3, messages), transport=NEVER_BACK, until_ps=MS_PS)
    outcome = both(with_room(made, {2: room_bytes}))
    assert outcome.ports["frames"].tolist()[5] == left
    assert (outcome.messages["delivered_at_ps"] > 0).tolist() == [left == 6] * 2


@pytest.mark.parametrize("missing_bytes", [0, 1])
def test_a_packet_needs_credit_for_what_the_switch_writes_into_it_too(missing_bytes: int) -> None:
    hpcc = load("congestion_control", "hpcc")
    fabric = star(2, switch=Switch(forwarding_latency_ps=0, telemetry=True))
    made = packet_input_of(
        fabric, sends(2, [packets(1)]), transport=NEVER_BACK, congestion_control=hpcc, until_ps=MS_PS
    )
    wire = made.transport
    written_bytes = 4096 + wire.data_overhead_bytes + wire.telemetry_bytes + wire.telemetry_hop_bytes
    outcome = both(with_room(made, {1: written_bytes - missing_bytes}))
    assert wire.telemetry_hop_bytes > 1
    assert outcome.ports["bytes"].tolist()[3] == written_bytes * (1 - missing_bytes)
    assert outcome.ports["max_ingress_bytes"].tolist()[2] == written_bytes - wire.telemetry_hop_bytes


def test_a_candidate_whose_far_end_has_no_room_for_the_packet_is_paused() -> None:
    # Host 0 - A - B or C - D - host 1, and B has room for 100 bytes: data go by C, though B's port comes first.
    links = [(0, 2), (2, 3), (2, 4), (3, 5), (4, 5), (1, 5)]
    policy = load("port_selection", Path(__file__).parents[2] / "policies" / "unpaused.py", {})
    wire = WIRE.model_copy(update={"reorder_tolerant": True})
    made = packet_input_of(wired(links, hosts=2), sends(2, [packets(6)]), transport=wire, port_selection=policy)
    to_b, to_c = (port_between(made, 2, other) for other in (3, 4))
    outcome = both(with_room(made, {int(made.port_peer[to_b]): 100}))
    assert outcome.ports["frames"].tolist()[to_b] == 0
    assert outcome.ports["frames"].tolist()[to_c] == 6
    roomy = both(with_room(made, {}))
    assert roomy.ports["frames"].tolist()[to_b] == 6


def port_between(engine_input: PacketInput, node: int, other: int) -> int:
    (found,) = np.flatnonzero(
        (engine_input.port_node == node) & (engine_input.port_node[engine_input.port_peer] == other)
    ).tolist()
    return int(found)


def ring(switches: int, hops: int, **changes: Any) -> PacketInput:
    """Host i at switch i of a ring sends to the host so many switches further; lanes have room for four frames."""
    links = [(host, switches + host) for host in range(switches)]
    links += [(switches + i, switches + (i + 1) % switches) for i in range(switches)]
    messages = [Message(source=i, destination=(i + hops) % switches, size_bytes=3_000_000) for i in range(switches)]
    transport = WIRE.model_copy(update={"retransmission_timeout_ps": MS_PS} | dict(changes.pop("wire", {})))
    made = packet_input_of(wired(links, hosts=switches), sends(switches, messages), transport=transport, **changes)
    return replace(made, port_credit_bytes=np.full(len(made.port_node), 4 * FRAME_BYTES, np.int64))


@pytest.mark.parametrize(
    "wire", [{}, {"retransmission_timeout_ps": 3 * US_PS}, {"retransmission_timeout_ps": US_PS, "retry_limit": 1}]
)
def test_a_ring_of_full_lanes_ends_with_its_cycle(wire: dict[str, int]) -> None:
    made = ring(8, 3, wire=wire)
    outcome = both(made)
    ports = outcome.deadlock["port"]
    ends = zip(made.port_node[ports].tolist(), made.port_node[made.port_peer[ports]].tolist(), strict=True)
    assert list(ends) == [(8 + i, 8 + (i + 1) % 8) for i in range(8)]
    assert set(outcome.deadlock["traffic_class"].tolist()) == {DATA}
    assert (outcome.deadlock["held_bytes"] > 3 * FRAME_BYTES).all()
    assert (outcome.deadlock["waiting_bytes"] > 0).all()
    assert (outcome.messages["delivered_at_ps"] < 0).all()
    assert outcome.complete


def test_a_neighbour_alone_makes_no_circle_of_credits() -> None:
    outcome = both(ring(8, 1))
    assert (outcome.messages["acked_at_ps"] > 0).all()
    assert len(outcome.deadlock) == 0


def test_a_ring_that_comes_to_rest_before_a_look_is_looked_at_all_the_same() -> None:
    # Nobody may retry, and all give up within the first watch: then nothing is left to do.
    wire = {"retransmission_timeout_ps": US_PS, "retry_limit": 0}
    made = ring(8, 3, wire=wire)
    outcome = both(made)
    assert outcome.counters["queue_pair_errors"] == 8
    assert outcome.simulated_ps < made.watch_ps
    assert len(outcome.deadlock) == 8


def test_a_fault_to_come_may_break_a_circle_of_credits() -> None:
    cut = Fault(at_ps=3 * MS_PS, event="down", link=8)
    outcome = both(ring(8, 3, faults=(cut,)))
    assert outcome.counters["drop_link_down"] > 0
    assert len(outcome.deadlock) == 0
    assert (outcome.messages["delivered_at_ps"] > 3 * MS_PS).any()


def test_a_deadlock_is_not_told_while_a_rank_has_yet_to_send() -> None:
    made = ring(8, 3)
    late = Message(source=0, destination=7, size_bytes=4096, at_ps=2 * MS_PS, channel=1)
    links = [(host, 8 + host) for host in range(8)] + [(8 + i, 8 + (i + 1) % 8) for i in range(8)]
    messages = [Message(source=i, destination=(i + 3) % 8, size_bytes=3_000_000) for i in range(8)]
    beside = packet_input_of(wired(links, hosts=8), sends(8, [*messages, late]), transport=made.transport)
    outcome = both(replace(beside, port_credit_bytes=made.port_credit_bytes))
    assert len(outcome.deadlock) == 8
    assert len(outcome.waits) == 9
