"""What one connection may have under way, and what it takes at the NICs of its ends, worked out on paper."""

from __future__ import annotations

import pytest
from helpers.both import both
from helpers.tiny import job_of, packet_input_of, wired

from weftwork.base.clock import MS_PS, US_PS
from weftwork.engine.instants import Fault
from weftwork.spec.job import Operation, Peer, Send, Size, Wait
from weftwork.spec.transport import Transport

STATE_BYTES = 375


pytestmark = pytest.mark.sanitize


def test_a_connection_that_moves_takes_state_at_each_port_it_comes_to() -> None:
    # Two hosts with a port at each of two switches. The first link fails, comes back, and the connection with it.
    fabric = wired([(0, 2), (0, 3), (1, 2), (1, 3)], hosts=2)
    stream: list[Operation] = [Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=600 * 4096)), Wait()]
    job = job_of([[stream], [[]]], nics=((0, 1), (0, 1)))
    down, up = (Fault(at_ps=at_ps, event=event, link=0) for at_ps, event in ((10 * US_PS, "down"), (30 * US_PS, "up")))
    transport = Transport(connection_state_bytes=STATE_BYTES, retransmission_timeout_ps=MS_PS, lossless_priorities=())
    places = []
    for faults in ([], [down], [down, up]):
        outcome = both(packet_input_of(fabric, job, transport=transport, faults=faults, reconvergence_delay_ps=MS_PS))
        assert outcome.complete
        places.append([int(state_bytes) // STATE_BYTES for state_bytes in outcome.ports["nic_state_bytes"]])
    assert [row[:4] for row in places] == [[1, 0, 1, 0], [1, 1, 1, 1], [2, 1, 2, 1]]
