"""A queue pair that paces by measurements, whose packets a test sends and acknowledges by hand."""

from __future__ import annotations

from collections import deque
from typing import Any

from weftwork.base.clock import US_PS
from weftwork.policies.interface import Kind
from weftwork.policies.load import LoadedPolicy, load

__all__ = ["BASE_RTT_PS", "LINE_BPS", "MTU_BYTES", "AckedFlow"]

LINE_BPS = 100_000_000_000
MTU_BYTES = 4096
BASE_RTT_PS = 40 * US_PS


class AckedFlow:
    """One queue pair whose packets are sent and acknowledged by hand."""

    def __init__(self, name: str, **parameters: Any) -> None:
        variant = parameters.pop("variant", None)
        self.policy: LoadedPolicy = load("congestion_control", name, parameters, variant)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes, self.signal.base_rtt_ps = LINE_BPS, MTU_BYTES, BASE_RTT_PS
        self.signal.backlog_bytes = 1 << 40
        self.flying: deque[int] = deque()
        self.acked = 0
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.signal.inflight_bytes = len(self.flying) * MTU_BYTES
        self.policy.call_step(self.state, self.signal)

    def send(self, at_ps: int, count: int = 1, every_ps: int = 0) -> None:
        for number in range(count):
            self.flying.append(at_ps + number * every_ps)
            sent = self.acked + len(self.flying)
            self.tell(Kind.SEND, now_ps=self.flying[-1], bytes=MTU_BYTES, next_seq=sent, entropy=50_000)

    def ack(self, at_ps: int, lost_bytes: int = 0) -> None:
        """The oldest packet is acknowledged."""
        sent_at_ps = self.flying.popleft()
        self.acked += 1
        told = {"bytes": MTU_BYTES, "arrived_bytes": MTU_BYTES, "seq": self.acked, "lost_bytes": lost_bytes}
        self.tell(Kind.ACK, now_ps=at_ps, rtt_ps=at_ps - sent_at_ps, **told)

    def round_trip(self, at_ps: int, rtt_ps: int, packets: int, every_ps: int) -> int:
        """Send packets and have each acknowledged an RTT later; tell when the last one was."""
        for number in range(packets):
            self.send(at_ps + number * every_ps)
        for number in range(packets):
            self.ack(at_ps + number * every_ps + rtt_ps)
        return at_ps + (packets - 1) * every_ps + rtt_ps
