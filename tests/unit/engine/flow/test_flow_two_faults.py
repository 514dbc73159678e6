"""Faults on paper: what routes leave of a bundle goes at the rate of its slowest member; a link is slow both ways.

Source: docs/models/flow-engine.md, section "Faults": the links of a bundle carry equal parts.
"""

from __future__ import annotations

import pytest
from helpers.tiny import BYTE_PS, RATE_BPS, Message, flow_input_of, sends, wired

from weftwork.engine.flow import run as flow
from weftwork.engine.instants import Fault

# links 2 to 5 join two switches, each of which has a host on a faster link
FABRIC = wired([(0, 2), (3, 1), *[(2, 3)] * 4], hosts=2, rates_bps=[8 * RATE_BPS] * 2 + [RATE_BPS] * 4)
SIZE_BYTES = 3_000 * 4_096
WIRE_BYTES = 3_000 * (4_096 + 82) + 16
SLOW_PS, DOWN_PS, KNOWN_PS = 10_000_000, 30_000_000, 37_000_000


@pytest.mark.parametrize(("slow", "dead"), [(2, 5), (3, 2), (4, 3), (5, 4)])
def test_what_is_left_of_a_bundle_goes_at_the_rate_of_its_slowest_member(slow: int, dead: int) -> None:
    """Four members, then four at a quarter, then none until routes know, then three at a quarter."""
    faults = [
        Fault(at_ps=SLOW_PS, event="degrade", link=slow, rate_bps=RATE_BPS // 4),
        Fault(at_ps=DOWN_PS, event="down", link=dead),
    ]
    job = sends(2, [Message(source=0, destination=1, size_bytes=SIZE_BYTES)])
    engine_input = flow_input_of(
        FABRIC, job, port_selection="spray", faults=faults, reconvergence_delay_ps=KNOWN_PS - DOWN_PS,
        failover_delay_ps=0,
    )  # fmt: skip
    (found,) = flow.run(engine_input).packets.messages["delivered_at_ps"].tolist()
    sent_bytes = 4 * SLOW_PS / BYTE_PS + (DOWN_PS - SLOW_PS) / BYTE_PS
    wanted_ps = KNOWN_PS + (WIRE_BYTES - sent_bytes) * 4 / 3 * BYTE_PS
    assert wanted_ps < found < wanted_ps + 5_000_000  # behind the last byte come three delays and some packets


@pytest.mark.parametrize("link", [0, 1, 2])
def test_a_degraded_link_is_slow_in_both_directions(link: int) -> None:
    """One message each way, which share no link: both take four times as long as they would."""
    line = wired([(0, 2), (2, 3), (3, 1)], hosts=2)
    job = sends(2, [Message(source=a, destination=1 - a, size_bytes=SIZE_BYTES) for a in (0, 1)])
    fault = Fault(at_ps=0, event="degrade", link=link, rate_bps=RATE_BPS // 4)
    found = flow.run(flow_input_of(line, job, faults=[fault])).packets.messages["delivered_at_ps"].tolist()
    assert found == pytest.approx([4 * WIRE_BYTES * BYTE_PS] * 2, rel=0.01)
