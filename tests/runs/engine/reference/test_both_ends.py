"""A sender and a receiver over a pipe of the test, with no simulation around them: all arrives, whatever the pipe does.

So would a software NIC drive them: it offers a line at each end, asks the sender for packets and hands over what comes.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from helpers.by_hand import (
    FLOW,
    FRAME_PS,
    MTU_BYTES,
    HandClock,
    HandInbox,
    HandLine,
    Tally,
    queue_pair_config,
)

from weftwork.base.clock import US_PS
from weftwork.engine.reference.message import SendQueue
from weftwork.engine.reference.packet import Packet, PacketKind
from weftwork.engine.reference.receiver import Receiver
from weftwork.engine.reference.sender import Sender

MESSAGES = 30
RULES = {
    "go-back-n": {},
    "timeout": {"recovery": "timeout"},
    "selective-repeat": {"recovery": "selective-repeat", "reorder_threshold_packets": 3},
    "trims": {"recovery": "selective-repeat", "reorder_threshold_packets": 3},
    "reorder-tolerant": {"recovery": "timeout", "reorder_tolerant": True, "reorder_window_packets": 8},
    "few ACKs": {"ack_every": 7},
    "credits": {"end_to_end_credits": 4},
}


class Pipe:
    """Loses, doubles and delays packets of both directions by a seed; it may cut data packets too."""

    def __init__(self, seed: int, *, cuts: bool) -> None:
        self.source = random.Random(seed)
        self.cuts = cuts
        self.under_way: list[tuple[int, int, Packet]] = []
        self.carried = 0

    def take(self, packet: Packet, now_ps: int) -> None:
        for _ in range(self.source.choice([0, 1, 1, 1, 1, 1, 1, 2])):
            self.carried += 1
            is_cut = self.cuts and packet.kind == PacketKind.DATA and self.source.random() < 0.2
            copy = replace(packet, is_cut=is_cut)
            self.under_way.append((now_ps + self.source.randrange(1, 5 * FRAME_PS), self.carried, copy))

    def arrived(self, now_ps: int) -> list[Packet]:
        there = sorted(each for each in self.under_way if each[0] <= now_ps)
        self.under_way = [each for each in self.under_way if each[0] > now_ps]
        return [packet for _, _, packet in there]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_every_message_arrives_once_and_its_sender_learns_of_it(rules: str, seed: int) -> None:
    clock, counted, pipe, inbox = HandClock(), Tally(), Pipe(seed, cuts=rules == "trims"), HandInbox()
    here, there = HandLine(port=0), HandLine(port=1)
    config = queue_pair_config(retransmission_timeout_ps=20 * US_PS, retry_limit=10_000, **RULES[rules])
    queue = SendQueue(MTU_BYTES)
    ends = {"clock": clock, "base_rtt_ps": US_PS, "count": counted}
    sender = Sender(FLOW, config, line=here, destination=1, queue=queue, **ends)
    receiver = Receiver(FLOW, config, line=there, destination=0, inbox=inbox, **ends)
    complete: list[int] = []
    for ordinal in range(MESSAGES):
        size_bytes = pipe.source.randrange(4 * MTU_BYTES)
        sender.post(size_bytes, 0, lambda ordinal=ordinal: complete.append(ordinal))
    turns = 0
    while len(complete) < MESSAGES:
        turns += 1
        assert turns < 100_000, "it does not end"
        clock.go_to(clock.now_ps + FRAME_PS // 2)
        seq = sender.next_packet()
        if seq is not None:
            pipe.take(sender.send(seq), clock.now_ps)
        for line in (here, there):
            for packet in line.control:
                pipe.take(packet, clock.now_ps)
            line.control.clear()
        for packet in pipe.arrived(clock.now_ps):
            if packet.is_cut:
                receiver.handle_cut(packet)
            elif packet.kind == PacketKind.DATA:
                receiver.handle(packet)
            elif packet.kind == PacketKind.PROBE:
                receiver.probed()
            else:
                sender.receive(packet)
        if inbox.claimed < inbox.delivered and pipe.source.random() < 0.2:
            inbox.claimed += 1
            receiver.claimed()
        assert receiver.expected >= sender.una
    assert complete == list(range(MESSAGES))
    assert inbox.delivered == MESSAGES
    assert receiver.expected == sender.una == queue.end
    assert (counted["retransmissions"] > 0, sender.has_failed) == (True, False)
