"""Controls whose receivers grant credit: steps that a test drives by hand, and small networks that cut packets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helpers.tiny import Message, sends, wired

from weftwork.base.clock import MS_PS, NEVER_PS, US_PS
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.settings import EngineSettings
from weftwork.policies.interface import OFF, Kind
from weftwork.policies.load import LoadedPolicy, load
from weftwork.spec.device import Ecn, Nic, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

__all__ = [
    "HEADER_BYTES",
    "MTU_BYTES",
    "RATE_BPS",
    "UET",
    "ReceivingNic",
    "Sender",
    "incast",
    "pacer_ps",
    "plan",
    "star",
]

RATE_BPS = 100_000_000_000
MTU_BYTES = 4_086  # of a frame of 4,150 B with a header of 64 B, as uet-htsim has it
HEADER_BYTES = 64
UET = Transport(
    name="uet", mtu_bytes=MTU_BYTES, data_overhead_bytes=HEADER_BYTES - 4, first_extra_bytes=0, ack_bytes=64,
    credit_bytes=64, interframe_bytes=0, ack_every=4, recovery="selective-repeat", reorder_threshold_packets=64,
    trim_bytes=64, lossless_priorities=(), retry_limit=100, retransmission_timeout_ps=10 * MS_PS,
    reorder_window_packets=4_096,
)  # fmt: skip


class Sender:
    """One sending queue pair, told what happens; 100 Gb/s, 12 us, packets of 4,096 B: a BDP is 150,000 B."""

    def __init__(self, name: str, *, backlog_bytes: int, base_rtt_ps: int = 12 * US_PS, **parameters: Any) -> None:
        self.policy = load("congestion_control", name, parameters)
        self.state = self.policy.new_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes = RATE_BPS, 4_096
        self.signal.base_rtt_ps = self.signal.fabric_base_rtt_ps = base_rtt_ps
        self.state.rate_bps = RATE_BPS
        self.signal.backlog_bytes = backlog_bytes
        self.tell(Kind.START)

    def tell(self, kind: Kind, **fields: int) -> None:
        """Call the step; fields that only this signal has are 0 afterwards."""
        self.signal.kind = int(kind)
        for name, value in fields.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal)
        for name in ("bytes", "arrived_bytes", "lost_bytes"):
            setattr(self.signal, name, 0)

    def sends(self, packets: int = 1, *, again: bool = False) -> None:
        """Send packets of the backlog, or lost ones again."""
        for _ in range(packets):
            self.signal.inflight_bytes += 4_096
            if not again:
                self.signal.backlog_bytes -= 4_096
                self.signal.next_seq += 1
            self.tell(Kind.SEND, bytes=4_096, seq=self.signal.next_seq - 1)

    def arrives(self, packets: int = 1) -> None:
        """Hear that packets have arrived."""
        self.signal.inflight_bytes -= packets * 4_096
        self.tell(Kind.ACK, bytes=packets * 4_096, arrived_bytes=packets * 4_096)

    def is_cut(self) -> None:
        """Hear that a packet was cut."""
        self.signal.inflight_bytes -= 4_096
        self.tell(Kind.TRIM, bytes=4_096, lost_bytes=4_096)

    def times_out(self) -> None:
        """Lose all that is in flight."""
        lost_bytes, self.signal.inflight_bytes = self.signal.inflight_bytes, 0
        self.tell(Kind.TIMEOUT, lost_bytes=lost_bytes)

    @property
    def may_send(self) -> int:
        """Full packets that the window allows now."""
        return int(self.state.window_bytes - self.signal.inflight_bytes) // 4_096


class ReceivingNic:
    """Receiving queue pairs that share one pacer, and a clock that fires their timers."""

    def __init__(self, name: str, pairs: int, **parameters: Any) -> None:
        self.policy: LoadedPolicy = load("congestion_control", name, parameters)
        self.states = [self.policy.new_receiver_state() for _ in range(pairs)]
        self.shared = self.policy.new_shared_state()
        self.signal = self.policy.new_signal()
        self.signal.line_rate_bps, self.signal.mtu_bytes, self.signal.base_rtt_ps = RATE_BPS, 4_096, 12 * US_PS
        self.grants: list[tuple[int, int, int]] = []  # instant, queue pair, bytes

    def hear(self, kind: Kind, pair: int, **fields: int) -> None:
        """Tell a queue pair that something has come."""
        self.signal.kind = int(kind)
        for field in ("request_bytes", "ecn", "last_hop"):
            setattr(self.signal, field, fields.get(field, 0))
        before = self.states[pair].credit_bytes
        self.policy.call_receive(self.states[pair], self.shared, self.signal)
        if self.states[pair].credit_bytes > before or self.states[pair].send_credit:
            self.grants.append((self.signal.now_ps, pair, self.states[pair].credit_bytes - before))
            self.states[pair].send_credit = 0

    def run_to(self, now_ps: int) -> None:
        """Fire what is due, in order of time and queue pair."""
        while True:
            due = [(s.timer_at_ps[0], pair) for pair, s in enumerate(self.states) if s.timer_at_ps[0] != OFF]
            if not due or min(due)[0] > now_ps:
                break
            self.signal.now_ps, pair = min(due)
            self.states[pair].timer_at_ps[0] = OFF
            self.hear(Kind.TIMER, pair)
        self.signal.now_ps = now_ps


def pacer_ps(credit_bytes: int) -> int:
    """Time of the pacer for so much credit, by hand: its packets of 4,096 B and 86 B at 99 Gb/s, and rounded up."""
    return int(credit_bytes / 4_096 * 4_182 * 8 / 99e9 * 1e12) + 1


def star(hosts: int, *, queue_bytes: int = 150_000, loss: float = 0.0, delay_ps: int = 2_650_000) -> Fabric:
    """Hosts around one switch with queues of so many bytes; the base RTT is 12 us less the rest of the store."""
    room = 2 * (hosts + 1)
    switch = Switch(
        forwarding_latency_ps=0, buffer_bytes=queue_bytes * room, egress_alpha=1 / room, ecn=Ecn(kmin_bytes=queue_bytes)
    )
    return wired(
        [(host, hosts) for host in range(hosts)], hosts=hosts, rates_bps=[RATE_BPS] * hosts,
        delays_ps=[delay_ps] * hosts, loss=loss, switch=switch, nic=Nic(receive_latency_ps=0),
    )  # fmt: skip


def incast(senders: int, size_bytes: int) -> list[Message]:
    """Hosts 0 and up send to the host after them."""
    return [Message(source=source, destination=senders, size_bytes=size_bytes) for source in range(senders)]


def plan(
    fabric: Fabric,
    messages: Sequence[Message],
    control: str,
    *,
    transport: Transport = UET,
    until_ps: int = NEVER_PS,
    **parameters: Any,
) -> PacketInput:
    """An engine input with one of the controls, whose pacer knows the header of the transport."""
    given = {} if control in {"none", "fixed-window"} else {"overhead_bytes": HEADER_BYTES}
    return lower(
        fabric=fabric,
        job=sends(len(fabric.hosts), messages),
        transport=transport,
        congestion_control=load("congestion_control", control, given | parameters),
        settings=EngineSettings(port_selection=load("port_selection", "ecmp"), until_ps=until_ps),
    )
