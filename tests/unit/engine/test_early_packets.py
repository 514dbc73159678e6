"""What receivers keep behind gaps is counted at their NIC port, alike in both packet engines."""

from __future__ import annotations

import pytest
from helpers.both import both
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends, star

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.spec.transport import Transport

FIRST_ARRIVES_PS = (4096 + 62 + 16 + 20) * BYTE_PS + DELAY_PS

pytestmark = pytest.mark.sanitize


def without_the_first(*sizes_packets: int, **changes: object) -> Outcome:
    """Messages from one host, each on a queue pair of its own; the first packet of all is lost."""
    faults = [
        Fault(at_ps=FIRST_ARRIVES_PS, event="lossy", link=0, loss=1.0),
        Fault(at_ps=FIRST_ARRIVES_PS + 1, event="lossy", link=0, loss=0.0),
    ]
    messages = [
        Message(source=0, destination=1, size_bytes=packets * 4096, channel=channel)
        for channel, packets in enumerate(sizes_packets)
    ]
    settings = {"retransmission_timeout_ps": 100 * US_PS, "lossless_priorities": ()} | changes
    transport = Transport.model_validate(settings)
    return both(packet_input_of(pair(), sends(2, messages), transport=transport, faults=faults))


@pytest.mark.parametrize(("packets", "kept"), [(1, 0), (2, 1), (9, 8)])
def test_all_packets_behind_a_lost_one_are_kept(packets: int, kept: int) -> None:
    outcome = without_the_first(packets, reorder_tolerant=True)
    assert outcome.ports["max_early_packets"].tolist() == [0, kept]


def test_a_receiver_that_keeps_nothing_counts_nothing() -> None:
    outcome = without_the_first(9)
    assert outcome.counters["out_of_order_discards"] == 8
    assert outcome.ports["max_early_packets"].tolist() == [0, 0]


def test_no_more_is_kept_than_the_window_has_room_for() -> None:
    outcome = without_the_first(9, reorder_tolerant=True, reorder_window_packets=4)
    assert outcome.ports["max_early_packets"].tolist() == [0, 3]  # the place of the missing one is in the window


def test_queue_pairs_of_a_port_are_counted_together() -> None:
    lone = without_the_first(9, reorder_tolerant=True).ports["max_early_packets"].max()
    beside = without_the_first(9, 9, reorder_tolerant=True).ports["max_early_packets"].max()
    assert beside == lone  # the second queue pair has no gap


def test_packets_in_order_are_not_early() -> None:
    messages = [Message(source=source, destination=2, size_bytes=20 * 4096) for source in (0, 1)]
    transport = Transport(reorder_tolerant=True)
    outcome = both(packet_input_of(star(3), sends(3, messages), transport=transport))
    assert not outcome.ports["max_early_packets"].any()
