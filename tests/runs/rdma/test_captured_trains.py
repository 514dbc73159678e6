"""Frames of a capture that hold several packets are taken apart, and nothing else is."""

import random

import pytest
from helpers.captures import captured
from helpers.rdma_captures import ethernet_frame
from helpers.rdma_pair import Pair

from weftwork.rdma.capture import CaptureExplainer
from weftwork.rdma.verbs import WrOpcode

SIZE = 50_000


def conversation(*, trains: bool, path_mtu: int, ipv6: bool = False) -> list[bytes]:
    """Frames of a WRITE and a READ, as a capture on the sending machine shows them."""
    pair = Pair(path_mtu=path_mtu, nic={"makes_trains": trains}, ipv6=ipv6)
    pair.cuts = 0.0
    pair.buffers[0][:SIZE] = random.Random(1).randbytes(SIZE)
    for opcode in (WrOpcode.RDMA_WRITE, WrOpcode.RDMA_READ):
        pair.post(0, opcode, sg_list=(pair.sge(0, 0, SIZE),), **pair.remote(0, 0))
    assert pair.run()
    return [ethernet_frame(datagram) for datagram in pair.sent]


def explained(frames: list[bytes]) -> CaptureExplainer:
    seen = CaptureExplainer()
    for packet in captured(frames):
        seen.explain(packet)
    return seen


@pytest.mark.parametrize("path_mtu", [256, 1024, 4096])
@pytest.mark.parametrize("ipv6", [False, True])
def test_a_train_shows_the_packets_that_would_go_one_by_one(path_mtu: int, *, ipv6: bool) -> None:
    frames = conversation(trains=True, path_mtu=path_mtu, ipv6=ipv6)
    together, single = explained(frames), explained(conversation(trains=False, path_mtu=path_mtu, ipv6=ipv6))
    assert together.frames == len(frames) < together.packets
    assert together.trains > 0
    assert (single.frames, single.trains) == (single.packets, 0)
    flows = [sorted(seen.flows.by_key.values(), key=lambda flow: str(flow.key)) for seen in (together, single)]
    for ours, theirs in zip(*flows, strict=True):
        assert (ours.payload_bytes, ours.messages) == (theirs.payload_bytes, theirs.messages)
        assert (ours.wrong_icrc, ours.missing, ours.sent_again, ours.late) == (0, 0, 0, 0)


def test_a_changed_packet_of_a_train_is_blamed_alone() -> None:
    frames = conversation(trains=True, path_mtu=1024)
    longest = max(range(len(frames)), key=lambda at: len(frames[at]))
    changed = bytearray(frames[longest])
    changed[42 + 5 * 1040 + 500] ^= 1
    frames[longest] = bytes(changed)
    seen = explained(frames)
    assert sum(flow.wrong_icrc for flow in seen.flows.by_key.values()) == 1
    assert seen.first_at["icrc"] == longest + 1


def test_a_long_packet_with_a_wrong_icrc_is_no_train() -> None:
    frames = conversation(trains=False, path_mtu=4096)
    changed = bytearray(max(frames, key=len))
    changed[100] ^= 1
    seen = explained([bytes(changed)])
    assert (seen.packets, seen.trains) == (1, 0)
    assert sum(flow.wrong_icrc for flow in seen.flows.by_key.values()) == 1
