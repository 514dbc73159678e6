"""What packets cost the processor of a host: its price list, and runs; a NIC port alone is in `test_nic`."""

from __future__ import annotations

import pytest
from helpers.by_hand import MTU_BYTES
from helpers.tiny import BYTE_PS, DELAY_PS, Message, packet_input_of, pair, sends

from weftwork.base.clock import US_PS
from weftwork.engine.instants import Fault
from weftwork.engine.outcome import Outcome
from weftwork.engine.reference.processor import HostProcessor
from weftwork.engine.reference.simulation import run
from weftwork.spec.device import Nic
from weftwork.spec.transport import Transport

SLOW = {"host_packet_ps": 200_000, "host_byte_ps": 10_000}
COST_PS = 240_960  # 200,000 and 10 for each of 4,096 bytes: longer than a frame takes
FULL_PS = (4096 + 62 + 16 + 20) * BYTE_PS
NEXT_PS = (4096 + 62 + 20) * BYTE_PS
ACK_PS = (66 + 20) * BYTE_PS


@pytest.mark.parametrize(
    ("packet_ps", "byte_ps", "payload_bytes", "cost_ps"),
    [(7, 0, 4_096, 7), (0, 999, 1, 0), (7, 999, 1_002, 1_007), (0, 10_000, 4_096, 40_960), (5, 10_000, 0, 5)],
)
def test_a_packet_has_a_price_and_its_payload_one_that_is_rounded_down(
    packet_ps: int, byte_ps: int, payload_bytes: int, cost_ps: int
) -> None:
    assert HostProcessor(packet_ps=packet_ps, byte_ps=byte_ps).cost_ps(payload_bytes) == cost_ps


@pytest.mark.parametrize(("packet_ps", "byte_ps", "takes_part"), [(0, 0, False), (1, 0, True), (0, 1, True)])
def test_either_price_makes_packets_pass_it(packet_ps: int, byte_ps: int, *, takes_part: bool) -> None:
    assert HostProcessor(packet_ps=packet_ps, byte_ps=byte_ps).takes_part == takes_part


# Runs


def two_packets(*, nic: Nic | None = None, faults: tuple[Fault, ...] = (), **costs: int) -> Outcome:
    job = sends(2, [Message(source=0, destination=1, size_bytes=2 * MTU_BYTES)])
    return run(packet_input_of(pair(nic=nic), job, transport=Transport.model_validate(costs), faults=faults))


def test_both_ends_pay_for_every_packet() -> None:
    # The second packet starts a cost after the first. It has no header of a first packet, and so arrives a little
    # before the receiving processor is done with the first one.
    outcome = two_packets(**SLOW)
    assert NEXT_PS < FULL_PS < COST_PS
    done_ps = FULL_PS + DELAY_PS + 2 * COST_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [done_ps]
    assert outcome.messages["acked_at_ps"].tolist() == [done_ps + ACK_PS + DELAY_PS]


def test_a_processor_that_keeps_up_with_the_wire_delays_the_last_packet_by_its_own_cost() -> None:
    outcome = two_packets(host_packet_ps=1_000)
    assert outcome.messages["delivered_at_ps"].tolist() == [FULL_PS + NEXT_PS + DELAY_PS + 1_000]


def test_a_host_interface_that_comes_with_a_fault_is_added_to_the_processor() -> None:
    slow = Fault(at_ps=US_PS // 10, event="slow", nic=1, rate_bps=100_000_000_000)
    outcome = two_packets(faults=(slow,), **SLOW)
    first_ps = FULL_PS + DELAY_PS + (4096 + 62 + 16) * 80 + COST_PS
    assert outcome.messages["delivered_at_ps"].tolist() == [first_ps + (4096 + 62) * 80 + COST_PS]
