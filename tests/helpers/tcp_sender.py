"""One queue pair that always has enough to send, told in whole packets to the step of a TCP."""

from __future__ import annotations

from typing import Any

from weftwork.base.clock import US_PS
from weftwork.policies.interface import Kind
from weftwork.policies.load import load

__all__ = ["MTU", "RTT_PS", "Sender"]

MTU = 1_000
RTT_PS = 100 * US_PS


class Sender:
    """One queue pair that always has enough to send; it is told in packets."""

    def __init__(self, name: str, **parameters: Any) -> None:
        self.policy = load("congestion_control", name, parameters, parameters.pop("variant", None))
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes, self.signal.base_rtt_ps = 10**11, MTU, RTT_PS
        self.state.rate_bps = 10**11
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        signal = self.signal
        for name in ("bytes", "arrived_bytes", "lost_bytes", "marked_bytes", "rtt_ps", "ecn"):
            setattr(signal, name, 0)
        signal.kind = int(kind)
        for name, value in fields.items():
            setattr(signal, name, value)
        self.policy.call_step(self.state, signal)

    def sends(self, packets: int) -> None:
        for _ in range(packets):
            self.signal.inflight_bytes += MTU
            self.tell(Kind.SEND, bytes=MTU, next_seq=self.signal.next_seq + 1)

    def hears(self, packets: int = 1, **fields: int) -> None:
        """An ACK of so many packets, before which the window was full."""
        self.signal.inflight_bytes = int(self.state.window) * MTU - packets * MTU
        self.signal.seq += packets
        self.signal.next_seq = self.signal.seq + int(self.state.window)
        self.tell(Kind.ACK, arrived_bytes=packets * MTU, bytes=packets * MTU, **fields)

    def loses(self, packets: int = 1) -> None:
        """A packet beyond a gap has arrived: the ACK and the NAK of it."""
        self.signal.next_seq = self.signal.seq + int(self.state.window)
        self.signal.inflight_bytes = (int(self.state.window) - 1 - packets) * MTU
        self.tell(Kind.ACK, arrived_bytes=MTU, lost_bytes=packets * MTU)
        self.tell(Kind.NAK, lost_bytes=packets * MTU)

    @property
    def window(self) -> float:
        return float(self.state.window_bytes) / MTU
