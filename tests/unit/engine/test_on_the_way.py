"""What switches do to a packet on its way, in whole runs of both engines, with numbers worked out on paper.

A byte takes 20 ps and each link 500,000 ps; a full data frame has 4,096 + 62 bytes, and the gap 20.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, sends, star, wired

from weftwork.engine import packet
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.spec.device import Switch
from weftwork.spec.transport import Transport

pytestmark = pytest.mark.sanitize


POLICIES = Path(__file__).parents[2] / "policies"


FRAME_BYTES = 4096 + 62


SLOT_PS = (FRAME_BYTES + 20) * BYTE_PS


ENGINES = {"reference": reference.run, "native": packet.run}


CUTTING = Transport(
    first_extra_bytes=0, lossless_priorities=(), recovery="selective-repeat", reorder_tolerant=True, trim_bytes=64
)


TIGHT = Switch(forwarding_latency_ps=0, reserve_bytes=0, egress_alpha=1.0, buffer_bytes=4 * FRAME_BYTES + 1_000)


def two_to_one(packets: int = 3, **changes: Any) -> PacketInput:
    messages = [Message(source=source, destination=2, size_bytes=packets * 4096) for source in (0, 1)]
    return packet_input_of(star(3, switch=TIGHT), sends(3, messages), transport=CUTTING, **changes)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_cut_arrives_at_once_and_goes_again_at_once(engine: str) -> None:
    outcome = ENGINES[engine](two_to_one())
    assert outcome.counters["trims"] == outcome.ports["trims"][5] == outcome.ports["trims"].sum() == 1
    assert outcome.ports["drops"].sum() == outcome.counters["timeouts"] == 0
    assert outcome.counters["retransmissions"] == 1
    # The cut frame is strict and leaves at 4 slots + D; it is there when the ACK before its NAK has begun to leave.
    nak_at_switch_ps = 4 * SLOT_PS + 2 * DELAY_PS + 2 * (66 + 20) * BYTE_PS + DELAY_PS
    again_ps = nak_at_switch_ps + (66 + 20) * BYTE_PS + DELAY_PS
    there_ps = again_ps + 2 * (SLOT_PS + DELAY_PS)
    assert outcome.messages["delivered_at_ps"][1] == there_ps
    assert outcome.messages["acked_at_ps"][1] == there_ps + 2 * ((66 + 20) * BYTE_PS + DELAY_PS)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_queue_of_two_cuts_one_of_six_and_three_of_eight(engine: str) -> None:
    # At the fourth slot the cut frame goes first, so that two are waiting still and both packets that come are cut.
    for packets, cut in ((2, 0), (3, 1), (4, 3)):
        until_ps = packets * SLOT_PS + DELAY_PS + 1
        outcome = ENGINES[engine](two_to_one(packets, until_ps=until_ps))
        assert outcome.counters["trims"] == outcome.ports["trims"][5] == cut
        assert outcome.ports["max_queue_bytes"][5] == 2 * FRAME_BYTES if packets > 1 else 0


def told(switches: int) -> PacketInput:
    links = [(0, 2), *((2 + i, 3 + i) for i in range(switches - 1)), (1, 1 + switches)]
    return packet_input_of(
        wired(links, hosts=2, switch=Switch(telemetry=True, forwarding_latency_ps=0)),
        sends(2, [Message(source=0, destination=1, size_bytes=4096)]),
        transport=Transport(first_extra_bytes=0, reorder_tolerant=True),
        path_selection=str(POLICIES / "hottest.py"),
    )


@pytest.mark.parametrize("switches", [1, 3, 8])
@pytest.mark.parametrize("engine", ENGINES)
def test_each_switch_makes_the_frame_longer(engine: str, switches: int) -> None:
    outcome = ENGINES[engine](told(switches))
    frames = [FRAME_BYTES + 2 + 8 * passed for passed in range(switches + 1)]
    wanted_ps = sum((size_bytes + 20) * BYTE_PS + DELAY_PS for size_bytes in frames)
    assert outcome.messages["delivered_at_ps"].tolist() == [wanted_ps]
    assert sorted(outcome.ports["bytes"].tolist())[-len(frames) :] == frames
