"""Selective repeat: what is lost is sent again, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from helpers.rdma_pair import BadWire, Pair
from helpers.selective_repeat import MTU, OK, W

from weftwork.rdma.datagram import Datagram
from weftwork.rdma.queue_pair import NicLimits
from weftwork.rdma.verbs import WrOpcode

PACKETS = 4096  # MTU x packets is the memory of an end


LOSS = 0.01


class CountingPair(Pair):
    """A pair that counts packets of messages, those of them that are lost, and memory held."""

    def __init__(self, wire: BadWire | None = None, **more: Any) -> None:
        super().__init__(wire, **more)
        self.data_packets = 0
        self.lost_packets = 0
        self.most_held_bytes = 0

    def carry(self, to: int, datagram: Datagram) -> None:
        flying = len(self.flying)
        super().carry(to, datagram)
        has_data = len(self.sent[-1].parts[0]) >= MTU
        self.data_packets += has_data
        self.lost_packets += has_data and len(self.flying) == flying
        self.most_held_bytes = max(self.most_held_bytes, self.qps[1].out_of_order_bytes)

    def move(self, opcode: WrOpcode) -> None:
        """Write or read all memory in 16 messages."""
        source = 0 if opcode is W.RDMA_WRITE else 1
        size_bytes = MTU * PACKETS // 16
        data = self.buffers[source][:] = random.Random(1).randbytes(MTU * PACKETS)
        for at in range(0, MTU * PACKETS, size_bytes):
            self.post(0, opcode, sg_list=(self.sge(0, at, size_bytes),), **self.remote(0, at))
        assert self.run()
        assert [wc.status for wc in self.poll(0)] == [OK] * 16
        assert self.buffers[1 - source] == data


@pytest.mark.parametrize("opcode", [W.RDMA_WRITE, W.RDMA_READ])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 3))])
def test_every_lost_packet_costs_one_more(opcode: WrOpcode, seed: int) -> None:
    to = 1 if opcode is W.RDMA_WRITE else 0
    pair = CountingPair(BadWire(loss=LOSS, seed=seed, loses_to=(to,)), selective_repeat=True)
    pair.move(opcode)
    assert pair.lost_packets > 20
    again = pair.data_packets - PACKETS
    # behind a timeout 64 packets at most are unknown to the sender, between two that ask for an ACK
    unknown = 64 * pair.qps[0].counters["local_ack_timeout_err"]
    assert pair.lost_packets <= again <= pair.lost_packets + unknown
    assert unknown <= 64


@pytest.mark.parametrize("opcode", [W.RDMA_WRITE, W.RDMA_READ])
def test_loss_both_ways_costs_its_share_and_far_less_than_going_back(opcode: WrOpcode) -> None:
    sent = {}
    for is_selective in (False, True):
        pair = CountingPair(BadWire(loss=LOSS, seed=5), selective_repeat=is_selective)
        pair.move(opcode)
        sent[is_selective] = pair.data_packets
    # a packet is sent 1 / (1 - loss) times; as much again for packets of which the news was lost
    assert PACKETS < sent[True] < PACKETS * (1 + 2 * LOSS / (1 - LOSS))
    # going back costs half a window of 256 for a loss, thus 1 + 0.01 x 128 and more
    assert sent[False] > 2 * PACKETS


@pytest.mark.parametrize("limits", [{"max_out_of_order": 3}, {"max_out_of_order_bytes": 5 * MTU}])
def test_memory_for_early_packets_is_bounded(limits: dict[str, int]) -> None:
    pair = CountingPair(BadWire(loss=0.05, seed=2), selective_repeat=True, limits=NicLimits(**limits), timeout=8)
    pair.move(W.RDMA_WRITE)
    assert 2 * MTU < pair.most_held_bytes <= 5 * MTU
    assert pair.qps[1].out_of_order_bytes == 0
    assert pair.qps[1].counters["out_of_order_dropped"] > 0
