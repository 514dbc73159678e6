"""The host's processor at both ends, in picoseconds that are worked out on paper.

A byte takes 20 ps and each link 500,000 ps; the first packet of a message has 16 bytes more than the others.
"""

from __future__ import annotations

from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine.outcome import Outcome
from weftwork.spec.device import Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

FIRST_PS = (4096 + 62 + 16 + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS
COST_PS = 200_000  # more than a packet takes on the wire

pytestmark = pytest.mark.sanitize


def ran(fabric: Fabric, *messages: Message, control: str = "none", **changes: Any) -> Outcome:
    job = sends(2, messages) if len(fabric.node_names) == 2 else sends(3, messages)
    transport = Transport.model_validate(changes)
    return both(packet_input_of(fabric, job, transport=transport, congestion_control=control))


def one(size_bytes: int, at_ps: int = 0, source: int = 0, destination: int | None = None) -> Message:
    destination = 1 - source if destination is None else destination
    return Message(source=source, destination=destination, size_bytes=size_bytes, at_ps=at_ps)


def delivered_ps(outcome: Outcome) -> list[int]:
    return [int(at_ps) for at_ps in outcome.messages["delivered_at_ps"]]


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_each_packet_takes_the_processor_of_both_ends_in_turn(recovery: str) -> None:
    # The second packet starts when the processor is free, and is there 320 ps before the first one is done.
    outcome = ran(pair(), one(2 * 4096), host_packet_ps=COST_PS, recovery=recovery)
    there_ps = FIRST_PS + DELAY_PS
    assert there_ps + COST_PS > COST_PS + NEXT_PS + DELAY_PS
    assert delivered_ps(outcome) == [there_ps + 2 * COST_PS]
    assert outcome.messages["acked_at_ps"].tolist() == [there_ps + 2 * COST_PS + ACK_PS + DELAY_PS]


def test_a_packet_arrives_when_it_has_left_the_wire_however_long_the_processor_works() -> None:
    outcome = ran(pair(), one(4096), host_packet_ps=US_PS)
    assert delivered_ps(outcome) == [FIRST_PS + DELAY_PS + US_PS]


@pytest.mark.parametrize(("payload_bytes", "cost_ps"), [(0, 0), (1, 12), (81, 999), (4096, 50_565)])
def test_bytes_cost_whole_picoseconds_rounded_down(payload_bytes: int, cost_ps: int) -> None:
    # 12,345 ps for 1,000 bytes; the packet is on the wire for longer than that, so only the receiver is slower.
    outcome = ran(pair(), one(payload_bytes), host_byte_ps=12_345)
    line_ps = (payload_bytes + 62 + 16 + 20) * BYTE_PS
    assert delivered_ps(outcome) == [line_ps + DELAY_PS + cost_ps]


def test_packet_and_bytes_cost_together() -> None:
    outcome = ran(pair(), one(4096), host_packet_ps=7, host_byte_ps=12_345)
    assert delivered_ps(outcome) == [FIRST_PS + DELAY_PS + 7 + 50_565]


def test_an_answer_waits_for_the_processor_and_costs_nothing_itself() -> None:
    # The receiver begins a packet of its own just before it has handled the one that came.
    handled_ps = FIRST_PS + DELAY_PS + US_PS
    outcome = ran(pair(), one(4096), one(4096, handled_ps - 1_000, source=1), host_packet_ps=US_PS)
    acked_ps = handled_ps - 1_000 + US_PS + ACK_PS + DELAY_PS
    assert outcome.messages["acked_at_ps"].tolist()[0] == acked_ps


def test_the_host_interface_and_the_processor_are_one_server() -> None:
    nic = Nic(pcie_rate_bps=400_000_000_000, pcie_latency_ps=3_000)
    outcome = ran(pair(nic=nic), one(2 * 4096), host_packet_ps=100_000)
    frames_ps = (4096 + 62 + 16) * BYTE_PS + (4096 + 62) * BYTE_PS
    assert delivered_ps(outcome) == [FIRST_PS + DELAY_PS + frames_ps + 2 * 100_000 + 3_000]


@pytest.mark.parametrize(("latency_ps", "is_full"), [(0, False), (1, True)])
def test_a_device_without_a_host_interface_has_room_for_everything(latency_ps: int, *, is_full: bool) -> None:
    # Two senders are twice as fast as the processor that they share.
    nic = Nic(receive_buffer_bytes=30_000, xoff_bytes=5_000, xon_bytes=4_000, pcie_latency_ps=latency_ps)
    fabric = star(3, nic=nic, switch=Switch(forwarding_latency_ps=0))
    messages = [one(10 * 4096, source=source, destination=2) for source in (0, 1)]
    outcome = ran(fabric, *messages, host_packet_ps=COST_PS)
    assert (outcome.ports["pauses_sent"][2] > 0) == is_full
    assert outcome.counters["drop_receive_buffer"] == 0
    if not is_full:
        assert max(delivered_ps(outcome)) == 2 * (FIRST_PS + DELAY_PS) + 20 * COST_PS
    lossy = ran(fabric, *messages, host_packet_ps=COST_PS, lossless_priorities=())
    assert (lossy.counters["drop_receive_buffer"] > 0) == is_full


def test_a_packet_that_was_cut_is_answered_while_the_processor_works() -> None:
    # `test_on_the_way` has the same plan without processors: the third packet of the second sender is cut. Here the
    # processor of the receiver is busy from the first packet on for a slot with each, and those that send do not wait.
    slot_ps = NEXT_PS
    tight = Switch(forwarding_latency_ps=0, reserve_bytes=0, egress_alpha=1.0, buffer_bytes=4 * (4096 + 62) + 1_000)
    messages = [one(3 * 4096, source=source, destination=2) for source in (0, 1)]
    cutting = {"first_extra_bytes": 0, "lossless_priorities": (), "reorder_tolerant": True, "trim_bytes": 64}
    outcome = ran(star(3, switch=tight), *messages, host_packet_ps=slot_ps, recovery="selective-repeat", **cutting)
    assert outcome.counters["trims"] == outcome.counters["retransmissions"] == 1
    again_ps = 4 * slot_ps + 2 * DELAY_PS + 2 * ACK_PS + DELAY_PS + ACK_PS + DELAY_PS
    assert delivered_ps(outcome)[1] == again_ps + 2 * (slot_ps + DELAY_PS) + slot_ps
