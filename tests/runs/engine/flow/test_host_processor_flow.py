"""The host's processor on flows: rates follow it at both ends, as in the packet engine."""

from __future__ import annotations

import pytest
from helpers.tiny import RATE_BPS, Message, flow_input_of, packet_input_of, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine import packet
from weftwork.engine.flow import run as flow
from weftwork.spec.device import Nic
from weftwork.spec.transport import Transport
from weftwork.study.results.ideal import ideal_times_ps

FRAME_PS = 20 * (4096 + 62 + 20)  # of a full packet at 400 Gb/s


@pytest.mark.parametrize("cost_ps", [0, FRAME_PS // 2, 2 * FRAME_PS, 10 * FRAME_PS])
@pytest.mark.parametrize("nic", [Nic(), Nic(pcie_rate_bps=RATE_BPS // 2, pcie_latency_ps=US_PS)])
def test_a_lone_message_takes_as_long_as_in_packets_and_as_its_ideal(cost_ps: int, nic: Nic) -> None:
    transport = Transport(host_packet_ps=cost_ps)
    job = sends(2, [Message(source=0, destination=1, size_bytes=1_000 * 4096)])
    engine_input = packet_input_of(star(2, nic=nic), job, transport=transport)
    by_packet = packet.run(engine_input).messages["delivered_at_ps"]
    by_flow = flow.run(flow_input_of(star(2, nic=nic), job, transport=transport)).packets.messages["delivered_at_ps"]
    assert by_flow == pytest.approx(by_packet, rel=2e-3)
    row = packet.run(engine_input).messages
    ports = engine_input.rank_ports
    ideal = ideal_times_ps(engine_input, ports[row["source"], 0], ports[row["destination"], 0], row["size_bytes"])
    assert ideal == pytest.approx(by_packet, rel=1e-6)
    # the slower of sending and taking: what the link or the processor needs, and behind a bus one after the other
    bus_ps = 0 if nic.pcie_rate_bps == 0 else 40 * (4096 + 62)
    assert by_packet[0] >= 999 * max(FRAME_PS, cost_ps, bus_ps + cost_ps)
