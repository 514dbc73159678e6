"""What the tests of selective repeat share, the quick ones and those that need more."""

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
