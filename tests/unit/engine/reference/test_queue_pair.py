"""Which NIC ports a queue pair takes, and when it changes them, on two hosts with a port at each of two switches."""

from __future__ import annotations

import pytest
from helpers.by_hand import HandClock, HandWire, Tally, hand_port, queue_pair_config
from helpers.tiny import job_of, packet_input_of, wired

from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference.base_rtt import base_rtt_ps
from weftwork.engine.reference.nic import NicConfig, NicPort
from weftwork.engine.reference.queue_pair import QueuePair

SOURCE, SOURCE_TOO, DESTINATION, DESTINATION_TOO = range(4)  # port ids: two of each host


class Driven:
    def __init__(self, nics: tuple[tuple[int, int], tuple[int, int]] = ((0, 1), (0, 1))) -> None:
        self.clock, self.counted = HandClock(), Tally()
        self.engine_input: PacketInput = packet_input_of(
            wired([(0, 2), (0, 3), (1, 2), (1, 3)], hosts=2), job_of([[], []], nics=nics)
        )
        config = NicConfig(
            pcie_rate_bps=0,
            pcie_latency_ps=0,
            receive_buffer_bytes=0,
            xoff_bytes=0,
            xon_bytes=0,
            lossless=(True, False),
            control_class=1,
        )
        self.nics: dict[int, NicPort] = {}
        for port_id in range(4):
            port = hand_port(self.clock, self.counted, port_id, local_index=port_id % 2)
            self.nics[port_id] = NicPort(port, config, self.clock)
            port.join(self.nics[port_id], HandWire())
        self.pair = QueuePair((0, 1, 0), self.engine_input, queue_pair_config(), self.nics, self.clock, self.counted)

    def ports(self) -> tuple[int, int]:
        return self.pair.source_nic.id, self.pair.destination_nic.id


def test_it_takes_the_ports_of_its_column() -> None:
    for column, ports in enumerate([(SOURCE, DESTINATION), (SOURCE_TOO, DESTINATION_TOO)]):
        driven = Driven()
        sender = driven.pair.open(column, set(), peer_rail=False)
        assert driven.ports() == ports
        assert driven.nics[ports[0]].senders == [sender]
        assert driven.pair.base_rtt_ps == base_rtt_ps(driven.engine_input, *ports) > 0


def test_with_the_rail_of_its_peer_the_source_takes_the_port_of_the_same_number() -> None:
    driven = Driven(nics=((0, 1), (1, 0)))
    driven.pair.open(0, set(), peer_rail=True)
    assert driven.ports() == (SOURCE_TOO, DESTINATION_TOO)


@pytest.mark.parametrize("down", [SOURCE, DESTINATION])
def test_where_a_port_at_either_end_is_down_it_takes_the_next_column_that_works(down: int) -> None:
    driven = Driven()
    driven.pair.open(0, {down}, peer_rail=False)
    assert driven.ports() == (SOURCE_TOO, DESTINATION_TOO)


def test_where_no_column_works_each_end_takes_the_first_port_that_does() -> None:
    driven = Driven()
    driven.pair.open(1, {SOURCE, DESTINATION_TOO}, peer_rail=False)
    assert driven.ports() == (SOURCE_TOO, DESTINATION)


def test_where_an_end_has_no_port_left_it_takes_its_own_all_the_same() -> None:
    driven = Driven()
    driven.pair.open(1, {SOURCE, SOURCE_TOO, DESTINATION_TOO}, peer_rail=False)
    assert driven.ports() == (SOURCE_TOO, DESTINATION_TOO)


def test_both_ends_move_when_a_port_is_down_and_back_when_it_works_again() -> None:
    driven = Driven()
    sender = driven.pair.open(0, set(), peer_rail=False)
    assert not driven.pair.fail_over(set())
    assert driven.pair.fail_over({DESTINATION})
    assert driven.ports() == (SOURCE_TOO, DESTINATION_TOO)
    assert (driven.nics[SOURCE].senders, driven.nics[SOURCE_TOO].senders) == ([None], [sender])
    assert (sender.line, sender.destination) == (driven.nics[SOURCE_TOO], DESTINATION_TOO)
    receiver = driven.pair.receiver
    assert receiver is not None
    assert (receiver.line, receiver.destination) == (driven.nics[DESTINATION_TOO], SOURCE_TOO)
    assert not driven.pair.fail_over({SOURCE, SOURCE_TOO})  # nothing better anywhere
    assert driven.pair.fail_over(set())
    assert driven.ports() == (SOURCE, DESTINATION)
    assert driven.nics[SOURCE].senders == [None, sender]  # a slot of its own


def test_before_its_first_message_there_is_nothing_to_move_and_a_claim_waits() -> None:
    driven = Driven()
    told: list[int] = []
    assert not driven.pair.fail_over({SOURCE})
    assert not driven.pair.claim(lambda: told.append(1))
    assert (driven.pair.sender, driven.pair.receiver) == (None, None)
    driven.pair.open(0, set(), peer_rail=False).post(100, 0, lambda: None)
    driven.pair.inbox.deliver()
    assert told == [1]
