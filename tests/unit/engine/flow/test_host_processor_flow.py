"""The host's processor on flows: rates follow it at both ends, as in the packet engine."""

from __future__ import annotations

import pytest
from helpers.tiny import RATE_BPS, Message, flow_input_of, packet_input_of, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault
from weftwork.spec.transport import Transport

FRAME_PS = 20 * (4096 + 62 + 20)  # of a full packet at 400 Gb/s


def test_a_sender_to_two_receivers_is_held_back_by_its_own_processor() -> None:
    transport = Transport(host_packet_ps=2 * FRAME_PS)
    job = sends(3, [Message(source=0, destination=to, size_bytes=500 * 4096) for to in (1, 2)])
    by_packet = packet.run(packet_input_of(star(3), job, transport=transport)).messages["delivered_at_ps"]
    by_flow = flow.run(flow_input_of(star(3), job, transport=transport)).packets.messages["delivered_at_ps"]
    assert max(by_flow) == pytest.approx(max(by_packet), rel=5e-3)
    assert max(by_packet) >= 999 * 2 * FRAME_PS


def test_two_senders_share_what_the_receiver_can_take() -> None:
    transport = Transport(host_byte_ps=100_000)  # 409.6 ns for a packet: 80 Gb/s of payload
    job = sends(3, [Message(source=source, destination=2, size_bytes=500 * 4096) for source in range(2)])
    by_packet = packet.run(packet_input_of(star(3), job, transport=transport)).messages["delivered_at_ps"]
    by_flow = flow.run(flow_input_of(star(3), job, transport=transport)).packets.messages["delivered_at_ps"]
    assert max(by_flow) == pytest.approx(max(by_packet), rel=5e-3)
    assert max(by_packet) >= 1_000 * 409_600


def test_a_degraded_link_that_is_faster_than_the_processor_changes_nothing() -> None:
    transport = Transport(host_packet_ps=10 * FRAME_PS)
    job = sends(2, [Message(source=0, destination=1, size_bytes=1_000 * 4096)])
    fault = Fault(at_ps=US_PS, event="degrade", link=0, rate_bps=RATE_BPS // 2)
    plain, degraded = (
        flow.run(flow_input_of(star(2), job, transport=transport, faults=faults)).packets.messages["delivered_at_ps"]
        for faults in ((), (fault,))
    )
    assert degraded == pytest.approx(plain, rel=1e-4)
