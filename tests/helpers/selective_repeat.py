"""Packets that one end of a pair with selective repeat has sent."""

from __future__ import annotations

from helpers.rdma_pair import Pair

from weftwork.rdma.verbs import WcStatus, WrOpcode
from weftwork.wire.transport import TransportPacket

W = WrOpcode


OK = WcStatus.SUCCESS


MTU = 256


def packets(pair: Pair, end: int) -> list[TransportPacket]:
    found = [one for one in pair.sent if one.source == pair.nics[end].address]
    return [TransportPacket.decode(one.parts[0][:-4])[0] for one in found]
