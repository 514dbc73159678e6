"""What connections take at the NIC ports of a run, counted on paper: an end at each port, and again where one moves."""

from __future__ import annotations

import pytest
from helpers.tiny import Message, job_of, packet_input_of, sends, star, wired

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.simulation import run
from weftwork.spec.job import Peer, Send, Size, Wait
from weftwork.spec.transport import Transport

STATE_BYTES = 375
DOWN_PS, FAILOVER_PS = 30 * US_PS, 5 * US_PS


def ends_at(outcome: Outcome) -> list[int]:
    """Ends of connections by port."""
    counted = [divmod(int(state_bytes), STATE_BYTES) for state_bytes in outcome.ports["nic_state_bytes"]]
    assert {rest for _, rest in counted} == {0}
    return [ends for ends, _ in counted]


def test_each_end_counts_at_its_own_port_and_a_switch_has_none() -> None:
    between = [(0, 1, 0), (0, 1, 0), (0, 1, 1), (0, 2, 0), (2, 0, 0)]  # the first two are one connection
    messages = [Message(source=a, destination=b, size_bytes=9_000, channel=channel) for a, b, channel in between]
    engine_input = packet_input_of(star(3), sends(3, messages), transport=Transport(connection_state_bytes=STATE_BYTES))
    assert ends_at(run(engine_input)) == [3 + 1, 2, 1 + 1, 0, 0, 0]


def two_rails(*faults: Fault, until_ps: int) -> list[int]:
    """Two hosts with a port at each of two switches, and a message between them that takes longer than the run."""
    send = Send(peer=Peer(rule="rank", shift=1), size=Size(total_bytes=20_000 * 4096))
    engine_input = packet_input_of(
        wired([(0, 2), (0, 3), (1, 2), (1, 3)], hosts=2),
        job_of([[[send, Wait()]], []], nics=[(0, 1), (0, 1)]),
        transport=Transport(connection_state_bytes=STATE_BYTES, lossless_priorities=()),
        faults=faults,
        failover_delay_ps=FAILOVER_PS,
        until_ps=until_ps,
    )
    return ends_at(run(engine_input))[:4]


@pytest.mark.parametrize(
    ("down_ps", "ends"),
    [
        (DOWN_PS, [1, 1, 1, 1]),
        (0, [1, 1, 0, 1]),  # nothing has arrived at the first port of the far end: no slot was in use there
    ],
)
def test_ends_that_move_count_at_their_new_ports_too(down_ps: int, ends: list[int]) -> None:
    assert two_rails(Fault(at_ps=down_ps, event="down", link=0), until_ps=100 * US_PS) == ends


def test_ends_that_return_count_again_at_the_ports_that_they_had() -> None:
    faults = [Fault(at_ps=DOWN_PS, event="down", link=0), Fault(at_ps=2 * DOWN_PS, event="up", link=0)]
    assert two_rails(*faults, until_ps=100 * US_PS) == [2, 1, 2, 1]
