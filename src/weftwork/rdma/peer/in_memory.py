"""A scripted peer and Weftwork's own NIC on a wire in memory, in virtual time.

Leaves out: sockets, see `live`.
"""

from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING, Final

from weftwork.policies.load import load
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.peer.end import ScriptEnd
from weftwork.rdma.peer.judge import Judgement, judge
from weftwork.rdma.peer.scripted import ScriptedPeer

if TYPE_CHECKING:
    from weftwork.rdma.datagram import Datagram
    from weftwork.rdma.drivers.driver import DrivenNic
    from weftwork.rdma.peer.end import EndReport
    from weftwork.rdma.peer.script import PeerScript
    from weftwork.rdma.peer.scripted import PeerReport

__all__ = ["PEER_ADDRESS", "SelfTest", "self_test"]

PEER_ADDRESS, END_ADDRESS, STRANGER_ADDRESS = (bytes((192, 0, 2, host)) for host in (1, 2, 3))  # RFC 5737
LINE_RATE_BPS: Final = 100_000_000_000  # chosen: a usual port
DELAY_PS: Final = 1_000_000  # chosen: 1 us, a rack
FRAME_OVERHEAD_BYTES: Final = 66  # Ethernet with preamble and gap 38, IPv4 20, UDP 8
_LIMIT_PS: Final = 600_000_000_000_000  # chosen: 10 min, longer than 8 timeouts of the longest script
_MOST_STEPS: Final = 1_000_000  # chosen: a hundred times those of the longest script


class SelfTest:
    """One script between a peer and Weftwork's own NIC.

    Parameters
    ----------
    script : to run

    Attributes
    ----------
    peer, end : both sides
    now_ps : virtual time
    """

    def __init__(self, script: PeerScript) -> None:
        self._script: Final = script
        control = script.end.congestion_control
        peer_nic = RdmaNic(PEER_ADDRESS, random=random.Random(f"{script.name} peer"))
        end_nic = RdmaNic(
            END_ADDRESS,
            random=random.Random(f"{script.name} end"),
            congestion_control=load("congestion_control", control) if control is not None else None,
            line_rate_bps=LINE_RATE_BPS,
        )
        self.peer: Final = ScriptedPeer(script, peer_nic, stranger=STRANGER_ADDRESS)
        self.end: Final = ScriptEnd(script, end_nic, PEER_ADDRESS)
        self.now_ps = 0
        self._sides: Final[tuple[DrivenNic, DrivenNic]] = (self.peer, self.end)
        self._free_at_ps: Final = [0, 0]
        self._flying: Final[list[tuple[int, int, int, Datagram]]] = []
        self._order = 0

    def run(self) -> bool:
        """Let things happen until the connection is over and nothing is on its way; False past the limit."""
        for _ in range(_MOST_STEPS):
            for index in (0, 1):
                self._send(index)
            if self.peer.is_over and self.end.is_over and not self._flying:
                return True
            times = [at_ps for side in self._sides if (at_ps := side.next_timer_ps()) is not None]
            times += [at_ps for at_ps in self._free_at_ps if at_ps > self.now_ps]
            times += [self._flying[0][0]] if self._flying else []
            if not times or min(times) > _LIMIT_PS:
                return False
            self.now_ps = max(self.now_ps, min(times))
            while self._flying and self._flying[0][0] <= self.now_ps:
                _, _, to, datagram = heapq.heappop(self._flying)
                self._sides[to].receive(datagram, self.now_ps)
            for side in self._sides:
                side.on_timer(self.now_ps)
        return False

    def _send(self, index: int) -> None:
        """Send packet by packet while the line is free."""
        side = self._sides[index]
        while self._free_at_ps[index] <= self.now_ps:
            made = side.datagrams_to_send(self.now_ps, 1)
            if not made:
                return
            for datagram in made:
                data = bytes(datagram.payload())
                bits = (len(data) + FRAME_OVERHEAD_BYTES) * 8
                self._free_at_ps[index] = self.now_ps + bits * 1_000_000_000_000 // LINE_RATE_BPS
                self._order += 1
                arrives_at_ps = self._free_at_ps[index] + DELAY_PS
                copy = datagram._replace(parts=(data,))
                heapq.heappush(self._flying, (arrives_at_ps, self._order, 1 - index, copy))

    def reports(self) -> tuple[PeerReport, EndReport]:
        """What both sides have seen."""
        return self.peer.report(), self.end.report()


def self_test(script: PeerScript) -> list[Judgement]:
    """Run a script against Weftwork's own NIC, and judge it."""
    test = SelfTest(script)
    test.run()
    return judge(script, *test.reports())
